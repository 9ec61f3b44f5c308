# SPDX-License-Identifier: Apache-2.0
"""The file-system operations of the writing layer.

Every operation that changes the disk calls `_step` first. It does nothing; tests replace it to kill the
process or to raise an OSError at each step.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Final

from opwest.base.diagnostics import fail
from opwest.base.files import retried, with_lf
from opwest.base.paths import joined

OWN: Final = ".opwest"
LOCK: Final = f"{OWN}/lock.json"
ORIGIN: Final = f"{OWN}/origin.json"
JOURNAL: Final = f"{OWN}/journal.json"
STAGE: Final = f"{OWN}/stage"
MUTEX: Final = f"{OWN}/mutex"

_BLOCK: Final = 1 << 16

# Results of `look` for a path that is not a regular file; they differ from all checksums.
LINK: Final = "a symbolic link"
BEHIND_LINK: Final = "behind a symbolic link"
FOLDER: Final = "a directory"
BELOW_FILE: Final = "below a file"
SPECIAL: Final = "a special file"


def _step(name: str) -> None:
    """Do nothing: tests replace this function to interrupt the step `name`."""


@lru_cache(maxsize=1)
def digest(content: bytes) -> str:
    """Return the checksum of `content`. A plan asks for that of one file several times in turn."""
    return hashlib.sha256(content).hexdigest()


def is_digest(value: object) -> bool:
    """Whether `value` is a SHA-256 in lower-case hexadecimal."""
    return isinstance(value, str) and len(value) == 64 and set(value) <= set("0123456789abcdef")


def has_digest(text: str, checksum: object) -> bool:
    """Whether a text in UTF-8 has a checksum."""
    return digest(text.encode(errors="replace")) == checksum


def decoded(content: bytes) -> str | None:
    """Return a file's content as text, None if it is not text."""
    if b"\0" in content:
        return None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return None


def parents(path: str) -> list[str]:
    """Return the parents of `path` within the project, the outermost first."""
    return list(accumulate(path.split("/")[:-1], "{}/{}".format))


def obstacle(directory: Path, path: str) -> tuple[str, str] | None:
    """Return the first parent of `path` that is not a real directory, with its kind; None if there is none."""
    for parent in parents(path):
        mode = _mode(joined(directory, parent))
        if mode is None:
            return None
        if stat.S_ISLNK(mode):
            return parent, BEHIND_LINK
        if not stat.S_ISDIR(mode):
            return parent, BELOW_FILE
    return None


def _mode(place: str) -> int | None:
    """Return the kind of file at `place`, None if it does not exist or the name is too long."""
    try:
        return os.lstat(place).st_mode
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENAMETOOLONG):
            return None
        raise


def look(directory: Path, path: str) -> str | None:
    """Return the checksum of the regular file at `path`, None if it does not exist, else its kind."""
    if blocker := obstacle(directory, path):
        return blocker[1]
    place = joined(directory, path)
    mode = _mode(place)
    if mode is None:
        return None
    if stat.S_ISREG(mode):
        try:
            with open(place, "rb", buffering=0) as file:  # noqa: PTH123
                checksum = hashlib.sha256()
                while block := file.read(_BLOCK):  # hashlib.file_digest clears a buffer of 256 KiB for every file
                    checksum.update(block)
                return checksum.hexdigest()
        except FileNotFoundError:
            return None
    if stat.S_ISLNK(mode):
        return LINK
    return FOLDER if stat.S_ISDIR(mode) else SPECIAL


def digest_with_lf(place: Path) -> str:
    """Return the checksum of a file, of a text with CR LF as if its lines ended with LF."""
    return digest(with_lf(place.read_bytes()))


def is_folder(place: Path) -> bool:
    """Whether `place` is a directory and not a link to one."""
    return place.is_dir() and not place.is_symlink()


def make_folder(place: Path) -> None:
    """Create one directory."""
    _step(f"mkdir {place}")
    place.mkdir()


def write(place: Path, content: bytes, *, mode_of: Path | None = None) -> None:
    """Create the file `place`, which must not exist, and sync it to the disk; copy the mode of `mode_of`."""
    _step(f"create {place}")
    with place.open("xb") as file:
        if mode_of is not None:
            with contextlib.suppress(OSError):  # a file system without modes
                place.chmod(stat.S_IMODE(mode_of.stat().st_mode))
        _step(f"write {place}")
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def preserve(place: Path, copy: Path) -> None:
    """Link the file `place` to a second name, or copy it if the file system has no links."""
    _step(f"link {copy}")
    try:
        os.link(place, copy)
    except OSError:
        _step(f"copy {copy}")
        shutil.copy2(place, copy)


def replace(source: Path, place: Path) -> None:
    """Atomically move `source` to `place`, replacing an existing file."""
    _step(f"replace {place}")
    retried(lambda: source.replace(place))


def remove(place: Path) -> None:
    """Delete one file or link."""
    _step(f"unlink {place}")
    retried(place.unlink)


def remove_folder_if_empty(place: Path) -> None:
    """Delete a directory if it exists and is empty."""
    if is_folder(place) and not any(place.iterdir()):
        _step(f"rmdir {place}")
        place.rmdir()


def remove_tree(place: Path, last: str = "") -> None:
    """Delete a directory with its content, without following links; the entry named `last` is deleted last."""
    if is_folder(place):
        for entry in sorted(place.iterdir(), key=lambda entry: (entry.name == last, entry.name)):
            remove_tree(entry)
        _step(f"rmdir {place}")
        place.rmdir()
    elif os.path.lexists(place):
        remove(place)


def sync_directories(places: Iterable[Path]) -> None:
    """Sync the entries of directories to the disk if the system supports it (Windows and some shares do not)."""
    for place in sorted(set(places)):
        with contextlib.suppress(OSError):
            handle = os.open(place, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


@contextlib.contextmanager
def system_faults(directory: Path, what: str, hint: str | None = None) -> Iterator[None]:
    """Convert an OSError to an OpwestError."""
    try:
        yield
    except OSError as error:
        place = error.filename2 or error.filename
        where = os.fsdecode(place) if isinstance(place, str | bytes | os.PathLike) else str(directory)
        reason = error.strerror or str(error)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            hint = f"{hint or ''}; free some space".removeprefix("; ")
        raise fail(f"{what}: {reason}", Path(where), hint=hint) from error


def write_new(path: Path, text: str, hint: str) -> None:
    """Write a file that must not exist, and create its directory. `hint` is for the error if it exists."""
    refuse_existing(path, hint)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("x", encoding="utf-8", newline="\n")
    except FileExistsError:  # created meanwhile, or a file in place of a directory
        raise fail("a file with this name exists", path, expected="the name of a new file", hint=hint) from None
    except OSError as error:
        raise fail(f"cannot write the file: {error.strerror}", path) from None
    try:
        with file:
            file.write(text)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise fail(f"cannot write the file: {error.strerror}", path) from None


def refuse_existing(path: Path, hint: str) -> None:
    """Raise OpwestError if `path` exists."""
    if path.exists() or path.is_symlink():
        raise fail("the file exists and is not overwritten", path, expected="the name of a new file", hint=hint)


def replace_file(place: Path, content: bytes, suffix: str) -> Path:
    """Replace the content of `place` atomically; return the path of the backup in the same directory."""
    with system_faults(place, "cannot replace the file", "the file is unchanged"):
        target = Path(os.path.realpath(place))
        old = target.read_bytes()
        copy, number = place.with_name(f"{place.name}.{suffix}"), 1
        while os.path.lexists(copy) and not (copy.is_file() and copy.read_bytes() == old):
            number += 1
            copy = place.with_name(f"{place.name}.{suffix}-{number}")
        if not os.path.lexists(copy):
            _put(copy, old, target)
        _put(target, content, target)
    return copy


def _put(place: Path, content: bytes, mode_of: Path) -> None:
    draft = place.with_name(f".{place.name}.opwest-draft")
    if os.path.lexists(draft):  # left by an interrupted run
        remove(draft)
    write(draft, content, mode_of=mode_of)
    replace(draft, place)
    sync_directories([place.parent])


def write_whole(path: Path, content: bytes) -> None:
    """Replace or create a file, completely or not at all. Raises OSError."""
    draft = path.with_name(f".{path.name}.opwest-draft")
    try:
        draft.write_bytes(content)
        retried(lambda: draft.replace(path))
    except OSError:
        draft.unlink(missing_ok=True)
        raise
