# SPDX-License-Identifier: Apache-2.0
"""Edits of a text without line numbers: a change elsewhere in the text does not change them.

A hunk begins with `@@`, and the line before the change where the search needs it (`@@ LINE`). Then it has lines of
context (' '), removed lines ('-') and added lines ('+'). Its context and its removed lines are searched from the end of
the hunk before it; the first occurrence counts. The line '...' between two removed lines stands for the lines up to
the next occurrence of those after it. A hunk has as little context as this search needs.
"""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

_SEPARATOR = "@@"
_GAP = "..."
_SHORT = 3
"""Removed lines that are listed without a gap."""


class EditError(ValueError):
    """The text does not contain the lines of a hunk."""


class _Hunk(NamedTuple):
    before: Sequence[str]
    head: Sequence[str]
    tail: Sequence[str] | None
    """The removed lines after the gap; None without one."""
    added: Sequence[str]
    after: Sequence[str]

    def lines(self) -> Iterator[str]:
        yield f"{_SEPARATOR} {self.before[-1]}" if len(self.before) == 1 else _SEPARATOR
        yield from (f" {line}" for line in self.before if len(self.before) > 1)
        yield from (f"-{line}" for line in self.head)
        if self.tail is not None:
            yield _GAP
            yield from (f"-{line}" for line in self.tail)
        yield from (f"+{line}" for line in self.added)
        yield from (f" {line}" for line in self.after)


def make_edits(old: Sequence[str], new: Sequence[str]) -> list[str]:
    """Return the lines of the edits that change `old` to `new`; nothing for equal texts."""
    lines: list[str] = []
    start = 0
    for first, end, added in _changes(old, new):
        hunk = _smallest(old, start, first, end, added)
        lines += hunk.lines()
        start = end + len(hunk.after)
    return lines


def apply_edits(old: Sequence[str], edits: Sequence[str]) -> list[str]:
    """Return the edited text. Raises EditError."""
    found: list[str] = []
    start = 0
    for hunk in _parse(edits):
        place = _find(old, start, hunk)
        if place is None:
            raise EditError("lines not found: " + " / ".join(list(hunk.lines())[:6]))
        first, end = place
        found += [*old[start : first + len(hunk.before)], *hunk.added, *hunk.after]
        start = end
    return found + list(old[start:])


def _changes(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int, Sequence[str]]]:
    """Return the changed ranges of `old`, and their new lines, without hunks that only share brackets."""
    codes = [code for code in SequenceMatcher(None, old, new, autojunk=False).get_opcodes() if code[0] != "equal"]
    merged: list[list[int]] = []
    for _, first, end, new_first, new_end in codes:
        gap = old[merged[-1][1] : first] if merged else ()
        if merged and (len(gap) == 1 or (len(gap) == 2 and all(len(line.strip()) < 4 for line in gap))):
            merged[-1][1::2] = [end, new_end]
        else:
            merged.append([first, end, new_first, new_end])
    return [(first, end, new[new_first:new_end]) for first, end, new_first, new_end in merged]


def _smallest(old: Sequence[str], start: int, first: int, end: int, added: Sequence[str]) -> _Hunk:
    """Return the shortest hunk whose search from `start` finds the range."""
    for size in range(0 if end > first else 1, len(old) + _SHORT + 2):
        for after in range(size + 1):
            before, below = min(size - after, first - start), min(after, len(old) - end)
            for head, tail in _removed(old, first, end, size):
                hunk = _Hunk(old[first - before : first], head, tail, added, old[end : end + below])
                if _find(old, start, hunk) == (first - before, end + below):
                    return hunk
    raise AssertionError("all lines before the change identify it")


def _removed(
    old: Sequence[str], first: int, end: int, size: int
) -> Iterator[tuple[Sequence[str], Sequence[str] | None]]:
    if end - first > _SHORT:
        for count in range(1, min(size + 2, (end - first) // 2)):
            yield old[first : first + 1], old[end - count : end]
    if end - first <= _SHORT or size > _SHORT:
        yield old[first:end], None


def _find(old: Sequence[str], start: int, hunk: _Hunk) -> tuple[int, int] | None:
    """Return the range of the first occurrence."""
    head = [*hunk.before, *hunk.head]
    rest = list(hunk.after) if hunk.tail is None else [*hunk.tail, *hunk.after]
    for first in range(start, len(old) - len(head) - len(rest) + 1):
        if list(old[first : first + len(head)]) != head:
            continue
        inner = first + len(head)
        for place in (inner,) if hunk.tail is None else range(inner, len(old) - len(rest) + 1):
            if list(old[place : place + len(rest)]) == rest:
                return first, place + len(rest)
    return None


def _parse(edits: Sequence[str]) -> list[_Hunk]:
    groups: list[list[str]] = []
    for line in edits:
        if line == _SEPARATOR:
            groups.append([])
        elif line.startswith(f"{_SEPARATOR} "):
            groups.append([line.removeprefix(_SEPARATOR)])
        elif not groups:
            raise EditError(f"no '{_SEPARATOR}' before: {line}")
        else:
            groups[-1].append(line)
    return [_parse_one(group) for group in groups]


def _parse_one(lines: Sequence[str]) -> _Hunk:
    parts: list[list[str]] = [[], [], [], [], []]
    at, has_gap = 0, False
    for line in lines:
        if line == _GAP:
            at, has_gap = 2, True
            continue
        mark, text = line[:1], line[1:]
        if mark == "-":
            at = max(at, 1)
        elif mark == "+":
            at = max(at, 3)
        elif mark == " ":
            at = 4 if at else 0
        else:
            raise EditError(f"expected ' ', '-' or '+': {line}")
        if (mark == "-" and at > 2) or (mark == "+" and at > 3):
            raise EditError(f"not in the order of a hunk: {line}")
        parts[at].append(text)
    before, head, tail, added, after = parts
    return _Hunk(before, head, tail if has_gap else None, added, after)
