# SPDX-License-Identifier: Apache-2.0
"""The functions that the steps call: those of the module, and copies."""

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
    """Return the number of results of each function."""
    return {step.function: step.writes for step in steps.steps}


def _copy(dtype: str, elements: int) -> Any:
    """Return a copy function, for models that return an input."""
    from tvm import te

    data = te.placeholder((elements,), dtype=dtype, name="data")
    return te.create_prim_func([data, te.compute((elements,), lambda i: data[i], name="copy")])
