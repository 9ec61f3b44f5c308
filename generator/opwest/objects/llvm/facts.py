# SPDX-License-Identifier: Apache-2.0
"""Facts about a module of LLVM IR and its compilation target, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Literal

from opwest.base.diagnostics import printable as escaped
from opwest.base.frozen_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class LlvmTarget:
    """The target of code generation."""

    name: str
    triple: str
    """Four parts: with three, LLVM ignores the environment and generates soft float."""
    cpu: str
    features: str
    """In LLVM's syntax: `+soft-float,-fpregs`; may be empty."""
    float_abi: str | None
    """The float ABI of the target's objects: soft, softfp, hard; soft, single, double; None elsewhere."""
    machine: str
    bits: int
    abi: str = ""
    """RISC-V: `ilp32`, `lp64d`, …; empty: from `bits` and `float_abi`."""
    data_layout: str = ""
    """LLVM's data layout for the target; empty if unknown."""


IrKind = Literal["pointer", "integer", "float", "other"]


class LlvmError(Exception):
    """An error in IR, or missing llvmlite: message, expected form and hint."""

    def __init__(self, message: str, expected: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.expected = expected
        self.hint = hint


def printable(text: str) -> str:
    """Return text of an untrusted file as one line without control characters."""
    shown = escaped(text)
    return shown if len(shown) <= 500 else f"{shown[:500]}…"


@dataclass(frozen=True, slots=True)
class IrParameter:
    """The type of a parameter or of a result."""

    kind: IrKind
    """`other`: vectors, aggregates, and pointers that represent an aggregate (`byval`, `sret`) or
    point into another address space."""
    bits: int
    """Of integers and floats (`half` is 16, `bfloat` is `other`); 0 for the rest."""

    def __str__(self) -> str:
        names = {"pointer": "a pointer", "other": "another type"}
        return names.get(self.kind) or f"{'an integer' if self.kind == 'integer' else 'a float'} of {self.bits} bits"


@dataclass(frozen=True, slots=True)
class IrUse:
    """The use of a parameter by a function, as far as the IR contains it."""

    name: str
    """Empty for a numbered parameter."""
    access: Literal["reads", "writes", "unknown"]
    """Of pointers: by the attributes `readonly` and `writeonly`."""
    elements: tuple[str, ...]
    """The types that are loaded and stored through a pointer, as IR writes them: `i8`, `float`; sorted."""


@dataclass(frozen=True, slots=True)
class IrFunction:
    """A function that a module defines or declares; intrinsics (`llvm.…`) are left out."""

    name: str
    returns: IrParameter | None
    """None: `void`."""
    parameters: tuple[IrParameter, ...]
    variadic: bool
    is_definition: bool
    linkage: str
    """As LLVM writes it: `external`, `internal`, `private`, `weak`, `linkonce_odr`, `extern_weak`, …"""
    uses: tuple[IrUse, ...] = ()
    """One per parameter, for definitions, if requested."""
    convention: str = ""
    """The calling convention as LLVM writes it (`fastcc`, `win64cc`); empty for that of C."""


@dataclass(frozen=True, slots=True)
class IrModule:
    """A module that LLVM has read and verified."""

    path: Path
    content: bytes = field(repr=False)
    """The unchanged content of the file: bitcode or text."""
    triple: str
    """Empty if the module does not specify it."""
    data_layout: str
    """After LLVM's own upgrade of older layouts; empty if the module does not specify it."""
    functions: tuple[IrFunction, ...]
    defined: frozenset[str]
    """Functions, variables and aliases that other objects can see."""
    undefined: frozenset[str]
    """Declarations that are used. Code generation may add more (`memcpy`, `__aeabi_fmul`): see the object."""
    state: tuple[str, ...] = ()
    """Variables with storage that can be written, local ones included."""
    thread_local: tuple[str, ...] = ()
    """Thread-local variables, which no target supports."""
    aliases: tuple[str, ...] = ()
    """Second names of definitions."""
    indirect_functions: tuple[str, ...] = ()
    """ifuncs: chosen when the program starts, which no target supports."""
    has_constructors: bool = False
    """Whether it has code to run before or after main (`llvm.global_ctors`, `llvm.global_dtors`)."""
    has_assembly: bool = False
    """Whether it has module or inline assembly (an empty one, a barrier for the compiler, does not count)."""
    target_attributes: frozenset[str] = frozenset()
    """Distinct `target-cpu=…`, `tune-cpu=…` and `target-features=…` of its functions."""
    target_abi: str | None = None
    """RISC-V: the ABI in the module flag target-abi (`ilp32f`)."""
    has_debug_information: bool = False
    """Whether the compiled object has debug information."""


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """Compilation options of a module."""

    optimize: Literal["size", "speed"] = "size"
    renames: Mapping[str, str] = field(default_factory=dict)
    """New names of symbols, definitions and declarations alike; names that do not occur are ignored."""
    keep_unwind: bool = False
    """Keep unwind tables; without it functions are `nounwind` and objects have none."""


@dataclass(frozen=True, slots=True)
class CompileJob:
    """One module to compile for one target."""

    content: bytes = field(repr=False)
    target: LlvmTarget
    options: CompileOptions = field(default_factory=CompileOptions)
    name: str = "the IR"
    """Its name in messages: the name of the file."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Resource limits of a child process."""

    memory: int = 4 << 30
    """Bytes of address space; enforced where the system can."""
    seconds: float = 120.0
    """For one request: of the clock, and of the processor."""
