# SPDX-License-Identifier: Apache-2.0
"""Element types: one table, one row per type. Every other list of element types is derived from it.

In C the same table is OPWEST_DTYPES of opwest/model.h; tests compare the two, and the schema's list, row by row.
"""

from __future__ import annotations

import math
import struct
from math import prod
from typing import Literal

from opwest.base.frozen_dataclass import dataclass

FLT_MAX = 3.4028234663852886e38
"""The largest float32 (ISO C 5.2.4.2.2)."""
MAX_TENSOR_BYTES = (1 << 31) - 1
"""Sizes and offsets are uint32_t in the metadata, and size_t of a 32-bit target in firmware."""

Kind = Literal["int", "uint", "bool", "float"]
DlpackCode = Literal["kDLInt", "kDLUInt", "kDLFloat", "kDLBfloat", "kDLBool"]

DLPACK_CODES = ("kDLInt", "kDLUInt", "kDLFloat", "kDLOpaqueHandle", "kDLBfloat", "kDLComplex", "kDLBool")
"""DLDataTypeCode in the order of its values, from 0 (dmlc/dlpack, include/dlpack/dlpack.h)."""


@dataclass(frozen=True, slots=True)
class Dlpack:
    """A DLDataType of one lane."""

    code: DlpackCode
    bits: int


@dataclass(frozen=True, slots=True)
class Print:
    """The use of printf for a value: the format from after its opening `"` to its closing `"`, and a cast."""

    format: str
    cast: str


@dataclass(frozen=True, slots=True)
class DType:
    """An element type. `size` is in bytes, and elements are aligned to it."""

    name: str
    kind: Kind
    size: int
    number: int
    """Its value in `enum opwest_dtype` of the runtime. It is part of the metadata: never change it."""
    c_type: str
    numpy: str
    """The numpy type of an array of elements; an unsigned integer type of the same size if numpy lacks the type."""
    dlpack: Dlpack
    llvm: str
    """The type of a value in the LLVM IR that opwest emits: that of `c_type`."""
    dlpack_of_packed: Dlpack | None = None
    """The DLDataType in TVM up to 0.18, if it differs."""
    from_c: tuple[str, ...] = ()
    """The C types that denote only this element type; `c_type` is listed only if it does."""
    from_ir: str = ""
    """The LLVM type that denotes only this element type."""
    exponent: int = 0
    """Width of the exponent in bits, of floating-point types: sign, exponent, fraction as in IEEE 754."""
    bits: str = ""
    """The content of `c_type` in words if C lacks the type: "IEEE half bits"."""

    @property
    def code(self) -> str:
        """Its name in `enum opwest_dtype` of the runtime."""
        return f"OPWEST_{self.name.upper()}"

    @property
    def is_float(self) -> bool:
        """Whether values are floating-point numbers in C; C holds float16 as its bits."""
        return self.kind == "float" and not self.bits

    @property
    def is_signed(self) -> bool:
        """Whether values are signed integers in C."""
        return self.kind == "int"

    @property
    def minimum(self) -> int | None:
        """The least whole number; None for floating-point types."""
        return {"int": -(1 << 8 * self.size - 1), "uint": 0, "bool": 0, "float": None}[self.kind]

    @property
    def maximum(self) -> int | None:
        """The greatest whole number; None for floating-point types."""
        bits = 8 * self.size
        return {"int": (1 << bits - 1) - 1, "uint": (1 << bits) - 1, "bool": 1, "float": None}[self.kind]

    @property
    def fraction(self) -> int:
        """Width of the fraction in bits, of floating-point types."""
        return 8 * self.size - 1 - self.exponent

    @property
    def significant(self) -> int:
        """The decimal digits that distinguish any two values of a floating-point type (max_digits10)."""
        return 1 + math.ceil((self.fraction + 1) * math.log10(2))

    @property
    def print(self) -> Print:
        """How a value of `c_type` is printed."""
        if self.is_float:
            return Print(f"%.{self.significant}g", "(double)" if self.size < 8 else "")
        if self.size == 8:
            return Print(f'%" {"PRIu64" if self.kind == "uint" else "PRId64"} "', "")
        if self.size == 4 and self.kind == "uint":
            return Print('%" PRIu32 "', "")
        return Print('%" PRId32 "', "(int32_t)")

    @property
    def packed_member(self) -> str:
        """The member of TVMValue and TVMFFIAny that holds a value."""
        return "v_float64" if self.is_float else "v_int64"

    @property
    def struct_code(self) -> str | None:
        """The format character of Python's struct module; None if there is none."""
        if self.kind == "bool":
            return "?"
        codes = {"int": "bhiq", "uint": "BHIQ", "float": "\0efd"}[self.kind]
        return codes[self.size.bit_length() - 1] if self.name == self.numpy else None


def _whole(number: int, kind: Literal["int", "uint"], size: int, *from_c: str) -> DType:
    """Return the row of an integer type; `from_c` are C types besides that of <stdint.h>."""
    name = f"{kind}{8 * size}"
    return DType(
        name=name,
        kind=kind,
        size=size,
        number=number,
        c_type=f"{name}_t",
        numpy=name,
        dlpack=Dlpack("kDLInt" if kind == "int" else "kDLUInt", 8 * size),
        llvm=f"i{8 * size}",
        from_c=(f"{name}_t", *from_c),
    )


_ROWS = (
    _whole(0, "int", 1, "signed char", "char"),
    _whole(1, "uint", 1, "unsigned char"),
    _whole(2, "int", 2, "short"),
    _whole(3, "uint", 2, "unsigned short"),
    _whole(4, "int", 4, "int", "signed"),
    _whole(5, "uint", 4, "unsigned int", "unsigned"),
    _whole(6, "int", 8),
    _whole(7, "uint", 8),
    DType(
        name="float16",
        kind="float",
        size=2,
        number=8,
        c_type="uint16_t",
        numpy="float16",
        dlpack=Dlpack("kDLFloat", 16),
        llvm="i16",
        from_c=("_Float16", "__fp16"),
        from_ir="half",
        exponent=5,
        bits="IEEE half bits",
    ),
    DType(
        name="float32",
        kind="float",
        size=4,
        number=9,
        c_type="float",
        numpy="float32",
        dlpack=Dlpack("kDLFloat", 32),
        llvm="float",
        from_c=("float",),
        from_ir="float",
        exponent=8,
    ),
    DType(
        name="float64",
        kind="float",
        size=8,
        number=10,
        c_type="double",
        numpy="float64",
        dlpack=Dlpack("kDLFloat", 64),
        llvm="double",
        from_c=("double",),
        from_ir="double",
        exponent=11,
    ),
    DType(
        name="bool",
        kind="bool",
        size=1,
        number=11,
        c_type="uint8_t",
        numpy="bool",
        dlpack=Dlpack("kDLBool", 8),
        llvm="i8",
        dlpack_of_packed=Dlpack("kDLUInt", 1),
        from_c=("bool", "_Bool"),
        from_ir="i1",
    ),
    DType(
        name="bfloat16",
        kind="float",
        size=2,
        number=12,
        c_type="uint16_t",
        numpy="uint16",
        dlpack=Dlpack("kDLBfloat", 16),
        llvm="i16",
        from_c=("__bf16",),
        from_ir="bfloat",
        exponent=8,
        bits="bfloat16 bits",
    ),
)

DTYPES = {dtype.name: dtype for dtype in _ROWS}


def dtype_of_c(name: str) -> DType | None:
    """Return the element type that an unqualified C type denotes."""
    return next((dtype for dtype in DTYPES.values() if name in dtype.from_c), None)


def meant_by(seen: str, named: str) -> str:
    """Return the element type of an argument whose C code has the type `seen`, given the named type.

    It is the named type if C lacks that type and `seen` holds its bits, else `seen`.
    """
    dtype = DTYPES.get(named)
    return named if dtype and dtype.bits and dtype.c_type == DTYPES[seen].c_type else seen


def dtype_of_ir(name: str) -> DType | None:
    """Return the element type that an LLVM type denotes; None for integers, which have no sign in LLVM IR."""
    return next((dtype for dtype in DTYPES.values() if name and name == dtype.from_ir), None)


def dtype_of_packed(code: int, bits: int) -> DType | None:
    """Return the element type of a DLDataType of TVM up to 0.18, by its code and bits; lanes are 1."""
    for dtype in DTYPES.values():
        dlpack = dtype.dlpack_of_packed or dtype.dlpack
        if (DLPACK_CODES.index(dlpack.code), dlpack.bits) == (code, bits):
            return dtype
    return None


@dataclass(frozen=True, slots=True)
class TensorType:
    """A dtype and a shape (outermost dimension first; () is a single element)."""

    dtype: DType
    shape: tuple[int, ...]
    pitch: int = 0
    """The elements from one row, the last dimension, to the next in memory; 0: rows follow each other."""

    @property
    def elements(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def size(self) -> int:
        """Bytes in C order without padding; with a pitch, from the start of the first row to the end of the last."""
        if not self.pitch:
            return self.elements * self.dtype.size
        return ((self.rows - 1) * self.pitch + self.shape[-1]) * self.dtype.size

    @property
    def rows(self) -> int:
        """The number of rows of a tensor with dimensions."""
        return prod(self.shape[:-1])

    def __str__(self) -> str:
        pitch = f" with a pitch of {self.pitch}" if self.pitch else ""
        return f"{self.dtype.name} {list(self.shape)}{pitch}"


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
        number = float(value)  # raises OverflowError for integers beyond the range
        if dtype.size == 4 and math.isfinite(number):
            round_to_float32(number)
    except OverflowError:
        return False
    return math.isfinite(number)
