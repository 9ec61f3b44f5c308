# SPDX-License-Identifier: Apache-2.0
"""How far float32 results of a variant may be from those of the portable one: bounds of their rounding errors.

A sum of n products has a rounding error of at most n * 2**-24 times the sum of their magnitudes (Higham, Accuracy and
Stability of Numerical Algorithms, 3.1), whether products are rounded or not. Two such sums differ by at most twice as
much. Vectors also take numbers below 2**-126 for 0.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from opwest.compiler.emission.function import VARIANTS
from opwest.compiler.execution.run import run_program
from opwest.compiler.ir.operations import Clamp, Convolution, Depthwise, MatrixProduct
from opwest.compiler.ir.program import Operation, Program

UNIT = 2.0**-23
"""Twice the rounding error of a number of magnitude 1."""
LEAST = 2.0**-126
"""The least normal number."""


def is_exact(operation: Operation, variant: str) -> bool:
    """Whether a variant of an operation has the results of the portable one, bit for bit."""
    return all(one.is_exact for one in VARIANTS[type(operation)] if one.name == variant)


def limits_for(program: Program, variant: str, inputs: Sequence[Any]) -> list[Any] | None:
    """Return the greatest differences of the outputs of a program of one operation; None: they are equal."""
    [operation] = program.operations
    return None if is_exact(operation, variant) else [_limits(program, operation, inputs)]


def _limits(program: Program, operation: Operation, inputs: Sequence[Any]) -> Any:
    count = products(operation)
    magnitudes = [np.abs(array) for array in inputs]
    greatest = [1.0, *(float(array.max(initial=0)) for array in magnitudes)]
    if count == 0:
        return np.full(program.outputs[0].shape, 2 * LEAST * max(greatest), np.float32)
    changed: dict[str, Any] = {"finish": Clamp(None, None)}
    for name in ("weights", "bias"):
        if getattr(operation, name, None) is not None:
            changed[name] = np.abs(getattr(operation, name))
            greatest.append(float(changed[name].max()))
    positive = dataclasses.replace(operation, **changed)
    [sums] = run_program(dataclasses.replace(program, operations=[positive]), magnitudes, {})
    return np.asarray((count + 1) * (1.01 * UNIT * sums + LEAST * max(greatest)), np.float32)


def products(operation: Operation) -> int:
    """Return the products of a result of an operation; 0 for operations without sums of products."""
    if isinstance(operation, Convolution):
        return int(operation.weights[0].size)
    if isinstance(operation, Depthwise):
        return int(operation.weights.shape[0] * operation.weights.shape[1])
    if isinstance(operation, MatrixProduct):
        return int(operation.inputs[0].shape[-2 if operation.swaps[0] else -1])
    return 0
