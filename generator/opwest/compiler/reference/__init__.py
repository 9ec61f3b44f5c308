# SPDX-License-Identifier: Apache-2.0
"""A numpy interpreter of graphs, and the runtimes of the formats in processes of their own.

Enters: a graph and arrays. Leaves: the arrays of all results, from one function for each operator, which folds
constants, computes vectors and proves programs. Never: what lowering made of the graph.
"""

# They fill the table.
from opwest.compiler.reference import (  # noqa: F401
    elementwise,
    layers,
    movement,
    normalisation,
    recurrent,
    signal,
)
