# SPDX-License-Identifier: Apache-2.0
"""The end of layers in numbers for kernels: one high multiplication, one addition, one shift, one clamp.

    high = the high 32 bits of 2 * sum * multiplier, rounded half up      (Rounding.TWICE)
    high = the high 32 bits of sum * multiplier                           (Rounding.ONCE, Rounding.SIXTEEN)
    result = clamp((high [- 1 if high < 0] + addend) >> shift, low, high)

The addend is the half of the shift plus the shifted zero point. Rounding.TWICE rounds halves away from zero, hence the
- 1; it is not observable where results of negative sums are clamped to the zero point. Multipliers of Rounding.SIXTEEN
have their 16 bits in the high half, so that `high` loses only bits that the rounding does not need.

The long form is for all multipliers below 2**15, and 64-bit sums:

    result = clamp(((sum * multiplier + (1 << (shift - 1))) >> shift) + zero point, low, high)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.ir.operations import Finish
from opwest.compiler.semantics.fixed_point import Requantisation, Rounding


@dataclass(frozen=True, eq=False)
class Scaling:
    """The numbers of each channel, int32 [channels]."""

    multipliers: Any
    addends: Any
    shifts: Any
    """At least 0."""
    is_doubled: bool
    """Whether `high` is that of Rounding.TWICE."""
    is_signed: bool
    """Whether 1 is subtracted from a negative `high`."""
    low: int
    high: int
    is_long: bool = False
    """Whether the numbers are those of the long form, with the zero point as addend."""

    def part(self, channels: slice) -> Scaling:
        """Return the numbers of some channels."""
        multipliers, addends, shifts = (one[channels] for one in (self.multipliers, self.addends, self.shifts))
        form = (self.is_doubled, self.is_signed, self.low, self.high, self.is_long)
        return Scaling(multipliers, addends, shifts, *form)


def scaling_of(finish: Finish, bounds: Any) -> Scaling | None:
    """Return the numbers, exact for all sums of a magnitude up to `bounds` [channels]; None where this form is not.

    None: float scales; shifts to the left; bounds of 2**30 and more (2**31 for Rounding.SIXTEEN); a zero point that
    overflows with the shift.
    """
    if not isinstance(finish, Requantisation) or finish.rounding is Rounding.FLOAT:
        return None
    channels = len(bounds)
    given = finish.multipliers if len(finish.multipliers) == channels else finish.multipliers * channels
    is_doubled = finish.rounding is Rounding.TWICE
    is_signed = is_doubled and finish.low != finish.zero
    rows = []
    for multiplier, bound in zip(given, map(int, bounds), strict=True):
        fixed = multiplier.fixed
        if finish.rounding is Rounding.SIXTEEN:
            fixed = _reduced(fixed) << 16
        shift = -multiplier.shift - (0 if is_doubled else 1)
        if bound >= 1 << (31 if finish.rounding is Rounding.SIXTEEN else 30):
            return None
        most = (bound * fixed >> (31 if is_doubled else 32)) + 1
        if fixed == 0 or (shift > 0 and most < 1 << (shift - 1)):
            rows.append((0, finish.zero * 2, 1))  # always the zero point
            continue
        if shift < 0 or (shift == 0 and (is_signed or not is_doubled)):
            return None
        half = 1 << (shift - 1) if shift else 0
        if most + half + (abs(finish.zero) << shift) >= 1 << 31:
            return None
        rows.append((fixed, half + (finish.zero << shift), shift))
    numbers = np.asarray(rows, np.int32).T
    return Scaling(numbers[0], numbers[1], numbers[2], is_doubled, is_signed, finish.low, finish.high)


def long_scaling_of(finish: Finish, bounds: Any) -> Scaling | None:
    """Return the numbers of the long form for Rounding.SIXTEEN; None for other roundings, and products of 63 bits."""
    if not isinstance(finish, Requantisation) or finish.rounding is not Rounding.SIXTEEN:
        return None
    channels = len(bounds)
    given = finish.multipliers if len(finish.multipliers) == channels else finish.multipliers * channels
    shifts = [15 - one.shift for one in given]
    if min(shifts) < 1 or max(map(int, bounds)) >= 1 << 46:
        return None
    numbers = np.asarray([[_reduced(one.fixed) for one in given], [finish.zero] * channels, shifts], np.int32)
    return Scaling(numbers[0], numbers[1], numbers[2], False, False, finish.low, finish.high, is_long=True)


def _reduced(fixed: int) -> int:
    """Return the 16-bit multiplier of Rounding.SIXTEEN."""
    return (fixed + (1 << 15)) >> 16 if fixed < 0x7FFF0000 else 0x7FFF
