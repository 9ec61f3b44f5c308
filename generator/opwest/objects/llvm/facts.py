# SPDX-License-Identifier: Apache-2.0
"""Facts about a module of LLVM IR and its compilation target, as frozen values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from typing import Literal

from opwest.base.diagnostics import printable as escaped
from opwest.base.frozen_dataclass import dataclass
from opwest.objects.compat import Fault, riscv_abi_name
from opwest.objects.facts import ObjectError


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


Optimize = Literal["size", "speed"]
IrKind = Literal["pointer", "integer", "float", "other"]


class LlvmError(ObjectError):
    """An error in IR, or missing llvmlite."""


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
    access: Literal["reads", "writes", "stores", "unknown"]
    """Of pointers: by the attributes `readonly` and `writeonly`; `stores` if the function writes and may read."""
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
    functions: tuple[IrFunction, ...] = ()
    defined: frozenset[str] = frozenset()
    """Functions, variables and aliases that other objects can see."""
    undefined: frozenset[str] = frozenset()
    """Declarations that are used. Code generation may add more (`memcpy`, `__aeabi_fmul`): see the object."""
    state: tuple[str, ...] = ()
    """Variables with storage that can be written, local ones included."""
    thread_local: tuple[str, ...] = ()
    """Thread-local variables, which no target supports."""
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
class CompileJob:
    """One module to compile for one target."""

    content: bytes = field(repr=False)
    target: LlvmTarget
    optimize: Optimize = "size"
    name: str = "the IR"
    """Its name in messages: the name of the file."""


_ARM = re.compile(r"(?P<isa>arm|thumb)(?P<big>eb)?(?:v(?P<version>\d+(?:\.\d+)?)(?P<rest>.*))?$")
_EABI = re.compile(r"(?:gnu|musl|android)?eabi(?P<hard>hf)?(?:t64)?$")
_X86 = re.compile(r"(?:i[3-9]86|x86)$")
_FOREIGN_SYSTEMS = re.compile(r"(windows|win32|darwin|macosx?|ios|tvos|watchos|uefi|wasi|cuda|amdhsa)")
_ENVIRONMENTS_OF_32_BITS = ("gnux32", "muslx32", "gnu_ilp32")
# Default alignments of a data layout in bits (LangRef).
_DEFAULTS = {
    "i1": 8, "i8": 8, "i16": 16, "i32": 32, "i64": 32,
    "f16": 16, "f32": 32, "f64": 64, "f128": 128, "v64": 64, "v128": 128, "a": 0,
}  # fmt: skip
_WORDS = {"i": "integers", "f": "floats", "v": "vectors"}


@dataclass(frozen=True, slots=True)
class Triple:
    """The properties of code in a triple; None if unspecified."""

    architecture: str
    bits: int | None = None
    big_endian: bool | None = None
    profile: str | None = None
    """Arm: A, R or M."""
    hard_float: bool | None = None
    """Arm: whether the environment specifies hard float."""
    system: str | None = None
    """A system with other calling conventions: windows, darwin, …"""


def parse_triple(text: str) -> Triple | None:
    """Parse a triple of any number of parts; return None for an empty or unknown one."""
    first, *others = text.strip().lower().split("-")
    if first in ("", "unknown"):
        return None
    system = next((m.group(1) for part in others if (m := _FOREIGN_SYSTEMS.match(part))), None)
    narrow = any(part.startswith(_ENVIRONMENTS_OF_32_BITS) for part in others)
    if arm := _ARM.match(first):
        float_abi = next((m for part in others if (m := _EABI.match(part))), None)
        rest = arm["rest"] or ""
        big = bool(arm["big"]) or rest.endswith("eb")
        hard = None if float_abi is None else bool(float_abi["hard"])
        return Triple("arm", 32, big, _profile(arm["version"], rest.removesuffix("eb")), hard, system)
    if _X86.match(first):
        return Triple("i386", 32, False, system=system)
    if first in ("x86_64", "amd64", "x86_64h"):
        return Triple("x86-64", 32 if narrow else 64, False, system=system)
    if first.startswith(("aarch64", "arm64")):
        return Triple("aarch64", 32 if narrow or first.endswith("_32") else 64, first.endswith("_be"), system=system)
    if match := re.match(r"riscv(32|64)(be)?", first):
        return Triple("riscv", int(match[1]), bool(match[2]), system=system)
    return Triple(first, system=system)


def _profile(version: str | None, rest: str) -> str | None:
    """Return the profile of an Arm architecture: `7em` and `8m.main` are M, `7a` and `8-a` are A."""
    if version is None:
        return None
    match = re.match(r"[-.]?e?(?P<profile>[amr])(?![a-z]*mp)", rest)
    return match["profile"].upper() if match else None


def contradictions(module: IrModule, target: LlvmTarget) -> list[Fault]:
    """Return the contradictions between a module and a target; empty if compatible."""
    seen, expected = parse_triple(module.triple), parse_triple(target.triple)
    faults: list[Fault] = []
    if seen is not None and expected is not None:
        difference = _difference(seen, expected)
        if difference:
            return [_fault(module, target, difference)]
        if None not in (seen.hard_float, expected.hard_float) and seen.hard_float != expected.hard_float:
            words = {True: "hard float (eabihf)", False: "floats in integer registers (eabi)"}
            text = f"{words[bool(seen.hard_float)]}, expected {words[bool(expected.hard_float)]}"
            faults.append(_fault(module, target, text))
    abi = riscv_abi(target)
    if module.target_abi and target.machine == "riscv" and module.target_abi != abi:
        seen_abi = f"the IR is for the ABI {printable(module.target_abi)} (module flag target-abi)"
        text = f"{seen_abi}, the target {target.name} has {abi}"
        faults.append(Fault(text, f"the ABI {abi}", f"compile it again with -mabi={abi}"))
    if module.data_layout and target.data_layout:
        faults += _layout_faults(module, target)
    return faults


def riscv_abi(target: LlvmTarget) -> str:
    """Return the name of a RISC-V target's ABI: `ilp32f`."""
    return target.abi or riscv_abi_name(target.bits, target.float_abi)


def _difference(seen: Triple, expected: Triple) -> str | None:
    """Return a difference that makes further comparison unnecessary."""
    if seen.architecture != expected.architecture:
        return "another architecture"
    if seen.bits != expected.bits:
        return f"{seen.bits}-bit addresses, expected {expected.bits}-bit"
    if seen.big_endian != expected.big_endian:
        return "big-endian, expected little-endian" if seen.big_endian else "little-endian, expected big-endian"
    if seen.profile and expected.profile and seen.profile != expected.profile:
        return f"Arm profile {seen.profile}, expected {expected.profile}"
    if seen.system != expected.system and seen.system:
        return f"calling conventions of {seen.system}"
    return None


def _fault(module: IrModule, target: LlvmTarget, difference: str) -> Fault:
    return Fault(
        f"the IR is for {printable(module.triple)}, target '{target.name}' is {target.triple}: {difference}",
        f"IR for {target.triple}, or without a triple",
        f"compile the operators for '{target.name}' (clang: --target={target.triple} -mcpu={target.cpu})",
    )


def _layout_faults(module: IrModule, target: LlvmTarget) -> Iterator[Fault]:
    """Yield an error with the first difference between two data layouts."""
    seen, expected = _layout(module.data_layout), {**_DEFAULTS, **_layout(target.data_layout)}
    for key, value in seen.items():
        if key in expected and expected[key] != value:
            layouts = (
                f"the data layout of the IR is {printable(module.data_layout)!r}, that of target "
                f"'{target.name}' is {target.data_layout!r}"
            )
            text = f"{layouts}: {_what(key)} {value}, expected {expected[key]}"
            hint = f"compile the operators for '{target.name}' (clang: --target={target.triple})"
            yield Fault(text, f"the data layout of {target.triple}, or none", hint)
            return


def _what(key: str) -> str:
    """Return the name of a part of a data layout."""
    fixed = {
        "endian": "byte order",
        "mangling": "mangling",
        "pointer": "pointer size in bits",
        "pointer alignment": "pointer alignment in bits",
        "a": "alignment of aggregates in bits",
    }
    return fixed.get(key) or f"alignment of {key[1:]}-bit {_WORDS[key[0]]} in bits"


def _layout(text: str) -> dict[str, int | str]:
    """Return the explicit parts of a data layout that determine the placement of data."""
    parts: dict[str, int | str] = {}
    for part in text.split("-"):
        name, *numbers = part.split(":")
        sizes = [int(n) if n.isdecimal() else -1 for n in numbers]
        if part in ("e", "E"):
            parts["endian"] = "little" if part == "e" else "big"
        elif name == "m" and numbers:
            parts["mangling"] = numbers[0]
        elif name in ("p", "p0") and sizes:
            parts["pointer"] = sizes[0]
            if len(sizes) > 1:
                parts["pointer alignment"] = sizes[1]
        elif name == "a" and sizes:
            parts["a"] = 0 if sizes[0] == 8 else sizes[0]
        elif re.fullmatch(r"[ifv]\d+", name) and sizes:
            parts[name] = sizes[0]
    return parts
