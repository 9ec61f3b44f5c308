# SPDX-License-Identifier: Apache-2.0
"""The hash of a model: SHA-256 of everything that defines its behaviour.

Texts for people, locations, files of the application and the plan of the memory have no influence.
"""

from __future__ import annotations

import dataclasses
import json
from hashlib import sha256
from typing import Any

from opwest.model.types.conventions import Convention
from opwest.model.types.dtypes import DType
from opwest.model.types.model import Model, Operator
from opwest.model.types.sections import FOREVER, Device

_MEMBERS = (
    "name",
    "operators",
    "devices",
    "pools",
    "constants",
    "inputs",
    "outputs",
    "buffers",
    "states",
    "steps",
    "builds",
    "stateful",
)
"""The members of a model that define its behaviour. The others describe the application, its tests or the manifest."""
_WITHOUT_EFFECT = frozenset(
    """location size_location description host_latency_us file origin kconfig boards devicetree labels line column
    permits uses object_effects cycles launch_cycles switch_cycles stack stack_location""".split()
)
"""Members of inner objects without influence on results."""

_NEWER: dict[type, dict[str, Any]] = {
    Operator: {"check": None, "takes_launch": False, "program": None},
    Device: {"own_timeout_ms": FOREVER, "queue_depth": None, "switching": "load", "power": "open"},
}
"""Members that are left out if they have this value: they are newer than the hashes of existing projects."""


def model_hash(model: Model) -> str:
    """Return the SHA-256 in hexadecimal. It is the same for all targets of a model."""
    content = {name: _plain(getattr(model, name)) for name in _MEMBERS}
    content["externals"] = sorted(external.symbol for external in model.externals)
    defaults = {device.name: device.program for device in model.devices}
    for step, written in zip(model.steps, content["steps"], strict=True):
        program = written.pop("program")
        if step.program != defaults.get(step.device or ""):
            written["program"] = program
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Return a value as JSON: objects by member, contents as their hashes."""
    match value:
        case DType() | Convention():
            return value.name
        case bytes():
            return sha256(value).hexdigest()
        case tuple() | list():
            return [_plain(item) for item in value]
        case frozenset():
            return sorted(value)
        case None | bool() | int() | str():
            return value
        case float():
            return value.hex()
    if dataclasses.is_dataclass(value):
        newer = _NEWER.get(type(value), {})
        names = [field.name for field in dataclasses.fields(value) if field.name not in _WITHOUT_EFFECT]
        members = {name: getattr(value, name) for name in names}
        kept = {name: member for name, member in members.items() if name not in newer or member != newer[name]}
        return {name: _plain(member) for name, member in kept.items()}
    return str(value)
