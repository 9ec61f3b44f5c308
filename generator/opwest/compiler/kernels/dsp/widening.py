# SPDX-License-Identifier: Apache-2.0
"""Copies of int16 data to blocks of words, interleaved by pixel, for tiles. Data is aligned to 2 bytes only."""

from __future__ import annotations

from collections.abc import Iterator

from opwest.compiler.kernels.assembly import naked, repeated

MAX_UNROLLED = 16
"""The words of a run that are copied without a loop."""
_TURN = 8


def interleave(pixels: int) -> str:
    """Return the function interleave_<pixels>(to, from, words, step): `pixels` rows that are `step` bytes apart."""
    parameters = ("uint32_t *to", "const int8_t *from", "int32_t words", "int32_t step")
    return naked("void", f"interleave_{pixels}", parameters, _copy_two() if pixels == 2 else _copy_four())


def _copy_two() -> Iterator[str]:
    yield "push {r4, r5}"
    yield "1: ldr r5, [r1, r3]"
    yield "ldr r4, [r1], #4"
    yield "subs r2, r2, #1"
    yield "stm r0!, {r4, r5}"
    yield "bne 1b"
    yield "pop {r4, r5}"
    yield "bx lr"


def _copy_four() -> Iterator[str]:
    yield "push {r4-r7}"
    yield "1: add r12, r1, r3, lsl #1"
    yield "ldr r5, [r1, r3]"
    yield "ldr r6, [r12]"
    yield "ldr r7, [r12, r3]"
    yield "ldr r4, [r1], #4"
    yield "subs r2, r2, #1"
    yield "stm r0!, {r4-r7}"
    yield "bne 1b"
    yield "pop {r4-r7}"
    yield "bx lr"


def name_of_spread(pixels: int, words: int) -> str:
    """Return the name of a function."""
    return f"spread_{pixels}_{words}"


def spread(pixels: int, words: int) -> str:
    """Return the function spread_<pixels>_<words>(to, from, runs, skipped): one pixel of a block of `pixels`.

    `runs` times `words` words; between two runs are `skipped` bytes. `to` is the pixel's first word.
    """
    parameters = ("uint32_t *to", "const int8_t *from", "int32_t runs", "int32_t skipped")
    return naked("void", name_of_spread(pixels, words), parameters, _spread(4 * pixels, words))


def _spread(step: int, words: int) -> Iterator[str]:
    turns, rest = divmod(words, _TURN) if words > MAX_UNROLLED else (0, words)
    two = ["ldr r12, [r1], #4", "ldr r4, [r1], #4", f"str r12, [r0], #{step}", f"str r4, [r0], #{step}"]
    yield "push {r4, r5}"
    yield "1:"
    if turns:
        yield f"movw r5, #{turns}"
        yield "2:"
        yield from repeated(_TURN // 2, two)
        yield "subs r5, r5, #1"
        yield "bne 2b"
    yield from repeated(rest // 2, two)
    if rest % 2:
        yield "ldr r12, [r1], #4"
        yield f"str r12, [r0], #{step}"
    yield "add r1, r1, r3"
    yield "subs r2, r2, #1"
    yield "bne 1b"
    yield "pop {r4, r5}"
    yield "bx lr"


def widen(pixels: int) -> str:
    """Return the function widen_<pixels>(to, from, words, step): `pixels` rows that are `step` bytes apart.

    Each group of four bytes becomes two words of each pixel. It returns the end of the written block.
    """
    parameters = ("uint32_t *to", "const int8_t *from", "int32_t words", "int32_t step")
    lines = _widen_two() if pixels == 2 else _widen_four()
    return naked("uint32_t *", f"widen_{pixels}", parameters, lines).replace("uint32_t * widen", "uint32_t *widen")


def _widen_two() -> Iterator[str]:
    yield "push {r4-r7}"
    yield "1: ldr r6, [r1, r3]"
    yield "ldr r4, [r1], #4"
    yield "subs r2, r2, #1"
    yield "sxtb16 r7, r6, ror #8"
    yield "sxtb16 r5, r6"
    yield "sxtb16 r6, r4, ror #8"
    yield "sxtb16 r4, r4"
    yield "stm r0!, {r4-r7}"
    yield "bne 1b"
    yield "pop {r4-r7}"
    yield "bx lr"


def _widen_four() -> Iterator[str]:
    yield "push {r4-r11, lr}"
    yield "1: add lr, r1, r3, lsl #1"
    yield "ldr r5, [r1, r3]"
    yield "ldr r6, [lr]"
    yield "ldr r7, [lr, r3]"
    yield "ldr r4, [r1], #4"
    yield "subs r2, r2, #1"
    for low in range(4, 8):
        yield f"sxtb16 r{low + 4}, r{low}, ror #8"
    for low in range(4, 8):
        yield f"sxtb16 r{low}, r{low}"
    yield "stm r0!, {r4-r11}"
    yield "bne 1b"
    yield "pop {r4-r11, pc}"


def widen_window(pixels: int) -> str:
    """Return the function widen_window_<pixels>(to, from, words, rows, skipped): one pixel of a block of `pixels`.

    `rows` rows of `words` groups of four bytes; between two rows are `skipped` bytes. `to` is the pixel's first word.
    """
    parameters = ("uint32_t *to", "const int8_t *from", "int32_t words", "int32_t rows", "int32_t skipped")
    return naked("void", f"widen_window_{pixels}", parameters, _window(pixels))


def _window(pixels: int) -> Iterator[str]:
    yield "push {r4-r7}"
    yield "ldr r7, [sp, #16]"
    yield "1: mov r6, r2"
    yield "2: ldr r4, [r1], #4"
    yield "subs r6, r6, #1"
    yield "sxtb16 r5, r4, ror #8"
    yield "sxtb16 r4, r4"
    yield f"str r5, [r0, #{4 * pixels}]"
    yield f"str r4, [r0], #{8 * pixels}"
    yield "bne 2b"
    yield "add r1, r1, r7"
    yield "subs r3, r3, #1"
    yield "bne 1b"
    yield "pop {r4-r7}"
    yield "bx lr"
