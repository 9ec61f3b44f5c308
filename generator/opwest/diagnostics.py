# SPDX-License-Identifier: Apache-2.0
"""What opwest tells a user: faults with a place, what was seen, what was expected, what to do.

Every layer adds to one `Diagnostics`; nothing stops at the first fault. The text form is the one
compilers use, so that editors and build tools find the line.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, order=True)
class Location:
    """A place in a file: `line` and `column` count from 1; 0 means "the file as a whole"."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        if self.line == 0:
            return self.file
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True)
class Diagnostic:
    """One fault or remark."""

    severity: Severity
    message: str
    location: Location | None = None
    expected: str | None = None
    hint: str | None = None

    def __str__(self) -> str:
        where = f"{self.location}: " if self.location else "opwest: "
        lines = [f"{where}{self.severity}: {_readable(self.message)}"]
        if self.expected:
            lines.append(f"  expected: {_readable(self.expected)}")
        if self.hint:
            lines.append(f"  hint: {_readable(self.hint)}")
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """Return the fields as plain JSON values."""
        return asdict(self)


def beginning(text: str, most: int = 300) -> str:
    """Return a text, or its beginning: what others say of a damaged file can hold all of it."""
    return text if len(text) <= most else f"{text[:most]}…"


def _readable(text: str) -> str:
    """Return a text whose words of more than 1,000 characters, which only damaged input has, lack their middle."""
    return re.sub(r"\S{1001,}", lambda word: f"{word[0][:400]}…{word[0][-200:]}", text)


class OpwestError(Exception):
    """The input is at fault: carries every diagnostic that was collected (exit code 1)."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(str(d) for d in self.diagnostics))


class Diagnostics:
    """Collects diagnostics in the order they are found; the same one is kept once."""

    def __init__(self) -> None:
        self._found: dict[Diagnostic, None] = {}

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def add(self, diagnostic: Diagnostic) -> None:
        """Keep `diagnostic`."""
        self._found[diagnostic] = None

    def error(
        self,
        message: str,
        location: Location | None = None,
        *,
        expected: str | None = None,
        hint: str | None = None,
    ) -> None:
        """Report a fault in the input."""
        self.add(Diagnostic("error", message, location, expected, hint))

    def warning(
        self,
        message: str,
        location: Location | None = None,
        *,
        expected: str | None = None,
        hint: str | None = None,
    ) -> None:
        """Report something that works but is likely not meant."""
        self.add(Diagnostic("warning", message, location, expected, hint))

    def note(self, message: str, location: Location | None = None, *, hint: str | None = None) -> None:
        """Report what a user should know."""
        self.add(Diagnostic("note", message, location, None, hint))

    @property
    def has_errors(self) -> bool:
        """Whether any fault was reported."""
        return any(d.severity == "error" for d in self._found)

    def raise_if_errors(self) -> None:
        """Raise OpwestError with everything collected, faults in file order, when there is a fault."""
        if self.has_errors:
            raise OpwestError(self.in_order())

    def in_order(self) -> list[Diagnostic]:
        """Return the diagnostics sorted by place (those without a place last)."""
        return sorted(self._found, key=lambda d: (d.location is None, d.location or Location("")))


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the hint "did you mean …?" for an unknown name, or what there is, or None."""
    names = sorted(known)
    if not names:
        return None
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
    return f"there is: {shown}"
