# SPDX-License-Identifier: Apache-2.0
"""Copies of int8 data as int16 words, interleaved by pixel, for tiles."""

from __future__ import annotations

from collections.abc import Iterator

from opwest.importers.models.emit.kernels.assembly import naked


def widen(pixels: int) -> str:
    """Return the function widen_<pixels>(to, from, words, step): `pixels` rows that are `step` bytes apart.

    Each group of four bytes becomes two words of each pixel. It returns the end of the written block.
    """
    parameters = ("uint32_t *to", "const int8_t *from", "int32_t words", "int32_t step")
    lines = _two() if pixels == 2 else _four()
    return naked("uint32_t *", f"widen_{pixels}", parameters, lines).replace("uint32_t * widen", "uint32_t *widen")


def _two() -> Iterator[str]:
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


def _four() -> Iterator[str]:
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
