# SPDX-License-Identifier: Apache-2.0
"""Read arrays from .npy, .npz and raw files."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opwest.diagnostics import beginning

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LARGEST = 1 << 30
"""Bytes of one array. A small .npz file can expand to any size."""


@dataclass(frozen=True, slots=True)
class Array:
    """The content of a file: little-endian bytes in C order. dtype and shape are None for raw bytes."""

    content: bytes = field(repr=False)
    dtype: str | None
    shape: tuple[int, ...] | None


class ArrayError(Exception):
    """The file cannot be read as an array."""

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
                f"{path.name!r} is not a {path.suffix} file",
                f"a file written by numpy.save{'z' * (path.suffix == '.npz')}",
            )
        if key_given:
            raise _no_archive()
        return Array(path.read_bytes(), None, None)
    except OSError as error:
        raise ArrayError(f"cannot read {path.name!r}: {error.strerror}") from error


def array_names(path: Path) -> tuple[str, ...]:
    """Return the names of the arrays in an .npz file. Raises ArrayError."""
    try:
        with path.open("rb") as file:
            if not file.read(2) == b"PK":
                raise ArrayError(f"{path.name!r} is not an .npz file", "a file written by numpy.savez")
    except OSError as error:
        raise ArrayError(f"cannot read {path.name!r}: {error.strerror}") from error
    found = load_numpy(path)
    return tuple(found) if isinstance(found, dict) else ()


def load_numpy(path: Path, key: str | None = None) -> NDArray[np.generic] | dict[str, None]:
    """Return the array of a .npy file, the array `key` of an .npz file, or, without a key, the names in it.

    Raises ArrayError for invalid content, OSError where the file cannot be read.
    """
    import numpy as np  # numpy is slow to import, and most commands read no arrays

    with path.open("rb") as file:  # np.load(path) does not close a broken .npz
        try:
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return loaded
            if key is None:
                return dict.fromkeys(loaded.files)
            if key in loaded.files:
                _check_size(path, key, loaded)
                return np.asarray(loaded[key])
        except (OSError, ArrayError):
            raise
        except Exception as error:  # numpy, zipfile and the decompressors raise any type of exception for invalid data
            raise _unreadable(path, error) from error
    raise ArrayError(f"no array {key!r} in {path.name!r}", f"one of {', '.join(sorted(loaded.files))}")


def _check_size(path: Path, key: str, loaded: Any) -> None:
    name = key if key in loaded.zip.namelist() else f"{key}.npy"
    size = loaded.zip.getinfo(name).file_size
    if size > LARGEST:
        raise ArrayError(f"array {key!r} in {path.name!r} has {size} bytes", f"at most {LARGEST} bytes")


def _unreadable(path: Path, error: Exception) -> ArrayError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return ArrayError(
        f"cannot read {path.name!r}: {beginning(reason)}", "an array of numbers written by numpy.save or numpy.savez"
    )


def _no_archive() -> ArrayError:
    return ArrayError("'key' is given for a file other than .npz", "no 'key'", "remove 'key'")


def _numpy(path: Path, key: str | None) -> Array:
    import numpy as np  # see load_numpy

    array = np.asarray(load_numpy(path, key))
    dtype = np.dtype(array.dtype)
    if dtype.hasobject or dtype.names:
        raise _unreadable(path, ValueError("Python objects and records are not supported"))
    try:
        little = np.ascontiguousarray(array, dtype=dtype.newbyteorder("<"))
        return Array(little.tobytes(), dtype.newbyteorder("=").name, tuple(int(n) for n in array.shape))
    except (ValueError, MemoryError) as error:
        raise _unreadable(path, error) from error
