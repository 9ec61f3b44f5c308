# SPDX-License-Identifier: Apache-2.0
"""The functions of operations, by type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opwest.compiler.ir.program import Operation
from opwest.compiler.reference.run import converted

Arrays = Sequence[Any]
"""numpy arrays in the shapes of the values."""
Function = Callable[[Any, Arrays], Any]
"""From an operation and the arrays of its inputs to the array of its result, or a tuple of arrays. States change in
place. Raises ValueError where the operator returns an error code."""

FUNCTIONS: dict[type[Operation], Function] = {}
"""Importing the package fills it."""


def executes(*types: type[Operation]) -> Callable[[Function], Function]:
    """Register a function for operations. Its results are converted to the dtypes and the shapes of the values."""

    def register(function: Function) -> Function:
        for type_ in types:
            assert type_ not in FUNCTIONS, type_
            FUNCTIONS[type_] = function
        return function

    return register


def results_of(operation: Operation, arrays: Arrays) -> tuple[Any, ...]:
    """Return the results of an operation in the dtypes and shapes of its values."""
    with np.errstate(all="ignore"):
        return converted(FUNCTIONS[type(operation)](operation, arrays), operation.results)
