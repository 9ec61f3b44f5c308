# SPDX-License-Identifier: Apache-2.0
"""The operators: for each family, the rows of the specification and the numbers of their arithmetic.

Enters: a node. Leaves: the dtypes and shapes of its results, its multipliers, limits and tables. Never: C, operations.
Every module names the file of the reference implementation that it follows.
"""

from opwest.compiler.semantics import (  # noqa: F401 - fills the table
    arithmetic,
    elementwise,
    float_functions,
    layers,
    movement,
    recurrent,
    rows,
    signal,
    signal_streams,
    slices,
    windows,
)  # fmt: skip
