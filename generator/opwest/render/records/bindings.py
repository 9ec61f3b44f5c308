# SPDX-License-Identifier: Apache-2.0
"""Records of bindings: the table that contains a tensor, and its index there."""

from __future__ import annotations

from opwest.model.model import Binding, Model
from opwest.render.records import layout
from opwest.render.records.values import Number, Record

Indices = dict[tuple[str, str], int]
"""The index of a tensor in the table of its role, by role and name."""


def binding_indices(model: Model) -> Indices:
    """Return the indices of all tensors. A buffer of the workspace precedes its role in the interface."""
    tables = {
        "buffer": [b.name for b in model.buffers],
        "input": [t.name for t in model.inputs],
        "output": [t.name for t in model.outputs],
        "constant": [c.name for c in model.constants],
        "view": [v.name for v in model.views],
    }
    return {(role, name): at for role, names in tables.items() for at, name in enumerate(names)}


def bound_record(binding: Binding, indices: Indices) -> Record:
    """Return the record of a tensor or view that a step or a state refers to."""
    if binding.view is not None:
        return binding_record("view", indices["view", binding.view])
    return binding_record(binding.role, indices[binding.role, binding.name])


def binding_record(role: str, index: int) -> Record:
    """Return a record of struct opwest_binding."""
    return Record(layout.BINDING, {"kind": Number(layout.BINDING_KIND.code(role)), "index": Number(index)})
