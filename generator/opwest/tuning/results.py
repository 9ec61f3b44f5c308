# SPDX-License-Identifier: Apache-2.0
"""Measured candidates of layers, and the table of a core that they form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from opwest.importers.models.choice.geometry import key_of
from opwest.importers.models.choice.table import Table
from opwest.importers.models.ir.program import Operation
from opwest.records import dataclass
from opwest.tuning.estimates import fitted

Progress = Callable[[str], None]


class MeasurementError(Exception):
    """Candidates cannot be measured, or one has a wrong result."""

    hint: str | None = None


class WrongResultError(MeasurementError):
    """A candidate whose result differs from that of the portable one."""

    hint = "this is a defect of opwest, or of the package that adds the variant"

    def __init__(self, operation: Operation, variant: str) -> None:
        super().__init__(f"variant {variant} of {key_of(operation)} is not equal to the portable one: a defect")


@dataclass(frozen=True, eq=False)
class Result:
    """A measured candidate."""

    operation: Operation
    variant: str
    cycles: int
    code: int
    """Bytes of the operator, without constants."""


@dataclass(frozen=True, eq=False)
class Measurements:
    """The candidates of layers on one core."""

    results: Sequence[Result]
    source: str
    """The emulator or the board with its counter, and the compiler."""
    left_out: Sequence[Operation] = ()
    """The layers that could not be measured."""
    functions: Mapping[str, int] = field(default_factory=dict)
    """The functions of libraries that candidates call, with their bytes of code."""


Measure = Callable[[Sequence[Operation], Progress], Measurements]
"""Run all candidates of layers. Raises MeasurementError or OpwestError."""


def table_of(measured: Measurements, core: str, *, has_estimates: bool) -> Table:
    """Return the table of a core."""
    results = measured.results
    layers: dict[str, dict[str, tuple[int, int]]] = {}
    for one in results:
        layers.setdefault(key_of(one.operation), {})[one.variant] = (one.cycles, one.code)
    estimates = fitted([(one.operation, one.variant, one.cycles, one.code) for one in results]) if has_estimates else {}
    return Table(core, layers, estimates, measured.source, functions=measured.functions)
