# SPDX-License-Identifier: Apache-2.0
"""Binary arithmetic with broadcasting: the rows, and the numbers of quantised operands.

Sources in TFLite: kernels/add.cc, sub.cc, mul.cc, div.cc, squared_difference.cc, activations.cc (PreluPrepare);
internal/reference/add.h, sub.h, mul.h, div.h, prelu.h. Scales are divided and multiplied as float32 where TFLite does.

A division by 0 fails where it does in LiteRT: of integers, of quantised numbers, and FLOOR_DIV of float32. Where LiteRT
stops a model for another reason, the emitted C has a defined result: a negative integer exponent gives 0.
Faults of LiteRT 2.3, which are not reproduced:

========  =============  =======================================================================================
Operator  dtype          LiteRT
========  =============  =======================================================================================
ADD       int16          with scales that are powers of two it does not broadcast, and reads out of bounds
DIV       quantised      shifts by more than 31 places for small numerators: int8 3 / 91 gave -28, exact is -92.9
POW       int32          undefined above 2**31 - 1; the emitted C wraps
PRELU     int16          reads slopes as int8 in any dtype; int16 slopes are refused here
RELU6     quantised      6 / scale above 2**31 - 1 is undefined; the upper limit is that of the dtype here
LESS...   int8, uint8    shifts by a negative number of places for scales of 1 and more; the exact relation here
========  =============  =======================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.graph.spec import Operator, Result, broadcast, broadcast_inputs, specify
from opwest.compiler.graph.types import Node, Tensor, Unsupported
from opwest.compiler.semantics.fixed_point import (
    RANGES,
    Multiplier,
    activation_range,
    exponent_of,
    limits_of,
    one_quantization,
    quantize_multiplier,
)


def _sum(node: Node) -> Sequence[Result]:
    first = node.input(0)
    for tensor in node.inputs:
        if tensor is None or tensor.shape != first.shape:
            shown = "none" if tensor is None else list(tensor.shape)
            raise Unsupported(f"inputs {list(first.shape)} and {shown}", "equal shapes")
    return [(first.dtype, first.shape)]


def _prelu(node: Node) -> Sequence[Result]:
    data, slope = node.input(0), node.input(1)
    if broadcast((data.shape, slope.shape)) != data.shape:
        raise Unsupported(f"slopes {list(slope.shape)} for data {list(data.shape)}")
    return [(data.dtype, data.shape)]


def _pairs(*dtypes: str) -> tuple[str, ...]:
    return tuple(f"{dtype} {dtype}" for dtype in dtypes)


_QUANTISED = ("int8", "uint8", "int16")
_ACTIVATION = {"fused_activation_function": "NONE"}
_POT = {**_ACTIVATION, "pot_scale_int16": True}


def _multiply(node: Node) -> Sequence[Result]:
    [(dtype, shape)] = broadcast_inputs(node)
    if not has_high_product(node):
        return [(dtype, shape)]
    if node.input(0).shape != node.input(1).shape:
        raise Unsupported(f"int16 inputs of unequal shapes with {node.output.dtype} results", "equal shapes")
    high_product_numbers(node)
    return [(node.output.dtype, shape)]


def has_high_product(node: Node) -> bool:
    """Whether MUL has int16 inputs and an 8-bit result."""
    return node.input(0).dtype == "int16" and node.output.dtype in ("int8", "uint8")


specify(
    Operator("ADD", broadcast_inputs, _pairs("float32", *_QUANTISED, "int32", "int64"), _POT),
    Operator("SUB", broadcast_inputs, _pairs("float32", *_QUANTISED, "int32", "int64"), _POT),
    Operator("MUL", _multiply, _pairs("float32", *_QUANTISED, "int32", "int64", "uint32"), _ACTIVATION),
    Operator("DIV", broadcast_inputs, _pairs("float32", *_QUANTISED, "int32"), _ACTIVATION),
    Operator("MINIMUM", broadcast_inputs, _pairs("float32", *_QUANTISED, "int32", "int64")),
    Operator("MAXIMUM", broadcast_inputs, _pairs("float32", *_QUANTISED, "int32", "int64")),
    Operator("SQUARED_DIFFERENCE", broadcast_inputs, _pairs("float32", "int8", "int32")),
    Operator("FLOOR_DIV", broadcast_inputs, _pairs("float32", "int8", "int16", "int32")),
    Operator("FLOOR_MOD", broadcast_inputs, _pairs("float32", "int8", "int16", "int32", "int64")),
    Operator("POW", broadcast_inputs, _pairs("float32", "int32")),
    Operator("ADD_N", _sum, ("float32 float32 float32...", "int32 int32 int32...")),
    Operator("PRELU", _prelu, (*_pairs("float32", "int8", "uint8"), "int16 int8")),
)


def is_quantised(node: Node) -> bool:
    """Whether the operands are quantised; int16 without a scale is an integer."""
    dtype = node.output.dtype
    return dtype in ("int8", "uint8") or (dtype == "int16" and node.input(0).quantization is not None)


def forbidden_divisor(node: Node) -> int | None:
    """Return the stored value of a divisor with which a division fails; None if it has a result for each."""
    if node.kind == "DIV" and is_quantised(node):
        return one_quantization(node.input(1)).zero
    is_integer = node.output.dtype != "float32"
    return 0 if node.kind == "FLOOR_DIV" or (node.kind in ("DIV", "FLOOR_MOD") and is_integer) else None


def check_divisor(node: Node, divisor: Any) -> None:
    """Raise ValueError if a division fails."""
    value = forbidden_divisor(node)
    if value is not None and (divisor == value).any():
        raise ValueError("a divisor is 0")


def plain_limits(node: Node) -> tuple[float | None, float | None]:
    """Return the limits of a fused activation on plain numbers. Raises Unsupported."""
    activation = _activation(node)
    low, high = limits_of(activation)
    if node.output.dtype == "uint32" and low is not None:
        if low < 0:
            raise Unsupported(f"fused activation {activation} of uint32", "NONE, RELU, RELU6")
        low = None
    return low, high


HALF = Multiplier(1 << 30, 0)
"""The multiplier of the operand of a sum with the larger scale."""


@dataclass(frozen=True)
class AddNumbers:
    """The numbers of a quantised addition; every multiplication rounds twice."""

    left_shift: int
    """The places that both inputs are shifted to the left before their multiplications."""
    zeros: tuple[int, int]
    multipliers: tuple[Multiplier, Multiplier]
    result: Multiplier
    zero: int
    low: int
    high: int


def add_numbers(node: Node) -> AddNumbers:
    """Return the numbers of ADD or SUB for int8, uint8 and int16."""
    left_shift = 15 if node.input(0).dtype == "int16" else 20
    twice, target = _twice_greater_scale(node), one_quantization(node.output)
    limits = activation_range(_activation(node), node.output)
    result = _below_one(twice / ((1 << left_shift) * target.scale), twice / 2 / target.scale)
    return _common_scale(node, left_shift, result, limits)


def _activation(node: Node) -> str:
    return str(node.options["fused_activation_function"])


def _twice_greater_scale(node: Node) -> float:
    return 2 * max(one_quantization(node.input(i)).scale for i in (0, 1))


def _common_scale(node: Node, left_shift: int, result: Multiplier, limits: tuple[int, int]) -> AddNumbers:
    """Return the numbers of two operands that are divided by twice the greater scale."""
    first, second = (one_quantization(node.input(i)) for i in (0, 1))
    twice = _twice_greater_scale(node)
    multipliers = quantize_multiplier(first.scale / twice), quantize_multiplier(second.scale / twice)
    zero = one_quantization(node.output).zero
    return AddNumbers(left_shift, (first.zero, second.zero), multipliers, result, zero, *limits)


def _below_one(real: float, ratio: float, what: str = "scale of the inputs") -> Multiplier:
    """Return the multiplier of a result. Raises Unsupported where TFLite's QuantizeMultiplierSmallerThanOneExp aborts.

    SUB of LiteRT goes on with a left shift of 32-bit sums, which overflow.
    """
    multiplier = quantize_multiplier(real)
    if multiplier.shift > 0:
        limit = ratio / real
        raise Unsupported(f"the {what} is {ratio:g} times the scale of the result", f"less than {limit:g} times")
    return multiplier


@dataclass(frozen=True)
class ShiftNumbers:
    """The numbers of an int16 addition with scales that are powers of two: each input is shifted to the right."""

    places: tuple[int, int]
    low: int
    high: int


def shift_numbers(node: Node) -> ShiftNumbers | None:
    """Return the numbers of ADD or SUB for int16 with pot_scale_int16; None: the general rule applies.

    LiteRT does not run a model in which both inputs or the result would be shifted; tflite-micro uses the general rule.
    """
    if node.output.dtype != "int16" or not node.options["pot_scale_int16"]:
        return None
    tensors = node.input(0), node.input(1), node.output
    one, other, result = (exponent_of(one_quantization(tensor).scale) for tensor in tensors)
    if one is None or other is None or result is None:
        return None
    places = (result - one, result - other)
    if min(places) != 0 or max(places) > 15:
        return None
    return ShiftNumbers(places, *activation_range(_activation(node), node.output))


@dataclass(frozen=True)
class ProductNumbers:
    """The numbers of a quantised product or quotient, scaled with two roundings."""

    zeros: tuple[int, int]
    multiplier: Multiplier
    zero: int
    low: int
    high: int


def product_numbers(node: Node) -> ProductNumbers:
    """Return the numbers of MUL or DIV for int8, uint8 and int16."""
    first, second, target = (one_quantization(t) for t in (node.input(0), node.input(1), node.output))
    one, other, result = (np.float32(q.scale) for q in (first, second, target))
    with np.errstate(all="ignore"):
        real = one * other / result if node.kind == "MUL" else one / (other * result)
    low, high = activation_range(_activation(node), node.output)
    return ProductNumbers((first.zero, second.zero), quantize_multiplier(_finite(float(real))), target.zero, low, high)


@dataclass(frozen=True)
class HighProductNumbers:
    """The numbers of an 8-bit product of int16 values: its high bits, whatever the scales are."""

    zero: int
    low: int
    high: int


def high_product_numbers(node: Node) -> HighProductNumbers:
    """Return the numbers. Source: internal/reference/integer_ops/mul.h, "Mul with 16 bit inputs and int8_t outputs"."""
    target = one_quantization(node.output)
    return HighProductNumbers(target.zero, *activation_range(_activation(node), node.output))


def _finite(real: float) -> float:
    if not math.isfinite(real):
        raise Unsupported(f"the scales give the multiplier {real:g}", "at most 2**30")
    return real


def squared_difference_numbers(node: Node) -> AddNumbers:
    """Return the numbers of SQUARED_DIFFERENCE for int8: the difference of two scaled inputs is squared."""
    twice, target = _twice_greater_scale(node), one_quantization(node.output)
    left_shift = 7
    square = twice * twice
    result = _below_one(
        square / ((1 << left_shift * 2) * target.scale), square / 4 / target.scale, "squared scale of the inputs"
    )
    return _common_scale(node, left_shift, result, RANGES["int8"])


@dataclass(frozen=True)
class PreluNumbers:
    """The numbers of a quantised PRELU: inputs below zero are multiplied by a slope."""

    zeros: tuple[int, int]
    positive: Multiplier
    negative: Multiplier
    zero: int
    low: int
    high: int


def prelu_numbers(node: Node) -> PreluNumbers:
    """Return the numbers of PRELU for int8, uint8 and int16."""
    data, slope, target = (one_quantization(t) for t in (node.input(0), node.input(1), node.output))
    return PreluNumbers(
        (data.zero, slope.zero),
        float_multiplier(node.input(0), node.output),
        quantize_multiplier(
            _finite(float(np.float32(data.scale) * np.float32(slope.scale) / np.float32(target.scale)))
        ),
        target.zero,
        *RANGES[node.output.dtype],
    )


def float_multiplier(data: Tensor, result: Tensor) -> Multiplier:
    """Return the quotient of two scales, divided as float32."""
    source, target = one_quantization(data), one_quantization(result)
    return quantize_multiplier(_finite(float(np.float32(source.scale) / np.float32(target.scale))))
