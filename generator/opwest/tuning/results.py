# SPDX-License-Identifier: Apache-2.0
"""Measured candidates of layers, and the table of a core that they form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.ir.program import Operation
from opwest.compiler.selection.costs import STALLS, TERMS, Table, estimate_key, key_of, numbers_of, stalls_per
from opwest.objects.flash import Flash

ROUNDS = 20
"""Iterations of the fit, which updates the weights of layers in each; it has converged by then."""
PREFERENCE = {"product": 1e-5, "result": 1e-4}
"""The cost of a coefficient for products and for results; 3e-3 for others."""
ROUGH = {"product": 3.0, "result": 20.0, "data": 2.0, "call": 100.0}
"""Coefficients to begin with, up to a common factor."""
USUAL = 0.15
"""The usual error of an estimate, as a logarithm: larger ones count less, since a few layers differ from all others."""


def fitted(results: Sequence[Result]) -> dict[str, dict[str, dict[str, float]]]:
    """Return the coefficients of costs by kind of operation and variant."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        groups.setdefault((estimate_key(result.operation), result.variant), []).append(result)
    coefficients: dict[str, dict[str, dict[str, float]]] = {}
    for (kind, variant), group in groups.items():
        numbers = [numbers_of(result.operation) for result in group]
        matrix = np.asarray([[row.get(term, 0) for term in TERMS] for row in numbers], np.float64)
        # A layer without work has 0 cycles: every estimate is infinitely wrong for it.
        measured = np.asarray([max(1, result.cycles) for result in group], np.float64)
        terms = {term: float(one) for term, one in zip(TERMS, estimate(matrix, measured), strict=True) if one}
        terms["code"] = float(np.median([result.code for result in group]))
        terms.update(_stalls([result for result in group if result.stalls is not None]))
        coefficients.setdefault(kind, {})[variant] = terms
    return coefficients


def _stalls(group: Sequence[Result]) -> dict[str, float]:
    """Return the coefficients of the stalls of the flash with small errors, as a part of all cycles."""
    if not group:
        return {}
    matrix = np.asarray([[stalls_per(result.operation), 1] for result in group], np.float64)
    stalls = np.asarray([result.stalls for result in group], np.float64)
    whole = np.asarray([max(1, result.cycles) for result in group], np.float64) + stalls
    weights = 1 / whole
    for _ in range(ROUNDS):
        both = not_negative(matrix * weights[:, None], stalls * weights, [PREFERENCE["product"], 1e-3])
        errors = np.abs(matrix @ both - stalls) / whole
        weights = np.minimum(1.0, USUAL / np.maximum(errors, 1e-9)) / whole
    return {name: float(one) for name, one in zip(STALLS, both, strict=True) if one}


def estimate(matrix: Any, measured: Any) -> Any:
    """Return coefficients of at least 0 whose estimates have small relative errors, both above and below."""
    preference = [PREFERENCE.get(term, 3e-3) for term in TERMS]
    # The first weights are not from the measured cycles: a layer that the compiler removed would have a high weight.
    rough = matrix @ [ROUGH.get(term, 0.0) for term in TERMS]
    estimates = rough * np.median(measured / rough)
    for _ in range(ROUNDS):
        errors = np.abs(np.log(estimates / measured))
        trust = np.minimum(1.0, USUAL / np.maximum(errors, 1e-9))
        # Twice and half of the cycles are equally wrong.
        weights = trust / np.maximum(estimates, measured)
        coefficients = not_negative(matrix * weights[:, None], measured * weights, preference)
        estimates = np.clip(matrix @ coefficients, measured / 100, measured * 100)
    return coefficients


def not_negative(matrix: Any, wanted: Any, preference: Any) -> Any:
    """Return the coefficients of at least 0 with the least squares: the method of Lawson and Hanson.

    `preference`: by column, the cost of a coefficient; it decides where the rows alone do not.
    """
    sizes = np.maximum(np.linalg.norm(matrix, axis=0), 1e-30)
    columns = matrix / sizes
    # A weak preference decides between columns that are nearly proportional: products, then results, cost cycles.
    gram, right = columns.T @ columns + np.diag(preference), columns.T @ wanted
    chosen = np.zeros(len(right), bool)
    coefficients = np.zeros(len(right))
    for _ in range(3 * len(right)):
        gains = np.where(chosen, 0.0, right - gram @ coefficients)
        if gains.max() <= 1e-9:
            break
        chosen[gains.argmax()] = True
        while True:
            solved = np.zeros(len(right))
            solved[chosen] = np.linalg.solve(gram[np.ix_(chosen, chosen)], right[chosen])
            below = chosen & (solved <= 0)
            if not below.any():
                break
            share = (coefficients[below] / (coefficients[below] - solved[below])).min()
            coefficients = coefficients + share * (solved - coefficients)
            chosen &= coefficients > 1e-12
            coefficients = np.where(chosen, coefficients, 0.0)
        coefficients = solved
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
    """Without wait states of flash, or of a board."""
    code: int
    """Bytes of the operator, without constants."""
    stalls: int | None = None
    """Further cycles with the flash of the source, else UNKNOWN; None: they were not counted, as on a board."""


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


Measure = Callable[[Sequence[Operation], Progress, Flash], Measurements]
"""Run all candidates of layers, in the code for a flash. Raises MeasurementError or OpwestError."""


def table_of(measured: Measurements, core: str, *, has_estimates: bool) -> Table:
    """Return the table of a core."""
    results = measured.results
    layers: dict[str, dict[str, Sequence[int]]] = {}
    for result in results:
        stalls = () if result.stalls is None else (result.stalls,)
        layers.setdefault(key_of(result.operation), {})[result.variant] = (result.cycles, result.code, *stalls)
    estimates = fitted(results) if has_estimates else {}
    return Table(core, layers, estimates, measured.source, functions=measured.functions)
