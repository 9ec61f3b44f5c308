# SPDX-License-Identifier: Apache-2.0
"""Templates as they were read: opwest's own, and those of a folder of the user's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from opwest.diagnostics import Location

SUFFIX: Final = ".jinja"
EXTRA: Final = "extra/"


@dataclass(frozen=True)
class UserTemplates:
    """A folder of templates, as it was read."""

    folder: str
    """As the user knows it."""
    templates: Mapping[str, str]
    """The text of every template, by its path in the folder; names that begin with _ are for including."""
    copies: Mapping[str, bytes] = field(default_factory=dict)
    """Files of extra/ that are no templates."""
    hashes: Mapping[str, str] = field(default_factory=dict)
    """The SHA-256 of every file that was read, by its path in the folder."""

    @property
    def extras(self) -> list[str]:
        """The paths in a project of the files that extra/ adds."""
        names = [*self.copies, *(name for name in self.templates if is_extra(name))]
        return sorted(name.removeprefix(EXTRA).removesuffix(SUFFIX) for name in names)

    def place(self, name: str, line: int = 0) -> Location:
        """Return a line of a template as a place."""
        return Location(str(Path(self.folder) / name), line, 1 if line else 0)


@dataclass(frozen=True)
class Templates:
    """All templates that a project is rendered with."""

    own: Mapping[str, str]
    """The text of every file of project_template, by its path."""
    user: UserTemplates | None = None

    @property
    def files(self) -> list[Path]:
        """The paths of the files that were read from the user's folder."""
        return [] if self.user is None else [Path(self.user.folder) / name for name in self.user.hashes]

    @property
    def hashes(self) -> Mapping[str, str] | None:
        """The SHA-256 of every file of the user's folder; None where there is no such folder."""
        return None if self.user is None else self.user.hashes


def known_templates(own: Iterable[str]) -> list[str]:
    """Return the templates of opwest that make files of a project, by path."""
    return sorted(path for path in own if not path.startswith("host/"))


def is_extra(name: str) -> bool:
    """Whether a file of a template folder makes one beside those of project_template."""
    return name.startswith(EXTRA)
