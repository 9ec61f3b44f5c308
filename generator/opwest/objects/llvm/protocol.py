# SPDX-License-Identifier: Apache-2.0
"""The protocol between parent and child process: frames of a JSON object and bytes, each with its length.

The child reads untrusted input, so responses are plain data, never pickles.
"""

from __future__ import annotations

import json
import struct
from typing import Any, BinaryIO

from opwest.base.frozen_dataclass import dataclass

_LENGTHS = struct.Struct(">QQ")
LARGEST_PART = 2 << 30


class BrokenStreamError(Exception):
    """The peer closed the stream or sent invalid data."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One request or response."""

    header: dict[str, Any]
    blob: bytes = b""


def write_frame(stream: BinaryIO, frame: Frame) -> None:
    """Write one frame."""
    header = json.dumps(frame.header).encode("ascii")
    stream.write(_LENGTHS.pack(len(header), len(frame.blob)))
    stream.write(header)
    stream.write(frame.blob)
    stream.flush()


def read_frame(stream: BinaryIO) -> Frame | None:
    """Return the next frame; None at the end of the stream; raise BrokenStreamError."""
    lengths = stream.read(_LENGTHS.size)
    if not lengths:
        return None
    if len(lengths) != _LENGTHS.size:
        raise BrokenStreamError
    header_size, blob_size = _LENGTHS.unpack(lengths)
    if max(header_size, blob_size) > LARGEST_PART:
        raise BrokenStreamError
    header, blob = stream.read(header_size), stream.read(blob_size)
    if len(header) != header_size or len(blob) != blob_size:
        raise BrokenStreamError
    try:
        value = json.loads(header)
    except ValueError as fault:
        raise BrokenStreamError from fault
    if not isinstance(value, dict):
        raise BrokenStreamError
    return Frame(value, blob)
