# SPDX-License-Identifier: Apache-2.0
"""What a draft of `opwest init` leaves to its user: values and names that begin with FILL_IN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opwest.diagnostics import Diagnostics, Location
from opwest.manifest.located import Items, Mapping

MARK = "FILL_IN"
Path = tuple[str | int, ...]


def is_mark(value: Any) -> bool:
    """Return whether a value or a name is a mark: FILL_IN, or FILL_IN_ and what it stands for."""
    return isinstance(value, str) and (value == MARK or value.startswith(f"{MARK}_"))


def report_marks(manifest: Mapping, faults: Diagnostics, expected: Callable[[Path], str | None]) -> set[Path]:
    """Report every mark; return the paths of marked values.

    `expected` says what a manifest allows at a path. Marked names are in the result too, with their path.
    """
    found: set[Path] = set()
    pending: list[tuple[Any, Path]] = [(manifest, ())]
    seen: set[int] = set()
    while pending:
        value, path = pending.pop()
        if isinstance(value, (Mapping, Items)):
            if id(value) in seen:  # shared by aliases
                continue
            seen.add(id(value))
        if isinstance(value, Mapping):
            for key, item in value.items():
                if is_mark(key):
                    _report(faults, f"the name {key!r} in {spelled(path)}", value.key_location(key), "a name")
                    found.add((*path, key))
                _look(item, (*path, key), value.value_location(key), found, faults, expected)
                pending.append((item, (*path, key)))
        elif isinstance(value, Items):
            for index, item in enumerate(value):
                _look(item, (*path, index), value.item_location(index), found, faults, expected)
                pending.append((item, (*path, index)))
    return found


def _look(
    item: Any, path: Path, at: Location, found: set[Path], faults: Diagnostics, expected: Callable[[Path], str | None]
) -> None:
    if is_mark(item):
        found.add(path)
        _report(faults, f"{spelled(path)} ({item})" if item != MARK else spelled(path), at, expected(path))


def _report(faults: Diagnostics, what: str, at: Location, expected: str | None) -> None:
    faults.error(
        f"{what} is not filled in yet",
        at,
        expected=expected,
        hint=None if expected else "FILL_IN stands where `opwest init` could not know",
    )


def spelled(path: Path | list[str | int]) -> str:
    """Return a path as a person would write it: 'run.steps[2].call'."""
    if not path:
        return "the manifest"
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return f"'{text}'"
