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
from opwest.compiler.graph.spec import Operator, broadcast_inputs, specify


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


_OF_ONNX: dict[str, Callable[..., Any]] = {
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
}
"""The functions that only ONNX has, by their names in C without f."""
FLOAT_FUNCTIONS = {
    row.kind: row
    for row in (
        FloatFunction("FLOOR", np.floor, "floorf", "Floor"),
        FloatFunction("CEIL", np.ceil, "ceilf", "Ceil"),
        FloatFunction("ROUND", np.rint, "rintf", "Round"),
        FloatFunction("SIN", np.sin, "sinf", "Sin"),
        FloatFunction("COS", np.cos, "cosf", "Cos"),
        FloatFunction("ATAN2", np.arctan2, "atan2f", operands=2),
        *(
            FloatFunction(f"ONNX_{name.upper()}", function, f"{name}f", name.capitalize(), is_wide=True)
            for name, function in _OF_ONNX.items()
        ),
    )
}
"""By kind."""


specify(
    *(Operator(row.kind, broadcast_inputs, (" ".join(["float32"] * row.operands),)) for row in FLOAT_FUNCTIONS.values())
)
