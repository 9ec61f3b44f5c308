# SPDX-License-Identifier: Apache-2.0
"""Inputs, and the results of every operator in the format's runtime: `opwest import --compare N`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from opwest.importers.faults import fault
from opwest.importers.models.graph.types import Graph
from opwest.importers.models.ir.program import Program, Value
from opwest.importers.models.references import all_tensors
from opwest.importers.models.vectors import make_inputs
from opwest.importers.runtimes import UnavailableError

INPUT, TENSOR = "input/", "tensor/"
"""The start of the names of arrays; the first dimension counts the cases."""


def comparison(
    graph: Graph, content: bytes, program: Program, names: Mapping[Value, str], count: int, place: str
) -> dict[str, Any]:
    """Return the arrays of `count` cases. Raises OpwestError if the runtime is absent or cannot run the model."""
    cases = make_inputs(graph, count, seed=1)
    try:
        found = all_tensors(graph, content, cases)
    except UnavailableError as error:
        hint = "import without --compare; golden vectors are then those of opwest's interpreter"
        raise fault(f"--compare: there is nothing to compare with: {error}", place, hint=hint) from None
    arrays = {
        f"{INPUT}{names[value]}": np.stack([case[number] for case in cases])
        for number, value in enumerate(program.inputs)
    }
    for value, tensor in program.tensors.items():
        if value in names and value.role in ("intermediate", "output") and tensor in found[0]:
            channels = program.channels.get(value, slice(None))
            arrays[f"{TENSOR}{names[value]}"] = np.stack([one[tensor][..., channels] for one in found])
    return arrays
