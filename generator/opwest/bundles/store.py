# SPDX-License-Identifier: Apache-2.0
"""Write bundles and headers, and read bundles."""

from __future__ import annotations

from pathlib import Path

from opwest.bundles.format import MAGIC, MOST_BYTES, Bundle, BundleError, unpack
from opwest.diagnostics import Diagnostic, Location, OpwestError
from opwest.system.files import retried


def write_file(path: Path, content: bytes) -> None:
    """Write a file whole: after an error or an interruption it is unchanged. Raises OpwestError."""
    draft = path.with_name(f".{path.name}.opwest-draft")
    try:
        draft.write_bytes(content)
        retried(lambda: draft.replace(path))
    except OSError as error:
        draft.unlink(missing_ok=True)
        message = f"cannot write the file: {error.strerror}"
        raise OpwestError([Diagnostic("error", message, Location(str(path)))]) from error


def write_headers(folder: Path, headers: dict[str, bytes]) -> None:
    """Write headers; a header with the same content is not touched. Raises OpwestError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"cannot create the directory: {error.strerror}"
        raise OpwestError([Diagnostic("error", message, Location(str(folder)))]) from error
    for name, content in headers.items():
        path = folder / name
        if not path.is_file() or path.read_bytes() != content:
            write_file(path, content)


def read_bundle(path: Path) -> Bundle:
    """Return a bundle. Raises OpwestError for an unusable file."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        message = f"cannot read the file: {error.strerror}"
        raise OpwestError([Diagnostic("error", message, Location(str(path)))]) from error
    if len(data) > MOST_BYTES:
        message = f"the file has more than {MOST_BYTES} bytes"
        raise OpwestError([Diagnostic("error", message, Location(str(path)), "a bundle")])
    try:
        return unpack(data)
    except BundleError as fault:
        raise OpwestError([Diagnostic("error", fault.message, Location(str(path)), fault.expected)]) from fault


def is_bundle(path: Path) -> bool:
    """Whether a file begins as a bundle."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False
