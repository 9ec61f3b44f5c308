# SPDX-License-Identifier: Apache-2.0
"""Operations that only readers of ONNX require."""

from __future__ import annotations

from opwest.importers.models.ir.program import Operation
from opwest.records import dataclass


@dataclass(frozen=True)
class Lookup:
    """A function of one 8-bit element: the table has the results by the byte of the element."""

    table: tuple[int, ...]


@dataclass(frozen=True)
class QuantizeEven:
    """float32 to integers: divided by the scale, clamped, rounded half to even."""

    scale: float
    zero: int
    low: int
    high: int


@dataclass(frozen=True, eq=False)
class DynamicQuantize(Operation):
    """inputs [data float32], results [int16 without the zero point, the scale]."""
