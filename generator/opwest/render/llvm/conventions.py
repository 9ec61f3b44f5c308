# SPDX-License-Identifier: Apache-2.0
"""The argument arrays of a calling convention in LLVM IR."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import assert_never

from opwest.model.conventions import ConventionName
from opwest.render.llvm.printer import PRIVATE, ir_struct
from opwest.render.records import layout

_ANY = ir_struct(layout.TVM_FFI_ANY)


class ArraysIr(ABC):
    """The differences between conventions in the structure of arrays of an operator, and in its call.

    The structure holds tensors, values, the result, and `extra` members. In a bridge, %values is the array of values
    and %result.at the result.
    """

    value: str
    """The type of an entry and of the result."""
    extra: str
    """The types of further members, with a comma before each."""

    @abstractmethod
    def constants(self, codes: Sequence[int]) -> str:
        """Return the initialisers of values, result and further members; `codes`: of the entries."""

    @abstractmethod
    def tables(self, operator: str, codes: Sequence[int]) -> Sequence[str]:
        """Return definitions at the level of the module."""

    @abstractmethod
    def places(self, structure: str, arrays: str) -> Sequence[str]:
        """Return instructions that compute the addresses of the further members."""

    @abstractmethod
    def entry(self, index: int) -> str:
        """Return the operands of a getelementptr for the value of an entry."""

    @abstractmethod
    def passed(self, operator: str, count: int) -> list[str]:
        """Return the arguments of the compiled function; `count`: of the entries."""


class PackedArraysIr(ArraysIr):
    """TVMBackendPackedCFunc: the codes are a separate array, constant for all calls."""

    value = "i64"
    extra = ", i32"

    def constants(self, codes: Sequence[int]) -> str:
        """See ArraysIr."""
        return f"[{len(codes)} x i64] zeroinitializer, i64 0, i32 {layout.TVM_NULLPTR.value}"

    def tables(self, operator: str, codes: Sequence[int]) -> Sequence[str]:
        """See ArraysIr."""
        listed = ", ".join(f"i32 {code}" for code in codes)
        return [f"@codes.{operator} = {PRIVATE} [{len(codes)} x i32] [{listed}]"]

    def places(self, structure: str, arrays: str) -> Sequence[str]:
        """See ArraysIr."""
        return [f"  %result.code = getelementptr {structure}, ptr {arrays}, i32 0, i32 3"]

    def entry(self, index: int) -> str:
        """See ArraysIr."""
        return f"i64, ptr %values, i32 {index}"

    def passed(self, operator: str, count: int) -> list[str]:
        """See ArraysIr."""
        codes = f"ptr @codes.{operator}"
        return ["ptr %values", codes, f"i32 signext {count}", "ptr %result.at", "ptr %result.code", "ptr null"]


class FfiArraysIr(ArraysIr):
    """TVMFFISafeCallType: every value contains its type."""

    value = _ANY
    extra = ""

    def constants(self, codes: Sequence[int]) -> str:
        """See ArraysIr."""
        rows = ", ".join(f"{_ANY} {{ i32 {code}, i32 0, i64 0 }}" for code in codes)
        return f"[{len(codes)} x {_ANY}] [{rows}], {_ANY} zeroinitializer"

    def tables(self, operator: str, codes: Sequence[int]) -> Sequence[str]:
        """See ArraysIr."""
        return []

    def places(self, structure: str, arrays: str) -> Sequence[str]:
        """See ArraysIr."""
        return []

    def entry(self, index: int) -> str:
        """See ArraysIr."""
        return f"{_ANY}, ptr %values, i32 {index}, i32 {layout.TVM_FFI_ANY.index_of('v_int64')}"

    def passed(self, operator: str, count: int) -> list[str]:
        """See ArraysIr."""
        return ["ptr null", "ptr %values", f"i32 signext {count}", "ptr %result.at"]


def arrays_ir(name: ConventionName) -> ArraysIr | None:
    """Return the printer of a convention's arrays; None if it has no arrays."""
    match name:
        case "unpacked" | "halide" | "memref":
            return None
        case "packed":
            return PackedArraysIr()
        case "ffi":
            return FfiArraysIr()
        case _:
            assert_never(name)
