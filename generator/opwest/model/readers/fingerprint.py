# SPDX-License-Identifier: Apache-2.0
"""The hash of a model: SHA-256 of everything that defines its behaviour.

Texts for people, locations, files of the application and the plan of the memory have no influence.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from hashlib import sha256
from json.encoder import encode_basestring_ascii as _string
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
    known: dict[str, Any] = vars(model)  # as functools.cached_property does: files of a model contain it several times
    if _HASH not in known:
        known[_HASH] = _model_hash(model)
    return str(known[_HASH])


_HASH = "_hash"


def _model_hash(model: Model) -> str:
    writer = _Writer()
    members = {name: writer.text(getattr(model, name)) for name in _MEMBERS if name != "steps"}
    members["externals"] = writer.text(sorted(external.symbol for external in model.externals))
    defaults = {device.name: device.program for device in model.devices}
    steps = []
    for step in model.steps:
        own = writer.members(step)
        if step.program == defaults.get(step.device or ""):
            del own["program"]
        steps.append(_object(own))
    members["steps"] = f"[{', '.join(steps)}]"
    return sha256(_object(dict(sorted(members.items()))).encode()).hexdigest()


_WORDS = {None: "null", False: "false", True: "true"}


def _object(members: Mapping[str, str]) -> str:
    """Return a JSON object; the values are JSON texts."""
    return f"{{{', '.join([f'{_string(name)}: {text}' for name, text in members.items()])}}}"


class _Writer:
    """Writes values as JSON in the format of `json.dumps(..., sort_keys=True)`: objects by member, contents as hashes.

    Steps contain their operators, and operators share types: the text of each object is made once.
    """

    def __init__(self) -> None:
        self._known: dict[int, str] = {}
        """By identity. The model keeps the objects."""
        self._names: dict[type, tuple[str, ...]] = {}

    def text(self, value: Any) -> str:
        """Return the text of a value."""
        kind = type(value)
        if kind is str:
            return _string(value)
        if kind is int:
            return str(value)
        if value is None or kind is bool:
            return _WORDS[value]
        if kind is tuple or kind is list:
            return f"[{', '.join([self.text(item) for item in value])}]"
        known = self._known.get(id(value))
        if known is None:
            known = self._known[id(value)] = self._text(value)
        return known

    def _text(self, value: Any) -> str:
        match value:
            case DType() | Convention():
                return _string(value.name)
            case bytes():
                return _string(sha256(value).hexdigest())
            case frozenset():
                return json.dumps(sorted(value))
            case float():
                return _string(value.hex())
        return _object(self.members(value)) if dataclasses.is_dataclass(value) else _string(str(value))

    def members(self, value: Any) -> dict[str, str]:
        """Return the texts of the members of an object by name, in order, without those that have no influence."""
        kind = type(value)
        names = self._names.get(kind)
        if names is None:
            fields = dataclasses.fields(value)
            names = self._names[kind] = tuple(sorted(f.name for f in fields if f.name not in _WITHOUT_EFFECT))
        newer = _NEWER.get(kind, {})
        members = {}
        for name in names:
            member = getattr(value, name)
            if name not in newer or member != newer[name]:
                members[name] = self.text(member)
        return members
