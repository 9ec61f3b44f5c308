# SPDX-License-Identifier: Apache-2.0
"""Sums of two lanes in words of 32 bits.

A word holds two numbers: low + (high << 16). Its product with a number has both products, and the sum of such products
both sums, as long as each fits 16 bits: that of a group of neighbouring taps. After a group

    highs += (sum + 0x8000) >> 16        the high lane, without the borrow of the low one
    totals += sum                        modulo 2**32

and at the end the sum of the low lanes is totals - (highs << 16), modulo 2**32. Weights whose groups do not fit are 0
in the groups, and patches: products of their own after all groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.expressions import plus
from opwest.compiler.emission.function import Lines
from opwest.compiler.emission.matrix import blocks

SIZES = (8, 6, 5, 4, 3, 2)
"""The taps of a group."""
PATCHED = 8
"""The instructions of a patch beside its products."""
Block = tuple[int, int, int]
"""Channels: first, number of blocks, channels of a block."""


@dataclass(frozen=True, eq=False)
class Groups:
    """The weights of channels in groups of taps, and the patches."""

    size: int
    weights: Any
    """int8 [channels, length]: 0 where a patch has the weight."""
    rest: Any
    """int8 [channels, length]: those of the patches, else 0."""

    @property
    def is_patched(self) -> bool:
        """Whether there are patches."""
        return bool(self.rest.any())

    def ordered(self, parts: Sequence[Block]) -> Any:
        """Return the weights in the order of their use: blocks of channels, then taps."""
        chosen = [self.weights[first : first + turns * some] for first, turns, some in parts]
        each = [
            weights.reshape(turns, some, -1).transpose(0, 2, 1).reshape(-1)
            for weights, (_, turns, some) in zip(chosen, parts, strict=True)
        ]
        return np.concatenate(each)

    def patches(self, parts: Sequence[Block]) -> Any:
        """Return int16 numbers: for each block of channels the tap and the weights of each patch, then -1."""
        numbers: list[int] = []
        for own in _blocks(self.rest, parts):
            for tap in np.flatnonzero(own.any(axis=0)):
                numbers += [int(tap), *own[:, tap].tolist()]
            numbers.append(-1)
        return np.asarray(numbers, np.int16)


def parts_of(channels: int, most: int) -> list[Block]:
    """Return blocks of at most 2 or 3 channels; of 1 channel only where the number is odd and `most` is 2."""
    if channels < most or most == 2:
        return [(first, turns, some) for first, turns, some in blocks(channels, min(most, channels))]
    threes = channels // 3 - (channels % 3 == 1)
    twos = (channels - 3 * threes) // 2
    return [(first, turns, some) for first, turns, some in ((0, threes, 3), (3 * threes, twos, 2)) if turns]


def groups_of(weights: Any, parts: Sequence[Block], words: int) -> Groups:
    """Return the groups with the fewest instructions: weights int8 [channels, length], `words` for each sum."""
    made = [_divided(weights, size) for size in SIZES]
    return min(made, key=lambda groups: _cost(groups, parts, words))


def _cost(groups: Groups, parts: Sequence[Block], words: int) -> int:
    """Return the instructions of the ends of groups and of patches."""
    count, length = groups.weights.shape
    cost: int = -(-length // groups.size) * count * words * 3
    for own in _blocks(groups.rest, parts):
        cost += int(own.any(axis=0).sum()) * (PATCHED + words + len(own) * (1 + 5 * words))
    return cost


def _blocks(array: Any, parts: Sequence[Block]) -> Iterator[Any]:
    for first, turns, some in parts:
        yield from array[first : first + turns * some].reshape(turns, some, -1)


def _divided(weights: Any, size: int) -> Groups:
    """Return groups of a size: the largest weights of those that do not fit are patches."""
    channels, length = weights.shape
    main = np.pad(weights, ((0, 0), (0, -length % size))).reshape(-1, size).astype(np.int32)
    wide = np.flatnonzero(_are_wide(main))
    while len(wide):
        some = main[wide]
        some[np.arange(len(wide)), np.abs(some).argmax(axis=1)] = 0
        main[wide] = some
        wide = wide[_are_wide(some)]
    flat = main.reshape(channels, -1)[:, :length].astype(np.int8)
    return Groups(size, flat, weights - flat)


def _are_wide(groups: Any) -> Any:
    """Return which groups [..., taps] of weights have sums with int8 data that do not fit 16 bits."""
    most, least = np.maximum(groups, 0).sum(axis=1), np.minimum(groups, 0).sum(axis=1)
    return (127 * most - 128 * least > 32767) | (128 * most - 127 * least > 32768)


def add_starts(lines: Lines, channel: str, count: int, words: int) -> None:
    """Append the totals and highs of the channels from `channel` on, which start with biases: that of both lanes."""
    for c in range(count):
        lines.add(f"const int32_t b{c} = bias[{plus_of(channel, c)}];")
        for word in range(words):
            lines.add(f"uint32_t t{c}{word} = (uint32_t)b{c} * 0x10001;", f"int32_t h{c}{word} = b{c};")


def lane_of(name: str, is_high: bool) -> str:
    """Return the sum of a lane after all groups."""
    return f"h{name}" if is_high else f"(int32_t)(t{name} - ((uint32_t)h{name} << 16))"


def plus_of(text: str, more: int) -> str:
    """Return an index plus a constant."""
    return str(int(text) + more) if text.isdigit() else f"{text}{plus(more)}"


def add_taken(lines: Lines, names: Sequence[str]) -> None:
    """Append the additions of the sums of a group: s, t, h with a name are its sums, totals, highs."""
    for name in names:
        lines.add(f"t{name} += s{name};", f"h{name} += (int32_t)(s{name} + 0x8000) >> 16;")


def add_groups(
    lines: Lines, sizes: tuple[int, int], loads: Sequence[str], products: Mapping[str, str], steps: tuple[int, int]
) -> None:
    """Append the products of all groups and their additions, from the pointers p and q on.

    `sizes`: the taps of a sum and of a group. `loads`: the declarations of a tap, {tap} is its place in the group.
    `products`: by name the products of a tap. `steps`: the elements of a tap behind p and q.
    """
    length, size = sizes
    turns, rest = divmod(length, size)
    # A branch for at least 5 taps, unless the compiler would keep sums of the second group on the stack.
    joined = 1 if size > 4 or len(products) > 4 else 2
    for count, parts in ((turns // joined, [size] * joined), (turns % joined, [size]), (1, [rest])):
        if not count or not parts[0]:
            continue
        with lines.loop("k", count) if count > 1 else nullcontext():
            for part in parts:
                with lines.block(""):
                    _group(lines, part, loads, products)
                lines.add(f"p += {part * steps[0]};", f"q += {part * steps[1]};")


def _group(lines: Lines, size: int, loads: Sequence[str], products: Mapping[str, str]) -> None:
    lines.add(*(f"uint32_t s{name};" for name in products), "")
    for tap in range(size):
        with lines.block(""):
            lines.add(*(line.replace("{tap}", str(tap)) for line in loads))
            lines.add(*(f"s{name} {'+=' if tap else '='} {product};" for name, product in products.items()))
    add_taken(lines, list(products))
