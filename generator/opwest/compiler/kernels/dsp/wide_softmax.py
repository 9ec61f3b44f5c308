# SPDX-License-Identifier: Apache-2.0
"""Softmax of int16 data: two samples of a table in one load, and their mean in one multiplication."""

from __future__ import annotations

import numpy as np

from opwest.compiler.emission.function import Call, Lines, call_of, emits
from opwest.compiler.ir.operations import Softmax16
from opwest.compiler.kernels.assembly import NAKED, naked
from opwest.compiler.kernels.lines import words_of

MAX_LEFT = 13
"""The places to the left by which a difference of 17 bits can be shifted, and doubled."""
MAX_LENGTH = 65536
"""The elements of a row whose powers, of 15 bits, have a sum of 31 bits."""


@emits(Softmax16, "dsp-softmax")
def render_softmax(operation: Softmax16) -> Call | None:
    """Return the call; None for long rows, and for multipliers that are 0 or shift too far."""
    data, numbers = operation.inputs[0], operation.numbers
    length, by = data.shape[-1], numbers.multiplier
    left, right = max(by.shift, 0), max(-by.shift, 0)
    if by.fixed == 0 or left > MAX_LEFT or right > 14 or length > MAX_LENGTH or data.size == 0:
        return None
    # Differences are not above 0: halves are rounded away from zero by 1 less than the half.
    addend = (32767 << right) + ((1 << (right - 1)) - 1 if right else 0)
    powers, results = _powers(left + 1, right), _results()
    lines = Lines()
    with lines.block(f"for (int row = 0; row < {data.size // length}; row++, data += {length}, result += {length})"):
        lines.add(f"const int32_t most = {_GREATEST[0]}(data, {length});")
        lines.add(f"const int32_t sum = {powers[0]}(data, result, powers + 256, {length}, most, numbers);")
        lines.add("const int zeros = __builtin_clz((uint32_t)sum);", "const int places = 31 - zeros;")
        lines.add("const int32_t x = (int32_t)((((int64_t)sum << (zeros - 1)) + (1 << 13)) >> 14) - 98304;")
        lines.add("const int32_t inverse = looked_up(clamp(x, -32768, 32767), inverses);", "")
        lines.add(f"{results[0]}(result, {length}, inverse, places);")
    tables = [(name, np.asarray(getattr(numbers, name), np.int16)) for name in ("powers", "inverses")]
    constants = [*tables, ("numbers", words_of([by.fixed, addend, 65535, 128]))]
    definitions = (NAKED, _GREATEST[1], powers[1], results[1])
    return call_of(
        operation,
        "softmax",
        lines,
        constants=constants,
        in_place=("data",),
        helpers=("clamp", "looked_up"),
        definitions=definitions,
    )


def _greatest() -> tuple[str, str]:
    """Return the function (data, length) of the greatest element: two at a time."""

    def greater(other: str) -> list[str]:
        return [f"ssub16 r12, {other}, r2", f"sel r2, {other}, r2"]

    lines = ["push {r4, lr}", f"mov r2, #{0x80008000:#x}", "subs r1, r1, #4", "blt 2f"]
    lines += ["1: ldr r3, [r0], #4", "ldr r4, [r0], #4", *greater("r3"), *greater("r4"), "subs r1, r1, #4", "bge 1b"]
    lines += ["2: ror r3, r2, #16", *greater("r3"), "sxth r2, r2", "adds r1, r1, #4", "beq 4f"]
    lines += ["3: ldrsh r3, [r0], #2", "cmp r3, r2", "it gt", "movgt r2, r3", "subs r1, r1, #1", "bne 3b"]
    name = "greatest_int16"
    definition = naked(
        name, ("const int16_t *data", "int32_t length"), [*lines, "4: mov r0, r2", "pop {r4, pc}"], "int32_t "
    )
    return name, definition


_GREATEST = _greatest()


def _powers(left: int, right: int) -> tuple[str, str]:
    """Return the function (data, results, middle of the powers, length, greatest, numbers): powers, and their sum.

    The numbers are multiplier, addend, 65535, 128. f * 65535 + 128 has the halfwords f and 128 - f, the weights of
    two samples.
    """

    def turn(count: int) -> list[str]:
        values, others = ("r8", "r9")[:count], ("r10", "r11")[:count]
        pairs = list(zip(values, others, strict=True))
        lines = [f"ldrsh {value}, [r0], #2" for value in values]
        lines += [f"rsb {value}, r12, {value}, lsl #{left}" for value in values]
        lines += [f"smmlar {value}, {value}, r4, r5" for value in values]
        lines += [f"ssat {value}, #16, {value}{f', asr #{right}' if right else ''}" for value in values]
        lines += [f"asr {other}, {value}, #7" for value, other in pairs]
        lines += [f"ldr {other}, [r2, {other}, lsl #1]" for other in others]
        lines += [f"and {value}, {value}, #127" for value in values]
        lines += [f"mla {value}, {value}, r6, r7" for value in values]
        lines += [f"smuad {value}, {value}, {other}" for value, other in pairs]
        lines += [f"add {value}, {value}, #64" for value in values]
        lines += [f"asr {value}, {value}, #7" for value in values]
        lines += [f"add lr, lr, {value}" for value in values]
        return [*lines, *(f"strh {value}, [r1], #2" for value in values)]

    lines = ["push {r4-r11, lr}", "ldr r12, [sp, #36]", f"lsl r12, r12, #{left}", "ldr r8, [sp, #40]"]
    lines += ["ldm r8, {r4-r7}", "mov lr, #0", "subs r3, r3, #2", "blt 2f"]
    lines += ["1:", *turn(2), "subs r3, r3, #2", "bge 1b", "2: adds r3, r3, #2", "beq 4f", *turn(1)]
    name = f"wide_powers_{left}_{right}"
    parameters = ("const int16_t *data", "int16_t *result", "const int16_t *powers", "int32_t length")
    more = ("int32_t most", "const int32_t *numbers")
    return name, naked(name, (*parameters, *more), [*lines, "4: mov r0, lr", "pop {r4-r11, pc}"], "int32_t ")


def _results() -> tuple[str, str]:
    """Return the function (powers, length, inverse, places), which replaces powers by probabilities."""

    def turn(count: int) -> list[str]:
        values = ("r4", "r5")[:count]
        lines = [f"ldrh {value}, [r0{f', #{2 * number}' if number else ''}]" for number, value in enumerate(values)]
        lines += [f"smlabb {value}, {value}, r2, r12" for value in values]
        for value in values:
            lines += [f"lsr {value}, {value}, r3", f"usat {value}, #15, {value}"]
        return [*lines, *(f"strh {value}, [r0], #2" for value in values)]

    lines = ["push {r4, r5, lr}", "sub r4, r3, #1", "mov r12, #1", "lsl r12, r12, r4", "subs r1, r1, #2", "blt 2f"]
    lines += ["1:", *turn(2), "subs r1, r1, #2", "bge 1b", "2: adds r1, r1, #2", "beq 4f", *turn(1)]
    name = "wide_probabilities"
    parameters = ("int16_t *powers", "int32_t length", "int32_t inverse", "int32_t places")
    return name, naked(name, parameters, [*lines, "4: pop {r4, r5, pc}"])
