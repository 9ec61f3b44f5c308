# SPDX-License-Identifier: Apache-2.0
"""Copies of int16 data to blocks of words, interleaved by pixel, for tiles. Data is aligned to 2 bytes only."""

from __future__ import annotations

from opwest.compiler.kernels.assembly import naked, repeated

MAX_UNROLLED = 16
"""The words of a run that are copied without a loop."""
_TURN = 8
_PARAMETERS = ("uint32_t *to", "const int8_t *from", "int32_t words", "int32_t step")


def name_of_interleave(pixels: int, words: int) -> str:
    """Return the name of the function for rows of some words."""
    return f"interleave_{pixels}_by_{2 - words % 2}"


def interleave(pixels: int, words: int) -> str:
    """Return the function interleave_<pixels>_by_<unit>(to, from, words, step): rows that are `step` bytes apart.

    `unit`: the words of each row that are copied in a turn.
    """
    unit = 2 - words % 2
    sources = ["r1", "r3", "r12", "lr"][:pixels]
    third = ["add r12, r1, r3, lsl #1", "add lr, r12, r3"] if pixels > 2 else []
    lines = ["push {r4-r11, lr}", *third, "add r3, r1, r3", "1:"]
    data = [f"r{number}" for number in range(4, 4 + pixels * unit)]
    lines += [f"ldr {word}, [{sources[place % pixels]}], #4" for place, word in enumerate(data)]
    lines += [f"subs r2, r2, #{unit}", f"stm r0!, {{{', '.join(data)}}}", "bne 1b", "pop {r4-r11, pc}"]
    return naked(name_of_interleave(pixels, words), _PARAMETERS, lines)


def name_of_spread(pixels: int, words: int) -> str:
    """Return the name of a function."""
    return f"spread_{pixels}_{words}"


def spread(pixels: int, words: int) -> str:
    """Return the function spread_<pixels>_<words>(to, from, runs, skipped): one pixel of a block of `pixels`.

    `runs` times `words` words; between two runs are `skipped` bytes. `to` is the pixel's first word.
    """
    parameters = ("uint32_t *to", "const int8_t *from", "int32_t runs", "int32_t skipped")
    return naked(name_of_spread(pixels, words), parameters, _spread(4 * pixels, words))


def _spread(step: int, words: int) -> list[str]:
    turns, rest = divmod(words, _TURN) if words > MAX_UNROLLED else (0, words)
    two = ["ldr r12, [r1], #4", "ldr r4, [r1], #4", f"str r12, [r0], #{step}", f"str r4, [r0], #{step}"]
    lines = ["push {r4, r5}", "1:"]
    if turns:
        lines += [f"movw r5, #{turns}", "2:", *repeated(_TURN // 2, two), "subs r5, r5, #1", "bne 2b"]
    lines += repeated(rest // 2, two)
    if rest % 2:
        lines += ["ldr r12, [r1], #4", f"str r12, [r0], #{step}"]
    return [*lines, "add r1, r1, r3", "subs r2, r2, #1", "bne 1b", "pop {r4, r5}", "bx lr"]


def widen(pixels: int) -> str:
    """Return the function widen_<pixels>(to, from, words, step): `pixels` rows that are `step` bytes apart.

    Each group of four bytes becomes two words of each pixel: bytes 0 and 2, then 1 and 3. It returns the end of the
    written block.
    """
    if pixels == 2:
        lines = ["push {r4-r7}", "1: ldr r6, [r1, r3]", "ldr r4, [r1], #4", "subs r2, r2, #1"]
        lines += ["sxtb16 r7, r6, ror #8", "sxtb16 r5, r6", "sxtb16 r6, r4, ror #8", "sxtb16 r4, r4"]
        lines += ["stm r0!, {r4-r7}", "bne 1b", "pop {r4-r7}", "bx lr"]
    else:
        lines = ["push {r4-r11, lr}", "1: add lr, r1, r3, lsl #1"]
        lines += ["ldr r5, [r1, r3]", "ldr r6, [lr]", "ldr r7, [lr, r3]", "ldr r4, [r1], #4", "subs r2, r2, #1"]
        lines += [f"sxtb16 r{low + 4}, r{low}, ror #8" for low in range(4, 8)]
        lines += [f"sxtb16 r{low}, r{low}" for low in range(4, 8)]
        lines += ["stm r0!, {r4-r11}", "bne 1b", "pop {r4-r11, pc}"]
    return naked(f"widen_{pixels}", _PARAMETERS, lines, "uint32_t *")


def unit_of(words: int) -> int:
    """Return the words of a row that `widen_window` copies in a turn."""
    return 4 if words % 4 == 0 else 2 if words % 2 == 0 else 1


def name_of_widen_window(pixels: int, unit: int) -> str:
    """Return the name of a function."""
    return f"widen_window_{pixels}_by_{unit}"


def widen_window(pixels: int, unit: int) -> str:
    """Return the function widen_window_<pixels>_by_<unit>(to, from, words, rows, skipped): one pixel of a block.

    `rows` rows of `words` groups of four bytes, a multiple of `unit`; between two rows are `skipped` bytes. `to` is the
    pixel's first word.
    """
    parameters = ("uint32_t *to", "const int8_t *from", "int32_t words", "int32_t rows", "int32_t skipped")
    data = [f"r{number}" for number in range(4, 4 + unit)]
    lines = ["push {r4-r9}", "ldr r9, [sp, #24]", "1: mov r8, r2", "2:"]
    lines += [f"ldr {word}, [r1], #4" for word in data]
    lines.append(f"subs r8, r8, #{unit}")
    for word in data:
        lines += [f"sxtb16 r12, {word}, ror #8", f"sxtb16 {word}, {word}"]
        lines += [f"str r12, [r0, #{4 * pixels}]", f"str {word}, [r0], #{8 * pixels}"]
    lines += ["bne 2b", "add r1, r1, r9", "subs r3, r3, #1", "bne 1b", "pop {r4-r9}", "bx lr"]
    return naked(name_of_widen_window(pixels, unit), parameters, lines)


def name_of_widen_groups(pixels: int, words: int) -> str:
    """Return the name of a function."""
    return f"widen_groups_{pixels}_by_{words}"


def widen_groups(pixels: int, words: int) -> str:
    """Return the function widen_groups_<pixels>_by_<words>(to, from, numbers): one pixel of the blocks of all groups.

    A column of a window has `words` groups of four bytes for each group. The numbers are rows, columns and groups of a
    window, bytes of `to` from the end of a group to the next one and back to the next column, bytes of `from` between
    two columns and between two rows.
    """
    parameters = ("uint32_t *to", "const int8_t *from", "const int32_t *numbers")
    lines = ["push {r4-r11, lr}", "ldm r2, {r3-r9}", "1: mov r10, r4", "2: mov r11, r5", "3:"]
    for _ in range(words):
        lines += ["ldr r12, [r1], #4", "sxtb16 r2, r12, ror #8", "sxtb16 r12, r12"]
        lines += [f"str r2, [r0, #{4 * pixels}]", f"str r12, [r0], #{8 * pixels}"]
    lines += ["add r0, r0, r6", "subs r11, r11, #1", "bne 3b"]
    lines += ["add r0, r0, r7", "add r1, r1, r8", "subs r10, r10, #1", "bne 2b"]
    lines += ["add r1, r1, r9", "subs r3, r3, #1", "bne 1b", "pop {r4-r11, pc}"]
    return naked(name_of_widen_groups(pixels, words), parameters, lines)
