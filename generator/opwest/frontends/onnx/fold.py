# SPDX-License-Identifier: Apache-2.0
"""From a parsed file to operators with known shapes; what depends on constants and shapes only is computed here."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

import numpy as np

from opwest.base.result import counted
from opwest.compiler.graph.types import MAX_ELEMENTS, Damaged, Unsupported
from opwest.compiler.graph.user import Use, UserOperator
from opwest.frontends.onnx import control, quantised
from opwest.frontends.onnx.file import attributes_of, opsets, parse, schema_of
from opwest.frontends.onnx.values import Item, Model, Op, Origin, constant_item
from opwest.frontends.onnx.windows import count_with_ceiling

_NOT_FOLDED = frozenset(("DequantizeLinear", "RandomNormal", "RandomUniform", "Bernoulli", "Multinomial", "Dropout"))
_SAME_SHAPE = frozenset(("Gelu", "FastGelu", "QuickGelu", "BiasGelu", "GroupNormalization"))
"""Operators without an inference of their own, whose result has the shape of the first input."""
_MAX_KNOWN = 4096
"""The most elements of a constant that can determine a shape."""


def read_model(content: bytes, users: Mapping[str, UserOperator] | None = None) -> Model:
    """Return the model of a file; `users` are operators of the user by name. Raises Damaged, Unsupported."""
    return Reader(*parse(content), users or {}).read()


def dtype_of(number: int) -> str:
    """Return the name of numpy for a number of TensorProto.DataType."""
    import onnx

    try:
        return str(onnx.helper.tensor_dtype_to_np_dtype(number))
    except KeyError:
        raise Damaged(f"the unknown dtype {number}") from None


class Reader:
    """The operators and the tensors of a file, in the making."""

    def __init__(
        self,
        model: Any,
        declared: Mapping[str, Any],
        users: Mapping[str, UserOperator],
        origins: Mapping[str, Origin] | None = None,
    ) -> None:
        self.model = model
        self.declared = declared
        self.users = users
        self.origins = origins or {}
        """The operators of another format, by the first result of their operators of ONNX."""
        self.names: set[str] = set()
        self.versions = opsets(model)
        self.items: dict[str, Item] = {}
        self.remarks: list[str] = []
        self.ops: list[Op] = []
        self.taken = 0
        """The number of operators that control flow has added."""

    def read(self) -> Model:
        """Return the model. Raises Damaged, Unsupported."""
        graph = self.model.graph
        for tensor in graph.initializer:
            self.constant(tensor, tensor.name)
        for sparse in graph.sparse_initializer:
            raise Unsupported(f"the sparse tensor '{sparse.values.name}'", "dense tensors")
        inputs = [self._interface(value) for value in graph.input if value.name not in self.items]
        for number, node in enumerate(graph.node):
            self.node(node, number)
        outputs = []
        for value in graph.output:
            item = self.items.get(value.name)
            if item is None:
                raise Damaged(f"the output '{value.name}' is not computed")
            outputs.append(item)
        if not outputs:
            raise Damaged("no output")
        return Model(tuple(inputs), tuple(outputs), tuple(self.ops), tuple(self.remarks), frozenset(self.names))

    def constant(self, tensor: Any, name: str) -> None:
        """Add a constant."""
        self.items[name] = constant_of(tensor, name)

    def node(self, node: Any, number: int) -> None:
        """Add an operator of the file, or what it stands for."""
        user = self._user(node)
        if user is not None:
            self._node(node, number, node, user)
            return
        if control.resolve(node, number, self):
            return
        for expanded in quantised.expand(node, number):
            self._node(expanded, number, node)

    def _interface(self, value: Any) -> Item:
        """Return an input of the model; an unknown first dimension is 1."""
        kind = value.type.tensor_type
        if not value.type.HasField("tensor_type") or not kind.HasField("shape"):
            raise Unsupported(f"the input '{value.name}' is not a tensor with a shape", "a tensor with a shape")
        shape = _sizes(kind)
        if len(shape) > 8:
            raise Damaged(f"the input '{value.name}' has {counted(len(shape), 'dimension')}, at most 8 are possible")
        if shape and shape[0] < 1:
            shape[0] = 1
            self.remarks.append(f"input '{value.name}' of shape {_text(kind)} is imported as {shape}")
        if any(n < 1 for n in shape) or prod(shape) > MAX_ELEMENTS:
            raise Unsupported(
                f"the input '{value.name}' has the shape {_text(kind)}",
                "fixed dimensions",
                "fix them: python -m onnxruntime.tools.make_dynamic_shape_fixed",
            )
        self.items[value.name] = Item(value.name, dtype_of(kind.elem_type), tuple(shape))
        return self.items[value.name]

    def _user(self, node: Any) -> UserOperator | None:
        """Return the operator of the user for a node, by its name or by its domain and its name."""
        named = [node.op_type]
        if node.domain not in ("", "ai.onnx"):
            named.append(f"{node.domain}.{node.op_type}")
        self.names.update(named)
        return next((self.users[name] for name in reversed(named) if name in self.users), None)

    def _node(self, node: Any, number: int, source: Any, user: UserOperator | None = None) -> None:
        """Append an operator, or add its results to the constants; `source` is the operator of the file."""
        kind = source.op_type
        if node.op_type == "Constant" and user is None:
            self._constant(node)
            return
        inputs = []
        for name in node.input:
            if name and name not in self.items:
                raise Damaged(f"operator {number} ({kind}) reads '{name}', which no earlier operator computes")
            inputs.append(self.items[name] if name else None)
        domain = "" if node.domain == "ai.onnx" else node.domain
        origin = self.origins.get(next((name for name in node.output if name), ""))
        try:
            if user is None and (origin is None or origin.refusal is None) and self._fold(node, domain, inputs):
                return
        except Damaged as reason:
            if origin is None:
                raise
            origin = dataclasses.replace(origin, refusal=Unsupported(str(reason)))
        shown = next((name for name in node.output if name), "")
        named = f" '{node.name}'" if node.name else ""
        label = f"{number}{named} ({kind})" + (f", result '{shown}'" if shown and not named else "")
        if origin is not None:
            label = origin.label
        types: Mapping[str, Any] = {} if origin is None else origin.types
        try:
            if user is None and (origin is None or origin.refusal is None):
                types = self._types(node, domain, inputs)
            elif origin is None and user is not None:
                types = self._declared_types(node, user)
        except Damaged as reason:
            if origin is None:
                raise
            origin = dataclasses.replace(origin, refusal=Unsupported(str(reason)))
        if user is None:
            self._compare_shapes(label, types)
        outputs = [Item(name, *types.get(name, ("float32", None))) if name else None for name in node.output]
        self.items.update((item.name, item) for item in outputs if item is not None)
        while outputs and outputs[-1] is None:
            outputs.pop()
        try:
            attributes = {name: _attribute(value) for name, value in attributes_of(node).items()}
        except Exception as error:
            raise Damaged(f"operator {label} has a damaged attribute ({error})") from None
        # Operators of other domains keep the domain in their name.
        name = node.op_type if domain in ("", "com.microsoft") else f"{domain}.{node.op_type}"
        version = self.versions.get(domain, 1)
        use = None if user is None else Use(user, _numbers(attributes))
        made = Op(name, version, tuple(inputs), tuple(outputs), attributes, label, use, node is not source, origin)
        self.ops.append(made)

    def _constant(self, node: Any) -> None:
        from onnx import helper

        [attribute] = node.attribute or [None]
        name = node.output[0]
        if attribute is None:
            raise Damaged(f"the constant '{name}' has no value")
        value = helper.get_attribute_value(attribute)
        if attribute.name == "value":
            self.items[name] = constant_of(value, name)
            return
        dtype = {"value_int": "int64", "value_ints": "int64", "value_float": "float32", "value_floats": "float32"}
        if attribute.name not in dtype:
            raise Damaged(f"the constant '{name}' has the attribute '{attribute.name}'")
        array = np.asarray(value, dtype[attribute.name])
        self.items[name] = constant_item(name, array)

    def _fold(self, node: Any, domain: str, inputs: list[Item | None]) -> bool:
        """Compute a node whose results are known; return whether it was."""
        first = inputs[0] if inputs else None
        if node.op_type in ("Shape", "Size") and first is not None and first.shape is not None:
            limits = attributes_of(node)
            shape = np.asarray(first.shape, np.int64)[limits.get("start", 0) : limits.get("end")]
            array = shape if node.op_type == "Shape" else np.asarray(first.size, np.int64)
            self.items[node.output[0]] = constant_item(node.output[0], array)
            return True
        if domain or node.op_type in _NOT_FOLDED or any(item is not None and item.content is None for item in inputs):
            return False
        if any(attribute.HasField("g") or attribute.graphs for attribute in node.attribute):
            return False
        sizes = self._types(node, domain, inputs)
        if any(name and sizes.get(name, ("", None))[1] is None for name in node.output):
            return False
        if _divides_by_zero(node, inputs):
            return False
        arrays = {name: item.content for name, item in zip(node.input, inputs, strict=True) if item is not None}
        results = evaluated(node, arrays, self.versions[""])
        if results is None:
            return False
        for name, array in zip(node.output, results, strict=False):
            if name:
                self.items[name] = constant_item(name, np.asarray(array))
        return True

    def _declared_types(self, node: Any, user: UserOperator) -> dict[str, tuple[str, Any]]:
        """Return dtype and shape of the results of an operator of the user: those of the file, else of the snippet."""
        written = [argument for argument in user.arguments if argument.direction == "out"]
        types = {}
        for number, name in enumerate(name for name in node.output if name):
            argument = written[number] if number < len(written) else None
            dtype, shape = ("float32", None) if argument is None else (argument.dtype, argument.shape)
            declared = self.declared.get(name)
            if declared is not None:
                kind = declared.tensor_type
                dtype = dtype_of(kind.elem_type) if kind.elem_type else dtype
                sizes = tuple(_sizes(kind))
                if kind.HasField("shape") and len(sizes) <= 8 and all(n > 0 for n in sizes):
                    shape = sizes
            if shape is not None and prod(shape) > MAX_ELEMENTS:
                raise Damaged(
                    f"the tensor '{name}' has {counted(prod(shape), 'element')}, at most {MAX_ELEMENTS} are possible"
                )
            types[name] = (dtype, shape)
        return types

    def _compare_shapes(self, label: str, types: Mapping[str, tuple[str, Any]]) -> None:
        """Remark on shapes of the file that contradict those of the operators, which are used: as onnxruntime does."""
        for name, (_, shape) in types.items():
            declared = self.declared.get(name)
            if declared is None or shape is None or not declared.tensor_type.HasField("shape"):
                continue
            sizes = _sizes(declared.tensor_type)
            is_unequal = any(size > 0 and size != n for size, n in zip(sizes, shape, strict=False))
            if len(sizes) != len(shape) or is_unequal:
                given = f"'{name}' has the shape {_text(declared.tensor_type)} in the file"
                self.remarks.append(f"{given}, and operator {label} computes {list(shape)}")

    def _types(self, node: Any, domain: str, inputs: list[Item | None]) -> dict[str, tuple[str, Any]]:
        """Return dtype and shape of the results by name; the shape None if it is unknown."""
        first = inputs[0] if inputs else None
        if node.op_type in ("QuantizeLinear", "DequantizeLinear") and first is not None:
            return {node.output[0]: (_quantised_dtype(node, inputs), first.shape)}
        if domain in ("", "com.microsoft") and node.op_type in _SAME_SHAPE and first is not None:
            return {node.output[0]: (first.dtype, first.shape)}
        if domain == "com.microsoft" and node.op_type == "DynamicQuantizeLSTM":
            return dict(_lstm_types(node, inputs))
        if domain or node.op_type in control.KINDS:
            return {}
        types = dict(_inferred(node, self.versions[""], inputs))
        if node.op_type in ("MaxPool", "AveragePool") and first is not None:
            types = {name: (dtype, _pooled(node, first.shape, shape)) for name, (dtype, shape) in types.items()}
        return types


def _sizes(kind: Any) -> list[int]:
    """Return the dimensions of a type of tensors, -1 for an unknown one."""
    return [int(dim.dim_value) if dim.HasField("dim_value") else -1 for dim in kind.shape.dim]


def _text(kind: Any) -> str:
    """Return the dimensions of a type of tensors, as the file has them."""
    return "[" + ", ".join(str(dim.dim_param or dim.dim_value or "?") for dim in kind.shape.dim) + "]"


def _numbers(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes that are numbers, lists of numbers, tensors, and texts as bytes."""
    import onnx

    numbers: dict[str, Any] = {}
    for name, value in attributes.items():
        if isinstance(value, onnx.TensorProto):
            numbers[name] = constant_of(value, name).content
        elif isinstance(value, str):
            numbers[name] = list(value.encode())
        elif isinstance(value, (int, float)) or (
            isinstance(value, (list, tuple)) and all(isinstance(number, (int, float)) for number in value)
        ):
            numbers[name] = value
    return numbers


def _attribute(value: Any) -> Any:
    """Return the value of an attribute with texts for bytes."""
    if isinstance(value, list):
        return [_attribute(part) for part in value]
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def constant_of(tensor: Any, name: str) -> Item:
    """Return a constant. int4 and uint4 become 8-bit integers. Raises Damaged."""
    from onnx import numpy_helper

    try:
        array = numpy_helper.to_array(tensor)
    except Exception as error:  # any of numpy and onnx, for content that contradicts the shape
        raise Damaged(f"the tensor '{name}' has content that contradicts its shape ({error})") from None
    dtype = str(array.dtype)
    if dtype in ("int4", "uint4"):
        array = array.astype("int8" if dtype == "int4" else "uint8")
    return constant_item(name, array)


def _quantised_dtype(node: Any, inputs: list[Item | None]) -> str:
    """Return the dtype of the result of QuantizeLinear or DequantizeLinear."""
    if node.op_type == "DequantizeLinear":
        scale = inputs[1] if len(inputs) > 1 else None
        return "float32" if scale is None else scale.dtype
    zero = inputs[2] if len(inputs) > 2 else None
    if zero is not None:
        return zero.dtype
    number = attributes_of(node).get("output_dtype", 0)
    return dtype_of(number) if number else "uint8"


def _lstm_types(node: Any, inputs: list[Item | None]) -> Iterator[tuple[str, tuple[str, Any]]]:
    """Yield the results of an LSTM with weights [directions, length, 4 * hidden]."""
    data, weights = inputs[0], inputs[2]
    if data is None or weights is None or data.shape is None or weights.shape is None:
        return
    if len(data.shape) != 3 or len(weights.shape) != 3:
        return
    steps, batch, _ = data.shape
    count, hidden, _ = weights.shape
    for number, name in enumerate(node.output):
        yield name, ("float32", (count, batch, hidden) if number else (steps, count, batch, hidden))


def _inferred(node: Any, version: int, inputs: list[Item | None]) -> Iterator[tuple[str, tuple[str, Any]]]:
    """Yield names with dtype and shape, from the operator's own inference in the package `onnx`."""
    from onnx import helper, numpy_helper, shape_inference

    schema = schema_of(node.op_type, version)
    if schema is None:
        return  # reported as an unsupported operator
    if any(not any(kind.startswith("tensor(") for kind in port.types) for port in (*schema.inputs, *schema.outputs)):
        return  # sequences and optional values; reported as an unsupported operator
    types, data = {}, {}
    for name, item in zip(node.input, inputs, strict=True):
        if item is None:
            continue
        types[name] = helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(np.dtype(item.dtype)), item.shape)
        if item.content is not None and item.size <= _MAX_KNOWN:
            data[name] = numpy_helper.from_array(np.asarray(item.content), name)
    try:
        types_of_results = shape_inference.infer_node_outputs(
            schema, node, types, data, opset_imports=[helper.make_opsetid("", version)]
        )
    except Exception as error:  # InferenceError, RuntimeError
        text = " ".join(str(error).split())
        raise Damaged(f"operator '{node.name or node.op_type}' has inputs that do not match: {text[:300]}") from None
    for name, result in types_of_results.items():
        kind = result.tensor_type
        dims = _sizes(kind)
        known = kind.HasField("shape") and all(n >= 0 for n in dims)
        if known and prod(dims) > MAX_ELEMENTS:
            raise Damaged(
                f"the tensor '{name}' has {counted(prod(dims), 'element')}, at most {MAX_ELEMENTS} are possible"
            )
        yield name, (dtype_of(kind.elem_type) if kind.elem_type else "float32", tuple(dims) if known else None)


def _pooled(node: Any, data: Any, inferred: Any) -> Any:
    """Return the shape of a pool: with ceil_mode no window starts in the padding after the data.

    The inference of the package `onnx` has that rule in newer opsets only, onnxruntime and PyTorch in all.
    """
    values = attributes_of(node)
    automatic = values.get("auto_pad", b"NOTSET")
    if data is None or inferred is None or not values.get("ceil_mode", 0) or automatic != b"NOTSET":
        return inferred
    kernel, rank = values["kernel_shape"], len(data) - 2
    pads = values.get("pads", [0] * 2 * rank)
    strides, dilations = values.get("strides", [1] * rank), values.get("dilations", [1] * rank)
    result = list(inferred)
    for axis in range(rank):
        start = data[2 + axis] + pads[axis]
        reach = (kernel[axis] - 1) * dilations[axis] + 1
        result[2 + axis] = count_with_ceiling(start + pads[rank + axis], reach, strides[axis], start)
    return tuple(result)


def _divides_by_zero(node: Any, inputs: list[Item | None]) -> bool:
    """Return whether a division of integers fails in onnxruntime; numpy's quotient and rest would be 0."""
    divisor = inputs[1] if node.op_type in ("Div", "Mod") and len(inputs) > 1 else None
    if divisor is None or divisor.content is None or np.asarray(divisor.content).dtype.kind not in "iu":
        return False
    return bool((divisor.content == 0).any())


def evaluated(node: Any, arrays: dict[str, Any], version: int) -> Any:
    """Return the results of a node by the reference implementation; None if it has none."""
    from onnx import helper
    from onnx.reference import ReferenceEvaluator

    values = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in arrays.items()
    ]
    results = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
    graph = helper.make_graph([node], "fold", values, results)
    try:
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)])
        return ReferenceEvaluator(model).run(None, arrays)
    except Exception:  # an operator that the package does not have, or cannot compute
        return None
