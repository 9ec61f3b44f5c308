# SPDX-License-Identifier: Apache-2.0
"""The gates of integer LSTMs in numbers for kernels: scales of their sums, tables of their functions.

A sum of a gate becomes `value` in the same form as the ends of other layers (`scaling.py`), without a zero point:

    high = the high 32 bits of 2 * (sum << left) * multiplier, rounded half up      (Rounding.TWICE)
    high = the high 32 bits of (sum << left) * multiplier                           (Rounding.SIXTEEN)
    value = (high - 1 if sum < 0 [Rounding.TWICE] + addend) >> right

The sign of the sum is that of `high`, or `high` is 0 and a result of (addend - 1) >> right is 0 too. Without `right`,
`value` is `high`.

The fixed-point functions of TFLite compute exp(-m / 4096) for 0 < m <= 2**15 as the product of a number that depends
on the low bits of m - 1, and of a factor for each of its high bits. The first one is a table here, that of m - 1, whose
entry before the first one is for m = 0: the number whose reciprocal is exact.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.matrix import bound_of
from opwest.compiler.ir.operations import FloatMemory, IntegerMemory
from opwest.compiler.kernels.scaling import Scaling, scaling_of
from opwest.compiler.semantics.fixed_point import (
    EXPONENTIALS,
    Multiplier,
    Requantisation,
    Rounding,
    exponential,
    reduced,
)
from opwest.compiler.semantics.recurrent import LstmNumbers
from opwest.compiler.semantics.tables import sigmoid_table

GATES = 4
"""A layer with coupled gates has an input gate whose weights are 0, and which is not used."""
WIDTH = 15
"""The bits of the magnitude of a gate."""
FACTORS = EXPONENTIALS[16][2][:6]
"""exp(-2**k) for k from -2, with 0 integer bits, as int16. Those that follow are 0."""
EXACT = 32758
"""The number with 0 integer bits for which the computed 1 / (1 + x) is a half."""


@dataclass(frozen=True, eq=False)
class GateScales:
    """The numbers of the sums of one operand (data, last result), by gate."""

    multipliers: tuple[int, ...]
    lefts: tuple[int, ...]
    rights: tuple[int, ...]
    is_doubled: bool
    """Whether `high` is that of Rounding.TWICE."""

    @property
    def addends(self) -> list[int]:
        """Half of a unit of each shift."""
        return [1 << (right - 1) if right else 0 for right in self.rights]


@dataclass(frozen=True, eq=False)
class Products:
    """The products of one operand with the weights of all gates."""

    weights: Any
    """int8 [cells,4,length]."""
    starts: Any
    """int64 [cells,4]."""
    bounds: Any
    """The greatest magnitudes of sums [cells,4]."""


@dataclass(frozen=True, eq=False)
class Part(Products):
    """The products of one operand, and the numbers of their sums."""

    scales: GateScales


@dataclass(frozen=True, eq=False)
class Gates:
    """The parts of a layer and the end of its results."""

    parts: tuple[Part, Part]
    """Of the data and the last result."""
    hidden: Scaling
    """Of the products of the output gate with the cells."""
    is_coupled: bool


def gates_of(operation: IntegerMemory) -> Gates | None:
    """Return the numbers of a layer; None with peepholes, projections and normalisation, and where they do not fit."""
    numbers: LstmNumbers = operation.numbers
    extra = (operation.peepholes, operation.norms, operation.projection)
    if any(array is not None for array in extra) or operation.starts.dtype != np.int32:
        return None
    length = operation.inputs[0].shape[2]
    places = (slice(0, length), slice(length, None))
    given = (numbers.data, numbers.last)
    parts = [
        _part(operation, place, operation.starts[number], given[number], numbers.rounding)
        for number, place in enumerate(places)
    ]
    bits = 8 if operation.results[0].dtype == "int8" else 16
    if (numbers.low, numbers.high) != (-(1 << (bits - 1)), (1 << (bits - 1)) - 1):
        return None
    finish = Requantisation((numbers.hidden,), Rounding.TWICE, numbers.hidden_zero, numbers.low, numbers.high)
    hidden = scaling_of(finish, [32767 * 32768])
    if hidden is None or hidden.shifts[0] == 0 or None in parts:
        return None
    if hidden.multipliers[0] == 0:
        # The addend has no half of a unit from which 1 could be subtracted.
        hidden = dataclasses.replace(hidden, is_signed=False)
    first, second = (part for part in parts if part is not None)
    return Gates((first, second), hidden, len(operation.weights) < GATES)


def _part(operation: IntegerMemory, place: slice, starts: Any, by: Any, rounding: Rounding) -> Part | None:
    products = products_of(operation.weights[:, :, place], starts, operation.inputs[0].dtype)
    given = [Multiplier(0, 0) if one is None else one for one in by]
    scales = gate_scales(given, products.bounds.max(axis=0), rounding)
    return None if scales is None else Part(products.weights, products.starts, products.bounds, scales)


def products_of(weights: Any, starts: Any, dtype: str) -> Products:
    """Return the products of data with int8 weights [gates,cells,length]; the first sums are [gates,cells]."""
    missing = GATES - len(weights)
    wide = np.pad(weights, ((missing, 0), (0, 0), (0, 0)))
    first = np.pad(starts.astype(np.int64), ((missing, 0), (0, 0)))
    flat = wide.reshape(-1, wide.shape[2])
    if dtype == "int8":
        bounds = bound_of(flat, first.reshape(-1), "int8").reshape(first.shape)
    else:
        bounds = np.abs(flat.astype(np.int64)).sum(axis=1).reshape(first.shape) * 32768 + np.abs(first)
    return Products(np.ascontiguousarray(wide.transpose(1, 0, 2)), first.T, bounds.T)


def hybrid_products(operation: FloatMemory) -> tuple[Products, Products]:
    """Return the products of the quantised data and last results with int8 weights."""
    length, (gates, cells, _) = operation.inputs[0].shape[2], operation.weights.shape
    zeros = np.zeros((gates, cells), np.int64)
    first, second = (
        products_of(operation.weights[:, :, place], zeros, "int8") for place in (slice(0, length), slice(length, None))
    )
    return first, second


def gate_scales(multipliers: list[Multiplier], bounds: Any, rounding: Rounding) -> GateScales | None:
    """Return the numbers that are exact for sums of magnitudes up to `bounds` [gates]; None: they do not fit."""
    is_doubled = rounding is Rounding.TWICE
    if not is_doubled and rounding is not Rounding.SIXTEEN:
        return None
    rows = []
    for by, bound in zip(multipliers, map(int, bounds), strict=True):
        fixed, shift = by.fixed, by.shift
        if fixed == 0:
            rows.append((0, 0, 1))
            continue
        if is_doubled:
            left, right = max(shift, 0), max(-shift, 0)
        else:
            # reduced * sum >> 15 - shift: the high half of `fixed << 16` has 16 more places.
            fixed = int(reduced(fixed)) << 16
            left = max(shift + 2, 0)
            right = left - 1 - shift
        if right > 31 or bound << left >= 1 << (30 if is_doubled else 31):
            return None
        rows.append((fixed, left, right))
    fixed_points, lefts, rights = zip(*rows, strict=True)
    return GateScales(fixed_points, lefts, rights, is_doubled)


def exponential_table(bits: int) -> Any:
    """Return exp of numbers with `bits` integer bits from -2**-12 * 2**(bits - 3) down to -1/4, after that for 0.

    int16, [1 + 2**(13 - bits)].
    """
    values = -1 - np.arange(1 << (13 - bits))
    return np.concatenate([[EXACT], exponential(values, bits, 16)]).astype(np.int16)


def stages_of(bits: int) -> int:
    """Return the number of factors: that of the high bits of m - 1."""
    return min(bits + 2, len(FACTORS))


def sample_pairs(is_logistic: bool = False) -> Any:
    """Return the samples of tflite-micro's functions and the differences to the next ones: uint32 [256] words.

    A sample is the high half. The last one continues forever; that of the logistic function is another one, which the
    values of gates do not reach.
    """
    table = sigmoid_table().astype(np.int64)
    steps = np.append(np.diff(table), 0)
    if is_logistic:
        table[-1] = 0x7FFF << 1
    return (table << 16 | steps).astype(np.uint32)
