# SPDX-License-Identifier: Apache-2.0
"""The hash of a model: SHA-256 of everything that defines its behaviour.

Texts for people, locations, files of the application and the plan of the memory have no influence.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable
from hashlib import sha256
from json.encoder import encode_basestring_ascii as _string
from operator import attrgetter
from typing import Any

from opwest.model.types.builds import CompileOptions
from opwest.model.types.conventions import Convention
from opwest.model.types.dtypes import DType
from opwest.model.types.model import Argument, Model, Operator
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
    permits uses object_effects cycles launch_cycles switch_cycles stack stack_location
    unverified_signatures""".split()
)
"""Members of inner objects without influence on results."""

_NEWER: dict[type, dict[str, Any]] = {
    CompileOptions: {"optimize": "speed"},
    Operator: {"check": None, "takes_launch": False, "program": None, "nulls": ()},
    Argument: {"table": None, "phases": None},
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
        is_default = step.program == defaults.get(step.device or "")
        steps.append(writer.record(step, "program" if is_default else None))
    members["steps"] = f"[{', '.join(steps)}]"
    return sha256(_object(f"{_string(name)}: {text}" for name, text in sorted(members.items())).encode()).hexdigest()


_WORDS = {None: "null", False: "false", True: "true"}


_ABSENT = object()


def _object(members: Iterable[str]) -> str:
    """Return a JSON object of members, JSON texts with a name and a value."""
    return f"{{{', '.join(members)}}}"


_Layout = tuple[list[str], list[str], list[object], Callable[[Any], tuple[Any, ...]]]
"""The members of a class: names, texts before the values, the values with which they are left out; all values."""


class _Writer:
    """Writes values as JSON in the format of `json.dumps(..., sort_keys=True)`: objects by member, contents as hashes.

    Steps contain their operators, and operators share types: the text of each object is made once.
    """

    def __init__(self) -> None:
        self._known: dict[int, str] = {}
        """By identity. The model keeps the objects."""
        self._layouts: dict[type, _Layout] = {}

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
            known = self.record(value) if kind in self._layouts else self._text(value)
            self._known[id(value)] = known
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
        return self.record(value) if dataclasses.is_dataclass(value) else _string(str(value))

    def record(self, value: Any, without: str | None = None) -> str:
        """Return the text of an object without the members that have no influence, and without a further one."""
        members = []
        names, heads, newer, values = self._layout(type(value))
        for name, head, default, member in zip(names, heads, newer, values(value), strict=True):
            if name != without and (default is _ABSENT or member != default):
                members.append(head + (_string(member) if type(member) is str else self.text(member)))
        return _object(members)

    def _layout(self, kind: type) -> _Layout:
        """Return the members of a class."""
        layout = self._layouts.get(kind)
        if layout is None:
            names = sorted(f.name for f in dataclasses.fields(kind) if f.name not in _WITHOUT_EFFECT)
            newer = _NEWER.get(kind, {})
            values = attrgetter(*names) if len(names) > 1 else lambda value: tuple(getattr(value, n) for n in names)
            heads = [f"{_string(name)}: " for name in names]
            layout = self._layouts[kind] = (names, heads, [newer.get(name, _ABSENT) for name in names], values)
        return layout
