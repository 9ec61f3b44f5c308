# SPDX-License-Identifier: Apache-2.0
"""Functions of float32 elements, one row each: the specification, the reference, lowering, emission and the reader of
ONNX are derived from it. The reader of TFLite has operators of these kinds if its schema has them.

Sources: the file of each operator in TFLite's kernels/; onnx/docs/Operators.md for kinds that begin with ONNX_.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.graph.spec import Operator, Result, broadcast, specify
from opwest.compiler.graph.types import Node


@dataclass(frozen=True)
class FloatFunction:
    """A function of one or more elements."""

    kind: str
    """TFLite's name of the operator; ONNX_ and a name for those that TFLite lacks."""
    numpy: Callable[..., Any]
    c: str
    """A function of <math.h>, whose parameters are the elements."""
    onnx: str | None = None
    """ONNX's name of the operator; None: it has none."""
    operands: int = 1
    is_wide: bool = False
    """Whether the reference computes in float64, as the C library does at best, and rounds once."""

    def of(self, arrays: Sequence[Any]) -> Any:
        """Return the results; outside of the domain NaN or infinity."""
        with np.errstate(all="ignore"):
            return self.numpy(*(array.astype(np.float64) if self.is_wide else array for array in arrays))


def _erf(values: Any) -> Any:
    found = np.asarray([math.erf(float(one)) for one in values.reshape(-1)], values.dtype)
    return found.reshape(values.shape)


def _row(name: str, numpy: Callable[..., Any]) -> FloatFunction:
    """Return the row of a function that only ONNX has."""
    return FloatFunction(f"ONNX_{name.upper()}", numpy, f"{name}f", name.capitalize(), is_wide=True)


FLOAT_FUNCTIONS = {
    one.kind: one
    for one in (
        FloatFunction("FLOOR", np.floor, "floorf", "Floor"),
        FloatFunction("CEIL", np.ceil, "ceilf", "Ceil"),
        FloatFunction("ROUND", np.rint, "rintf", "Round"),
        FloatFunction("SIN", np.sin, "sinf", "Sin"),
        FloatFunction("COS", np.cos, "cosf", "Cos"),
        FloatFunction("ATAN2", np.arctan2, "atan2f", operands=2),
        _row("erf", _erf),
        _row("tan", np.tan),
        _row("asin", np.arcsin),
        _row("acos", np.arccos),
        _row("atan", np.arctan),
        _row("sinh", np.sinh),
        _row("cosh", np.cosh),
        _row("asinh", np.arcsinh),
        _row("acosh", np.arccosh),
        _row("atanh", np.arctanh),
    )
}
"""By kind."""


def _result(node: Node) -> Sequence[Result]:
    return [("float32", broadcast([tensor.shape for tensor in node.inputs if tensor is not None]))]


specify(
    *(Operator(one.kind, _result, (" ".join(["float32"] * one.operands),)) for one in FLOAT_FUNCTIONS.values()),
)
