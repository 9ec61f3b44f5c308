# SPDX-License-Identifier: Apache-2.0
"""The user's part of an application: the key `application` of a manifest."""

from __future__ import annotations

from dataclasses import field

from opwest.diagnostics import Location
from opwest.objects.languages import SOURCE_SUFFIXES, is_cpp
from opwest.records import dataclass


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
