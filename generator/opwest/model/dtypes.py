# SPDX-License-Identifier: Apache-2.0
"""Element types: the one table of their sizes, C types and ranges."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from math import prod

FLT_MAX = 3.4028234663852886e38
"""The largest float32 (ISO C 5.2.4.2.2)."""
MAX_TENSOR_BYTES = (1 << 31) - 1
"""Sizes and offsets are uint32_t in the metadata, and size_t of a 32-bit target in firmware."""


@dataclass(frozen=True, slots=True)
class DType:
    """An element type: `size` in bytes, `code` as in `enum opwest_dtype` of the runtime's model.h."""

    name: str
    size: int
    c_type: str
    code: str
    minimum: int | None
    maximum: int | None

    @property
    def is_float(self) -> bool:
        """Whether values are floating-point numbers in C (float16 is its bits, see design)."""
        return self.name in ("float32", "float64")


def _integer(name: str, bits: int, *, signed: bool) -> DType:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return DType(name, bits // 8, f"{name}_t", f"OPWEST_{name.upper()}", low, high)


DTYPES = {
    dtype.name: dtype
    for dtype in (
        *(_integer(f"int{bits}", bits, signed=True) for bits in (8, 16, 32, 64)),
        *(_integer(f"uint{bits}", bits, signed=False) for bits in (8, 16, 32, 64)),
        DType("float16", 2, "uint16_t", "OPWEST_FLOAT16", None, None),
        DType("float32", 4, "float", "OPWEST_FLOAT32", None, None),
        DType("float64", 8, "double", "OPWEST_FLOAT64", None, None),
        DType("bool", 1, "uint8_t", "OPWEST_BOOL", 0, 1),
    )
}


@dataclass(frozen=True, slots=True)
class TensorType:
    """A dtype and a shape (outermost dimension first; () is a single element)."""

    dtype: DType
    shape: tuple[int, ...]

    @property
    def elements(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def size(self) -> int:
        """Bytes in C order without padding."""
        return self.elements * self.dtype.size

    def __str__(self) -> str:
        return f"{self.dtype.name} {list(self.shape)}"


def round_to_float32(value: float) -> float:
    """Return the float32 nearest to `value`, in the fewest digits; raises OverflowError beyond its range."""
    nearest: float = struct.unpack("<f", struct.pack("<f", value))[0]
    for digits in range(1, 10):
        short = float(f"{nearest:.{digits}g}")
        if abs(short) <= FLT_MAX and struct.unpack("<f", struct.pack("<f", short))[0] == nearest:
            return short
    return nearest


def is_finite(value: float, dtype: DType) -> bool:
    """Return whether `value` is a finite number of a floating type."""
    try:
        number = float(value)  # a whole number may be beyond every float
        if dtype.size == 4 and math.isfinite(number):
            round_to_float32(number)
    except OverflowError:
        return False
    return math.isfinite(number)
