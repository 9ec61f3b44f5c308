# SPDX-License-Identifier: Apache-2.0
"""The argument arrays of a calling convention in C."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import assert_never

from opwest.model.conventions import ConventionName


class ArraysC(ABC):
    """The differences between conventions in the struct of arrays of an operator, and in its call."""

    value_type: str
    """The C type of an entry and of the result."""
    pointer: str
    """The member of an entry that holds a pointer."""

    @abstractmethod
    def members(self) -> Sequence[str]:
        """Return the members of the struct besides tensors, values and result."""

    @abstractmethod
    def constants(self, codes: Sequence[str]) -> Sequence[str]:
        """Return initialisers of the constant members besides tensors; `codes`: of the entries."""

    @abstractmethod
    def tables(self, operator: str, codes: Sequence[str]) -> Sequence[str]:
        """Return definitions at file scope."""

    @abstractmethod
    def passed(self, operator: str, count: int) -> list[str]:
        """Return the arguments of the compiled function; `count`: of the entries."""


class PackedArraysC(ArraysC):
    """TVMBackendPackedCFunc: the codes are a separate array, constant for all calls."""

    value_type = "TVMValue"
    pointer = "v_handle"

    def members(self) -> Sequence[str]:
        """See ArraysC."""
        return ["int32_t result_code;"]

    def constants(self, codes: Sequence[str]) -> Sequence[str]:
        """See ArraysC."""
        return [".result_code = kTVMNullptr,"]

    def tables(self, operator: str, codes: Sequence[str]) -> Sequence[str]:
        """See ArraysC."""
        return [f"static const int32_t {operator}_codes[] = {{{', '.join(codes)}}};"]

    def passed(self, operator: str, count: int) -> list[str]:
        """See ArraysC."""
        codes = f"(int32_t *)(uintptr_t){operator}_codes"
        return ["arrays->values", codes, str(count), "&arrays->result", "&arrays->result_code", "NULL"]


class FfiArraysC(ArraysC):
    """TVMFFISafeCallType: every value contains its type."""

    value_type = "TVMFFIAny"
    pointer = "v_ptr"

    def members(self) -> Sequence[str]:
        """See ArraysC."""
        return []

    def constants(self, codes: Sequence[str]) -> Sequence[str]:
        """See ArraysC."""
        return [".values = {", *(f"\t{{.type_index = {code}}}," for code in codes), "},"]

    def tables(self, operator: str, codes: Sequence[str]) -> Sequence[str]:
        """See ArraysC."""
        return []

    def passed(self, operator: str, count: int) -> list[str]:
        """See ArraysC."""
        return ["NULL", "arrays->values", str(count), "&arrays->result"]


def arrays_c(name: ConventionName) -> ArraysC | None:
    """Return the printer of a convention's arrays; None if it has no arrays."""
    match name:
        case "unpacked" | "halide" | "memref":
            return None
        case "packed":
            return PackedArraysC()
        case "ffi":
            return FfiArraysC()
        case _:
            assert_never(name)
