# SPDX-License-Identifier: Apache-2.0
"""Functions in RISC-V assembly with vector instructions, and the end of a layer in them.

They are equal for every float ABI of RV32. Vector registers, vl, vtype and vxrm need not be kept (psABI). Loops ask
for the length of a vector with VSETVLI, so that they are exact for every length of vector registers; the minimum of
Zve32x, 32 bits, is enough. Elements of the widest type use groups of 8 registers: v8, v16, v24, and v0 for what is
loaded; each type of the same elements has the same ratio of its width to the registers of its groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from opwest.compiler.ir.operations import Finish
from opwest.compiler.kernels.assembly import NAKED, naked
from opwest.compiler.kernels.mve.epilogue import Epilogue, epilogue_of

VECTOR = """\
/* The instructions are available whatever -march contains; clang needs it before version 17. */
#if defined(__clang__) && __clang_major__ < 17
#define OPWEST_VECTOR ".option push\\n"
#else
#define OPWEST_VECTOR ".option push\\n.option arch, +zve32x, +zicsr\\n"
#endif
"""
BASE = (NAKED, VECTOR)
"""The definitions before the first function."""
HEADER = ("zero", "low", "high", "fill", "channels", "length", "row", "pitch")
"""The int32 numbers before the arrays of a layer: the end, then sizes. row: bytes from one row of data to the next;
pitch: elements from one row of the result to the next."""
MAX_SHIFT = 31
"""The greatest shift of VNCLIP to 16 bits."""


def function(name: str, parameters: Sequence[str], lines: Iterable[str], comment: str, result: str = "void ") -> str:
    """Return a static function. Its parameters are in a0 to a7."""
    text = naked(name, parameters, [*lines, "ret", ".option pop"], result, "OPWEST_VECTOR ")
    return f"/* {comment} */\n{text}"


def saved(registers: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the lines that save registers on the stack, and those that restore them."""
    size = -(-4 * len(registers) // 16) * 16
    places = [f"{register}, {4 * place}(sp)" for place, register in enumerate(registers)]
    stores, loads = ([f"{name} {place}" for place in places] for name in ("sw", "lw"))
    return [f"addi sp, sp, -{size}", *stores], [*loads, f"addi sp, sp, {size}"]


def ending_of(finish: Finish, channels: int, bounds: Any) -> Epilogue | None:
    """Return the end of a layer with sums of magnitudes up to `bounds` [channels]; None: another form of end."""
    ending = epilogue_of(finish, channels, bounds)
    return None if ending is None or -ending.rights.min() > MAX_SHIFT else ending


def numbers_of(ending: Epilogue, bias: Any, fill: int, sizes: Sequence[int]) -> Any:
    """Return the header and the arrays of a layer: biases, multipliers, shifts to the left, 16-bit shifts."""
    arrays = [bias, ending.multipliers, *([ending.lefts] if ending.has_left else [])]
    words = [ending.numbers(fill), np.asarray(sizes), *arrays]
    shifts = np.pad(-ending.rights.astype(np.int16), (0, len(bias) % 2)).view(np.int32)
    return np.concatenate([*(part.astype(np.int32) for part in words), shifts])


def scaled(
    sums: Sequence[str], ending: Epilogue, pointer: str, stride: str, shifts: str, free: str, limits: Sequence[str]
) -> Iterator[str]:
    """Yield the code from sums to int8 results in the same groups; v0 to v7 are changed.

    `pointer`: the multipliers of the channels; it moves on by `stride` bytes to the shifts to the left. `shifts`: the
    16-bit shifts. `free`: a register that is changed. `limits`: zero point, least and greatest result.
    """
    zero, low, high = limits
    yield "vsetvli zero, zero, e32, m8, ta, mu"
    if ending.has_left:
        yield from (f"add {free}, {pointer}, {stride}", f"vle32.v v0, ({free})")
        yield from (f"vsll.vv {group}, {group}, v0" for group in sums)
    yield f"vle32.v v0, ({pointer})"
    multiply = "vsmul" if ending.is_doubled else "vmulh"
    yield from (f"{multiply}.vv {group}, {group}, v0" for group in sums)
    if ending.fix == "masked":
        yield from ("vsetvli zero, zero, e16, m4, ta, ma", f"vle16.v v4, ({shifts})", "vmsne.vi v1, v4, 0")
        yield "vsetvli zero, zero, e32, m8, ta, mu"
    for group in sums if ending.fix else ():
        yield f"vmslt.vx v0, {group}, zero"
        if ending.fix == "masked":
            yield "vmand.mm v0, v0, v1"
        yield f"vadd.vi {group}, {group}, -1, v0.t"
    yield "vsetvli zero, zero, e16, m4, ta, ma"
    if ending.fix != "masked":
        yield f"vle16.v v4, ({shifts})"
    yield from (f"vnclip.wv {group}, {group}, v4" for group in sums)
    yield from (f"vsadd.vx {group}, {group}, {zero}" for group in sums)
    yield "vsetvli zero, zero, e8, m2, ta, ma"
    yield from (f"vnclip.wi {group}, {group}, 0" for group in sums)
    if ending.has_clamp:
        yield from (f"vmax.vx {group}, {group}, {low}" for group in sums)
        yield from (f"vmin.vx {group}, {group}, {high}" for group in sums)


COPY = function(
    "copy_bytes",
    ("int8_t *to", "const int8_t *from", "int32_t size"),
    (
        "1: vsetvli t0, a2, e8, m8, ta, ma",
        "vle8.v v8, (a1)",
        "add a1, a1, t0",
        "sub a2, a2, t0",
        "vse8.v v8, (a0)",
        "add a0, a0, t0",
        "bnez a2, 1b",
    ),
    "Copy memory that does not overlap, or with `to` below `from`; return the end of `to`.",
    "int8_t *",
)
FILL = function(
    "fill_bytes",
    ("int8_t *to", "int32_t value", "int32_t size"),
    (
        "1: vsetvli t0, a2, e8, m8, ta, ma",
        "vmv.v.x v8, a1",
        "sub a2, a2, t0",
        "vse8.v v8, (a0)",
        "add a0, a0, t0",
        "bnez a2, 1b",
    ),
    "Fill memory; return its end.",
    "int8_t *",
)
SPREAD = function(
    "spread_bytes",
    ("int8_t *to", "const int8_t *from", "int32_t size", "int32_t times"),
    (
        "1: vsetvli t0, a2, e8, m8, ta, ma",
        "vle8.v v8, (a1)",
        "add a1, a1, t0",
        "sub a2, a2, t0",
        "mv t1, a3",
        "mv t2, a0",
        "2: vsse8.v v8, (t2), a3",
        "addi t2, t2, 1",
        "addi t1, t1, -1",
        "bnez t1, 2b",
        "mul t0, t0, a3",
        "add a0, a0, t0",
        "bnez a2, 1b",
    ),
    "Copy each of `size` bytes several times; return the end of `to`.",
    "int8_t *",
)
