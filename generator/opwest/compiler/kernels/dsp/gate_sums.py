# SPDX-License-Identifier: Apache-2.0
"""The sums of the four gates of a cell: rows of int16 words times a stream of weights.

int8 weights are in pairs, as in `tiles.py`; where they do not fit, and with int16 data, they are int16.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from opwest.compiler.emission.expressions import plus
from opwest.compiler.emission.function import Lines
from opwest.compiler.kernels.assembly import constant, naked, repeated
from opwest.compiler.kernels.dsp.layers import ORDER, Numbers, can_pack, stream_of
from opwest.compiler.kernels.gates import GATES, Products
from opwest.compiler.kernels.scaling import Scaling

TAPS = 4
"""The taps of a step: two words of data, four of packed weights."""
MAX_STEPS = 16
"""The most steps without a branch."""
TURN = 4
"""The steps of a turn of a loop."""
SUMS = ("r2", "r3", "r4", "r5")
OTHERS = ("r10", "r11", "r12", "lr")
"""The registers of weights, and of numbers after them."""
_DATA = ("r6", "r7", "r8", "r9")
MAX_PACKED_LEFT = 7
"""The most places to the left for packed weights: 256 times a sum is shifted by one place less than 8."""


def packs(products: Products) -> bool:
    """Whether int8 weights fit in pairs."""
    return can_pack(_flat(products.weights), products.bounds)


def _flat(weights: Any) -> Any:
    return weights.reshape(-1, weights.shape[2])


def sums(length: int, is_packed: bool, lefts: tuple[int, ...] | None) -> Iterator[str]:
    """Yield the sums of the gates in SUMS: r0 and r1 move past the data and the weights.

    `lefts`: the places by which packed sums are shifted, after they are doubled; None: they are not doubled.
    """
    yield f"ldm r1!, {{{', '.join(SUMS)}}}"
    steps = -(-length // TAPS)
    if steps <= MAX_STEPS:
        double = [f"ldm r0!, {{{', '.join(_DATA)}}}", *_step(_DATA[:2], is_packed), *_step(_DATA[2:], is_packed)]
        yield from repeated(steps // 2, double)
        if steps % 2:
            yield from (f"ldm r0!, {{{', '.join(_DATA[:2])}}}", *_step(_DATA[:2], is_packed))
    else:
        one = [f"ldm r0!, {{{', '.join(_DATA[:2])}}}", *_step(_DATA[:2], is_packed)]
        turns, rest = divmod(steps, TURN)
        yield from repeated(rest, one)
        yield from constant("r8", turns * TURN * TAPS * 2)
        yield from ("add r8, r0, r8", "2:", *repeated(TURN, one), "cmp r0, r8", "bne 2b")
    for place in (0, 2) if is_packed else ():
        low, high = SUMS[place : place + 2]
        # 256 * second sum + first sum - first sum, shifted by 8, is the second sum.
        yield f"sub {high}, {high}, {low}"
        if lefts is not None:
            yield f"lsl {low}, {low}, #{1 + lefts[place]}"
        right = MAX_PACKED_LEFT + 1 if lefts is None else MAX_PACKED_LEFT - lefts[place + 1]
        if right:
            yield f"asr {high}, {high}, #{right}"


def _step(data: tuple[str, ...], is_packed: bool) -> Iterator[str]:
    """Yield the products of four taps."""
    load = f"ldm r1!, {{{', '.join(OTHERS)}}}"
    if not is_packed:
        for word in data:
            yield load
            yield from (f"smlad {total}, {word}, {weight}, {total}" for total, weight in zip(SUMS, OTHERS, strict=True))
        return
    yield load
    for offset in (1, 0):
        if offset == 0:
            yield from (f"sxtb16 {weight}, {weight}" for weight in OTHERS)
        for place, weight in enumerate(OTHERS):
            total = SUMS[2 * (place % 2) + offset]
            yield f"smlad {total}, {data[place // 2]}, {weight}, {total}"


def stream(products: Products, is_packed: bool, lefts: tuple[int, ...] | None, is_doubled: bool, is_word: bool) -> Any:
    """Return the first sums and the weights of each cell, int32 [cells,words].

    `lefts`: the places by which int16 weights are shifted; None: not at all. `is_word`: of int16 data.
    """
    cells, _, length = products.weights.shape
    weights, starts = _flat(products.weights).astype(np.int64), products.starts.reshape(-1)
    if not is_packed and lefts is not None:
        factors = np.tile([1 << left for left in lefts], cells)
        weights, starts = weights * factors[:, None], starts * factors
    padded = np.pad(weights, ((0, 0), (0, -length % TAPS)))
    # Of the scaling, only `is_doubled` is used: the gates have their own.
    zeros = np.zeros(cells * GATES, np.int32)
    numbers = Numbers(padded, starts, products.bounds, Scaling(zeros, zeros, zeros, is_doubled, False, 0, 0), 8)
    words = stream_of(numbers, slice(None), GATES, not is_packed, False, (0, 1) if is_word else ORDER)
    return words.reshape(cells, -1)


def row_words(length: int) -> int:
    """Return the words of a row of int16."""
    return -(-length // TAPS) * 2


WIDEN = naked(
    "widen_row",
    ("uint32_t *to", "const int8_t *from", "int32_t words"),
    (
        "lsrs r2, r2, #1",
        "bcc 1f",
        "ldr r3, [r1], #4",
        "sxtb16 r12, r3, ror #8",
        "sxtb16 r3, r3",
        "strd r3, r12, [r0], #8",
        "beq 2f",
        "1: push {r4, r5}",
        "3: ldr r3, [r1], #4",
        "ldr r5, [r1], #4",
        "sxtb16 r4, r3, ror #8",
        "sxtb16 r3, r3",
        "sxtb16 r12, r5, ror #8",
        "sxtb16 r5, r5",
        "subs r2, r2, #1",
        "strd r3, r4, [r0], #8",
        "strd r5, r12, [r0], #8",
        "bne 3b",
        "pop {r4, r5}",
        "2: bx lr",
    ),
)
"""widen_row(to, from, words): each word becomes two, of bytes 0 and 2, then 1 and 3."""


def add_row(lines: Lines, name: str, length: int, start: int, is_word: bool) -> None:
    """Append the copy of a row as int16 words to `rows`, from a word on."""
    if is_word:
        lines.add(f"memcpy(rows{plus(start)}, {name}, {2 * length});")
        return
    words, rest = divmod(length, 4)
    if words:
        lines.add(f"widen_row(rows{plus(start)}, {name}, {words});")
    if rest:
        with lines.block(""):
            lines.add("int8_t tail[4] = {0};", "", f"memcpy(tail, {name}{plus(4 * words)}, {rest});")
            lines.add(f"widen_row(rows{plus(start + 2 * words)}, tail, 1);")
