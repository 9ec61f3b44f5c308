# SPDX-License-Identifier: Apache-2.0
"""The functions of operations, by type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opwest.compiler.ir.program import Operation

Arrays = Sequence[Any]
"""numpy arrays in the shapes of the values."""
Function = Callable[[Any, Arrays], Any]
"""From an operation and the arrays of its inputs to the array of its result, or a tuple of arrays. States change in
place. Raises ValueError where the operator returns an error code."""

FUNCTIONS: dict[type[Operation], Function] = {}
"""Importing `execute` fills it."""


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
    import numpy as np

    with np.errstate(all="ignore"):
        found = FUNCTIONS[type(operation)](operation, arrays)
        results = found if isinstance(found, tuple) else (found,)
        return tuple(
            np.asarray(array).astype(value.dtype).reshape(value.shape)
            for array, value in zip(results, operation.results, strict=True)
        )
