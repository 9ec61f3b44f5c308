# SPDX-License-Identifier: Apache-2.0
"""The note of a model in an ELF image: its description as JSON in a section that is not loaded.

`opwest inspect` reads it: objects/images.py describes the members (NOTE_SHAPE). The section is written in assembly: a
compiler would place it in flash.
"""

from __future__ import annotations

import json
from typing import Any

from opwest import __version__
from opwest.model.readers.fingerprint import model_hash
from opwest.model.types.c_names import CNames
from opwest.model.types.model import Model, Step
from opwest.objects.images import NOTE_FORMAT, NOTE_OWNER, NOTE_SECTION, NOTE_TYPE
from opwest.plan.memory import MemoryPlan
from opwest.render.tables import layout
from opwest.render.tables.tensors import used_pools
from opwest.render.templates.renderer import Renderer
from opwest.render.tensors import heading, type_row

_CHARACTERS = 72
"""Of JSON per line of assembly."""


def render_note(render: Renderer, model: Model, plan: MemoryPlan) -> bytes:
    """Return note.S."""
    text = json.dumps(note_record(model, plan), separators=(",", ":"))
    lines = [text[at : at + _CHARACTERS] for at in range(0, len(text), _CHARACTERS)]
    return render(
        "models/model/note.S",
        **heading(model),
        section=NOTE_SECTION,
        owner=NOTE_OWNER,
        owner_size=len(NOTE_OWNER) + 1,
        type=NOTE_TYPE,
        lines=[line.replace("\\", "\\\\").replace('"', '\\"') for line in lines],
    )


def note_record(model: Model, plan: MemoryPlan) -> dict[str, Any]:
    """Return the description of a model as JSON values."""
    names = CNames(model.name)
    return {
        "format": NOTE_FORMAT,
        "opwest": __version__,
        "metadata": layout.METADATA_VERSION,
        "model": model.name,
        "description": model.description or "",
        "hash": model_hash(model),
        **({"variant": model.variant.name} if model.variant else {}),
        "targets": [build.target.name for build in model.builds if build.target],
        "inputs": [type_row(t.name, t.type) for t in model.inputs],
        "outputs": [type_row(t.name, t.type) for t in model.outputs],
        "devices": [
            {
                "name": device.name,
                "type": device.type or "",
                "program": device.program.name if device.program else "",
                "symbol": CNames.program(device.program.content) if device.program else "",
            }
            for device in model.devices
        ],
        "pools": _pools(model, plan),
        "constants": [
            type_row(c.name, c.type) | {"symbol": names.constant(c.name), "pool": c.pool or ""} for c in model.constants
        ],
        "steps": [
            {
                "operator": step.operator.name,
                "device": step.device or "",
                "args": [str(b.value) if b.role == "scalar" else b.shown for b in step.bindings],
                **_own_program(model, step),
            }
            for step in model.steps
        ],
    }


def _own_program(model: Model, step: Step) -> dict[str, str]:
    """Return the program of a step if that of its device is another."""
    if step.program is None or step.device is None or step.program == model.device(step.device).program:
        return {}
    return {"program": step.program.name, "symbol": CNames.program(step.program.content)}


def _pools(model: Model, plan: MemoryPlan) -> list[dict[str, Any]]:
    declared = {pool.name: pool for pool in model.pools}
    pools = []
    for used in used_pools(model, plan):
        pool = declared[used.name]
        buffers = []
        for buffer in model.buffers:
            home, offset = plan.place(buffer.name)
            if home == used.name:
                life = plan.schedule.lives[buffer.name]
                place = {"role": buffer.role, "offset": offset, "first_step": life.first, "last_step": life.last}
                buffers.append(type_row(buffer.name, buffer.type) | place)
        pools.append(
            {
                "name": used.name,
                "size": used.size,
                "align": used.align,
                "reach": sorted(pool.reachable_by) if pool.reachable_by is not None else [],
                "regions": [{"board": board, "node": str(tree)} for board, tree in pool.boards],
                "buffers": sorted(buffers, key=lambda row: (row["offset"], row["first_step"])),
            }
        )
    return pools
