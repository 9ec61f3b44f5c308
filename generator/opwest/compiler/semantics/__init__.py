# SPDX-License-Identifier: Apache-2.0
"""The operators: for each family, the rows of the specification and the numbers of its arithmetic rules.

Every module names the file of the reference implementation that it follows.
"""

from opwest.compiler.semantics import (
    arithmetic,
    elementwise,
    float_functions,
    layers,
    movement,
    onnx,
    recurrent,
    rows,
    slices,
    windows,
)

__all__ = [
    "arithmetic",
    "elementwise",
    "float_functions",
    "layers",
    "movement",
    "onnx",
    "recurrent",
    "rows",
    "slices",
    "windows",
]
