# SPDX-License-Identifier: Apache-2.0
"""The link of a model: targets, the files for each, external symbols, and the stack of the operators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import PurePath, PurePosixPath
from typing import Any, Literal

from opwest.base.diagnostics import Diagnostics, Location
from opwest.base.frozen_dataclass import dataclass
from opwest.objects.compat import TargetAbi
from opwest.objects.facts import CPP_SUFFIXES, HEADER_SOURCE, CSource, Member
from opwest.objects.library_symbols import EFFECTS
from opwest.objects.llvm.facts import LlvmTarget
from opwest.objects.stack import StackEntry

ANY_TARGET = "any"
"""The name of a build without a target: its sources are compiled with the firmware."""
SOURCES = PurePosixPath("objects") / ANY_TARGET
"""The directory of sources and their headers in a model's directory."""
WRAPPERS = PurePosixPath("wrappers")
"""The directory of generated sources that compile headers."""


@dataclass(frozen=True, slots=True)
class Target(TargetAbi):
    """The machine and ABI that objects are compiled for, and the Zephyr configuration that selects it."""

    host: tuple[str, ...] = ()
    """The machines of hosts on which its programs run, as Python names them; empty for firmware."""
    kconfig: tuple[tuple[str, str], ...] = ()
    llvm: LlvmTarget | None = None
    """The parameters of LLVM's code generator; None if the target does not define them."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A variant of a model, and the targets that use it."""

    name: str
    targets: tuple[Target, ...]


@dataclass(frozen=True, slots=True)
class LinkObject:
    """A relocatable object to be linked: `path` below objects/<target>/ in the model's directory."""

    path: PurePosixPath
    content: bytes = field(repr=False)
    origin: str


Optimize = Literal["speed", "size", "application"]


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """Options of the sources of one entry of `objects`."""

    include_dirs: tuple[PurePosixPath, ...] = ()
    """Directories of headers, relative to the manifest's directory."""
    defines: tuple[str, ...] = ()
    """Macros: NAME or NAME=VALUE."""
    flags: tuple[str, ...] = ()
    optimize: Optimize = "speed"
    """What the compiler optimises for; `application`: as the application that contains the sources."""


NO_OPTIONS = CompileOptions()


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A C or C++ source (`compiled`) or a header that one includes; `path` is relative to the manifest's directory."""

    path: PurePosixPath
    content: bytes = field(repr=False)
    compiled: bool
    options: CompileOptions = NO_OPTIONS
    exports: tuple[str, ...] = ()
    """Of a compiled header: its static functions that are operators."""
    line: int = 0
    """A compiled source: its line and column in the manifest."""
    column: int = 0
    permits: tuple[str, ...] = ()
    """The effects that the manifest permits in its object, in the order of EFFECTS."""

    @property
    def is_wrapped(self) -> bool:
        """Whether it is a header that a generated source compiles."""
        return self.compiled and self.path.name.endswith(HEADER_SOURCE)

    @property
    def place(self) -> PurePosixPath:
        """Its copy, relative to the model's directory."""
        return SOURCES / self.path

    @property
    def unit(self) -> PurePosixPath:
        """The file to compile, relative to the model's directory."""
        return WRAPPERS / f"{self.path}.c" if self.is_wrapped else self.place


@dataclass(frozen=True, slots=True)
class TargetBuild:
    """All files linked for one target; `target` is None for a model made of sources only."""

    target: Target | None
    objects: tuple[LinkObject, ...]
    sources: tuple[SourceFile, ...]
    renames: tuple[str, ...]
    """Symbols renamed to <model>__<symbol>: all that these files define."""
    libc: str
    scope: tuple[str, ...] = ()
    """Names of C++ renamed in the same way: their symbols contain the name."""
    libm: tuple[str, ...] = ()
    """Functions of libm that the files call."""
    soft_float: tuple[str, ...] = ()
    """Functions of software floating point in the compiler's library that the objects call."""
    unverified: tuple[str, ...] = ()
    """Objects with operators whose debug information does not contain the options that change the ABI."""
    uncertain: tuple[str, ...] = ()
    """The operators whose calling convention neither debug information nor instructions show, with their objects."""
    unverified_signatures: tuple[tuple[str, str], ...] = ()
    """The operators whose arguments neither debug information nor a header describes, with the reason."""


@dataclass(frozen=True, slots=True)
class CppNeeds:
    """What operators in C++ need of the firmware."""

    language: bool
    """CONFIG_CPP."""
    library: bool
    """CONFIG_REQUIRES_FULL_LIBCPP."""


@dataclass(frozen=True, slots=True)
class StackNeed:
    """The stack that run needs on one target, computed by `model/checks/stack_need.py`."""

    target: str
    bytes: int
    """An upper bound if `known`, else a lower bound."""
    operator: str | None
    """The operator with the largest need."""
    missing: tuple[str, ...]
    """Descriptions of the parts missing from the figure; empty if `known`."""
    sources: tuple[str, ...]
    """The sources of the frame sizes."""

    @property
    def known(self) -> bool:
        """Whether `bytes` is an upper bound."""
        return not self.missing


@dataclass(frozen=True, slots=True)
class External:
    """An external symbol, provided by a driver, a library or a Zephyr module."""

    symbol: str
    provider: str
    kconfig: tuple[str, ...]
    """The options that enable the provider."""
    location: Location


def permitted_effects(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the effects that an entry of `operators` or `objects` permits, in the order of EFFECTS."""
    named = {*entry.get("uses", ()), *["state"] * entry.get("stateful", False)}
    return tuple(effect for effect in EFFECTS if effect in named)


_LLVM_IR = "LLVM IR"
_KINDS = {
    ".a": "archive",
    ".c": "C source",
    HEADER_SOURCE: "C header",
    **dict.fromkeys(CPP_SUFFIXES, "C++ source"),
    **dict.fromkeys((".ll", ".bc"), _LLVM_IR),
    ".o": "ELF object",
}


@dataclass
class Examined:
    """One object for one target."""

    name: str
    """The path as in the manifest; for a member of an archive, `libx.a(member.o)`."""
    kind: str
    target: str
    faults: Diagnostics = field(repr=False)
    item: Member | CSource | None = None
    """None if the file could not be read."""
    stack_files: Mapping[str, StackEntry] = field(default_factory=dict, repr=False)
    """Stack use from the `.su` files of its entry, by function."""
    reasons: list[str] = field(default_factory=list)
    """The reasons why it cannot be linked; empty if exportable."""
    linked: bool = True
    """False for members of an archive that no operator needs."""

    @property
    def member(self) -> Member | None:
        """The object; None for a C source and for a file that could not be read."""
        return self.item if isinstance(self.item, Member) else None

    def refuse(self, reason: str) -> None:
        """Record why the object cannot be linked; the error is reported elsewhere."""
        if reason not in self.reasons:
            self.reasons.append(reason)

    def error(self, message: str, location: Location, *, expected: str | None = None, hint: str | None = None) -> None:
        """Report and record a fault of the object."""
        self.faults.error(f"{self.name}: {message}", location, expected=expected, hint=hint)
        self.refuse(message)


def kind_of(name: str) -> str:
    """Return the kind of an unread file, by its name."""
    return _KINDS.get(PurePosixPath(name).suffix, "unknown")


def is_ir(path: PurePath) -> bool:
    """Return whether a file of `objects` is LLVM IR.

    The suffix decides: bitcode in an .o file is the output of -flto, which requires a linker plugin.
    """
    return kind_of(path.name) == _LLVM_IR
