# SPDX-License-Identifier: Apache-2.0
"""Read arrays from .npy, .npz and raw files."""

from __future__ import annotations

import os
import re
from dataclasses import field
from math import prod
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO

from opwest.base.diagnostics import FileError, beginning
from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted

if TYPE_CHECKING:
    from zipfile import ZipFile, ZipInfo

    import numpy as np
    from numpy.typing import NDArray

MAX_BYTES = 1 << 30
"""Bytes of one array. A small .npz file can expand to any size."""
_SIZES = (1, 2, 4, 8)
_MAX_SHAPE = 200
"""Characters of the shape of an array that is read without numpy."""
_END_RECORD = 22
"""Bytes of the end record of a ZIP archive without its comment."""


@dataclass(frozen=True, slots=True)
class Array:
    """The content of a file: little-endian bytes in C order. dtype and shape are None for raw bytes."""

    content: bytes = field(repr=False)
    dtype: str | None
    shape: tuple[int, ...] | None


class ArrayError(FileError):
    """The file cannot be read as an array."""


def read_array(path: Path, key: str, *, key_given: bool) -> Array:
    """Read `path`; `key` names the array inside an .npz file. Raises ArrayError."""
    try:
        with path.open("rb") as file:
            magic = file.read(6)
        if magic.startswith(b"\x93NUMPY"):
            if key_given:
                raise _no_archive()
            return _plain(path.read_bytes()) or _numpy(path, None)
        if magic.startswith(b"PK") and path.suffix != ".bin":
            return _plain_member(path, key) or _numpy(path, key)
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


_PLAIN = re.compile(
    rb"""\{'descr': '([<|][biuf][1248])', 'fortran_order': False, 'shape': \((|\d+,|\d+(?:, \d+)+)\), \} *\n"""
)
"""A header as numpy.save writes it."""
_PLAIN_NAMES = {
    **{
        f"{'|' if size == 1 else '<'}{kind[0]}{size}": f"{kind}{8 * size}"
        for kind in ("int", "uint")
        for size in _SIZES
    },
    **{f"<f{size}": f"float{8 * size}" for size in _SIZES[1:]},
    "|b1": "bool",
}
_MAX_HEADER = 10_000
"""Bytes. numpy refuses a longer header."""


def _plain(content: bytes) -> Array | None:
    """Return the array of a .npy file with numbers in C order, as numpy.save writes it on usual machines.

    Returns None for any other content, valid or not: numpy reads it, or reports the fault. numpy takes long to import.
    """
    if not content.startswith(b"\x93NUMPY\1\0"):
        return None
    begin = 10 + int.from_bytes(content[8:10], "little")
    header = _PLAIN.fullmatch(content, 10, begin) if begin <= _MAX_HEADER else None
    name = _PLAIN_NAMES.get(header[1].decode("ascii")) if header else None
    if header is None or name is None or len(header[2]) > _MAX_SHAPE:
        return None
    shape = tuple(int(size) for size in header[2].split(b",") if size)
    item = int(header[1][-1:])
    is_whole = len(content) - begin == prod(shape) * item
    is_small = prod(size or 1 for size in shape) * item < 1 << 63  # numpy refuses others, also without elements
    if not (is_whole and is_small) or repr(shape).encode() != b"(%b)" % header[2]:  # numpy refuses sizes such as 08
        return None
    return Array(content[begin:], name, shape)


def _plain_member(path: Path, key: str) -> Array | None:
    """Return the array `key` of an .npz file if it is that of a plain .npy file; None otherwise, as `_plain`."""
    from zipfile import ZipFile

    try:
        with path.open("rb") as file, ZipFile(file) as archive:
            info = _members(path, file, archive).get(key)
            return _plain(archive.read(info)) if info is not None and info.file_size <= MAX_BYTES else None
    except Exception:  # numpy reports it
        return None


def array_names(path: Path) -> tuple[str, ...]:
    """Return the names of the arrays in an .npz file. Raises ArrayError."""
    try:
        with path.open("rb") as file:
            if not file.read(2) == b"PK":
                raise ArrayError(f"{path.name!r} is not an .npz file", "a file written by numpy.savez")
    except OSError as error:
        raise ArrayError(f"cannot read {path.name!r}: {error.strerror}") from error
    from zipfile import ZipFile

    try:
        with path.open("rb") as file, ZipFile(file) as archive:
            return tuple(_members(path, file, archive))
    except Exception:  # numpy reports it
        content = load_numpy(path)
    return tuple(content) if isinstance(content, dict) else ()


def load_numpy(path: Path, key: str | None = None) -> NDArray[np.generic] | dict[str, None]:
    """Return the array of a .npy file, the array `key` of an .npz file, or, without a key, the names in it.

    Bytes that numpy would ignore are errors: they are the rest of a larger array, or of another file.
    Raises ArrayError for invalid content, OSError where the file cannot be read.
    """
    import numpy as np  # numpy is slow to import, and most commands read no arrays

    with path.open("rb") as file:  # np.load(path) does not close a broken .npz
        try:
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                _check_end(repr(path.name), file)
                return loaded
            members = _members(path, file, loaded.zip)
            if key is None:
                return dict.fromkeys(members)
            if key in members:
                return _member(path, key, loaded.zip, members[key])
        except (OSError, ArrayError):
            raise
        except Exception as error:  # numpy, zipfile and the decompressors raise any type of exception for invalid data
            raise _unreadable(path, error) from error
    raise ArrayError(f"no array {key!r} in {path.name!r}", f"one of {', '.join(sorted(members))}")


def _members(path: Path, file: BinaryIO, archive: ZipFile) -> dict[str, ZipInfo]:
    """Return the members of an .npz file by the name of the array; report what numpy.savez does not write."""
    members: dict[str, ZipInfo] = {}
    for info in archive.infolist():
        name = info.filename.removesuffix(".npy")
        if name == info.filename:
            raise ArrayError(
                f"{path.name!r} contains {info.filename!r}, which is not an array", "only members with the suffix .npy"
            )
        if name in members:
            raise ArrayError(f"duplicate array {name!r} in {path.name!r}", "each name once")
        members[name] = info
    # zipfile permits other bytes before the first member, and after the end record (APPNOTE 4.3.16).
    begin = min((info.header_offset for info in members.values()), default=0)
    file.seek(-_END_RECORD - len(archive.comment), os.SEEK_END)
    if begin or not file.read(_END_RECORD).startswith(b"PK\5\6"):
        raise ArrayError(
            f"{path.name!r} has bytes {'before' if begin else 'after'} its archive", "a file written by numpy.savez"
        )
    return members


def _member(path: Path, key: str, archive: ZipFile, info: ZipInfo) -> NDArray[np.generic]:
    import numpy as np  # see load_numpy

    where = f"array {key!r} in {path.name!r}"
    if info.file_size > MAX_BYTES:
        raise ArrayError(f"{where} has {counted(info.file_size, 'byte')}", f"at most {MAX_BYTES} bytes")
    with archive.open(info) as content:
        array: NDArray[np.generic] = np.lib.format.read_array(content, allow_pickle=False)
        _check_end(where, content)
    return array


def _check_end(where: str, file: IO[bytes]) -> None:
    if file.read(1):
        raise ArrayError(f"{where} has bytes after its elements", "as many elements as its shape")


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
