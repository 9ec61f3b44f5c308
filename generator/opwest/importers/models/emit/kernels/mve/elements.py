# SPDX-License-Identifier: Apache-2.0
"""Sums and products of quantised values of equal shapes, 4 at a time."""

from __future__ import annotations

import numpy as np

from opwest.importers.models.emit.function import Call, Function, Parameter
from opwest.importers.models.emit.kernels.mve.layers import ITEMS
from opwest.importers.models.emit.registry import emits
from opwest.importers.models.emit.text import Lines
from opwest.importers.models.ir.elements import Product
from opwest.importers.models.ir.functions import AddQuantised
from opwest.importers.models.ir.operations import Elementwise
from opwest.importers.models.operators.fixed_point import Multiplier

Numbers = dict[str, int]


@emits(Elementwise, "mve-words")
def render(operation: Elementwise) -> Call | None:
    """Return the call; None for other functions and dtypes, and for operands that are repeated."""
    function, [result] = operation.function, operation.results
    if not isinstance(function, AddQuantised | Product) or result.dtype not in ITEMS:
        return None
    if any(one.size != result.size or one.dtype != result.dtype for one in operation.inputs):
        return None
    is_byte = result.dtype == "int8"
    code, numbers = Lines(), Numbers()
    if isinstance(function, AddQuantised):
        _sum(code, function, numbers)
        base = "subtract" if function.subtract else "add"
    else:
        _product(code, function, numbers)
        base = "multiply"
    given = function.numbers
    numbers.update(zero=given.zero, low=given.low, high=given.high)
    code.add("value = vaddq_n_s32(value, zero);")
    code.add("return vminq_s32(vmaxq_s32(value, vdupq_n_s32(low)), vdupq_n_s32(high));")
    listed = list(numbers)
    name = _name(base, function)
    declared = Lines()
    # One load of each number before the loop: compilers keep them in registers.
    declared.add(*(f"const int32_t {one} = numbers[{place}];" for place, one in enumerate(listed)), "")
    parameters = ", ".join(["int32x4_t a", "int32x4_t b", *(f"int32_t {one}" for one in listed)])
    text = f"static inline int32x4_t {name}({parameters})\n{{\n{code}}}\n"
    lines, size = Lines(), result.size
    lines.add(*str(declared).replace("\t", "").splitlines())
    letter, arguments = "b" if is_byte else "h", ", ".join(listed)
    whole = size // 4 * 4
    call = f"{name}({{}}, {arguments})"
    if whole:
        with lines.loop("i", whole, 4):
            lines.add(f"const int32x4_t x = vldr{letter}q_s32(a + i), y = vldr{letter}q_s32(b + i);", "")
            lines.add(f"vstr{letter}q_s32(result + i, {call.format('x, y')});")
    if size > whole:
        lines.add(f"const mve_pred16_t some = vctp32q({size - whole});")
        lines.add(f"const int32x4_t last = vldr{letter}q_z_s32(a + {whole}, some);")
        lines.add(f"const int32x4_t other = vldr{letter}q_z_s32(b + {whole}, some);", "")
        lines.add(f"vstr{letter}q_p_s32(result + {whole}, {call.format('last, other')}, some);")
    made = Function(
        base,
        (
            Parameter("a", result.dtype),
            Parameter("b", result.dtype),
            Parameter("numbers", "int32"),
            Parameter("result", result.dtype, "out", ("a", "b")),
        ),
        str(lines),
        headers=("arm_mve.h",),
        definitions=(text,),
    )
    return Call(made, (*operation.inputs, np.asarray(list(numbers.values()), np.int32), result), operation.label)


def _name(base: str, function: AddQuantised | Product) -> str:
    """Return the name of the function of 4 values: it tells which instructions it has."""
    given = function.numbers
    if isinstance(function, AddQuantised):
        scalings = [*function.numbers.multipliers, function.numbers.result]
        base += f"_{function.numbers.left_shift}"
    else:
        scalings = [function.numbers.multiplier]
    kinds = ("same", "left", "right")
    words = [kinds[(one.shift > 0) - (one.shift < 0)] for one in scalings]
    return "_".join([f"mve_{base}", *words, *(["positive"] if given.low >= given.zero else [])])


def _scale(code: Lines, variable: str, by: Multiplier, name: str, numbers: Numbers, is_positive: bool = False) -> None:
    """Append a multiplication that rounds twice; `is_positive`: results of negative values are clamped later."""
    numbers[f"{name}_fixed"] = by.fixed
    if by.shift > 0:
        numbers[f"{name}_left"] = by.shift
        code.add(f"{variable} = vshlq_r_s32({variable}, {name}_left);")
    code.add(f"{variable} = vqrdmulhq_n_s32({variable}, {name}_fixed);")
    if by.shift < 0:
        numbers[f"{name}_right"] = by.shift
        if not is_positive:
            code.add(f"{variable} = vaddq_s32({variable}, vshrq_n_s32({variable}, 31));")
        code.add(f"{variable} = vrshlq_n_s32({variable}, {name}_right);")


def _sum(code: Lines, function: AddQuantised, numbers: Numbers) -> None:
    given = function.numbers
    for name, zero, by in zip("ab", given.zeros, given.multipliers, strict=True):
        numbers[f"{name}_start"] = -zero * (1 << given.left_shift)
        code.add(f"{name} = vaddq_n_s32(vshlq_n_s32({name}, {given.left_shift}), {name}_start);")
        _scale(code, name, by, name, numbers)
    code.add("", f"int32x4_t value = {'vsubq_s32' if function.subtract else 'vaddq_s32'}(a, b);", "")
    _scale(code, "value", given.result, "sum", numbers, given.low >= given.zero)


def _product(code: Lines, function: Product, numbers: Numbers) -> None:
    given = function.numbers
    for name, zero in zip("ab", given.zeros, strict=True):
        numbers[f"{name}_zero"] = zero
        code.add(f"{name} = vsubq_n_s32({name}, {name}_zero);")
    code.add("", "int32x4_t value = vmulq_s32(a, b);", "")
    _scale(code, "value", given.multiplier, "product", numbers, given.low >= given.zero)
