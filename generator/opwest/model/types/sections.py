# SPDX-License-Identifier: Apache-2.0
"""The emitted test suite of a model: golden vectors and tolerances."""

from __future__ import annotations

from dataclasses import field

from opwest.base.diagnostics import Location
from opwest.base.frozen_dataclass import dataclass
from opwest.objects.facts import SOURCE_SUFFIXES, is_cpp


@dataclass(frozen=True, slots=True)
class Vectors:
    """Golden vectors of one file: for every input and output, the bytes of `count` consecutive cases."""

    file: str
    count: int
    content: tuple[tuple[str, bytes], ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The accepted difference of an output from a vector: `absolute` + `relative` * |expected|."""

    output: str
    absolute: float
    relative: float


@dataclass(frozen=True, slots=True)
class Suite:
    """The comparisons of the emitted test suite; outputs without a tolerance must be equal bit for bit."""

    vectors: tuple[Vectors, ...]
    tolerances: tuple[Tolerance, ...]
    repeatable: bool
    """Whether equal inputs give equal outputs: no operator keeps state."""


@dataclass(frozen=True, slots=True)
class ApplicationFile:
    """A user's file, copied once."""

    name: str
    """The path in the application: `src/main.c`; for an overlay, in the manifest's directory."""
    content: bytes = field(repr=False)
    location: Location


@dataclass(frozen=True, slots=True)
class Application:
    """The user's part of the application."""

    files: tuple[ApplicationFile, ...] = ()
    overlays: tuple[tuple[str, ApplicationFile], ...] = ()
    """A devicetree overlay per board."""
    kconfig: tuple[tuple[str, str | int], ...] = ()
    """Options for prj.conf."""
    kconfig_places: tuple[tuple[str, Location], ...] = ()
    """Their locations in the manifest."""
    console: tuple[str, ...] = ()

    @property
    def has_main(self) -> bool:
        """Whether the sources include main.c, or main in C++."""
        return any(f.name.startswith("src/main.") and f.name.endswith(SOURCE_SUFFIXES) for f in self.files)

    @property
    def has_cpp(self) -> bool:
        """Whether a source is C++."""
        return any(is_cpp(f.name) for f in self.files)


@dataclass(frozen=True, slots=True)
class Tvmgen:
    """microTVM's C interface of a model: `tvmgen_<module>.h`."""

    module: str
    names: tuple[tuple[str, str], ...]
    """Inputs, outputs and devices whose member has another name, with that name."""
    pools: tuple[str, ...]
    """The members of struct tvmgen_<module>_workspace_pools; without one, the memory is static."""
    location: Location

    @property
    def prefix(self) -> str:
        """The prefix of functions and structures; that of macros in upper case."""
        return f"tvmgen_{self.module}"

    def size_macro(self, member: str) -> str:
        """The size of an input or output."""
        return f"{self.prefix}_{member}_SIZE".upper()

    def pool_macro(self, member: str) -> str:
        """The prefix of the macros of a pool of the caller."""
        return f"{self.prefix}_{member}_WORKSPACE_POOL".upper()

    @property
    def workspace_macro(self) -> str:
        """The size of the workspace."""
        return f"{self.prefix}_WORKSPACE_SIZE".upper()

    def member(self, name: str) -> str:
        """Return the member of an input, output or device."""
        return dict(self.names).get(name, name)
