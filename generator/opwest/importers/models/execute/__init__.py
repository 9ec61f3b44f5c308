# SPDX-License-Identifier: Apache-2.0
"""A numpy interpreter of programs: what each operation does, for the proof of the passes.

It shares rules of arithmetic with `interpret/`, which runs the graph as it was read. The numbers of an operation, its
loops, and the memory of its values are those that lowering and the passes made.
"""

from opwest.importers.models.execute import (
    elements,
    hybrid,
    layers,
    movement,
    normalisation,
    recurrent,
    reduction,
    stripes,
    user,
)

__all__ = [
    "elements",
    "hybrid",
    "layers",
    "movement",
    "normalisation",
    "recurrent",
    "reduction",
    "stripes",
    "user",
]
