# SPDX-License-Identifier: Apache-2.0
"""Fold the nodes of an ONNX graph that compute shapes from shapes, which are constant for inputs of fixed shape.

PyTorch exports nearly every view as such nodes (Shape, Gather, Concat, Reshape). TVM computes them at run time.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

_LARGEST = 4096
"""The maximum number of elements of a shape; TVM folds larger arrays."""
_FOLDED = frozenset(
    """Abs Add And Cast Concat ConstantOfShape Div Equal Expand Floor Ceil Gather Greater Identity Less Max Min Mod Mul
    Neg Not Or Range ReduceMax ReduceMin ReduceProd ReduceSum Reshape Shape Size Slice Split Squeeze Sub Tile Transpose
    Unsqueeze Where""".split()
)


def fold_shapes(model: Any) -> Any:
    """Return a model without nodes that depend only on shapes and constants; the same model if it has none."""
    while True:
        known = _evaluated(model)
        if not known:
            return model
        model = _without(model, known)


def _evaluated(model: Any) -> dict[str, Any]:
    """Return the arrays of the tensors that nodes compute from shapes, by name."""
    from onnx import numpy_helper
    from onnx.reference import ReferenceEvaluator

    shapes = _static_shapes(model)
    known = {one.name: one for one in model.graph.initializer if math.prod(one.dims) <= _LARGEST}
    values: dict[str, Any] = {}
    outputs = {one.name for one in model.graph.output}
    for node in model.graph.node:
        name = node.output[0] if node.output else ""
        if node.op_type == "Constant" and any(a.name == "value" for a in node.attribute):
            tensor = next(a.t for a in node.attribute if a.name == "value")
            if math.prod(tensor.dims) <= _LARGEST:
                known[name] = tensor
        if node.op_type not in _FOLDED or node.domain not in ("", "ai.onnx") or outputs & set(node.output):
            continue
        inputs = [one for one in node.input if one]
        if node.op_type in ("Shape", "Size"):
            feeds = {inputs[0]: _placeholder(shapes[inputs[0]])} if inputs and inputs[0] in shapes else None
        elif all(one in values or one in known for one in inputs):
            feeds = {one: values[one] if one in values else numpy_helper.to_array(known[one]) for one in inputs}
        else:
            feeds = None
        if feeds is None:
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                results = ReferenceEvaluator(_alone(node, model)).run(None, feeds)
        except Exception:  # TVM can support operators that onnx's evaluator does not
            continue
        if all(array.size <= _LARGEST for array in results):
            values.update(zip(node.output, results, strict=True))
    return values


def _static_shapes(model: Any) -> dict[str, tuple[int, ...]]:
    """Return the shapes whose dimensions are all known after onnx's shape inference, by name."""
    import onnx

    try:
        graph = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    except Exception:  # use only the shapes in the file
        graph = model.graph
    found = {one.name: tuple(one.dims) for one in graph.initializer}
    for one in [*graph.input, *graph.value_info]:
        kind = one.type.tensor_type
        if kind.HasField("shape") and all(d.HasField("dim_value") and d.dim_value > 0 for d in kind.shape.dim):
            found[one.name] = tuple(d.dim_value for d in kind.shape.dim)
    return found


def _placeholder(shape: tuple[int, ...]) -> Any:
    """Return an array of a shape without allocating its elements."""
    import numpy as np

    return np.broadcast_to(np.zeros((), np.float32), shape)


def _alone(node: Any, model: Any) -> Any:
    """Return a model of one node."""
    from onnx import ValueInfoProto, helper

    inputs = [ValueInfoProto(name=name) for name in dict.fromkeys(node.input) if name]
    outputs = [ValueInfoProto(name=name) for name in node.output]
    return helper.make_model(helper.make_graph([node], "one", inputs, outputs), opset_imports=model.opset_import)


def _without(model: Any, known: dict[str, Any]) -> Any:
    """Return the model with constants instead of the known tensors."""
    from onnx import ModelProto, numpy_helper

    changed = ModelProto()
    changed.CopyFrom(model)
    kept = [node for node in changed.graph.node if not set(node.output) & set(known)]
    used = {name for node in kept for name in node.input}
    del changed.graph.node[:]
    changed.graph.node.extend(kept)
    changed.graph.initializer.extend(numpy_helper.from_array(known[name], name) for name in known if name in used)
    return changed
