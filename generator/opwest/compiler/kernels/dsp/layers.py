# SPDX-License-Identifier: Apache-2.0
"""The constants of layers: numbers of the channels, streams of words for parts of the channels, calls of the parts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.convolution import folded
from opwest.compiler.emission.expressions import plus
from opwest.compiler.emission.function import Lines
from opwest.compiler.ir.operations import Convolution, Depthwise
from opwest.compiler.kernels.dsp.streamed import MARK
from opwest.compiler.kernels.scaling import (
    SUMS,
    Epilogue,
    Scaling,
    flat_weights,
    int8_sums,
    long_scaling_of,
    scaling_of,
)


@dataclass(frozen=True, eq=False)
class Numbers:
    """The constants of a layer. With the long form of the scaling, sums can need 64 bits."""

    weights: Any
    """[o,k] of int8; of int16 data also int16."""
    sums: Any
    """The first sums [o]: biases with zero points."""
    bounds: Any
    """The greatest magnitude of sums [o]."""
    scaling: Scaling | None
    """None: the results are the sums."""
    bits: int
    """Of data and results: 8 or 16."""

    @property
    def ending(self) -> Epilogue:
        """The form of the layer's end."""
        return SUMS if self.scaling is None else self.scaling.epilogue(self.bits)

    @property
    def ends(self) -> Any:
        """The numbers of the end of each channel, int32 [o,3]; of sums [o,0]."""
        return np.empty((len(self.weights), 0), np.int32) if self.scaling is None else self.scaling.ends


def numbers_of(operation: Convolution | Depthwise, accepts_groups: bool = False) -> Numbers | None:
    """Return the constants of an int8 layer; None for other dtypes and forms of scales, and groups by default."""
    given = int8_sums(operation, accepts_groups)
    if given is None or operation.results[0].dtype != "int8":
        return None
    scaling = scaling_of(operation.finish, given[2])
    return None if scaling is None else Numbers(*given, scaling, 8)


GREATEST = 1 << 15
"""The greatest magnitude of data."""


def wide_numbers_of(operation: Convolution | Depthwise) -> Numbers | None:
    """Return the constants of an int16 layer; None for other dtypes, and other forms of scales."""
    dtypes = {operation.inputs[0].dtype, operation.results[0].dtype}
    if dtypes != {"int16"} or operation.zero != 0 or operation.weights.dtype.kind != "i":
        return None
    weights = flat_weights(operation)
    sums = folded(weights, operation.bias, 0, "int16")
    sums = np.zeros(len(weights), np.int64) if sums is None else sums
    # A sum is at most the sum of |weight| * 2**15, plus its bias: -2**15 is a value of the data.
    bounds = np.abs(weights.astype(np.int64)).sum(axis=1) * GREATEST + np.abs(sums)
    scaling = scaling_of(operation.finish, bounds) or long_scaling_of(operation.finish, bounds)
    return None if scaling is None else Numbers(weights, sums, bounds, scaling, 16)


ORDER = (0, 2, 1, 3)
"""The order of four neighbouring taps after SXTB16, which widens bytes 0 and 2, then 1 and 3."""
MAX_PACKED = 1 << 23
"""The magnitude of sums that tiles of int8 weights cannot have: 256 * second sum + first sum has 32 bits."""


def can_pack(weights: Any, bounds: Any) -> bool:
    """Whether pairs of channels fit in halfwords, and their sums can be taken apart: weights [o,k]."""
    first, second = (weights[offset::2].astype(np.int32) for offset in (0, 1))
    pairs = 256 * second + first[: len(second)]
    fits = not pairs.size or (pairs.min() >= -(1 << 15) and pairs.max() < 1 << 15)
    return bool(fits and np.max(bounds) < MAX_PACKED)


Parts = list[tuple[slice, int]]
"""Channels, and those of each group that are results; the others pad the stream."""


def can_pack_groups(weights: Any, bounds: Any, groups: int) -> bool:
    """Whether pairs of channels of each group can be packed: weights [o,k]."""
    parts = zip(np.split(weights, groups), np.split(bounds, groups), strict=True)
    return all(can_pack(*part) for part in parts)


def parts_of(results: int, channels: int) -> Parts:
    """Return the parts of the channels: whole groups, then the last one."""
    rest = results % channels
    parts = [(slice(0, results - rest), channels)] if results >= channels else []
    return [*parts, (slice(results - rest, results), rest)] if rest else parts


def stream_of(
    numbers: Numbers,
    part: slice,
    channels: int,
    is_wide: bool,
    has_ends: bool = True,
    order: tuple[int, ...] = ORDER,
    marks: int = 0,
) -> Any:
    """Return the int32 words of all groups of `channels`: first sums, weights, ends. Taps are padded with zeros.

    `has_ends`: with multiplier, addend and shift of each channel. `order`: that of neighbouring taps. `marks`: the
    words after the weights that end a loop.
    """
    weights = numbers.weights[part].astype(np.int64)
    count, length = weights.shape
    missing = -count % channels
    padded = np.pad(weights, ((0, missing), (0, -length % len(order))))
    groups = len(padded) // channels
    taps = padded.reshape(groups, channels, -1, len(order))[..., order].reshape(groups, channels, -1, 2)
    first = np.pad(numbers.sums[part].astype(np.int64), (0, missing)).reshape(groups, channels)
    if is_wide:
        # The high multiplication of Rounding.TWICE takes twice the sum.
        factor = 2 if numbers.ending.is_doubled else 1
        first, halves = first * factor, taps * factor
    else:
        # A halfword has two channels: 256 * second + first, and so has the first sum of the second channel.
        halves = taps[:, 0::2] + 256 * taps[:, 1::2]
        first[:, 1::2] = first[:, 0::2] + 256 * first[:, 1::2]
    words = ((halves[..., 0] & 0xFFFF) | halves[..., 1] << 16).transpose(0, 2, 1).reshape(groups, -1)
    ends = np.pad(numbers.ends[part], ((0, missing), (0, 0))).reshape(groups, -1)
    after = [np.full((groups, marks), MARK), *([ends] if has_ends else [])]
    return np.concatenate([first, words, *after], axis=1).astype(np.int32).reshape(-1)


def add_calls(
    lines: Lines,
    parts: Parts,
    names: Iterable[str],
    streams: Iterable[Any],
    arguments: tuple[str, str, str],
    after: str = "",
    first: str = "stream",
) -> None:
    """Append the calls of the functions of all parts: `arguments` are data, result, and the fourth argument.

    `first`: the start of the streams.
    """
    data, result, fourth = arguments
    start = 0
    for (some, _), name, stream in zip(parts, names, streams, strict=True):
        end = start + len(stream)
        to = f"{result}{plus(some.start)}"
        lines.add(f"{name}({data}, {first}{plus(start)}, {to}, {fourth}, {first} + {end}{after});")
        start = end
