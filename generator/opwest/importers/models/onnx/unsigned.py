# SPDX-License-Identifier: Apache-2.0
"""A model with the same results whose integer weights are uint8, for onnxruntime on x86-64 without VNNI.

There onnxruntime's layers with uint8 data and int8 weights saturate sums of two products at 16 bits, a fault of the
reference. Its option session.x64quantprecision prevents it by this rewriting, but only with optimisations. Source:
onnxruntime's core/optimizer/qdq_transformer/avx2_weight_s8_to_u8.cc.
"""

from __future__ import annotations

from typing import Any

import numpy as np

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
    """Return the content of a model whose constant int8 weights are uint8; the same content if it has none."""
    import onnx

    model = onnx.ModelProto.FromString(content)
    constants = {one.name: one for one in model.graph.initializer}
    changed: dict[str, str] = {}
    for node in model.graph.node:
        for weights, zero in _PLACES.get(node.op_type, ()):
            _change(model, constants, changed, node, weights, zero)
    return bytes(model.SerializeToString()) if changed else content


def _change(model: Any, constants: Any, changed: dict[str, str], node: Any, weights: int, zero: int) -> None:
    """Give a node uint8 weights; other readers of the constants keep theirs."""
    from onnx import TensorProto

    names = list(node.input)
    tensor = constants.get(names[weights]) if weights < len(names) else None
    if tensor is None or tensor.data_type != TensorProto.INT8:
        return
    offset = constants.get(names[zero]) if zero < len(names) and names[zero] else None
    if offset is None and zero < len(names) and names[zero]:
        return
    names += [""] * (zero + 1 - len(names))
    names[weights] = _moved(model, changed, names[weights], tensor)
    if offset is not None:
        names[zero] = _moved(model, changed, names[zero], offset)
    else:
        names[zero] = _added(model, changed, np.asarray(128, np.uint8), f"{names[weights]}/zero")
    del node.input[:]
    node.input.extend(names)


def _moved(model: Any, changed: dict[str, str], name: str, tensor: Any) -> str:
    """Return the name of a constant plus 128."""
    from onnx import numpy_helper

    values = (numpy_helper.to_array(tensor).astype(np.int16) + 128).astype(np.uint8)
    return _added(model, changed, values, f"{name}/unsigned")


def _added(model: Any, changed: dict[str, str], values: Any, name: str) -> str:
    from onnx import numpy_helper

    if name not in changed:
        changed[name] = name
        model.graph.initializer.append(numpy_helper.from_array(values, name))
    return name
