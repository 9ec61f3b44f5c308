# SPDX-License-Identifier: Apache-2.0
"""Parameter files (`.params`) of TVM's runtime/params and NDArray::Save: a map of names to arrays.

All little-endian: magic (8 bytes), reserved (8), the names (a count, then length and bytes each), then as many arrays
(a count, then each: magic, reserved, device type and id, dimensions, dtype code, bits, lanes, shape, bytes, data).
"""

from __future__ import annotations

import struct
from math import prod
from typing import Any

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.faults import fault
from opwest.frontends.mlf.tar import DIMENSIONS, TENSORS
from opwest.model.types.dtypes import dtype_of_packed

LIST_MAGIC = 0xF7E58D4F05049CB7
ARRAY_MAGIC = 0xDD5E40F096B4A13F


@dataclass(frozen=True, slots=True)
class Parameter:
    """An array: `values` is a numpy array of the type `dtype.numpy`."""

    dtype: str
    values: Any


Parameters = dict[str, Parameter]
"""By name."""


def read_params(content: bytes, place: str) -> Parameters:
    """Return the arrays by their names. Raises OpwestError for a damaged file."""
    reader = _Reader(content, place)
    if reader.number("<Q", "the magic number") != LIST_MAGIC:
        raise fault("not a parameter file: wrong magic number", place, f"{LIST_MAGIC:#x}")
    reader.number("<Q", "the reserved word")
    names = [reader.name() for _ in range(reader.count("names"))]
    count = reader.count("arrays")
    if count != len(names):
        raise fault(f"{count} arrays for {len(names)} names", place, "one array per name")
    if len(set(names)) != len(names):
        raise fault("duplicate parameter", place, "unique names")
    found = {name: reader.array(name) for name in names}
    if reader.at != len(content):
        raise fault(f"{len(content) - reader.at} bytes after the last array", place, "the end of the file")
    return found


class _Reader:
    def __init__(self, content: bytes, place: str) -> None:
        self.content = content
        self.place = place
        self.at = 0

    def take(self, size: int, what: str) -> bytes:
        if size > len(self.content) - self.at:
            raise fault(f"the parameter file is truncated in {what}, at byte {self.at}", self.place, f"{size} bytes")
        part = self.content[self.at : self.at + size]
        self.at += size
        return part

    def number(self, layout: str, what: str) -> int:
        value: int = struct.unpack(layout, self.take(struct.calcsize(layout), what))[0]
        return value

    def count(self, what: str) -> int:
        value = self.number("<Q", f"the count of {what}")
        if value > TENSORS:
            raise fault(f"the parameter file has {value} {what}", self.place, f"at most {TENSORS}")
        return value

    def name(self) -> str:
        raw = self.take(self.number("<Q", "a name"), "a name")
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise fault(f"the name {raw[:60]!r} is not UTF-8", self.place, "UTF-8") from None

    def array(self, name: str) -> Parameter:
        import numpy as np

        what = f"parameter {name[:80]!r}"
        if self.number("<Q", what) != ARRAY_MAGIC:
            raise fault(f"{what} does not start with the magic number of an array", self.place, f"{ARRAY_MAGIC:#x}")
        self.take(16, what)
        dimensions = self.number("<i", what)
        if not 0 <= dimensions <= DIMENSIONS:
            raise fault(f"{what} has {dimensions} dimensions", self.place, f"0 to {DIMENSIONS}")
        code, bits, lanes = struct.unpack("<BBH", self.take(4, what))
        shape = tuple(self.number("<q", what) for _ in range(dimensions))
        size = self.number("<q", what)
        known = dtype_of_packed(code, bits)
        if known is None or lanes != 1:
            raise fault(f"{what} has the type code {code}, {bits} bits, {lanes} lanes", self.place, "a plain number")
        dtype = np.dtype(known.numpy).newbyteorder("<")
        if any(n <= 0 for n in shape) or prod(shape) * dtype.itemsize != size:
            raise fault(f"{what} has the shape {list(shape)} and {size} bytes", self.place, "bytes that fit the shape")
        return Parameter(known.name, np.frombuffer(self.take(size, what), dtype).reshape(shape))
