# SPDX-License-Identifier: Apache-2.0
"""Estimates for layers without measurements: linear in products, results and data, fitted to measured layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opwest.importers.models.choice.geometry import kind_of, numbers_of
from opwest.importers.models.choice.table import TERMS
from opwest.importers.models.ir.program import Operation

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
