# SPDX-License-Identifier: Apache-2.0
"""Templates after reading: opwest's own, and those of a directory of the user."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from opwest.base.diagnostics import Location
from opwest.base.frozen_dataclass import dataclass

if TYPE_CHECKING:
    from jinja2 import BytecodeCache

SUFFIX: Final = ".jinja"
EXTRA: Final = "extra/"


@dataclass(frozen=True)
class UserTemplates:
    """The content of a directory of templates."""

    folder: str
    """The path as given by the user."""
    templates: Mapping[str, str]
    """The text of every template, by its path in the directory; names that begin with _ are for inclusion only."""
    copies: Mapping[str, bytes] = field(default_factory=dict)
    """Files of extra/ that are not templates."""
    hashes: Mapping[str, str] = field(default_factory=dict)
    """The SHA-256 of every file that was read, by its path in the directory."""

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
    """The cache of Jinja's compiled code of opwest's templates."""

    @property
    def files(self) -> list[Path]:
        """The paths of the files that were read from the user's directory."""
        return [] if self.user is None else [Path(self.user.folder) / name for name in self.user.hashes]

    @property
    def hashes(self) -> Mapping[str, str] | None:
        """The SHA-256 of every file of the user's directory; None without one."""
        return None if self.user is None else self.user.hashes


def known_templates(own: Iterable[str]) -> list[str]:
    """Return the templates of opwest for files of a project, by path."""
    return sorted(path for path in own if not is_of_commands(path))


def is_of_commands(name: str) -> bool:
    """Whether a file of project_template is no file of a project, but of `opwest run` or `opwest bundle`."""
    return name.startswith(("bundle/", "host/"))


def is_extra(name: str) -> bool:
    """Whether a file of a template directory adds a file to those of project_template."""
    return name.startswith(EXTRA)
