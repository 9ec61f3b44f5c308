# SPDX-License-Identifier: Apache-2.0
"""What is found of every object, fit or not: noted while it is read and linked, printed as a table by `check`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from opwest.diagnostics import Diagnostics, Location
from opwest.objects.facts import Member
from opwest.objects.stack import StackEntry

ANY_TARGET = "any"
_KINDS = {".a": "archive", ".c": "C source", ".ll": "LLVM IR", ".bc": "LLVM IR", ".o": "ELF object"}


@dataclass
class Examined:
    """One object for one target."""

    name: str
    """As the manifest writes it; of a member of an archive `libx.a(member.o)`."""
    kind: str
    target: str
    faults: Diagnostics = field(repr=False)
    member: Member | None = None
    stack_files: Mapping[str, StackEntry] = field(default_factory=dict, repr=False)
    """What the `.su` files of its entry say, by function."""
    reasons: list[str] = field(default_factory=list)
    """Why it can't be linked as it is; empty means exportable."""
    linked: bool = True
    """False for members of an archive that no operator needs."""

    def refuse(self, reason: str) -> None:
        """Note why the object can't be linked, where that is reported in other words."""
        if reason not in self.reasons:
            self.reasons.append(reason)

    def error(self, message: str, location: Location, *, expected: str | None = None, hint: str | None = None) -> None:
        """Report a fault of the object, and note it."""
        self.faults.error(f"{self.name}: {message}", location, expected=expected, hint=hint)
        self.refuse(message)


def kind_of(name: str) -> str:
    """Return what a file that was not read seems to be, by its name."""
    return _KINDS.get(PurePosixPath(name).suffix, "unknown")
