# SPDX-License-Identifier: Apache-2.0
"""The record of each examined object, linkable or not; `check` prints the records as a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import PurePosixPath

from opwest.diagnostics import Diagnostics, Location
from opwest.objects.facts import CSource, Member
from opwest.objects.languages import CPP_SUFFIXES, HEADER_SOURCE
from opwest.objects.stack import StackEntry
from opwest.records import dataclass

_KINDS = {
    ".a": "archive",
    ".c": "C source",
    HEADER_SOURCE: "C header",
    **dict.fromkeys(CPP_SUFFIXES, "C++ source"),
    ".ll": "LLVM IR",
    ".bc": "LLVM IR",
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
