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
from opwest.project import disk

BASES: Final = f"{disk.OWN}/bases.json"
_FOLDER: Final = f"{disk.OWN}/base"


def decoded(content: bytes) -> str | None:
    """Return a file's content as text, None if it is not text."""
    if b"\0" in content:
        return None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return None


def to_bytes(texts: Mapping[str, str]) -> bytes:
    """Return the file's content: a line of JSON for each line, for readable diffs in version control."""
    return to_json({path: text.split("\n") for path, text in texts.items()})


def read_bases(directory: Path, sums: Mapping[str, str]) -> dict[str, str]:
    """Return the text of every base with the checksum in the lock, without damaged ones."""
    bases = _read(directory / BASES)
    texts = {path: text for path, text in bases.items() if disk.digest(text.encode(errors="replace")) == sums.get(path)}
    for path in sums.keys() - texts.keys():
        if disk.look(directory, old_place(path)) == sums[path]:
            text = decoded((directory / old_place(path)).read_bytes())
            texts |= {} if text is None else {path: text}
    return texts


def old_place(path: str) -> str:
    """Return the path of the base of a file in earlier versions of opwest, which used one file per base."""
    return f"{_FOLDER}/{path}.base"


def _read(place: Path) -> dict[str, str]:
    try:
        value = json.loads(place.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(value, dict):
        return {}
    texts = {}
    for path, lines in value.items():
        if isinstance(lines, list) and all(isinstance(line, str) for line in lines):
            texts[path] = "\n".join(lines)
    return texts


FORMAT: Final = 1


@dataclass(frozen=True)
class Lock:
    """The files of a project: opwest's with checksums, and the user's.

    `bases` contains the checksum of the base of each user's file; `deleted`, the deleted files already reported.
    """

    record: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    user: frozenset[str] = frozenset()
    bases: Mapping[str, str] = field(default_factory=dict)
    deleted: frozenset[str] = frozenset()

    def to_bytes(self) -> bytes:
        """Return the content of the file; equal locks have equal bytes."""
        return self.with_record(record_text(self.record))

    def with_record(self, record: str) -> bytes:
        """Return the content of the file with a record from `record_text` in place of its own."""
        members = {
            "format": FORMAT,
            "opwest": __version__,
            "files": dict(self.files),
            "user": sorted(self.user),
            **({"bases": dict(self.bases)} if self.bases else {}),
            **({"deleted": sorted(self.deleted)} if self.deleted else {}),
        }
        texts = {name: _json(value, _INNER) for name, value in members.items()} | {"record": record}
        rows = f",{_INNER}".join(f'"{name}": {texts[name]}' for name in sorted(texts))
        return f"{{{_INNER}{rows}\n}}\n".encode("ascii")


_INNER: Final = "\n  "


def record_text(record: Mapping[str, Any]) -> str:
    """Return a record as the text in a lock. Raises TypeError or ValueError for values that JSON does not have."""
    return _json(record, _INNER)


def to_json(value: Mapping[str, Any]) -> bytes:
    """Return `value` as sorted, indented JSON. Raises TypeError or ValueError for other types and NaN."""
    return (_json(value, "\n") + "\n").encode("ascii")


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not a JSON value: {value!r}")


def _json(value: Any, line: str) -> str:
    """Return what `json.dumps(value, indent=2, sort_keys=True)` returns for keys that are strings, in less time.

    `line` is a line break and the indentation of the value. json has a fast encoder only for text in one line.
    """
    kind = type(value)
    if kind is str:
        return _text(value)
    if kind is int:
        return str(value)
    if value is None or kind is bool:
        return _WORDS[value]
    inner = f"{line}  "
    if kind is dict or isinstance(value, Mapping):
        rows = [f"{_text(key)}: {_json(value[key], inner)}" for key in sorted(value)]
        return f"{{{inner}{f',{inner}'.join(rows)}{line}}}" if rows else "{}"
    if isinstance(value, (list, tuple)):
        rows = [_text(item) if type(item) is str else _json(item, inner) for item in value]
        return f"[{inner}{f',{inner}'.join(rows)}{line}]" if rows else "[]"
    return json.dumps(value, allow_nan=False, default=_plain)


_WORDS: Final = {None: "null", False: "false", True: "true"}


def is_digest(value: object) -> bool:
    """Whether `value` is a SHA-256 in lower-case hexadecimal."""
    return isinstance(value, str) and len(value) == 64 and set(value) <= set("0123456789abcdef")


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
    if version != FORMAT or isinstance(version, bool):
        raise _broken(place, f"'format' is {version!r}, not {FORMAT}")
    record, own, user = value.get("record"), value.get("files"), value.get("user")
    if not isinstance(record, dict):
        raise _broken(place, "'record' is not an object")
    if not isinstance(own, dict) or not all(is_inside(path) and is_digest(own[path]) for path in own):
        raise _broken(place, "'files' does not map paths in the project to SHA-256 sums")
    if not isinstance(user, list) or not all(is_inside(path) for path in user):
        raise _broken(place, "'user' is not a list of paths in the project")
    bases, deleted = value.get("bases", {}), value.get("deleted", [])  # optional: absent in locks of opwest 0.1.0
    if not isinstance(bases, dict) or not all(is_inside(path) and is_digest(bases[path]) for path in bases):
        raise _broken(place, "'bases' does not map paths in the project to SHA-256 sums")
    if not isinstance(deleted, list) or not all(is_inside(path) for path in deleted):
        raise _broken(place, "'deleted' is not a list of paths in the project")
    return Lock(record, own, frozenset(user), bases, frozenset(deleted))


def _broken(place: Path, reason: str) -> OpwestError:
    hint = "restore it from version control, or generate into a new directory and move your own files there"
    return fail(f"the lock is damaged: {reason}", place, hint=hint)
