# SPDX-License-Identifier: Apache-2.0
"""The functions that the steps call, of the module and of our own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opwest.importers.tvm.steps import Steps


def functions_of(module: Any, steps: Steps) -> dict[str, Any]:
    """Return the TIR function of every operator, by name."""
    known = {variable.name_hint: function for variable, function in module.functions_items()}
    known |= {name: _copy(dtype, elements) for name, (dtype, elements) in steps.copies.items()}
    return {name: known[name] for name in sorted({step.function for step in steps.steps})}


def results_of(steps: Steps) -> Mapping[str, int]:
    """Return how many results each function writes."""
    return {step.function: step.writes for step in steps.steps}


def _copy(dtype: str, elements: int) -> Any:
    """Return a function that copies: for a model that returns what it was given."""
    from tvm import te

    data = te.placeholder((elements,), dtype=dtype, name="data")
    return te.create_prim_func([data, te.compute((elements,), lambda i: data[i], name="copy")])
