# SPDX-License-Identifier: Apache-2.0
"""Reductions and searches."""

from __future__ import annotations

from opwest.importers.models.ir.program import Operation
from opwest.importers.models.operators.fixed_point import Requantisation
from opwest.records import dataclass


@dataclass(frozen=True, eq=False)
class Reduce(Operation):
    """inputs [data], results [one element for each position in the other dimensions]."""

    kind: str
    """sum, mean, product, maximum, minimum, any, all."""
    axes: tuple[int, ...]
    zero: int
    """The zero point of the data."""
    finish: Requantisation | None
    """None: the result has the dtype of the data and no scale."""


@dataclass(frozen=True, eq=False)
class Position(Operation):
    """The position of the first extreme along a dimension."""

    axis: int
    is_greatest: bool


@dataclass(frozen=True, eq=False)
class Greatest(Operation):
    """results [values, positions]: the greatest elements of each row in descending order."""

    count: int


@dataclass(frozen=True, eq=False)
class RunningSum(Operation):
    """Sums along a dimension up to each element."""

    axis: int
    is_exclusive: bool
    is_reverse: bool
    zero: int
    """Of int8 elements."""
    finish: Requantisation | None
    """Of int8 sums."""
