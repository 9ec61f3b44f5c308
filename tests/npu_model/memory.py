# SPDX-License-Identifier: Apache-2.0
"""Regions of memory, the internal memory, and feature maps in them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from npu_model.commands import Registers, signed
from npu_model.faults import Invalid, Unsupported
from npu_model.payload import Product

LARGEST = 1 << 24
"""Elements of a feature map that the model reads: more are in no region that a test has."""
_TYPES = {0: ("u1", "i1"), 1: ("u2", "i2"), 2: (None, "i4")}


class Memory:
    def __init__(self, regions: Sequence[bytes | bytearray], product: Product) -> None:
        self.regions = [np.frombuffer(one, np.uint8) if len(one) else np.zeros(0, np.uint8) for one in regions]
        self.internal = np.zeros(product.shram, np.uint8)

    def region(self, number: int) -> Any:
        if number >= len(self.regions):
            raise Invalid(f"region {number} is not given, there are {len(self.regions)}")
        return self.regions[number]

    def target(self, number: int, use: str) -> Any:
        """Return the bytes of a region that is written. Raises Invalid if it is read-only."""
        content = self.region(number)
        if not content.flags.writeable:
            raise Invalid(f"{use} is in region {number}, which is read-only")
        return content

    def part(self, registers: Registers, name: str, use: str) -> Any:
        """Return the bytes that registers describe. Raises Invalid if they are not within their region."""
        number, start, length = (registers[f"{name}_{field}"] for field in ("REGION", "BASE", "LENGTH"))
        return within(self.region(number), start, length, f"{use} in region {number}")


def within(content: Any, start: int, length: int, use: str) -> Any:
    """Return `length` bytes at `start`. Raises Invalid if they are not within `content`."""
    if start + length > len(content):
        raise Invalid(f"{use}: bytes {start} to {start + length} of {len(content)}")
    return content[start : start + length]


@dataclass(frozen=True)
class FeatureMap:
    """The addresses of a feature map: four tiles, strides in bytes of y, x and the 16 channels of a brick."""

    name: str
    region: int
    bases: tuple[int, int, int, int]
    heights: tuple[int, int]
    width: int
    strides: tuple[int, int, int]
    shape: tuple[int, int, int]
    dtype: Any
    is_brick: bool
    zero: int

    def read(self, memory: Memory) -> Any:
        """Return the elements as int64 (height, width, depth), without the zero point."""
        raw = memory.region(self.region)[self._places(memory)[..., None] + np.arange(self.dtype.itemsize)]
        return raw.view(self.dtype).reshape(self.shape).astype(np.int64) - self.zero

    def write(self, memory: Memory, values: Any) -> None:
        places = self._places(memory)
        raw = np.ascontiguousarray(values.astype(self.dtype)).view(np.uint8)
        content = memory.target(self.region, self.name)
        content[places[..., None] + np.arange(self.dtype.itemsize)] = raw.reshape(*self.shape, -1)

    def _places(self, memory: Memory) -> Any:
        """Return the address of each element. Raises Invalid if one is not in the region."""
        height, width, depth = self.shape
        if height * width * depth > LARGEST:
            raise Unsupported(f"{self.name} has {height} x {width} x {depth} elements, the model's limit is {LARGEST}")
        y, x, c = np.arange(height)[:, None], np.arange(width)[None], np.arange(depth)
        left = x < self.width
        limit = np.where(left, *self.heights)
        top = y < limit
        base = np.where(top, np.where(left, *self.bases[:2]), np.where(left, *self.bases[2:]))
        row, column = np.where(top, y, y - limit), np.where(left, x, x - self.width)
        size = self.dtype.itemsize
        in_row = c // 16 * self.strides[2] + c % 16 * size if self.is_brick else c * size
        places = (base + row * self.strides[0] + column * self.strides[1])[..., None] + in_row
        first, last, content = int(places.min()), int(places.max()) + size, memory.region(self.region)
        if first < 0 or last > len(content):
            place = f"bytes {first} to {last} of region {self.region}"
            raise Invalid(f"{self.name} is at {place}, which has {len(content)}")
        if first % size or any(base % size for base in self.bases) or any(one % size for one in self.strides[:2]):
            raise Invalid(f"{self.name} is not aligned to its elements of {size} bytes")
        return places


def feature_map(registers: Registers, name: str, shape: tuple[int, int, int]) -> FeatureMap:
    """Return the feature map IFM, IFM2 or OFM of the registers. `shape`: height, width, depth."""
    precision = registers[f"{name}_PRECISION"]
    dtype = element_type(registers, name)
    kind = precision >> 6 & 3
    if kind > 1:
        raise Invalid(f"{name}_PRECISION 0x{precision:X} has no known format")
    if kind and any(registers[f"{name}_BASE{i}"] % 16 for i in range(4)):
        raise Invalid(f"{name} has a format in bricks and is not aligned to 16 bytes")
    return FeatureMap(
        name,
        registers[f"{name}_REGION"],
        tuple(registers[f"{name}_BASE{i}"] for i in range(4)),
        (registers[f"{name}_HEIGHT0_M1"] + 1, registers[f"{name}_HEIGHT1_M1"] + 1),
        registers[f"{name}_WIDTH0_M1"] + 1,
        # Addresses have 32 bits, so a stride to lower addresses is one near 2^32.
        tuple(signed(registers[f"{name}_STRIDE_{axis}"] & 0xFFFFFFFF, 32) for axis in "YXC"),
        shape,
        dtype,
        bool(kind),
        zero_point(registers, name),
    )


def element_type(registers: Registers, name: str) -> Any:
    """Return the dtype of IFM, IFM2 or OFM. The fields of the OFM are one bit lower."""
    precision = registers[f"{name}_PRECISION"]
    bits = precision >> (1 if name == "OFM" else 2) & 3
    found = _TYPES.get(bits, (None, None))[precision & 1]
    if found is None:
        raise Invalid(f"{name}_PRECISION 0x{precision:X} has no known type")
    return np.dtype("<" + found)


def zero_point(registers: Registers, name: str) -> int:
    """Return the zero point, which has the sign of the type."""
    zero = registers[f"{name}_ZERO_POINT"]
    return signed(zero, 16) if element_type(registers, name).kind == "i" else zero
