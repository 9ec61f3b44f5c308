# SPDX-License-Identifier: Apache-2.0
"""The lock `.opwest/lock.json`: the files of the last generation, and a record of the caller."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from json.encoder import encode_basestring_ascii as _text
from pathlib import Path
from typing import Any, Final

from opwest import __version__
from opwest.base.diagnostics import OpwestError, fail
from opwest.base.files import is_inside
from opwest.base.frozen_dataclass import dataclass
from opwest.project import disk, first_format
from opwest.project.first_format import Users

FORMAT: Final = 2


@dataclass(frozen=True)
class Lock:
    """The files of a project: opwest's with checksums, and the user's.

    `bases` contains the checksum of the base of each user's file; `deleted`, the deleted files already reported;
    `texts`, the bases that are merged.
    """

    record: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    user: frozenset[str] = frozenset()
    bases: Mapping[str, str] = field(default_factory=dict)
    deleted: frozenset[str] = frozenset()
    texts: Mapping[str, str] = field(default_factory=dict)
    outdated: tuple[str, ...] = ()
    """The files of an earlier format, which the next generation removes."""

    def to_bytes(self) -> bytes:
        """Return the content of the file; equal locks have equal bytes."""
        return self.with_record(record_text(self.record))

    def with_record(self, record: str) -> bytes:
        """Return the content of the file with a record from `record_text` in place of its own: a line for each file."""
        user = {path: _json(self._row(path)) for path in self.user}
        members = {
            **({"deleted": _json(sorted(self.deleted))} if self.deleted else {}),
            "files": _rows({path: f'"{digest}"' for path, digest in self.files.items()}),
            "format": str(FORMAT),
            "opwest": _json(__version__),
            "record": record,
            "user": _rows(user),
        }
        return (_rows(members) + "\n").encode("ascii")

    def _row(self, path: str) -> list[str]:
        """Return what the lock contains about a user's file: the checksum of its base, and its text."""
        members = (self.bases.get(path), self.texts.get(path))
        return [member for member in members if member is not None]


def _rows(members: Mapping[str, str]) -> str:
    """Return a JSON object with a member in each line, from the texts of its values."""
    rows = ",\n".join(f"{_text(name)}: {members[name]}" for name in sorted(members))
    return f"{{\n{rows}\n}}" if rows else "{}"


def record_text(record: Mapping[str, Any]) -> str:
    """Return a record as the text in a lock. Raises TypeError or ValueError for values that JSON does not have."""
    return _rows({name: _members(value) for name, value in record.items()})


def _members(value: object) -> str:
    """Return a list of objects with a line for each, other values in one line."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n" + ",\n".join(map(_json, value)) + "\n]"
    return _json(value)


def to_json(value: Mapping[str, Any]) -> bytes:
    """Return `value` as sorted JSON in one line. Raises TypeError or ValueError for other types and NaN."""
    return (_json(value) + "\n").encode("ascii")


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, allow_nan=False, default=_plain)


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not a JSON value: {value!r}")


def read_lock(directory: Path) -> Lock | None:
    """Return the lock of `directory`, None if absent."""
    place = directory / disk.LOCK
    if place.is_symlink():
        raise _broken(place, "the file is a symbolic link")
    try:
        content = place.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as fault:
        raise _broken(place, f"invalid JSON ({fault})") from None
    if not isinstance(value, dict):
        raise _broken(place, "not a JSON object")
    version = value.get("format")
    if isinstance(version, int) and version > FORMAT:
        raise fail(
            f"the project was written by a newer version of opwest ({value.get('opwest')}, lock format {version})",
            place,
            expected=f"lock format {FORMAT} (opwest {__version__})",
            hint="update opwest, or generate into a new directory",
        )
    if version not in (1, FORMAT) or isinstance(version, bool):
        raise _broken(place, f"'format' is {version!r}, not {FORMAT}")
    record, own, deleted = value.get("record"), value.get("files"), value.get("deleted", [])
    if not isinstance(record, dict):
        raise _broken(place, "'record' is not an object")
    if not isinstance(own, dict) or not all(is_inside(path) and disk.is_digest(own[path]) for path in own):
        raise _broken(place, "'files' does not map paths in the project to SHA-256 sums")
    if not isinstance(deleted, list) or not all(is_inside(path) for path in deleted):
        raise _broken(place, "'deleted' is not a list of paths in the project")
    if version == 1:
        users = first_format.users_of(directory, value)
        outdated = tuple(first_format.places(users.bases)) if users else ()
    else:
        users, outdated = _users(value.get("user")), ()
    if users is None:
        raise _broken(place, "'user' does not map paths in the project to their bases")
    return Lock(record, own, users.names, users.bases, frozenset(deleted), users.texts, outdated)


def _users(value: object) -> Users | None:
    """Return the user's files, None if damaged. A text that differs from its checksum is left out."""
    if not isinstance(value, dict) or not all(is_inside(path) and _is_row(value[path]) for path in value):
        return None
    bases = {path: row[0] for path, row in value.items() if row}
    texts = {path: row[1] for path, row in value.items() if len(row) > 1 and disk.has_digest(row[1], row[0])}
    return Users(frozenset(value), bases, texts)


def _is_row(value: object) -> bool:
    if not isinstance(value, list) or len(value) > 2:
        return False
    return not value or (disk.is_digest(value[0]) and all(isinstance(text, str) for text in value[1:]))


def _broken(place: Path, reason: str) -> OpwestError:
    hint = "restore it from version control, or generate into a new directory and move your own files there"
    return fail(f"the lock is damaged: {reason}", place, hint=hint)
