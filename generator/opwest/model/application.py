# SPDX-License-Identifier: Apache-2.0
"""The user's part of an application: the key `application` of a manifest."""

from __future__ import annotations

from dataclasses import dataclass, field

from opwest.diagnostics import Location


@dataclass(frozen=True, slots=True)
class ApplicationFile:
    """A user's file for src/, copied once."""

    name: str
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
        """Whether the sources include main.c."""
        return any(f.name == "main.c" for f in self.files)
