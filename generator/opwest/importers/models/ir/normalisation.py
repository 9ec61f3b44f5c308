# SPDX-License-Identifier: Apache-2.0
"""Operations that normalise rows: the last dimension."""

from __future__ import annotations

from opwest.importers.models.ir.program import Operation
from opwest.importers.models.operators.normalisation import LogSoftmaxNumbers, Softmax16Numbers
from opwest.records import dataclass


@dataclass(frozen=True, eq=False)
class SoftmaxFloat(Operation):
    """Softmax of float32 data."""

    beta: float


@dataclass(frozen=True, eq=False)
class SoftmaxTable(Operation):
    """Softmax of 8-bit data in fixed-point numbers; results are the least value of their dtype plus 2**8 or 2**16 times
    the probability."""

    powers: tuple[int, ...]
    """exp by the difference from the greatest element, with 0 integer bits."""


@dataclass(frozen=True, eq=False)
class Softmax16(Operation):
    """Softmax of int16 data with tables that are interpolated."""

    numbers: Softmax16Numbers


@dataclass(frozen=True, eq=False)
class LogSoftmaxTable(Operation):
    """The logarithm of softmax of 8-bit data."""

    numbers: LogSoftmaxNumbers


@dataclass(frozen=True, eq=False)
class LogSoftmaxFloat(Operation):
    """The logarithm of softmax of float32 data."""


@dataclass(frozen=True, eq=False)
class UnitLength(Operation):
    """Rows divided by their length; 8-bit results have the scale 1/128."""

    zero: int
    """The zero point of the data."""
