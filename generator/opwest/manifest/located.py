# SPDX-License-Identifier: Apache-2.0
"""Plain YAML data that remembers where each key and value stood in the file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opwest.diagnostics import Location

Position = tuple[int, int]
"""Line and column, both from 1."""


class Mapping(dict[str, Any]):
    """A YAML mapping: an ordinary dict with the places of its keys and values."""

    __slots__ = ("file", "keys_at", "start", "values_at")

    def __init__(self, file: str, start: Position) -> None:
        super().__init__()
        self.file = file
        self.start = start
        self.keys_at: dict[str, Position] = {}
        self.values_at: dict[str, Position] = {}

    @property
    def location(self) -> Location:
        """Where the mapping begins."""
        return Location(self.file, *self.start)

    def key_location(self, key: str) -> Location:
        """Where `key` stands; the mapping's own place when it is absent."""
        return Location(self.file, *self.keys_at.get(key, self.start))

    def value_location(self, key: str) -> Location:
        """Where the value of `key` stands; the mapping's own place when it is absent."""
        return Location(self.file, *self.values_at.get(key, self.start))


class Items(list[Any]):
    """A YAML sequence: an ordinary list with the places of its items."""

    __slots__ = ("file", "items_at", "start")

    def __init__(self, file: str, start: Position) -> None:
        super().__init__()
        self.file = file
        self.start = start
        self.items_at: list[Position] = []

    @property
    def location(self) -> Location:
        """Where the sequence begins."""
        return Location(self.file, *self.start)

    def item_location(self, index: int) -> Location:
        """Where the item stands."""
        return Location(self.file, *self.items_at[index])


def locate(root: Mapping, path: Sequence[str | int]) -> Location:
    """Return the place of the value at `path` below `root` (as far as the path leads)."""
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
