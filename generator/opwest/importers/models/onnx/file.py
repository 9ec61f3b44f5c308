# SPDX-License-Identifier: Apache-2.0
"""The content of an ONNX file: parsed, checked, with limits. Source: onnx.proto, onnx/docs/IR.md."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from math import prod
from typing import Any

from opwest.importers.models.graph.faults import Damaged, Unsupported
from opwest.importers.models.onnx.values import MOST_ELEMENTS

LEAST_OPSET, GREATEST_OPSET = 11, 21
"""The tested opsets of ai.onnx. Newer ones are read as well if the package `onnx` has their operators."""
_MOST_NODES = 100_000
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
    versions = opsets(model)
    if not 0 < versions.get("", 0) <= onnx.defs.onnx_opset_version():
        found = versions.get("", 0) or "none"
        raise Unsupported(f"opset {found} of ai.onnx", f"opset {LEAST_OPSET} to {GREATEST_OPSET}")
    if len(model.graph.node) > _MOST_NODES:
        raise Unsupported(f"{len(model.graph.node)} operators", f"at most {_MOST_NODES}")
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
    if all(_is_known(node, versions) for node in model.graph.node):
        try:
            onnx.checker.check_model(model)
        except Exception as error:  # ValidationError, RuntimeError of protobuf
            text = " ".join(str(error).split())
            raise Damaged(text.partition(" ==>")[0][:300]) from None
    return model, declared


def opsets(model: Any) -> dict[str, int]:
    """Return the versions of the operators by domain; that of ai.onnx has the key ""."""
    return {"" if one.domain == "ai.onnx" else one.domain: int(one.version) for one in model.opset_import}


def _is_known(node: Any, versions: dict[str, int]) -> bool:
    """Return whether the checker has the operator; it stops at the first that it has not."""
    if node.domain not in ("", "ai.onnx"):
        return True
    return node.op_type in _first_versions() and _first_versions()[node.op_type] <= versions[""]


@functools.cache
def _first_versions() -> dict[str, int]:
    """Return the opset in which each operator of ai.onnx appeared."""
    import onnx

    found: dict[str, int] = {}
    for one in onnx.defs.get_all_schemas_with_history():
        if one.domain == "":
            found[one.name] = min(one.since_version, found.get(one.name, one.since_version))
    return found


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
            for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                yield from _tensors(inner)


def _check_tensor(tensor: Any) -> None:
    if tensor.data_location == _EXTERNAL or tensor.external_data:
        raise Unsupported(
            f"the tensor '{tensor.name}' is in another file",
            "all tensors in the model",
            "store them in it: onnx.save(onnx.load(path), path, save_as_external_data=False)",
        )
    if len(tensor.dims) > 8 or any(n < 0 for n in tensor.dims) or prod(tensor.dims) > MOST_ELEMENTS:
        raise Damaged(f"the tensor '{tensor.name}' has the impossible shape {list(tensor.dims)[:8]}")


@functools.cache
def other_attributes(kind: str, version: int) -> dict[str, Any]:
    """Return the attributes of an operator of ai.onnx that the newest tested opset lacks, and their defaults."""
    import onnx

    found = []
    for opset in (version, GREATEST_OPSET):
        try:
            found.append(onnx.defs.get_schema(kind, opset, "").attributes)
        except onnx.defs.SchemaError:
            found.append({})
    current, tested = found
    return {name: _default(one) for name, one in current.items() if name not in tested}


def _default(attribute: Any) -> Any:
    import onnx

    found = attribute.default_value
    value = onnx.helper.get_attribute_value(found) if found.name else None
    return value.decode() if isinstance(value, bytes) else value
