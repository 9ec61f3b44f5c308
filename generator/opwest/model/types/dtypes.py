# SPDX-License-Identifier: Apache-2.0
"""Element types: one table, one row per type. Every other list of element types is derived from it.

In C the same table is OPWEST_DTYPES of opwest/model.h; tests compare the two, and the schema's list, row by row.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Literal

from opwest.base.frozen_dataclass import dataclass
from opwest.manifest.arrays import Array

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Elements = NDArray[np.generic]


FLT_MAX = 3.4028234663852886e38
"""The largest float32 (ISO C 5.2.4.2.2)."""
MAX_TENSOR_BYTES = (1 << 31) - 1
"""Sizes and offsets are uint32_t in the metadata, and size_t of a 32-bit target in firmware."""

Kind = Literal["int", "uint", "bool", "float"]
Special = Literal["ieee", "nan_of_ones"]
"""The meaning of the largest exponent: infinity and NaN as in IEEE 754; or numbers, and one NaN whose bits are all set
except the sign (OCP 8-bit Floating Point Specification, E4M3)."""
DlpackCode = Literal["kDLInt", "kDLUInt", "kDLFloat", "kDLBfloat", "kDLBool", "kDLFloat8_e4m3fn", "kDLFloat8_e5m2"]

DLPACK_CODES = (
    *("kDLInt", "kDLUInt", "kDLFloat", "kDLOpaqueHandle", "kDLBfloat", "kDLComplex", "kDLBool", "kDLFloat8_e3m4"),
    *("kDLFloat8_e4m3", "kDLFloat8_e4m3b11fnuz", "kDLFloat8_e4m3fn", "kDLFloat8_e4m3fnuz", "kDLFloat8_e5m2"),
)
"""DLDataTypeCode in the order of its values, from 0 (dmlc/dlpack 1.1, include/dlpack/dlpack.h)."""
HalideCode = Literal["int", "uint", "float", "bfloat"]


@dataclass(frozen=True, slots=True)
class Dlpack:
    """A DLDataType of one lane."""

    code: DlpackCode
    bits: int


@dataclass(frozen=True, slots=True)
class Print:
    """The use of printf for a value: its conversion, and the cast to the type of it."""

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
    dlpack_of_packed: Dlpack | None
    """The DLDataType in TVM up to 0.18; None: it has none."""
    halide: HalideCode | None
    """The code of its halide_type_t; None: Halide lacks the type."""
    llvm: str
    """The type of a value in the LLVM IR that opwest emits: that of `c_type`."""
    from_c: tuple[str, ...] = ()
    """The C types that denote only this element type; `c_type` is listed only if it does."""
    from_ir: str = ""
    """The LLVM type that denotes only this element type."""
    exponent: int = 0
    """Width of the exponent in bits, of floating-point types: sign, exponent, fraction, and the bias of IEEE 754."""
    special: Special = "ieee"
    bits: str = ""
    """The content of `c_type` in words if C lacks the type: "IEEE half bits"."""
    aliases: tuple[str, ...] = ()
    """Further names of the type in numpy arrays: those of the package ml_dtypes."""

    def __post_init__(self) -> None:
        """Raise ValueError for a layout that the code does not implement."""
        is_float = self.kind == "float"
        if is_float and not (2 <= self.exponent <= 11 and 1 <= self.fraction <= 52):
            raise ValueError(f"{self.name}: the exponent has {self.exponent} bits, the fraction {self.fraction}")
        if not is_float and (self.exponent or self.special != "ieee" or self.bits):
            raise ValueError(f"{self.name}: exponent, special and bits are those of floating-point types")
        if self.special != "ieee" and not self.bits:
            raise ValueError(f"{self.name}: a type of C has the infinity and the NaN of IEEE 754")

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
            unsigned = self.kind == "uint"
            return Print("%llu", "(unsigned long long)") if unsigned else Print("%lld", "(long long)")
        if self.size == 4 and self.kind == "uint":
            return Print("%u", "(unsigned int)")
        return Print("%d", "(int)")

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
        dlpack=(dlpack := Dlpack("kDLInt" if kind == "int" else "kDLUInt", 8 * size)),
        dlpack_of_packed=dlpack,
        halide=kind,
        llvm=f"i{8 * size}",
        from_c=(f"{name}_t", *from_c),
    )


def _float(
    number: int,
    name: str,
    size: int,
    exponent: int,
    code: DlpackCode,
    halide: HalideCode | None = None,
    from_c: tuple[str, ...] = (),
    from_ir: str = "",
    bits: str = "",
    *,
    numpy: str = "",
    special: Special = "ieee",
    aliases: tuple[str, ...] = (),
) -> DType:
    """Return the row of a floating-point type. C, LLVM and numpy hold one with `bits` as an unsigned integer."""
    dlpack = Dlpack(code, 8 * size)
    return DType(
        name=name,
        kind="float",
        size=size,
        number=number,
        c_type=f"uint{8 * size}_t" if bits else from_c[0],
        numpy=numpy or (f"uint{8 * size}" if bits else name),
        dlpack=dlpack,
        dlpack_of_packed=None if halide is None else dlpack,  # both lack the types of 8 bits
        halide=halide,
        llvm=f"i{8 * size}" if bits else from_ir,
        from_c=from_c,
        from_ir=from_ir,
        exponent=exponent,
        special=special,
        bits=bits,
        aliases=aliases,
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
    _float(8, "float16", 2, 5, "kDLFloat", "float", ("_Float16", "__fp16"), "half", "IEEE half bits", numpy="float16"),
    _float(9, "float32", 4, 8, "kDLFloat", "float", ("float",), "float"),
    _float(10, "float64", 8, 11, "kDLFloat", "float", ("double",), "double"),
    DType(
        name="bool",
        kind="bool",
        size=1,
        number=11,
        c_type="uint8_t",
        numpy="bool",
        dlpack=Dlpack("kDLBool", 8),
        dlpack_of_packed=Dlpack("kDLUInt", 1),
        halide="uint",
        llvm="i8",
        from_c=("bool", "_Bool"),
        from_ir="i1",
    ),
    _float(12, "bfloat16", 2, 8, "kDLBfloat", "bfloat", ("__bf16",), "bfloat", "bfloat16 bits"),
    _float(
        13,
        "float8_e4m3",
        1,
        4,
        "kDLFloat8_e4m3fn",
        bits="E4M3 bits",
        special="nan_of_ones",
        aliases=("float8_e4m3fn",),
    ),
    _float(14, "float8_e5m2", 1, 5, "kDLFloat8_e5m2", bits="E5M2 bits"),
)

DTYPES = {dtype.name: dtype for dtype in _ROWS}


def dtype_of_c(name: str) -> DType | None:
    """Return the element type that an unqualified C type denotes."""
    return next((dtype for dtype in DTYPES.values() if name in dtype.from_c), None)


def resolve_dtype(seen: str, named: str) -> str:
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
        dlpack = dtype.dlpack_of_packed
        if dlpack is not None and (DLPACK_CODES.index(dlpack.code), dlpack.bits) == (code, bits):
            return dtype
    return None


@dataclass(frozen=True)
class TensorType:
    """A dtype and a shape (outermost dimension first; () is a single element)."""

    dtype: DType
    shape: tuple[int, ...]
    pitch: int = 0
    """Row stride in elements; 0: contiguous."""

    @property
    def elements(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @cached_property
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


_FLOATS = ("float32", "float64")


def elements_of(array: Elements, dtype: DType) -> tuple[Elements, int] | None:
    """Return an array as elements of `dtype` and the number of rounded values; None if its type does not match.

    Elements are of the type `dtype.numpy`, in the byte order of this machine. Where numpy lacks the type, an array
    holds it as unsigned integers, as raw bytes (what ml_dtypes saves), or as float32 or float64 numbers, which are
    rounded to the nearest, ties to even.
    """
    import numpy as np

    if array.dtype.name == dtype.numpy:
        return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("=")).reshape(array.shape), 0
    if array.dtype.name not in _others(dtype):
        return None
    if array.dtype.name not in _FLOATS:
        return np.ascontiguousarray(array).view(dtype.numpy).reshape(array.shape), 0
    with np.errstate(invalid="ignore"):  # signalling NaNs
        numbers = array.astype(np.float64)
    rounded = _nearest(numbers, dtype)
    changed = ~np.isclose(numbers_of(rounded, dtype), numbers, rtol=0, atol=0, equal_nan=True)
    return rounded, int(np.count_nonzero(changed))


def numbers_of(elements: Elements, dtype: DType) -> Elements:
    """Return the values of elements: the same array, or float32 or float64 if numpy lacks the type."""
    import numpy as np

    if dtype.numpy == dtype.name:
        return elements
    bits = elements.astype(np.int64)
    top, ones = (1 << dtype.exponent) - 1, (1 << dtype.fraction) - 1
    exponent, fraction = bits >> dtype.fraction & top, bits & ones
    # Subnormal numbers have the exponent of the least normal ones, without the leading 1.
    significand = np.where(exponent > 0, fraction + ones + 1, fraction)
    numbers = np.ldexp(significand.astype(np.float64), np.maximum(exponent, 1) - top // 2 - dtype.fraction)
    if dtype.special == "ieee":
        numbers = np.where(exponent == top, np.where(fraction > 0, np.nan, np.inf), numbers)
    else:
        numbers = np.where((exponent == top) & (fraction == ones), np.nan, numbers)
    numbers = np.where(bits >> dtype.exponent + dtype.fraction, -numbers, numbers)
    is_narrow = dtype.exponent <= 8 and dtype.fraction <= 23
    return numbers.astype(np.float32 if is_narrow else np.float64)


def reference_of(array: Elements, dtype: DType) -> Elements:
    """Return the values of an array for comparison with elements of `dtype`; bits are converted to numbers."""
    conversion = None if dtype.numpy == dtype.name or array.dtype.kind == "f" else elements_of(array, dtype)
    return array if conversion is None else numbers_of(conversion[0], dtype)


def numbers_from(content: bytes, dtype: DType, shape: Sequence[int], pitch: int = 0) -> Elements:
    """Return the values in memory of this machine's byte order: see `numbers_of`. `pitch`: that of the type."""
    import numpy as np

    numbers = numbers_of(np.frombuffer(content, dtype.numpy), dtype)
    if pitch:
        # The last row ends at its last element.
        numbers = np.pad(numbers, (0, -len(numbers) % pitch)).reshape(-1, pitch)[:, : shape[-1]]
    return numbers.reshape(shape)


def converted(array: Array, dtype: DType) -> tuple[Array, int] | None:
    """Return the content of a file as elements of `dtype` and the number of rounded values: see `elements_of`."""
    if array.dtype in (None, dtype.name):
        return array, 0
    import numpy as np

    if array.dtype not in (dtype.numpy, *_others(dtype)):
        return None
    held = np.dtype(array.dtype if array.dtype in (dtype.numpy, *_FLOATS) else f"V{dtype.size}").newbyteorder("<")
    conversion = elements_of(np.frombuffer(array.content, held), dtype)
    if conversion is None:
        return None
    elements, rounded = conversion
    content = elements.astype(elements.dtype.newbyteorder("<")).tobytes()
    return replace(array, content=content, dtype=dtype.name), rounded


def rounding_note(rounded: int, dtype: DType) -> str:
    """Return the end of a sentence about rounded values."""
    return f"{rounded} value{' was' if rounded == 1 else 's were'} rounded to {dtype.name}"


def _others(dtype: DType) -> tuple[str, ...]:
    """Return the names of the other numpy types that arrays of an element type may have."""
    if dtype.numpy == dtype.name:
        return ()
    return (dtype.name, *dtype.aliases, f"void{8 * dtype.size}", *_FLOATS)


def _nearest(numbers: NDArray[np.float64], dtype: DType) -> Elements:
    """Return the bits of the nearest values; infinity beyond the greatest finite value, NaN if there is no infinity."""
    import numpy as np

    top = (1 << dtype.exponent) - 1
    bias = top // 2
    size = np.where(np.isfinite(numbers), np.abs(numbers), 0.0)
    exponent = np.where(size > 0, np.maximum(np.frexp(size)[1] - 1, 1 - bias), 1 - bias)
    # In units of the last place: a carry out of the fraction correctly increments the exponent.
    units = np.rint(np.ldexp(size, dtype.fraction - exponent)).astype(np.int64)
    bits = units + ((exponent.astype(np.int64) + bias - 1) << dtype.fraction)
    if dtype.special == "ieee":
        beyond = top << dtype.fraction  # infinity
        nan = beyond | 1 << dtype.fraction - 1
    else:
        beyond = nan = (1 << dtype.exponent + dtype.fraction) - 1
    bits = np.where(np.isinf(numbers), beyond, np.minimum(bits, beyond))
    bits = np.where(np.isnan(numbers), nan, bits)
    sign = np.signbit(numbers).astype(np.int64) << dtype.exponent + dtype.fraction
    held: Elements = (bits | sign).astype(dtype.numpy)
    return held
