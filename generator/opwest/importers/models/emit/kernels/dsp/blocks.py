# SPDX-License-Identifier: Apache-2.0
"""Copies of int16 data to blocks of words, interleaved by pixel, for tiles. Data is aligned to 2 bytes only."""

from __future__ import annotations

from collections.abc import Iterator

from opwest.importers.models.emit.kernels.assembly import naked, repeated

MOST_UNROLLED = 16
"""The words of a run that are copied without a loop."""
_TURN = 8


def interleave(pixels: int) -> str:
    """Return the function interleave_<pixels>(to, from, words, step): `pixels` rows that are `step` bytes apart."""
    parameters = ("uint32_t *to", "const int8_t *from", "int32_t words", "int32_t step")
    return naked("void", f"interleave_{pixels}", parameters, _two() if pixels == 2 else _four())


def _two() -> Iterator[str]:
    yield "push {r4, r5}"
    yield "1: ldr r5, [r1, r3]"
    yield "ldr r4, [r1], #4"
    yield "subs r2, r2, #1"
    yield "stm r0!, {r4, r5}"
    yield "bne 1b"
    yield "pop {r4, r5}"
    yield "bx lr"


def _four() -> Iterator[str]:
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
    turns, rest = divmod(words, _TURN) if words > MOST_UNROLLED else (0, words)
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
