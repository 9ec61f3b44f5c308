# SPDX-License-Identifier: Apache-2.0
"""Limits of the metadata, whose indices have 16 bits."""

from __future__ import annotations

from opwest.base.diagnostics import Diagnostics
from opwest.model.types.model import Model

_MOST = 65534


def check_counts(model: Model, faults: Diagnostics) -> None:
    """Report tables of the metadata with too many elements."""
    values = {repr(binding.value) for step in model.steps for binding in step.bindings if binding.role == "scalar"}
    counts = {
        "inputs, outputs and tensors in the workspace": len(model.inputs) + len(model.outputs) + len(model.buffers),
        "constants": len(model.constants),
        "different values of scalars": len(values),
    }
    for what, count in counts.items():
        if count > _MOST:
            faults.error(f"model {model.name!r} has {count} {what}", model.location, expected=f"at most {_MOST}")
