# SPDX-License-Identifier: Apache-2.0
"""Templates as read: those of opwest, and those of a user's directory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from opwest.diagnostics import Location
from opwest.records import dataclass

if TYPE_CHECKING:
    from jinja2 import BytecodeCache

SUFFIX: Final = ".jinja"
EXTRA: Final = "extra/"


@dataclass(frozen=True)
class UserTemplates:
    """The content of a user's template directory."""

    folder: str
    """The path as given by the user."""
    templates: Mapping[str, str]
    """The text of every template, by its path in the directory; names that begin with _ are for inclusion."""
    copies: Mapping[str, bytes] = field(default_factory=dict)
    """Files of extra/ that are not templates."""
    hashes: Mapping[str, str] = field(default_factory=dict)
    """The SHA-256 of every file read, by its path in the directory."""

    @property
    def extras(self) -> list[str]:
        """The paths in a project of the files from extra/."""
        names = [*self.copies, *(name for name in self.templates if is_extra(name))]
        return sorted(name.removeprefix(EXTRA).removesuffix(SUFFIX) for name in names)

    def place(self, name: str, line: int = 0) -> Location:
        """Return the location of a line of a template."""
        return Location(str(Path(self.folder) / name), line, 1 if line else 0)


@dataclass(frozen=True)
class Templates:
    """All templates that a project is rendered with."""

    own: Mapping[str, str]
    """The text of every file of project_template, by its path."""
    user: UserTemplates | None = None
    compiled: BytecodeCache | None = None
    """Jinja's cache for opwest's templates."""

    @property
    def files(self) -> list[Path]:
        """The paths of the files read from the user's directory."""
        return [] if self.user is None else [Path(self.user.folder) / name for name in self.user.hashes]

    @property
    def hashes(self) -> Mapping[str, str] | None:
        """The SHA-256 of every file of the user's directory; None without one."""
        return None if self.user is None else self.user.hashes


def known_templates(own: Iterable[str]) -> list[str]:
    """Return the paths of opwest's templates for files of a project."""
    return sorted(path for path in own if not path.startswith("host/"))


def is_extra(name: str) -> bool:
    """Whether a file of a template directory adds a file that project_template does not have."""
    return name.startswith(EXTRA)
