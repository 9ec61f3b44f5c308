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


def fitted(results: Sequence[tuple[Operation, str, int, int]]) -> dict[str, dict[str, dict[str, float]]]:
    """Return the coefficients by kind and variant. `results`: a layer, the variant, its cycles, its bytes of code."""
    rows: dict[tuple[str, str], list[tuple[dict[str, int], int, int]]] = {}
    for operation, variant, cycles, code in results:
        rows.setdefault((kind_of(operation), variant), []).append((numbers_of(operation), cycles, code))
    found: dict[str, dict[str, dict[str, float]]] = {}
    for (kind, variant), some in rows.items():
        matrix = np.asarray([[numbers[term] for term in TERMS] for numbers, _, _ in some], np.float64)
        measured = np.asarray([cycles for _, cycles, _ in some], np.float64)
        terms = dict(zip(TERMS, map(float, not_negative(matrix, measured)), strict=True))
        terms["code"] = float(np.median([code for _, _, code in some]))
        found.setdefault(kind, {})[variant] = terms
    return found


def not_negative(matrix: Any, wanted: Any) -> Any:
    """Return coefficients of at least 0 with a small relative error, by coordinate descent."""
    # Relative errors: a small layer counts as much as a large one.
    scaled = matrix / wanted[:, None]
    target = np.ones(len(wanted))
    # A weak preference for small coefficients decides between columns that are nearly proportional.
    sizes = np.maximum(np.linalg.norm(scaled, axis=0), 1e-30)
    columns = scaled / sizes
    found = np.zeros(columns.shape[1])
    gram, right = columns.T @ columns + 1e-6 * np.eye(columns.shape[1]), columns.T @ target
    for _ in range(ROUNDS):
        for i in range(len(found)):
            found[i] = max(0.0, found[i] + (right[i] - gram[i] @ found) / gram[i, i])
    return found / sizes


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
    for result in results:
        layers.setdefault(key_of(result.operation), {})[result.variant] = (result.cycles, result.code)
    estimates = (
        fitted([(result.operation, result.variant, result.cycles, result.code) for result in results])
        if has_estimates
        else {}
    )
    return Table(core, layers, estimates, measured.source, functions=measured.functions)
