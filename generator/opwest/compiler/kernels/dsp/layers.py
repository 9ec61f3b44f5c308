# SPDX-License-Identifier: Apache-2.0
"""The constants of int8 convolutions and fully connected layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.convolution import folded, plain_weights
from opwest.compiler.emission.matrix import bound_of
from opwest.compiler.ir.operations import Convolution, Depthwise
from opwest.compiler.kernels.dsp.tiles import Epilogue, epilogue_of
from opwest.compiler.kernels.scaling import Scaling, long_scaling_of, scaling_of


@dataclass(frozen=True, eq=False)
class Numbers:
    """The constants of a layer."""

    weights: Any
    """int8 [o,k]."""
    sums: Any
    """The first sums [o]: biases with zero points."""
    bounds: Any
    """The greatest magnitude of sums [o]."""
    scaling: Scaling


def numbers_of(operation: Convolution) -> Numbers | None:
    """Return the constants of an int8 layer; None for other dtypes, groups, and other forms of scales."""
    if operation.inputs[0].dtype != "int8" or operation.results[0].dtype != "int8" or operation.groups != 1:
        return None
    weights = plain_weights(operation.weights, operation.weight_zero)
    if weights.dtype != np.int8:
        return None
    flat = weights.reshape(len(weights), -1)
    sums = folded(weights, operation.bias, operation.zero, "int8")
    bounds = bound_of(weights, sums, "int8")
    scaling = scaling_of(operation.finish, bounds)
    return None if scaling is None else Numbers(flat, sums, bounds, scaling)


GREATEST = 1 << 15
"""The greatest magnitude of data."""


@dataclass(frozen=True, eq=False)
class WideNumbers:
    """The constants of a layer. With the long form of the scaling, sums can need 64 bits."""

    weights: Any
    """[o,k] of int8 or int16."""
    sums: Any
    """The first sums int64 [o]: the biases."""
    bounds: Any
    """The greatest magnitude of sums [o]."""
    scaling: Scaling

    @property
    def ending(self) -> Epilogue:
        """The form of the layer's end."""
        return epilogue_of(self.scaling, 16)

    @property
    def ends(self) -> Any:
        """Multiplier, addend and shift of each channel, int32 [o,3]."""
        return np.stack([self.scaling.multipliers, self.scaling.addends, self.scaling.shifts], axis=1)


def wide_numbers_of(operation: Convolution | Depthwise, weights: Any) -> WideNumbers | None:
    """Return the constants of an int16 layer with weights [o,...]; None for other dtypes, and other forms of scales."""
    dtypes = {operation.inputs[0].dtype, operation.results[0].dtype}
    if dtypes != {"int16"} or operation.zero != 0 or weights.dtype.kind != "i":
        return None
    flat = plain_weights(weights.reshape(len(weights), -1), operation.weight_zero)
    sums = folded(flat, operation.bias, 0, "int16")
    sums = np.zeros(len(flat), np.int64) if sums is None else sums
    bounds = np.abs(flat.astype(np.int64)).sum(axis=1) * GREATEST + np.abs(sums)
    scaling = scaling_of(operation.finish, bounds) or long_scaling_of(operation.finish, bounds)
    return None if scaling is None else WideNumbers(flat, sums, bounds, scaling)


ORDER = (0, 2, 1, 3)
"""The order of four neighbouring taps after SXTB16, which widens bytes 0 and 2, then 1 and 3."""
MAX_PACKED = 1 << 23
"""The magnitude of sums that tiles of int8 weights cannot have."""


def can_pack(weights: Any, bounds: Any) -> bool:
    """Whether pairs of channels fit in halfwords, and their sums can be taken apart: weights [o,k]."""
    first, second = (weights[offset::2].astype(np.int32) for offset in (0, 1))
    pairs = 256 * second + first[: len(second)]
    fits = not pairs.size or (pairs.min() >= -(1 << 15) and pairs.max() < 1 << 15)
    return bool(fits and np.max(bounds) < MAX_PACKED)


def stream_of(
    weights: Any,
    sums: Any,
    scaling: Scaling,
    channels: int,
    is_wide: bool,
    has_ends: bool = True,
    order: tuple[int, ...] = ORDER,
) -> Any:
    """Return the int32 words of all groups of `channels`: weights int8 [o,k], first sums [o]; k is padded with zeros.

    `has_ends`: with multiplier, addend and shift of each channel. `order`: that of neighbouring taps.
    """
    count, length = weights.shape
    padded = np.zeros((-(-count // channels) * channels, -(-length // len(order)) * len(order)), np.int32)
    padded[:count, :length] = weights
    groups = len(padded) // channels
    taps = padded.reshape(groups, channels, -1, len(order))[..., order].reshape(groups, channels, -1, 2)
    first = _padded(sums, len(padded)).reshape(groups, channels)
    if is_wide:
        # The high multiplication of Rounding.TWICE takes twice the sum.
        factor = 2 if scaling.is_doubled else 1
        first, halves = first * factor, taps * factor
        packed = _words(halves).transpose(0, 2, 1)
    else:
        halves = taps[:, 0::2] + 256 * taps[:, 1::2]
        first[:, 1::2] = first[:, 0::2] + 256 * first[:, 1::2]
        packed = _words(halves).transpose(0, 2, 1)
    ends = np.stack(
        [_padded(one, len(padded)) for one in (scaling.multipliers, scaling.addends, shifts_of(scaling))], axis=1
    )
    parts = [first, packed.reshape(groups, -1), *([ends.reshape(groups, -1)] if has_ends else [])]
    return np.concatenate([(part & 0xFFFFFFFF).astype(np.uint32) for part in parts], axis=1).view(np.int32).reshape(-1)


def _padded(values: Any, length: int) -> Any:
    found = np.zeros(length, np.int64)
    found[: len(values)] = values
    return found


def _words(halves: Any) -> Any:
    """Return pairs of int16 [...,2] as words."""
    return (halves[..., 0] & 0xFFFF) | (halves[..., 1].astype(np.int64) & 0xFFFF) << 16


def shifts_of(scaling: Scaling) -> Any:
    """Return the shifts. In signed layers with channels without a shift, the sign bit marks the other ones."""
    shifts = scaling.shifts.astype(np.int64)
    if scaling.is_signed and (shifts == 0).any():
        return shifts | np.where(shifts > 0, 1 << 31, 0)
    return shifts
