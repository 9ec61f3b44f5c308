# SPDX-License-Identifier: Apache-2.0
"""Facts about an object or a C source: plain frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

from opwest.base.diagnostics import FileError
from opwest.base.frozen_dataclass import dataclass

CPP_SUFFIXES: Final = (".cc", ".cpp", ".cxx")
SOURCE_SUFFIXES: Final = (".c", *CPP_SUFFIXES)
HEADER_SOURCE: Final = ".h"
"""Headers with functions in C, which can be listed as sources."""
HEADER_SUFFIXES: Final = (".h", ".hh", ".hpp", ".hxx")
MINIMAL_CPP_HEADERS: Final = frozenset(("cstddef", "cstdint", "new"))
"""The headers of Zephyr's minimal C++ library."""


def is_cpp(name: str) -> bool:
    """Whether a file of this name is a C++ source."""
    return name.endswith(CPP_SUFFIXES)


Endian = Literal["little", "big"]
FloatAbi = Literal["soft", "softfp", "hard", "single", "double", "quad", "any"]
EnumSize = Literal["short", "int"]
Mve = Literal["none", "integer", "float"]
Fpu = Literal["none", "single", "double"]
Binding = Literal["local", "global", "weak"]
SymbolKind = Literal["function", "object", "tls", "other"]
SectionKind = Literal["code", "constant", "data", "bss", "common", "absolute", "undefined"]


class ObjectError(FileError):
    """The file is no usable object or source."""


@dataclass(frozen=True, slots=True)
class Abi:
    """The ABI of an object, from its ELF header and build attributes."""

    machine: str
    """`x86-64`, `i386`, `arm`, `aarch64`, `riscv`; else the name of the EM_ constant in lower case."""
    bits: int
    endian: Endian
    arch: str | None = None
    """Arm: the architecture (`v7E-M`); RISC-V: the ISA string; None if not recorded."""
    float_abi: FloatAbi | None = None
    """Arm: soft, softfp, hard or any; RISC-V: soft, single, double or quad; otherwise None."""
    eabi: int | None = None
    """Arm: the EABI version of the ELF header (5 today; 0 is the obsolete GNU ABI)."""
    enum_size: EnumSize | None = None
    """Arm: `short` (as small as the values allow) or `int`; None where no enumeration crosses the interface."""
    wchar_size: int | None = None
    """Arm: bytes of `wchar_t`, 2 or 4; None where none is used."""
    static_base: bool = False
    """Arm: R9 is the base of writable data (`-frwpi`), or data is reached from it."""
    dsp: bool | None = None
    """Arm: uses the DSP instructions of v8-M, an optional extension; None if not recorded."""
    mve: Mve | None = None
    """Arm: the used part of the M-profile vector extension (Helium): integers, or also floats."""
    fpu: Fpu | None = None
    """Arm: the FPU instructions it may use."""
    be8: bool = False
    """Arm: big-endian data with little-endian code, the output of a linker."""
    rve: bool = False
    """RISC-V: the ABI of RV32E, with 16 registers."""
    rvc: bool = False
    """RISC-V: compressed instructions."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """One entry of the symbol table."""

    name: str
    binding: Binding
    """`weak` also for global definitions in a section group, of which a linker keeps one copy."""
    kind: SymbolKind
    section: SectionKind
    size: int


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes of the sections that end up in memory, by kind; common symbols count as bss."""

    code: int = 0
    constant: int = 0
    data: int = 0
    bss: int = 0

    @property
    def writable(self) -> int:
        """Bytes of RAM that the object itself occupies."""
        return self.data + self.bss

    def __add__(self, other: Sizes) -> Sizes:
        return Sizes(
            self.code + other.code, self.constant + other.constant, self.data + other.data, self.bss + other.bss
        )


@dataclass(frozen=True, slots=True)
class Member:
    """One ELF object: a separate file, or a member of an archive."""

    name: str
    content: bytes = field(repr=False)
    abi: Abi
    symbols: tuple[Symbol, ...] = field(repr=False)
    """Without section, file and mapping symbols (`$t`, `$d`, …) and local labels (`.L…`)."""
    sizes: Sizes
    faults: tuple[str, ...] = ()
    """The reasons why it cannot be linked; empty if exportable."""
    loose: bool = True
    """Whether it is a separate file, which is always linked, not a member of an archive."""
    opaque: bool = False
    """Whether its symbols are not those of its code: not relocatable, stripped, or compiled with -flto."""
    # Computed once: they are looked up per operator, of which a model can have thousands.
    defined: Mapping[str, Symbol] = field(init=False, repr=False, compare=False)
    """Global and weak definitions by name."""
    undefined_strong: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """Names that must be found when the firmware is linked."""
    undefined_weak: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """Weak references, null without a definition."""
    has_debug_information: bool = field(init=False, repr=False, compare=False)
    """Whether the content has the name of DWARF's section `.debug_info`."""

    def __post_init__(self) -> None:
        defined: dict[str, Symbol] = {}
        strong: dict[str, None] = {}
        weak: dict[str, None] = {}
        for symbol in self.symbols:
            if symbol.section == "undefined":
                (weak if symbol.binding == "weak" else strong)[symbol.name] = None
            elif symbol.binding != "local":
                defined.setdefault(symbol.name, symbol)
        object.__setattr__(self, "defined", MappingProxyType(defined))
        object.__setattr__(self, "undefined_strong", tuple(strong))
        object.__setattr__(self, "undefined_weak", tuple(weak))
        object.__setattr__(self, "has_debug_information", b".debug_info" in self.content)

    @property
    def undefined(self) -> tuple[str, ...]:
        """Names of all undefined symbols: strong references, then weak ones."""
        return self.undefined_strong + self.undefined_weak

    @property
    def stateful_symbols(self) -> tuple[str, ...]:
        """Names of variables, local ones included: state that is shared by all callers."""
        return tuple(s.name for s in self.symbols if s.section in ("data", "bss", "common") and s.kind != "function")


@dataclass(frozen=True, slots=True)
class ObjectFile:
    """An ELF file or an archive of them."""

    path: Path
    kind: Literal["elf", "archive"]
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class CParameter:
    """A parameter of a C function, from the source alone."""

    base: str
    """The type without qualifiers and stars: `int16_t`, `unsigned char`, `struct device`."""
    pointers: int
    """How many stars; an array counts as one."""
    text: str
    """As written."""
    name: str = ""
    """Empty if it has no name or a macro creates it."""
    const: bool | None = None
    """Of pointers: whether the type that it points to is const; None if unknown (a typedef, a macro)."""


@dataclass(frozen=True, slots=True)
class CFunction:
    """A function that a C source defines."""

    name: str
    returns: str
    """The return type as written, without storage class, `inline` and attributes: `int32_t`, `void *`."""
    parameters: int | None
    """How many; None for a variadic function."""
    is_static: bool
    line: int
    parameter_types: tuple[CParameter, ...] = ()
    """As many as `parameters`; empty for a variadic function."""
    mangled: bool = False
    """Whether it has C++ linkage: the name of its symbol contains the types of its parameters."""
    convention: str = ""
    """The attribute that changes its calling convention: `ms_abi`; empty for that of C."""


@dataclass(frozen=True, slots=True)
class CSource:
    """A C or C++ source, read without a compiler and without preprocessing."""

    path: Path
    text: bytes = field(repr=False)
    functions: tuple[CFunction, ...]
    globals: tuple[str, ...]
    """Variables with external linkage that it defines, constant ones included."""
    state: tuple[str, ...]
    """Variables that can be written: at file scope, or `static` inside a function."""
    includes: tuple[str, ...]
    """Headers without their delimiters: `math.h`."""
    local_includes: tuple[str, ...] = ()
    """Those of `includes` that are written in quotes."""
    calls: tuple[str, ...] = ()
    """Names called as functions that the file does not define (macros among them)."""
    library_calls: tuple[str, ...] = ()
    """Those of `calls` that are certain: outside of conditionals, and no macro or variable of the file has the name."""
    unread: tuple[int, ...] = ()
    """Lines that could not be parsed; their definitions are unknown."""
    language: Literal["C", "C++"] = "C"
    declared: tuple[str, ...] = ()
    """C++: functions that are declared `extern "C"`; a later definition has C linkage."""
    scope: tuple[str, ...] = ()
    """C++: names of the outermost scope whose symbols contain the name: functions, classes, templates, namespaces."""

    @property
    def c_functions(self) -> tuple[CFunction, ...]:
        """The functions whose symbol is their name, and that another file can call or, of a header, include."""
        return tuple(f for f in self.functions if (self.is_header or not f.is_static) and not f.mangled)

    @property
    def is_header(self) -> bool:
        """Whether it is a header in C, which is compiled by a source that includes it."""
        return self.path.name.endswith(HEADER_SOURCE)

    @property
    def static_functions(self) -> frozenset[str]:
        """The names of functions without external linkage."""
        return frozenset(f.name for f in self.functions if f.is_static)
