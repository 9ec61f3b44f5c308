# SPDX-License-Identifier: Apache-2.0
"""The end of 8-bit layers in numbers for kernels: one high multiplication, one addition, one shift, one clamp.

    high = the high 32 bits of 2 * sum * multiplier, rounded half up      (Rounding.TWICE)
    high = the high 32 bits of sum * multiplier                           (Rounding.ONCE)
    result = clamp((high [- 1 if high < 0] + addend) >> shift, low, high)

The addend is the half of the shift plus the shifted zero point. Rounding.TWICE rounds halves away from zero, hence the
- 1; it is not observable where results of negative sums are clamped to the zero point.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.importers.models.ir.operations import Finish
from opwest.importers.models.operators.fixed_point import Requantisation, Rounding
from opwest.records import dataclass


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

    def part(self, channels: slice) -> Scaling:
        """Return the numbers of some channels."""
        multipliers, addends, shifts = (one[channels] for one in (self.multipliers, self.addends, self.shifts))
        return Scaling(multipliers, addends, shifts, self.is_doubled, self.is_signed, self.low, self.high)


def scaling_of(finish: Finish, bounds: Any) -> Scaling | None:
    """Return the numbers, exact for all sums of a magnitude up to `bounds` [channels]; None where this form is not.

    None: float scales; shifts to the left; bounds of 2**30 and more; a zero point that overflows with the shift.
    """
    if not isinstance(finish, Requantisation) or finish.rounding not in (Rounding.TWICE, Rounding.ONCE):
        return None
    channels = len(bounds)
    given = finish.multipliers if len(finish.multipliers) == channels else finish.multipliers * channels
    is_doubled = finish.rounding is Rounding.TWICE
    is_signed = is_doubled and finish.low != finish.zero
    rows = []
    for multiplier, bound in zip(given, map(int, bounds), strict=True):
        fixed = multiplier.fixed
        shift = -multiplier.shift - (0 if is_doubled else 1)
        if bound >= 1 << 30:
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
