# SPDX-License-Identifier: Apache-2.0
"""Placeholders in a draft of `opwest init`: values and names that begin with FILL_IN."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from opwest.base.diagnostics import Diagnostics, Location
from opwest.base.frozen_dataclass import dataclass
from opwest.manifest.located import Items, Mapping

MARK = "FILL_IN"
Path = tuple[str | int, ...]
_MAX_LINES = 20


def is_mark(value: Any) -> bool:
    """Return whether a value or a name is a placeholder: FILL_IN, or FILL_IN_ and a suffix."""
    return isinstance(value, str) and value.startswith(MARK) and value[len(MARK) :][:1] in ("", "_")


@dataclass(frozen=True, slots=True)
class Mark:
    """One placeholder: a value, or a name if `name` is set."""

    path: Path
    location: Location
    text: str
    name: str | None = None

    @property
    def words(self) -> str:
        """The placeholder in messages."""
        if self.name is not None:
            return f"the name {self.name!r} in {spelled(self.path[:-1])}"
        return spelled(self.path) + (f" ({self.text})" if self.text != MARK else "")


def report_placeholders(manifest: Mapping, faults: Diagnostics, expected: Callable[[Path], str | None]) -> set[Path]:
    """Report every placeholder, those of one kind together; return the paths of placeholder values and names.

    `expected` returns the text for `expected:` at a path, or None.
    """
    marks, paths = distinct_marks(manifest)
    kinds: dict[tuple[str | int | None, ...], list[Mark]] = {}
    for mark in marks:
        allowed = "a name" if mark.name is not None else expected(mark.path)
        last = None if isinstance(mark.path[-1], int) else mark.path[-1]
        key = (mark.path[0], last, allowed) if mark.name is None else (*mark.path, allowed)
        kinds.setdefault(key, []).append(mark)
    for kind, same in kinds.items():
        allowed = kind[-1] if isinstance(kind[-1], str) else None
        hint = None if allowed else "replace FILL_IN: `opwest init` could not derive this value"
        first, others = same[0], same[1:]
        message = f"{first.words} is not filled in"
        if others:
            lines = list(dict.fromkeys(str(other.location.line) for other in others))
            shown = ", ".join(lines[:_MAX_LINES]) + (", …" if len(lines) > _MAX_LINES else "")
            many = f"{len(others)} other{'s' if len(others) > 1 else ''}"
            message += f", and {many} (line{'s' if len(lines) > 1 else ''} {shown})"
        faults.error(message, first.location, expected=allowed, hint=hint)
    return paths


def distinct_marks(manifest: Mapping) -> tuple[list[Mark], set[Path]]:
    """Return the placeholders, one for a value that aliases share, and the paths of all of them."""
    placeholders: list[tuple[Mark, object]] = []
    pending: deque[tuple[Mapping | Items, Path]] = deque([(manifest, ())])
    while pending:
        owner, path = pending.popleft()
        for part, item in owner.items() if isinstance(owner, Mapping) else enumerate(owner):
            if isinstance(part, str) and isinstance(owner, Mapping) and is_mark(part):
                placeholders.append((Mark((*path, part), owner.key_location(part), part, part), part))
            if isinstance(item, (Mapping, Items)):
                pending.append((item, (*path, part)))
            elif is_mark(item):
                placeholders.append((Mark((*path, part), _place(owner, part), item), item))
    marks: list[Mark] = []
    known: set[Location | int] = set()
    # An alias of a scalar is the same object as the value of its anchor; values in collections have one location.
    for mark, value in sorted(placeholders, key=lambda pair: pair[0].location):
        if not known & {mark.location, id(value)}:
            marks.append(mark)
        known.update((mark.location, id(value)))
    return marks, {mark.path for mark, _ in placeholders}


def _place(owner: Mapping | Items, part: Any) -> Location:
    """Return the location of a value in a collection, by key or index."""
    return owner.value_location(part) if isinstance(owner, Mapping) else owner.item_location(part)


def spelled(path: Path | list[str | int]) -> str:
    """Return a path as text for messages: 'run.steps[2].call'."""
    if not path:
        return "the manifest"
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return f"'{text}'"
