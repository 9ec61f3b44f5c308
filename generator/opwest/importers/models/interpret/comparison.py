# SPDX-License-Identifier: Apache-2.0
"""Comparisons, logic, selection."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.importers.models.graph.types import Node, Rules
from opwest.importers.models.interpret.registry import Arrays, interprets
from opwest.importers.models.operators.comparison import COMPARISONS, LEFT_SHIFT, compare_numbers, condition_shape
from opwest.importers.models.operators.fixed_point import Rounding, scaled

_FUNCTIONS = {
    "==": np.equal,
    "!=": np.not_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "<": np.less,
    "<=": np.less_equal,
}


@interprets(*COMPARISONS)
def compare(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Quantised values are scaled first."""
    numbers = compare_numbers(node)
    one, other = arrays
    if numbers is not None:
        one, other = (
            scaled((array.astype(np.int64) - zero) << LEFT_SHIFT, by.fixed, by.shift, Rounding.TWICE)
            for array, zero, by in zip(arrays, numbers.zeros, numbers.multipliers, strict=True)
        )
    return _FUNCTIONS[COMPARISONS[node.kind]](one, other)


@interprets("LOGICAL_AND")
def logical_and(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Both."""
    return np.logical_and(*arrays)


@interprets("LOGICAL_OR")
def logical_or(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """One or both."""
    return np.logical_or(*arrays)


@interprets("LOGICAL_NOT")
def logical_not(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """The opposite."""
    return np.logical_not(arrays[0])


@interprets("SELECT")
def select(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """The condition's only dimension is the first one of the values."""
    return np.where(arrays[0].reshape(condition_shape(node)), arrays[1], arrays[2])


@interprets("SELECT_V2")
def select_broadcast(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """All inputs are broadcast."""
    return np.where(*arrays)
