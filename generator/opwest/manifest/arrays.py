# SPDX-License-Identifier: Apache-2.0
"""Reading the bytes of constants: .npy, .npz, and raw files."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Array:
    """What a file holds: little-endian bytes in C order. dtype and shape are None for raw bytes."""

    content: bytes = field(repr=False)
    dtype: str | None
    shape: tuple[int, ...] | None


class ArrayError(Exception):
    """The file can't be read as an array."""

    def __init__(self, message: str, expected: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.expected = expected
        self.hint = hint


def read_array(path: Path, key: str, *, key_given: bool) -> Array:
    """Read `path`; `key` names the array inside an .npz file. Raises ArrayError."""
    try:
        with path.open("rb") as file:
            magic = file.read(6)
        if magic.startswith(b"\x93NUMPY"):
            if key_given:
                raise _no_archive()
            return _numpy(path, None)
        if magic.startswith(b"PK") and path.suffix != ".bin":
            return _numpy(path, key)
        if path.suffix in (".npy", ".npz"):
            raise ArrayError(
                f"{path.name} is not a {path.suffix} file",
                f"a file written by numpy.save{'z' * (path.suffix == '.npz')}",
            )
        if key_given:
            raise _no_archive()
        return Array(path.read_bytes(), None, None)
    except OSError as error:
        raise ArrayError(f"{path.name} can't be read: {error.strerror}") from error


def array_names(path: Path) -> tuple[str, ...]:
    """Return the names of the arrays in an .npz file. Raises ArrayError."""
    import numpy as np  # see _numpy

    try:
        with path.open("rb") as file:
            if not file.read(2) == b"PK":
                raise ArrayError(f"{path.name} is not an .npz file", "a file written by numpy.savez")
            file.seek(0)
            return tuple(np.load(file, allow_pickle=False).files)
    except OSError as error:
        raise ArrayError(f"{path.name} can't be read: {error.strerror}") from error
    except (ValueError, EOFError, zipfile.BadZipFile, MemoryError) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> ArrayError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return ArrayError(f"{path.name} can't be read: {reason}", "plain numbers written by numpy.save or numpy.savez")


def _no_archive() -> ArrayError:
    return ArrayError("a key is given, but the file is not an .npz", "no key", "remove it")


def _numpy(path: Path, key: str | None) -> Array:
    import numpy as np  # here: most commands read no arrays, and numpy is slow to import

    try:
        with path.open("rb") as file:  # numpy leaves a broken .npz open
            loaded = np.load(file, allow_pickle=False)
            if key is None:
                array = loaded
            elif key not in loaded.files:
                raise ArrayError(f"{path.name} has no array {key!r}", f"one of {', '.join(sorted(loaded.files))}")
            else:
                array = loaded[key]
        dtype = np.dtype(array.dtype)
        if dtype.hasobject or dtype.names:
            raise ValueError("it holds Python objects or records")
        little = np.ascontiguousarray(array, dtype=dtype.newbyteorder("<"))
        return Array(little.tobytes(), dtype.newbyteorder("=").name, tuple(int(n) for n in array.shape))
    except (ValueError, EOFError, KeyError, zipfile.BadZipFile, MemoryError) as error:
        raise _unreadable(path, error) from error
