# SPDX-License-Identifier: Apache-2.0
"""The planned changes of a run, with contents and remarks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from pathlib import Path
from typing import Literal

from opwest.records import dataclass

from . import disk
from .journal import Change, Journal

RemarkKind = Literal[
    "conflict",  # both sides changed the same lines; `lines` are the first lines of the markers
    "beside",  # both sides changed a file that is not merged; the new content is in `other`
    "unresolved",  # the file contains markers of an earlier conflict, at `lines`
    "stale",  # kept, although the generated content differs from its base
    "unknown",  # kept: its base is unknown and recorded from now on
    "foreign",  # kept: created by the user under the name of a generated file
    "linked",  # kept: a symbolic link, whose target is not merged
    "deleted",  # deleted by the user and not restored
    "released",  # kept: no longer generated, but edited
]


@dataclass(frozen=True)
class Remark:
    """A remark about one of the user's files."""

    kind: RemarkKind
    path: str
    lines: tuple[int, ...] = ()
    other: str | None = None


@dataclass(frozen=True)
class Merged:
    """The text of a merge, and the first lines (from 1) of conflict markers."""

    content: bytes
    conflicts: tuple[int, ...] = ()


Merge = Callable[[bytes, bytes, bytes], Merged | None]
"""Merges base, user's file and new content; returns None if one of them is not text."""

FindMarkers = Callable[[bytes], tuple[int, ...]]
"""Returns the first lines of conflict markers from an earlier merge."""


@dataclass(frozen=True)
class Merging:
    """The functions that merge user's files, supplied by the caller."""

    merge: Merge
    markers: FindMarkers


@dataclass
class Plan:
    """The changes with their contents, and the remarks."""

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
        """Return the changes as a journal, with created and removed directories."""
        written = [change.path for change in self.changes if change.new is not None]
        removed = [change.path for change in self.changes if change.new is None]
        needed = {parent for path in written for parent in disk.parents(path)}
        created = {parent for parent in needed if not disk.is_folder(directory / parent)}
        emptied = {parent for path in removed for parent in disk.parents(path)} - needed
        return Journal(tuple(self.changes), tuple(sorted(created)), tuple(sorted(emptied)))
