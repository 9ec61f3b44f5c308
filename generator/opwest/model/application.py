# SPDX-License-Identifier: Apache-2.0
"""The user's own part of an application, as a manifest names it."""

from __future__ import annotations

from dataclasses import dataclass, field

from opwest.diagnostics import Location


@dataclass(frozen=True, slots=True)
class ApplicationFile:
    """A file of the user's own for src/, copied once."""

    name: str
    content: bytes = field(repr=False)
    location: Location


@dataclass(frozen=True, slots=True)
class Application:
    """The user's own part of the application."""

    files: tuple[ApplicationFile, ...] = ()
    overlays: tuple[tuple[str, ApplicationFile], ...] = ()
    """A devicetree overlay per board."""
    kconfig: tuple[tuple[str, str | int], ...] = ()
    """Options for prj.conf."""
    console: tuple[str, ...] = ()

    @property
    def has_main(self) -> bool:
        """Whether one of the files is main.c."""
        return any(f.name == "main.c" for f in self.files)
