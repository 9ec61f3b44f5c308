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

from math import prod
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.convolution import folded, plain_weights
from opwest.compiler.emission.matrix import bound_of
from opwest.compiler.ir.elements import AddQuantised, Product
from opwest.compiler.ir.operations import Convolution, Depthwise, Finish
from opwest.compiler.semantics.fixed_point import Requantisation, Rounding, reduced, scaled


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

    @property
    def ends(self) -> Any:
        """Multiplier, addend and shift of each channel, int32 [channels,3]."""
        return np.stack([self.multipliers, self.addends, self.shifts], axis=1)

    def epilogue(self, bits: int = 8) -> Epilogue:
        """Return the form of the end of a layer with results of `bits`."""
        return Epilogue(self.is_doubled, self.is_signed, self.low, self.high, bits, self.is_long)


@dataclass(frozen=True)
class Epilogue:
    """The form of the end of a layer: what differs between functions. Equal forms are the same code."""

    is_doubled: bool
    is_signed: bool
    low: int
    high: int
    bits: int = 8
    """Of a result: 32 for sums, which are stored as they are."""
    is_long: bool = False
    """Whether the numbers are those of the long form of a scaling."""

    @property
    def is_full(self) -> bool:
        """Whether the clamp limits are those of the type."""
        return (self.low, self.high) == (-(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1)

    @property
    def kind(self) -> str:
        """The C type of a result."""
        return f"int{self.bits}_t"

    @property
    def store(self) -> str:
        """The instruction that stores a result."""
        return {8: "strb", 16: "strh", 32: "str"}[self.bits]

    @property
    def name(self) -> str:
        """A part of the names of functions."""
        if self.bits == 32:
            return "sums"
        form = "long" if self.is_long else "twice" if self.is_doubled else "once"
        form += "_signed" if self.is_signed else ""
        form += "" if self.bits == 8 else f"_{self.bits}"
        if self.is_full:
            return form
        return f"{form}_{self.low}_{self.high}".replace("-", "m")


SUMS = Epilogue(False, False, -(1 << 31), (1 << 31) - 1, 32)
"""The form of a layer whose results are its sums, without numbers."""


def flat_weights(operation: Convolution | Depthwise) -> Any:
    """Return the weights [o,k] of each result without their zero point, as int8 where they fit, else int16."""
    weights = plain_weights(operation.weights, operation.weight_zero)
    if isinstance(operation, Depthwise):
        return weights.reshape(-1, weights.shape[-1]).T
    return weights.reshape(len(weights), -1)


def int8_sums(operation: Convolution | Depthwise, accepts_groups: bool = False) -> tuple[Any, Any, Any] | None:
    """Return weights int8 [o,k], the first sums [o], and the greatest magnitudes of sums [o].

    None: other dtypes of data and weights; groups, unless they are accepted.
    """
    weights = flat_weights(operation)
    has_groups = isinstance(operation, Convolution) and operation.groups != 1 and not accepts_groups
    if operation.inputs[0].dtype != "int8" or weights.dtype != np.int8 or has_groups:
        return None
    sums = folded(weights, operation.bias, operation.zero, "int8")
    return weights, sums, bound_of(weights, sums, "int8")


def scaling_of(finish: Finish, bounds: Any) -> Scaling | None:
    """Return the numbers, exact for all sums of a magnitude up to `bounds` [channels]; None where this form is not.

    None: float scales; shifts to the left; bounds of 2**30 and more (2**31 for Rounding.SIXTEEN); a zero point that
    overflows with the shift.
    """
    if not isinstance(finish, Requantisation) or finish.rounding is Rounding.FLOAT:
        return None
    is_doubled = finish.rounding is Rounding.TWICE
    is_signed = is_doubled and finish.low != finish.zero
    rows = []
    for multiplier, bound in zip(finish.each(len(bounds)), map(int, bounds), strict=True):
        fixed = multiplier.fixed
        if finish.rounding is Rounding.SIXTEEN:
            fixed = int(reduced(fixed)) << 16
        shift = -multiplier.shift - (0 if is_doubled else 1)
        if bound >= 1 << (31 if finish.rounding is Rounding.SIXTEEN else 30):
            return None
        # The greatest magnitude of `high`. Below half of a unit of the shift, every result is the zero point.
        most = (bound * fixed >> (31 if is_doubled else 32)) + 1
        if fixed == 0 or (shift > 0 and most < 1 << (shift - 1)):
            rows.append((0, finish.zero * 2, 1))  # always the zero point
            continue
        if shift < 0 or (shift == 0 and (is_signed or not is_doubled)):
            return None
        half = 1 << (shift - 1) if shift else 0
        # No magnitude of high + addend may need more than 31 bits.
        if most + half + (abs(finish.zero) << shift) >= 1 << 31:
            return None
        rows.append((fixed, half + (finish.zero << shift), shift))
    numbers = np.asarray(rows, np.int32).T
    return Scaling(numbers[0], numbers[1], numbers[2], is_doubled, is_signed, finish.low, finish.high)


def sum_tables(function: AddQuantised) -> tuple[list[Any], Scaling] | None:
    """Return for each operand of an int8 sum the scaled values of -128 to 127, and the numbers of their sum.

    None: the numbers do not fit.
    """
    given = function.numbers
    codes = np.arange(-128, 128)
    tables = [
        scaled((codes - zero) << given.left_shift, by.fixed, by.shift, Rounding.TWICE)
        for zero, by in zip(given.zeros, given.multipliers, strict=True)
    ]
    if function.subtract:
        tables[1] = -tables[1]
    bound = sum(int(np.abs(table).max()) for table in tables)
    finish = Requantisation((given.result,), Rounding.TWICE, given.zero, given.low, given.high)
    scaling = scaling_of(finish, [bound])
    return None if scaling is None else (tables, scaling)


def product_scaling(function: Product) -> Scaling | None:
    """Return the numbers of an int8 product; None where they do not fit."""
    given = function.numbers
    bound = prod(max(127 - zero, 128 + zero) for zero in given.zeros)
    finish = Requantisation((given.multiplier,), Rounding.TWICE, given.zero, given.low, given.high)
    return scaling_of(finish, [bound])


def long_scaling_of(finish: Finish, bounds: Any) -> Scaling | None:
    """Return the numbers of the long form for Rounding.SIXTEEN; None for other roundings, and products of 63 bits."""
    if not isinstance(finish, Requantisation) or finish.rounding is not Rounding.SIXTEEN:
        return None
    channels = len(bounds)
    given = finish.each(channels)
    shifts = [15 - multiplier.shift for multiplier in given]
    if min(shifts) < 1 or max(map(int, bounds)) >= 1 << 46:
        return None
    numbers = np.asarray(
        [reduced([multiplier.fixed for multiplier in given]), [finish.zero] * channels, shifts], np.int32
    )
    return Scaling(numbers[0], numbers[1], numbers[2], False, False, finish.low, finish.high, is_long=True)
