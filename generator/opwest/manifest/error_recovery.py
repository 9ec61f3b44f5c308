# SPDX-License-Identifier: Apache-2.0
"""Readings of a manifest with faults of its shape: each has other valid values in place of the faulty ones.

A fault that is the same in all readings does not depend on the faulty values, so it is reported together with them.
A fault that differs or is absent in one of them is a consequence of a stand-in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from opwest.base.diagnostics import Location
from opwest.base.frozen_dataclass import dataclass
from opwest.manifest.located import Items, Mapping, lookup
from opwest.manifest.schema import (
    convert_whole_numbers,
    follow,
    likely_option,
    rule_name,
    violated_rule,
    violations,
)

READINGS = 3
"""Two readings can agree by chance: on a property that two of the dtypes share, for example."""
_NAME = "stand_in_{}"


class _NoStandInError(Exception):
    """No values conform to the schema and are independent of the rest of the manifest."""


@dataclass(frozen=True)
class _Place:
    """A faulty or missing value, and what takes its place in each reading."""

    owner: Mapping | Items
    key: Any
    values: list[Any]


@dataclass(frozen=True)
class Readings:
    """A manifest whose faulty values are replaced, in another way in each reading."""

    manifest: Mapping
    places: tuple[_Place, ...]
    in_steps: bool
    """Whether values of steps are replaced."""

    def __iter__(self) -> Iterator[Mapping]:
        """Yield the readings. They are one tree, so the next reading changes the last one."""
        for reading in range(READINGS):
            for place in self.places:
                place.owner[place.key] = place.values[reading]
            yield self.manifest

    def locations(self) -> set[Location]:
        """Return the places of the replaced values: faults there are reported already."""
        locations = set()
        for place in self.places:
            if isinstance(place.owner, Mapping):
                locations |= {place.owner.key_location(place.key), place.owner.value_location(place.key)}
            else:
                locations.add(place.owner.item_location(place.key))
        return locations


def readings_of(manifest: Mapping) -> Readings | None:
    """Return the readings of a manifest that `check_schema` rejected and reported.

    None if a fault has no stand-ins: a missing or faulty collection of names, for example, whose names are unknown.
    """
    try:
        errors = violations(manifest)
        in_steps = any("steps" in (*error.instance_path, getattr(error.kind, "property", None)) for error in errors)
        readings = Readings(manifest, tuple(_place(manifest, error) for error in errors), in_steps)
    except (_NoStandInError, LookupError):
        return None
    for _ in readings:
        if violations(manifest):
            return None
        convert_whole_numbers(manifest)
    return readings


def _place(manifest: Mapping, error: Any) -> _Place:
    path = list(error.instance_path)
    name, rule = rule_name(error), violated_rule(error)
    if name in ("PropertyNames", "AdditionalProperties", "MinItems", "MinProperties"):
        raise _NoStandInError
    if name == "Required":
        key = error.kind.property
        owner = lookup(manifest, path)
        if not path and key == "objects":
            raise _NoStandInError  # every symbol would be undefined
        rule, value = follow(rule["properties"][key]), None
    elif not path:
        raise _NoStandInError
    else:
        owner, key = lookup(manifest, path[:-1]), path[-1]
        value = owner[key]
    make = _Maker(owner.value_location(key) if isinstance(owner, Mapping) else owner.item_location(key))
    return _Place(owner, key, [make.value(rule, value, reading) for reading in range(READINGS)])


class _Maker:
    """Makes values that conform to a rule of the schema, with the positions of a place in the file."""

    def __init__(self, at: Location) -> None:
        self._file = at.file
        self._start = (at.line, at.column)

    def value(self, rule: dict[str, Any], given: Any, reading: int) -> Any:
        """Return a value for one reading. The first is the likely meaning of the faulty value `given`, if any."""
        rule = follow(rule)
        if "if" in rule:
            rule = follow(rule["else"])
        if "anyOf" in rule:
            rule = follow(rule["anyOf"][reading % len(rule["anyOf"])])
        if "enum" in rule:
            return _option(rule["enum"], given, reading)
        if "type" not in rule:
            raise _NoStandInError
        kinds = rule["type"] if isinstance(rule["type"], list) else [rule["type"]]
        kind = "string" if "string" in kinds else kinds[0]
        make: dict[str, Callable[[dict[str, Any], Any, int], Any]] = {
            "string": lambda _rule, _given, reading: _NAME.format(reading),
            "integer": _number,
            "number": _number,
            "boolean": lambda _rule, _given, reading: reading % 2 == 1,
            "array": self._items,
            "object": self._mapping,
        }
        return make[kind](rule, given, reading)

    def _items(self, rule: dict[str, Any], given: Any, reading: int) -> Items:
        """Return a list whose length is different in each reading, since faults can depend on the length only."""
        items = Items(self._file, self._start)
        if isinstance(given, Items) and rule.get("uniqueItems"):
            for item, at in zip(given, given.items_at, strict=True):
                if item not in items:
                    items.add(item, at)
            return items
        if isinstance(given, (str, int, float)) and reading == 0:
            items.append(given)  # the value without its brackets
        else:
            items += [
                self.value(rule["items"], None, reading + index) for index in range(rule.get("minItems", 0) + reading)
            ]
        items.items_at += [self._start] * len(items)
        return items

    def _mapping(self, rule: dict[str, Any], given: Any, reading: int) -> Mapping:
        if isinstance(given, Mapping) or not rule.get("required"):
            raise _NoStandInError  # a collection of names, or a mapping that is the same in every reading
        mapping = Mapping(self._file, self._start)
        for key in rule["required"]:
            mapping[key] = self.value(rule["properties"][key], None, reading)
        return mapping


def _option(options: list[Any], given: Any, reading: int) -> Any:
    likely = likely_option(given, options)
    ordered = options if likely is None else [likely, *(option for option in options if option != likely)]
    return ordered[(0, -1, len(ordered) // 2)[reading % READINGS]]


def _number(rule: dict[str, Any], given: Any, reading: int) -> int:
    least = rule.get("minimum", rule.get("exclusiveMinimum", 0) + 1)
    try:
        likely = int(given)
    except (TypeError, ValueError, OverflowError):
        likely = least
    within = max(least, min(likely, rule.get("maximum", likely) - READINGS))
    return int(within) + reading
