# SPDX-License-Identifier: Apache-2.0
"""Templates as they were read: opwest's own, and those of a folder of the user's."""

from __future__ import annotations

from collections.abc import Mapping
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


def is_extra(name: str) -> bool:
    """Whether a file of a template folder makes one beside those of project_template."""
    return name.startswith(EXTRA)
