# SPDX-License-Identifier: Apache-2.0
"""Lines of int8 values: products, squares of differences.

`function`: that of the operation. `is_swapped`: the first operand of the line is the second one of the function.
`content`: the elements of a constant second operand, as rows of the length of a line.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.compiler.ir.elements import Product, SquaredDifference
from opwest.compiler.kernels.lines import GROUP, End, Form, Line, Store, ends_of, exchanged, function_of, words_of
from opwest.compiler.kernels.scaling import product_scaling, scaling_of
from opwest.compiler.kernels.slopes import CODES
from opwest.compiler.semantics.arithmetic import HALF
from opwest.compiler.semantics.fixed_point import Requantisation, Rounding, scaled

_X = ("r5", "r6", "r7", "r8")


def product_line(function: Product, is_swapped: bool, form: Form, content: Any = None) -> Line | None:
    """Return the line of a product, whose one operand is doubled."""
    scaling = product_scaling(function)
    ends = None if scaling is None else ends_of(scaling, True)
    if scaling is None or ends is None:
        return None
    given = function.numbers
    multiplier, addend, shift = ends
    zeros = given.zeros[::-1] if is_swapped else given.zeros
    store = Store(8, given.low, given.high, shift)
    end = End("r4", "r11", scaling.is_signed, True)
    start = ["ldm r2, {r2, r4, r11, r12}"]
    group = ["ldr r5, [r0], #4"]
    if form is Form.PAIR:
        group.append("ldr r6, [r1], #4")
    group += ["sxtab16 r7, r12, r5", "sxtab16 r8, r12, r5, ror #8"]
    one = ["ldrsb r5, [r0], #1"]
    if form is Form.PAIR:
        group += ["sxtab16 r9, r2, r6", "sxtab16 r10, r2, r6, ror #8"]
        group += ["sadd16 r7, r7, r7", "sadd16 r8, r8, r8"]
        one += ["ldrsb r6, [r1], #1", "sadd16 r5, r5, r12", "sadd16 r6, r6, r2", "sadd16 r5, r5, r5"]
        factors = ("r9", "r10", "bb", "tt")
    elif form is Form.WORDS:
        group += ["ldr r9, [r1], #4", "ldr r10, [r1], #4"]
        one += ["ldrsh r6, [r1], #2", "sadd16 r5, r5, r12"]
        factors = ("r9", "r10", "bb", "tt")
    else:
        start += (
            ["ldrsh r2, [r1]"] if form is Form.WORD else ["ldrsb r5, [r1]", "sadd16 r2, r2, r5", "sadd16 r2, r2, r2"]
        )
        one += ["sadd16 r5, r5, r12"]
        factors = ("r2", "r2", "bb", "tb")
    first, second, low, high = factors
    group += [f"smul{low} r5, r7, {first}", f"smul{low} r6, r8, {second}"]
    group += [f"smul{high} r7, r7, {first}", f"smul{high} r8, r8, {second}"]
    one.append(f"smulbb r5, r5, {'r2' if form.is_single else 'r6'}")
    free = ("r9", "r10")
    for some in (_X[:2], _X[2:]):
        group += end.lines(some, free)
    group += store.lines(_X, free, 0)
    one += [*end.lines(("r5",), free), *store.lines(("r5",), free, 0)]
    name = f"product_{form.value}_{end.name}_{store.name}"
    definition = function_of(name, "int8", start, group, one)
    numbers = [zero & 0xFFFF | (zero & 0xFFFF) << 16 for zero in (-zeros[1], -zeros[0])]
    constants = words_of([numbers[0], multiplier, addend, numbers[1]])
    if not form.is_constant:
        return Line(name, definition, constants)
    return Line(name, definition, constants, _ordered(2 * (np.asarray(content, np.int16) - zeros[1]), form))


def _ordered(values: Any, form: Form) -> Any:
    """Return the values of a constant in the order in which SXTB16 widens four bytes: 0 and 2, then 1 and 3."""
    if form is Form.WORD:
        return values.astype(np.int16)
    length = values.shape[-1] // GROUP * GROUP
    groups = values[..., :length].reshape(*values.shape[:-1], -1, GROUP)[..., (0, 2, 1, 3)]
    return np.concatenate([groups.reshape(*values.shape[:-1], length), values[..., length:]], axis=-1).astype(np.int16)


def square_line(function: SquaredDifference, is_swapped: bool, form: Form, content: Any = None) -> Line | None:
    """Return the line of the squares of differences.

    One operand is shifted, the other one is an index of a table of 256 halfwords. The difference fits in 16 bits.
    """
    given = function.numbers
    order = (1, 0) if is_swapped else (0, 1)
    places = given.left_shift - 1
    tables = [
        scaled((CODES - given.zeros[place]) << given.left_shift, by.fixed, by.shift, Rounding.TWICE)
        for place, by in ((place, given.multipliers[place]) for place in order)
    ]
    is_shifted = [given.multipliers[place] == HALF for place in order]
    most = sum(int(np.abs(table).max()) for table in tables)
    scaling = scaling_of(
        Requantisation((given.result,), Rounding.TWICE, given.zero, given.low, given.high), [most * most], bits=31
    )
    ends = None if scaling is None else ends_of(scaling, False)
    if ends is None or most > 32767 or not any(is_shifted):
        return None
    if form is Form.PAIR and not is_shifted[0]:
        return exchanged(square_line(function, not is_swapped, form, content))
    # Of squares only the sums of 0 and more occur.
    end, store = End("r4", "r11", False, False), Store(8, given.low, given.high, ends[2])
    start = ["ldrd r4, r11, [r2], #8"]
    streams = "shifted" if is_shifted[0] else "table"
    # The zero point of the shifted operand is a part of the other one.
    offset = given.zeros[order[0]] << places if is_shifted[0] else 0
    other = tables[1] + offset
    stored = other if is_shifted[0] else tables[0]
    start += ["add r2, r2, #256"] if not (form.is_constant and is_shifted[0]) else []
    if form is Form.ROW:
        start += ["ldrsb r12, [r1]"]
        start += ["ldrsh r12, [r2, r12, lsl #1]"] if is_shifted[0] else [f"lsl r12, r12, #{places}"]
    elif form is Form.WORD:
        start += ["ldrsh r12, [r1]"]
    if form is Form.ROW and not is_shifted[0]:
        # The zero point of the single operand, which is shifted, is a part of the table.
        stored = stored + (given.zeros[order[1]] << places)

    def loads(registers: tuple[str, ...]) -> list[str]:
        pairs = list(zip(registers, ("r9", "r10"), strict=False))
        lines = [f"ldrsb {x}, [r0], #1" for x, _ in pairs]
        if form is Form.PAIR:
            lines += [f"ldrsb {z}, [r1], #1" for _, z in pairs]
            lines += [f"ldrsh {z}, [r2, {z}, lsl #1]" for _, z in pairs]
        elif form is Form.WORDS:
            lines += [f"ldrsh {z}, [r1], #2" for _, z in pairs]
        if not is_shifted[0]:
            lines += [f"ldrsh {x}, [r2, {x}, lsl #1]" for x, _ in pairs]
        for x, z in pairs:
            z = "r12" if form.is_single else z
            lines.append(f"rsb {x}, {z}, {x}, lsl #{places}" if is_shifted[0] else f"sub {x}, {x}, {z}")
        lines += [f"smulbb {x}, {x}, {x}" for x, _ in pairs]
        return [*lines, *end.lines(registers, ("r9", "r10"))]

    group = [*loads(_X[:2]), *loads(_X[2:]), *store.lines(_X, ("r9",), 0)]
    one = [*loads(_X[:1]), *store.lines(_X[:1], ("r9",), 0)]
    name = f"square_{form.value}_{streams}_{store.name}"
    constants = words_of([ends[0], ends[1]])
    if not (form.is_constant and is_shifted[0]):
        constants = np.concatenate([constants, np.ascontiguousarray(stored.astype(np.int16)).view(np.int32)])
    definition = function_of(name, "int8", start, group, one)
    if not form.is_constant:
        return Line(name, definition, constants)
    return Line(name, definition, constants, other[np.asarray(content, np.int64) + 128].astype(np.int16))
