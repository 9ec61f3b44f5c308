# SPDX-License-Identifier: Apache-2.0
"""YAML data with the position of each key and value in the file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opwest.base.diagnostics import Location

Position = tuple[int, int]
"""Line and column, counted from 1."""


class Mapping(dict[str, Any]):
    """A YAML mapping: a dict with the positions of its keys and values."""

    __slots__ = ("file", "keys_at", "start", "values_at")

    def __init__(self, file: str, start: Position) -> None:
        self.file = file
        self.start = start
        self.keys_at: dict[str, Position] = {}
        self.values_at: dict[str, Position] = {}

    def copied(self) -> Mapping:
        """Return a mapping with the same values and positions."""
        copy = Mapping(self.file, self.start)
        copy.update(self)
        copy.keys_at, copy.values_at = dict(self.keys_at), dict(self.values_at)
        return copy

    @property
    def location(self) -> Location:
        """The start of the mapping."""
        return Location(self.file, *self.start)

    def key_location(self, key: str) -> Location:
        """Return the location of `key`, that of the mapping if the key is absent."""
        return Location(self.file, *self.keys_at.get(key, self.start))

    def value_location(self, key: str) -> Location:
        """Return the location of the value of `key`, that of the mapping if the key is absent."""
        return Location(self.file, *self.values_at.get(key, self.start))


class Items(list[Any]):
    """A YAML sequence: a list with the positions of its items."""

    __slots__ = ("file", "items_at", "start")

    def __init__(self, file: str, start: Position) -> None:
        self.file = file
        self.start = start
        self.items_at: list[Position] = []

    def add(self, value: Any, position: Position) -> None:
        """Append an item."""
        self.append(value)
        self.items_at.append(position)

    def item_location(self, index: int) -> Location:
        """Return the location of an item."""
        return Location(self.file, *self.items_at[index])


def locate(root: Mapping, path: Sequence[str | int]) -> Location:
    """Return the location of the value at `path` below `root`, or of its closest existing parent."""
    place = root.location
    value: Any = root
    for part in path:
        if isinstance(value, Mapping) and isinstance(part, str) and part in value:
            place = value.value_location(part)
        elif isinstance(value, Items) and isinstance(part, int) and part < len(value):
            place = value.item_location(part)
        else:
            break
        value = value[part]
    return place


def lookup(root: Mapping, path: Sequence[str | int]) -> Any:
    """Return the value at `path` below `root`."""
    value: Any = root
    for part in path:
        value = value[part]
    return value
