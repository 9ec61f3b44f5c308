# SPDX-License-Identifier: Apache-2.0
"""Scales of 8-bit data, and the activations that are part of the operator before them."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.importers.models.graph.faults import Unsupported
from opwest.importers.models.graph.types import Quantization
from opwest.importers.models.onnx.values import Op


def same_scale(one: Quantization | None, other: Quantization | None) -> bool:
    """Return whether two tensors have the same scales and zero points."""
    return one is not None and other is not None and (one.scales, one.zeros) == (other.scales, other.zeros)


def parameters(op: Op) -> tuple[Any, Any] | None:
    """Return scales and zero points of QuantizeLinear or DequantizeLinear, 1-d; None if they are not constant."""
    scale, zero = op.input(1), op.optional(2)
    if scale.content is None or (zero is not None and zero.content is None) or op.get("block_size", 0):
        return None
    scales = np.asarray(scale.content, np.float32)
    zeros = np.zeros(scales.shape, np.int64) if zero is None else np.asarray(zero.content).astype(np.int64)
    scales, zeros = scales.reshape(-1), zeros.reshape(-1)
    if not len(scales) or len(scales) != len(zeros):
        raise Unsupported(f"{len(scales)} scales and {len(zeros)} zero points")
    if not (np.isfinite(scales) & (scales > 0)).all():
        wrong = scales[~(np.isfinite(scales) & (scales > 0))][0]
        hint = "quantisers write it for infinite values: use a large number, such as -1e4 in the mask of an attention"
        raise Unsupported(f"scale {wrong:g}", "a positive number", hint if np.isinf(wrong) else "")
    return scales, zeros


def int8_of(op: Op) -> Quantization | None:
    """Return the quantisation of 8-bit data as int8, None for other dtypes and more than one scale."""
    item = op.output if op.kind == "QuantizeLinear" else op.input(0)
    found = parameters(op)
    if item.dtype not in ("int8", "uint8") or found is None or len(found[0]) != 1:
        return None
    return Quantization((float(found[0][0]),), (int(found[1][0]) - (128 if item.dtype == "uint8" else 0),))


RELUS: dict[tuple[float | None, float | None], str] = {
    (0.0, None): "RELU",
    (0.0, 6.0): "RELU6",
    (-1.0, 1.0): "RELU_N1_TO_1",
}
"""TFLite's operators and fused activations by their limits."""


def activation_of(op: Op) -> str | None:
    """Return TFLite's fused activation for an operator, None if there is none."""
    if op.kind == "Relu":
        return "RELU"
    if op.kind != "Clip":
        return None
    low, high = limits_of_clip(op)
    return RELUS.get((low, high))


def limits_of_clip(op: Op) -> tuple[float | None, float | None]:
    """Return the constant limits of Clip, None for none. Raises Unsupported."""
    found: list[float | None] = []
    for number, name, absent in ((1, "min", -3.4e38), (2, "max", 3.4e38)):
        value = op.constant(number, name)
        limit = None if value is None else float(np.asarray(value).reshape(-1)[0])
        if limit is not None and (limit <= absent if number == 1 else limit >= absent):
            limit = None
        found.append(limit)
    return found[0], found[1]


def table_of(source: Quantization, target: Quantization, function: Any) -> Any:
    """Return the int8 results of a float32 function for the int8 values -128 to 127, rounded as QuantizeLinear does."""
    values = np.arange(-128, 128).astype(np.float32) - np.float32(source.zero)
    real = values * np.float32(source.scale)
    with np.errstate(all="ignore"):
        found = np.asarray(function(real), np.float32) / np.float32(target.scale)
    found = np.nan_to_num(found, nan=0.0, posinf=1e9, neginf=-1e9)
    return np.clip(np.rint(found.astype(np.float64)) + target.zero, -128, 127).astype(np.int8)
