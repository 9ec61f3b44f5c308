# SPDX-License-Identifier: Apache-2.0
"""What a run will do: the changes with their contents, and what is said of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from . import disk
from .journal import Change, Journal

RemarkKind = Literal[
    "conflict",  # both sides changed the same lines: `lines` are where the markers begin
    "beside",  # both sides changed a file that is not merged: what is new went to `other`
    "unresolved",  # markers of an earlier conflict are still there, at `lines`
    "stale",  # kept, although what is generated is no longer what it was made from
    "unknown",  # kept: what it was made from is not known; from now on it is
    "foreign",  # kept: the user's own making, where opwest would write a file too
    "linked",  # kept: it is a link, and what it leads to is not merged
    "deleted",  # the user deleted it: it stays away
    "released",  # kept: no longer generated, but edited
]


@dataclass(frozen=True)
class Remark:
    """What a user should know about one of the user's own files."""

    kind: RemarkKind
    path: str
    lines: tuple[int, ...] = ()
    other: str | None = None


@dataclass(frozen=True)
class Merged:
    """The text that a merge made, and the lines (from 1) where markers of a conflict begin."""

    content: bytes
    conflicts: tuple[int, ...] = ()


Merge = Callable[[bytes, bytes, bytes], Merged | None]
"""Merges what was generated last time, the user's file, and what is generated now; None where one is no text."""

FindMarkers = Callable[[bytes], tuple[int, ...]]
"""Returns the lines where markers of an earlier conflict begin."""


@dataclass(frozen=True)
class Merging:
    """How user's files are merged: this layer knows when, its caller knows how."""

    merge: Merge
    markers: FindMarkers


@dataclass
class Plan:
    """The changes with their contents, and what is reported of them."""

    changes: list[Change] = field(default_factory=list)
    contents: list[bytes | None] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    merged: list[str] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    unchanged: int = 0

    def add(self, path: str, old: str | None, content: bytes | None) -> None:
        """Add one change of a file."""
        self.changes.append(Change(path, old, None if content is None else disk.digest(content)))
        self.contents.append(content)

    def remark(self, kind: RemarkKind, path: str, *, lines: tuple[int, ...] = (), other: str | None = None) -> None:
        """Add a remark about a user's file."""
        self.remarks.append(Remark(kind, path, lines, other))

    def journal(self, directory: Path) -> Journal:
        """Return the changes as a journal, with the folders that come and go."""
        coming = [change.path for change in self.changes if change.new is not None]
        going = [change.path for change in self.changes if change.new is None]
        needed = {parent for path in coming for parent in disk.parents(path)}
        created = {parent for parent in needed if not disk.is_folder(directory / parent)}
        emptied = {parent for path in going for parent in disk.parents(path)} - needed
        return Journal(tuple(self.changes), tuple(sorted(created)), tuple(sorted(emptied)))
