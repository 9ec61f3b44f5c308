# SPDX-License-Identifier: Apache-2.0
"""Measured candidates of layers, and the table of a core that they form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.ir.program import Operation
from opwest.compiler.selection.costs import TERMS, Table, key_of, kind_of, numbers_of

ROUNDS = 2000


def fitted(results: Sequence[Result]) -> dict[str, dict[str, dict[str, float]]]:
    """Return the coefficients of costs by kind of operation and variant."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        groups.setdefault((kind_of(result.operation), result.variant), []).append(result)
    coefficients: dict[str, dict[str, dict[str, float]]] = {}
    for (kind, variant), group in groups.items():
        numbers = [numbers_of(result.operation) for result in group]
        matrix = np.asarray([[row[term] for term in TERMS] for row in numbers], np.float64)
        measured = np.asarray([result.cycles for result in group], np.float64)
        terms = dict(zip(TERMS, map(float, not_negative(matrix, measured)), strict=True))
        terms["code"] = float(np.median([result.code for result in group]))
        coefficients.setdefault(kind, {})[variant] = terms
    return coefficients


def not_negative(matrix: Any, wanted: Any) -> Any:
    """Return coefficients of at least 0 with a small relative error, by coordinate descent."""
    # Relative errors: a small layer counts as much as a large one.
    scaled = matrix / wanted[:, None]
    target = np.ones(len(wanted))
    # A weak preference for small coefficients decides between columns that are nearly proportional.
    sizes = np.maximum(np.linalg.norm(scaled, axis=0), 1e-30)
    columns = scaled / sizes
    coefficients = np.zeros(columns.shape[1])
    gram, right = columns.T @ columns + 1e-6 * np.eye(columns.shape[1]), columns.T @ target
    for _ in range(ROUNDS):
        for i in range(len(coefficients)):
            coefficients[i] = max(0.0, coefficients[i] + (right[i] - gram[i] @ coefficients) / gram[i, i])
    return coefficients / sizes


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
    without_stalls: int | None = None
    """The cycles without wait states of flash, if QEMU counted them."""


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
    for result in results:
        layers.setdefault(key_of(result.operation), {})[result.variant] = (result.cycles, result.code)
    estimates = fitted(results) if has_estimates else {}
    return Table(core, layers, estimates, measured.source, functions=measured.functions)
