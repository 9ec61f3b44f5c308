# SPDX-License-Identifier: Apache-2.0
"""Elementwise operators."""

from typing import Any

import numpy as np

from npu_model.commands import Registers, signed
from npu_model.faults import Invalid, Unsupported
from npu_model.memory import Memory, element_type, feature_map, zero_point
from npu_model.output import global_scale, has_global_scale, result, rounding_mode, store
from npu_model.rounding import check_mode, rescale, shifted_right

MUL, ADD, SUB, MIN, MAX, LRELU, ABS, CLZ, SHR, SHL = range(10)
_UNARY = (LRELU, ABS, CLZ)
_REVERSED, _SCALAR = 0x40, 0x80
_BOTH, _FIRST, _SECOND = 0, 1, 2
"""Which operand of ADD and SUB has a scale of 32 bits: none (both have 16 bits), the first, the second."""


def elementwise(registers: Registers, memory: Memory, mode: int) -> None:
    if mode > SHL:
        raise Invalid(f"{mode} is not a mode of an elementwise operator")
    shape = result(registers).shape
    depth = registers["IFM_DEPTH_M1"] + 1
    if depth != shape[2]:
        raise Invalid(f"an elementwise operator has an IFM of depth {depth}, an OFM of {shape[2]}")
    first = feature_map(registers, "IFM", shape).read(memory)
    if mode in _UNARY:
        values = _unary(registers, mode, first)
    else:
        second = _second(registers, memory, shape)
        if registers["IFM2_BROADCAST"] & _REVERSED:
            first, second = second, first
        values = _binary(registers, mode, *np.broadcast_arrays(first, second))
    store(registers, memory, values)


def _second(registers: Registers, memory: Memory, shape: tuple[int, int, int]) -> Any:
    """Return IFM2 without its zero point, with dimensions of 1 where it is repeated."""
    bits = registers["IFM2_BROADCAST"]
    if bits & _SCALAR:
        dtype, value = element_type(registers, "IFM2"), registers["IFM2_SCALAR"]
        value = signed(value, 16) if dtype.kind == "i" else value
        limits = np.iinfo(dtype)
        if not limits.min <= value <= limits.max:
            raise Invalid(f"IFM2_SCALAR {value} does not fit in the type of IFM2")
        return np.full((1, 1, 1), value - zero_point(registers, "IFM2"), np.int64)
    sizes = tuple(1 if bits >> i & 1 else size for i, size in enumerate(shape))
    return feature_map(registers, "IFM2", sizes).read(memory)


def _unary(registers: Registers, mode: int, values: Any) -> Any:
    rounding = rounding_mode(registers)
    if mode == CLZ:
        if element_type(registers, "IFM").itemsize != 4:
            raise Invalid("CLZ has an IFM that is not of 32 bits")
        bits = np.frexp(np.maximum(values, 0).astype(np.float64))[1]
        return np.where(values < 0, 0, 32 - bits).astype(np.int64)
    scale, shift = global_scale(registers)
    if mode == LRELU:
        return np.where(values < 0, rescale(values, scale, shift, rounding), values)
    return rescale(abs(values), scale, shift, rounding)


def _binary(registers: Registers, mode: int, first: Any, second: Any) -> Any:
    rounding = rounding_mode(registers)
    if mode in (MIN, MAX):
        return np.minimum(first, second) if mode == MIN else np.maximum(first, second)
    if mode in (SHR, SHL):
        return _shifted(mode, first, second, rounding)
    is_wide = element_type(registers, "IFM").itemsize == 4
    if mode != MUL and not is_wide:
        first, second = _operands(registers, first, second)
    values = first * second if mode == MUL else first + second if mode == ADD else first - second
    if not has_global_scale(registers):
        return values
    scale, shift = global_scale(registers)
    # Vela notes that the factor does not apply to operands of 32 bits, and gives those operators a shift alone.
    return rescale(values, 1 if is_wide else scale, shift, rounding)


def _operands(registers: Registers, first: Any, second: Any) -> tuple[Any, Any]:
    """Return the operands of ADD or SUB, of 8 or 16 bits, in a common scale.

    With one scale of 32 bits, the other operand is shifted to the left by 19 bits (8 bits) or 14 (16 bits), which is
    what Vela's scale of the result assumes: TensorFlow Lite's shift of 20 or 15 times the factor 1/2 of the larger
    scale. The scaled operand is rounded as TensorFlow Lite rounds it: after the same shift to the left.
    """
    scale, shift = registers["OPA_SCALE"] & 0xFFFFFFFF, registers["OPA_SCALE"] >> 32
    which = registers["IFM_PRECISION"] >> 8 & 3
    if which > _SECOND:
        raise Invalid(f"{which} is not a mode of the scales of operands")
    if which == _BOTH:
        other = registers["OPB_SCALE"]
        if scale > 0xFFFF or other > 0xFFFF or shift:
            raise Invalid("OPA_SCALE and OPB_SCALE are not factors of 16 bits")
        return first * scale, second * other
    left = 20 if element_type(registers, "IFM").itemsize == 1 else 15
    rounding = check_mode(registers["IFM_PRECISION"] >> 14)
    if shift + left > 63:
        raise Unsupported(f"the operand's shift is {shift}")

    def scaled(values: Any) -> Any:
        return rescale(values << left, scale, shift + left, rounding)

    if which == _FIRST:
        return scaled(first), second << (left - 1)
    return first << (left - 1), scaled(second)


def _shifted(mode: int, values: Any, counts: Any, rounding: int) -> Any:
    if (counts < 0).any() or (counts > 31).any():
        raise Unsupported(f"a shift by {int(counts.min())} to {int(counts.max())} bits")
    if mode == SHR:
        return shifted_right(values, counts, rounding)
    found = values << counts
    if (found != found.astype(np.int32)).any():
        raise Unsupported("the result of SHL does not fit in 32 bits")
    return found
