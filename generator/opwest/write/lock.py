# SPDX-License-Identifier: Apache-2.0
"""The lock `.opwest/lock.json`: what the last generation wrote, and the record that its caller left."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from opwest import __version__
from opwest.diagnostics import Diagnostic, Location, OpwestError
from opwest.files import is_inside

from . import disk

FORMAT: Final = 1


@dataclass(frozen=True)
class Lock:
    """What opwest knows of a project: its own files with checksums, and the files it handed to the user.

    `bases` has the checksum of what each of those was made from; `deleted` those that the user was told stay away.
    """

    record: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    user: frozenset[str] = frozenset()
    bases: Mapping[str, str] = field(default_factory=dict)
    deleted: frozenset[str] = frozenset()

    def to_bytes(self) -> bytes:
        """Return the file's content: the same lock gives the same bytes."""
        return to_json(
            {
                "format": FORMAT,
                "opwest": __version__,
                "record": self.record,
                "files": dict(self.files),
                "user": sorted(self.user),
                **({"bases": dict(self.bases)} if self.bases else {}),
                **({"deleted": sorted(self.deleted)} if self.deleted else {}),
            }
        )


def to_json(value: Mapping[str, Any]) -> bytes:
    """Return `value` as JSON that can be read and compared; NaN and foreign types are the caller's fault."""
    return (json.dumps(value, indent=2, sort_keys=True, allow_nan=False, default=_plain) + "\n").encode("ascii")


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not a JSON value: {value!r}")


def is_digest(value: object) -> bool:
    """Whether `value` is a SHA-256 in lower-case hexadecimal."""
    return isinstance(value, str) and len(value) == 64 and set(value) <= set("0123456789abcdef")


def read_lock(directory: Path) -> Lock | None:
    """Return the lock of `directory`, or None if there is none."""
    place = directory / disk.LOCK
    if place.is_symlink():
        raise _broken(place, "it is a symbolic link")
    try:
        content = place.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as fault:
        raise _broken(place, f"it is not JSON ({fault})") from None
    if not isinstance(value, dict):
        raise _broken(place, "it is not a JSON object")
    version = value.get("format")
    if isinstance(version, int) and version > FORMAT:
        raise OpwestError(
            [
                Diagnostic(
                    "error",
                    f"a newer opwest wrote the project ({value.get('opwest')}, lock format {version})",
                    Location(str(place)),
                    f"lock format {FORMAT} (opwest {__version__})",
                    "update opwest, or generate into a new folder",
                )
            ]
        )
    if version != FORMAT or isinstance(version, bool):
        raise _broken(place, f"its format is {version!r}, not {FORMAT}")
    record, own, user = value.get("record"), value.get("files"), value.get("user")
    if not isinstance(record, dict):
        raise _broken(place, "'record' is not an object")
    if not isinstance(own, dict) or not all(is_inside(path) and is_digest(own[path]) for path in own):
        raise _broken(place, "'files' does not map paths in the project to SHA-256 sums")
    if not isinstance(user, list) or not all(is_inside(path) for path in user):
        raise _broken(place, "'user' is not a list of paths in the project")
    bases, deleted = value.get("bases", {}), value.get("deleted", [])  # a lock of opwest 0.1.0 need not have them
    if not isinstance(bases, dict) or not all(is_inside(path) and is_digest(bases[path]) for path in bases):
        raise _broken(place, "'bases' does not map paths in the project to SHA-256 sums")
    if not isinstance(deleted, list) or not all(is_inside(path) for path in deleted):
        raise _broken(place, "'deleted' is not a list of paths in the project")
    return Lock(record, own, frozenset(user), bases, frozenset(deleted))


def _broken(place: Path, reason: str) -> OpwestError:
    hint = "restore it from version control, or generate into a new folder and move your own files there"
    return OpwestError([Diagnostic("error", f"the lock is damaged: {reason}", Location(str(place)), hint=hint)])
