# SPDX-License-Identifier: Apache-2.0
"""Functions of elements, for Elementwise."""

from __future__ import annotations

from opwest.importers.models.operators.arithmetic import AddNumbers
from opwest.records import dataclass


@dataclass(frozen=True)
class AddQuantised:
    """The sum of two quantised values."""

    numbers: AddNumbers
    subtract: bool = False


@dataclass(frozen=True)
class Arithmetic:
    """A C operator on two values of a plain dtype, then a clamp."""

    operator: str
    """+, -, *, /."""
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Call:
    """A C function of one float32 value, such as fabsf."""

    name: str
