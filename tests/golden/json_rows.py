# SPDX-License-Identifier: Apache-2.0
"""JSON as text with few lines, and the members of JSON that other documents do not have.

`news` returns the members that are absent or empty in every reference, so that a new member with a value in a reference
does not change it.
"""

import json
from collections.abc import Iterator
from typing import Any

_WIDTH = 200
_MAPS = (".code", ".stack", ".record.models[].inputs", ".memory.pools")
"""The objects whose members are names of the manifest, not of the format: they are omitted."""


def text_of(value: Any) -> str:
    """Return JSON in lines of about 200 characters: each value on one line, or its members one level deeper."""
    return "\n".join(_lines(value, 0)) + "\n"


def _lines(value: Any, depth: int) -> list[str]:
    """Return the lines of a value. Members that fit on one line share it with those before them."""
    flat = json.dumps(value, ensure_ascii=False)
    indent = " " * depth
    if len(flat) + depth <= _WIDTH or not value or not isinstance(value, dict | list):
        return [indent + flat]
    items: list[tuple[str, Any]] = (
        [(f"{json.dumps(key, ensure_ascii=False)}: ", item) for key, item in value.items()]
        if isinstance(value, dict)
        else [("", item) for item in value]
    )
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    lines = [indent + opening]
    is_open = False
    for key, item in items:
        inner = _lines(item, depth + 1)
        inner[0] = f"{indent} {key}{inner[0].lstrip(' ')}"
        inner[-1] += ","
        shares = is_open and len(inner) == 1 and not isinstance(item, dict)
        if shares and len(lines[-1]) + len(inner[0]) - depth <= _WIDTH:
            lines[-1] += f" {inner[0].lstrip(' ')}"
        else:
            lines += inner
        is_open = len(inner) == 1 and not isinstance(item, dict)
    lines[-1] = lines[-1].removesuffix(",")
    return [*lines, indent + closing]


def filled_of(*references: Any) -> frozenset[str]:
    """Return the places of all members that are not empty in an object of the references."""
    return frozenset(
        _inner(place, key)
        for reference in references
        for place, value in _objects(reference, "")
        for key, item in value.items()
        if not _is_empty(item)
    )


def news(value: Any, filled: frozenset[str], place: str = "") -> Any:
    """Return the members that are empty or absent in all references; None if there is none."""
    if isinstance(value, list):
        found = [news(item, filled, f"{place}[]") for item in value]
        return [item for item in found if item is not None] or None
    if not isinstance(value, dict) or place.endswith(_MAPS):
        return None
    members = {
        key: news(item, filled, inner) if (inner := _inner(place, key)) in filled else item
        for key, item in value.items()
    }
    return {key: item for key, item in members.items() if not _is_empty(item)} or None


def _is_empty(value: Any) -> bool:
    return value is None or value is False or value in ("", [], {})


def _objects(value: Any, place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each object and its place."""
    if isinstance(value, list):
        for item in value:
            yield from _objects(item, f"{place}[]")
    elif isinstance(value, dict):
        if not place.endswith(_MAPS):
            yield place, value
        for key, item in value.items():
            yield from _objects(item, _inner(place, key))


def _inner(place: str, key: str) -> str:
    if place.endswith(".models[]") and key == "variants":  # a list of models
        return place.removesuffix("[]")
    return f"{place}.*" if place.endswith(_MAPS) else f"{place}.{key}"
