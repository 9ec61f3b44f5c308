# SPDX-License-Identifier: Apache-2.0
"""Reports without the members that similar reports determine.

`brief` omits a member of an object if its value is the default: the most frequent value of this member in the objects
at the same place of the references. A new member with one value everywhere does not change a brief report.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

Defaults = Mapping[str, Mapping[str, Any]]
"""For each place, the default value of each member."""

_ABSENT = "no member"
"""The member of a brief object that lists the members that it lacks."""
_MAPS = (".code", ".stack")
"""The objects whose members are names: they have no defaults."""


def defaults_of(*references: Any) -> Defaults:
    """Return the default values of the members of all objects in the references."""
    seen: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for reference in references:
        for place, value in _objects(reference, ""):
            for key, item in value.items():
                seen[place][key][json.dumps(item, sort_keys=True)] += 1
    return {
        place: {key: json.loads(counts.most_common(1)[0][0]) for key, counts in members.items()}
        for place, members in seen.items()
    }


def brief(value: Any, defaults: Defaults, place: str = "") -> Any:
    """Return `value` without the members that have their default value."""
    if isinstance(value, list):
        return [brief(item, defaults, f"{place}[]") for item in value]
    if not isinstance(value, dict):
        return value
    known = defaults.get(place, {})
    assert _ABSENT not in value
    found = {
        key: brief(item, defaults, _inner(place, key))
        for key, item in value.items()
        if key not in known or json.dumps(known[key], sort_keys=True) != json.dumps(item, sort_keys=True)
    }
    absent = sorted(known.keys() - value.keys())
    return found | ({_ABSENT: absent} if absent else {})


def complete(value: Any, defaults: Defaults, place: str = "") -> Any:
    """Return the value of which `brief` made `value`."""
    if isinstance(value, list):
        return [complete(item, defaults, f"{place}[]") for item in value]
    if not isinstance(value, dict):
        return value
    absent = value.get(_ABSENT, ())
    own = {key: complete(item, defaults, _inner(place, key)) for key, item in value.items() if key != _ABSENT}
    return {key: item for key, item in defaults.get(place, {}).items() if key not in absent} | own


def _objects(value: Any, place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each object with defaults, and its place."""
    if isinstance(value, list):
        for item in value:
            yield from _objects(item, f"{place}[]")
    elif isinstance(value, dict) and not place.endswith(_MAPS):
        yield place, value
        for key, item in value.items():
            yield from _objects(item, _inner(place, key))


def _inner(place: str, key: str) -> str:
    return f"{place}.{key}"
