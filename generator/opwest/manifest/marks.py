# SPDX-License-Identifier: Apache-2.0
"""Placeholders in a draft of `opwest init`: values and names that begin with FILL_IN."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from opwest.diagnostics import Diagnostics, Location
from opwest.manifest.located import Items, Mapping

MARK = "FILL_IN"
Path = tuple[str | int, ...]


def is_mark(value: Any) -> bool:
    """Return whether a value or a name is a placeholder: FILL_IN, or FILL_IN_ and a suffix."""
    return isinstance(value, str) and (value == MARK or value.startswith(f"{MARK}_"))


def report_marks(manifest: Mapping, faults: Diagnostics, expected: Callable[[Path], str | None]) -> set[Path]:
    """Report every placeholder; return the paths of placeholder values and names.

    `expected` returns the text for `expected:` at a path, or None.
    """
    found: set[Path] = set()
    reported: set[Location] = set()  # a value shared by aliases is reported once

    def report(what: str, at: Location, allowed: str | None) -> None:
        if at not in reported:
            reported.add(at)
            hint = None if allowed else "replace FILL_IN: `opwest init` could not derive this value"
            faults.error(f"{what} is not filled in", at, expected=allowed, hint=hint)

    pending: deque[tuple[Mapping | Items, Path]] = deque([(manifest, ())])
    while pending:
        owner, path = pending.popleft()
        for part, item, at in _items(owner):
            here: Path = (*path, part)
            if isinstance(part, str) and isinstance(owner, Mapping) and is_mark(part):
                found.add(here)
                report(f"the name {part!r} in {spelled(path)}", owner.key_location(part), "a name")
            if is_mark(item):
                found.add(here)
                report(spelled(here) + (f" ({item})" if item != MARK else ""), at, expected(here))
            elif isinstance(item, (Mapping, Items)):
                pending.append((item, here))
    return found


def _items(owner: Mapping | Items) -> Iterator[tuple[str | int, Any, Location]]:
    """Yield the keys or indexes of a collection with the values and their locations."""
    if isinstance(owner, Mapping):
        yield from ((key, item, owner.value_location(key)) for key, item in owner.items())
    else:
        yield from ((index, item, owner.item_location(index)) for index, item in enumerate(owner))


def spelled(path: Path | list[str | int]) -> str:
    """Return a path as text for messages: 'run.steps[2].call'."""
    if not path:
        return "the manifest"
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return f"'{text}'"
