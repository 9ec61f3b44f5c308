# SPDX-License-Identifier: Apache-2.0
"""The content of an ONNX file: parsed, checked, with limits. Source: onnx.proto, onnx/docs/IR.md."""

from __future__ import annotations

import contextlib
import functools
import graphlib
import heapq
from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from opwest.base.result import counted
from opwest.compiler.graph.types import MAX_ELEMENTS, Damaged, Unsupported

_PLACES = {
    "MatMulInteger": ((1, 3),),
    "ConvInteger": ((1, 3),),
    "QLinearMatMul": ((3, 5),),
    "QLinearConv": ((3, 5),),
    "QGemm": ((3, 5),),
    "DynamicQuantizeLSTM": ((1, 9), (2, 11)),
    "DynamicQuantizeMatMul": ((1, 3),),
}
"""The inputs with weights and with their zero points."""


def with_unsigned_weights(content: bytes) -> bytes:
    """Return the content of a model whose constant int8 weights are uint8; the same content if it has none.

    Other readers of the constants keep theirs.
    """
    import onnx
    from onnx import numpy_helper

    model = onnx.ModelProto.FromString(content)
    constants = {constant.name: constant for constant in model.graph.initializer}
    added: set[str] = set()

    def add(values: Any, name: str) -> str:
        if name not in added:
            added.add(name)
            model.graph.initializer.append(numpy_helper.from_array(values, name))
        return name

    def moved(name: str) -> str:
        """Return the name of a constant plus 128."""
        values = numpy_helper.to_array(constants[name]).astype(np.int16) + 128
        return add(values.astype(np.uint8), f"{name}/unsigned")

    for node in model.graph.node:
        for weights, zero in _PLACES.get(node.op_type, ()):
            names = [*node.input, *[""] * (zero + 1 - len(node.input))]
            constant = constants.get(names[weights])
            has_int8 = constant is not None and constant.data_type == onnx.TensorProto.INT8
            if not has_int8 or (names[zero] and names[zero] not in constants):
                continue
            names[weights] = moved(names[weights])
            if names[zero]:
                names[zero] = moved(names[zero])
            else:
                names[zero] = add(np.asarray(128, np.uint8), f"{names[weights]}/zero")
            del node.input[:]
            node.input.extend(names)
    return bytes(model.SerializeToString()) if added else content


MIN_OPSET, MAX_OPSET = 11, 21
"""The tested opsets of ai.onnx. Newer ones are read as well if the package `onnx` has their operators."""
_MAX_NODES = 100_000
_SHOWN = 6
"""The most operators or faults in a message."""
_EXTERNAL = 1
"""TensorProto.EXTERNAL."""


def parse(content: bytes) -> tuple[Any, dict[str, Any]]:
    """Return the ModelProto, and the types that the file has for the results of operators, by name.

    Raises Unsupported, and Damaged for what the checker of the package `onnx` rejects.
    """
    import onnx

    try:
        model = onnx.ModelProto.FromString(content)
    except Exception as error:  # DecodeError of any implementation of protobuf
        raise Damaged(f"cannot read it as an ONNX model ({type(error).__name__})") from None
    if not model.HasField("graph") or (not model.graph.node and not model.graph.output):
        raise Damaged("no graph")
    _add_opset(model)
    versions = opsets(model)
    if not 0 < versions.get("", 0) <= onnx.defs.onnx_opset_version():
        version = versions.get("", 0) or "none"
        raise Unsupported(f"opset {version} of ai.onnx", f"opset {MIN_OPSET} to {MAX_OPSET}")
    if len(model.graph.node) > _MAX_NODES:
        raise Unsupported(f"{counted(len(model.graph.node), 'operator')}", f"at most {_MAX_NODES}")
    for tensor in _tensors(model.graph):
        _check_tensor(tensor)
    declared = {}
    for value in (*model.graph.value_info, *model.graph.output):
        if value.type.HasField("tensor_type"):
            declared[value.name] = onnx.TypeProto.FromString(value.type.SerializeToString())
    # Only the operators determine types: the checker requires more of them than onnxruntime does.
    del model.graph.value_info[:]
    for value in model.graph.output:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.shape.SetInParent()
    sort_nodes(model.graph)
    unknown = list(_unwritten(model.graph, frozenset()))
    if unknown:
        more = "; ..." if len(unknown) > _SHOWN else ""
        raise Damaged(f"{'; '.join(unknown[:_SHOWN])}{more}")
    if all(_is_known(node, versions) for node in model.graph.node):
        try:
            onnx.checker.check_model(model)
        except Exception as error:  # ValidationError, RuntimeError of protobuf
            text = " ".join(str(error).split())
            raise Damaged(text.partition(" ==>")[0][:300]) from None
    return model, declared


def opsets(model: Any) -> dict[str, int]:
    """Return the versions of the operators by domain; that of ai.onnx has the key ""."""
    return {"" if opset.domain == "ai.onnx" else opset.domain: int(opset.version) for opset in model.opset_import}


def _is_known(node: Any, versions: dict[str, int]) -> bool:
    """Return whether the checker has the operator; it stops at the first that it has not."""
    if node.domain not in ("", "ai.onnx"):
        return True
    schema = schema_of(node.op_type, versions[""])
    # The checker refuses operators that runtimes have, such as GroupNormalization before opset 21.
    return schema is not None and not schema.deprecated


@functools.cache
def schema_of(kind: str, version: int) -> Any:
    """Return the definition of an operator of ai.onnx; None if the opset has none."""
    import onnx

    try:
        return onnx.defs.get_schema(kind, version, "")
    except onnx.defs.SchemaError:
        return None


def _add_opset(model: Any) -> None:
    """Add the opset of ai.onnx to a model without operators of it, such as one of com.microsoft only."""
    if "" in opsets(model) or any(node.domain in ("", "ai.onnx") for node in _nodes(model.graph)):
        return
    model.opset_import.add(domain="", version=MAX_OPSET)


def _nodes(graph: Any) -> Iterator[Any]:
    """Yield the operators of a graph and of the graphs in its attributes."""
    for node in graph.node:
        yield node
        for inner in inner_graphs(node):
            yield from _nodes(inner)


def inner_graphs(node: Any) -> Iterator[Any]:
    """Yield the graphs in the attributes of an operator."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def attributes_of(node: Any) -> dict[str, Any]:
    """Return the attributes of an operator, texts as bytes."""
    import onnx

    return {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}


def sort_nodes(graph: Any) -> None:
    """Sort the operators of a graph, and of the graphs in it, so that each one reads results of earlier ones.

    Operators keep their order where that is possible. Raises Damaged for a cycle.
    """
    for node in graph.node:
        for inner in inner_graphs(node):
            sort_nodes(inner)
    writers = {name: number for number, node in enumerate(graph.node) for name in node.output if name}
    needed = [{writers[name] for name in reads_of(node) if name in writers} for node in graph.node]
    if all(before < number for number, sources in enumerate(needed) for before in sources):
        return
    sorter = graphlib.TopologicalSorter(dict(enumerate(needed)))
    with contextlib.suppress(graphlib.CycleError):  # reported below, with all operators that remain
        sorter.prepare()
    ready: list[int] = []
    order: list[int] = []
    while sorter.is_active():
        for number in sorter.get_ready():
            heapq.heappush(ready, number)
        order.append(heapq.heappop(ready))
        sorter.done(order[-1])
    if len(order) < len(needed):
        sorted_ = set(order)
        left = [f"{number} ({node.op_type})" for number, node in enumerate(graph.node) if number not in sorted_]
        more = ", ..." if len(left) > _SHOWN else ""
        raise Damaged(f"the operators {', '.join(left[:_SHOWN])}{more} read results of each other")
    nodes = [graph.node[number] for number in order]
    copies = [type(node).FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)


def _unwritten(graph: Any, outside: frozenset[str]) -> Iterator[str]:
    """Yield the faults of tensors that neither the graph nor the graphs around it have."""
    known = {value.name for value in (*graph.input, *graph.initializer)}
    known.update(sparse.values.name for sparse in graph.sparse_initializer)
    known.update(name for node in graph.node for name in node.output)
    every = outside | known
    for number, node in enumerate(graph.node):
        for name in node.input:
            if name and name not in every:
                yield f"operator {number} ({node.op_type}) reads '{name}', which nothing writes"
        for inner in inner_graphs(node):
            yield from _unwritten(inner, every)
    for value in graph.output:
        if value.name not in every:
            yield f"nothing writes the output '{value.name}'"


def reads_of(node: Any) -> set[str]:
    """Return the tensors that an operator reads, those that the graphs in it read from outside included."""
    names = {name for name in node.input if name}
    for inner in inner_graphs(node):
        own = {value.name for value in (*inner.input, *inner.initializer)}
        own.update(name for node in inner.node for name in node.output)
        names.update(name for node in inner.node for name in reads_of(node) if name not in own)
        names.update(value.name for value in inner.output if value.name not in own)
    return names


def _tensors(graph: Any) -> Iterator[Any]:
    """Yield all tensors of a graph and of the graphs in its attributes."""
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield sparse.values
        yield sparse.indices
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
        for inner in inner_graphs(node):
            yield from _tensors(inner)


def _check_tensor(tensor: Any) -> None:
    if tensor.data_location == _EXTERNAL or tensor.external_data:
        raise Unsupported(
            f"the tensor '{tensor.name}' is in another file",
            "all tensors in the model",
            "store them in it: onnx.save(onnx.load(path), path, save_as_external_data=False)",
        )
    if len(tensor.dims) > 8 or any(n < 0 for n in tensor.dims) or prod(tensor.dims) > MAX_ELEMENTS:
        raise Damaged(f"the tensor '{tensor.name}' has the impossible shape {list(tensor.dims)[:8]}")


@functools.cache
def other_attributes(kind: str, version: int) -> dict[str, Any]:
    """Return the attributes of an operator of ai.onnx that the newest tested opset lacks, and their defaults."""
    import onnx

    schemas = (schema_of(kind, opset) for opset in (version, MAX_OPSET))
    current, tested = ({} if schema is None else schema.attributes for schema in schemas)
    defaults = {name: attribute.default_value for name, attribute in current.items() if name not in tested}
    values = {name: onnx.helper.get_attribute_value(proto) if proto.name else None for name, proto in defaults.items()}
    return {name: value.decode() if isinstance(value, bytes) else value for name, value in values.items()}
