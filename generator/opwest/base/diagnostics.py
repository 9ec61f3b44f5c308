# SPDX-License-Identifier: Apache-2.0
"""Diagnostics for the user: errors, warnings and notes with location, expected form and hint.

All layers report to one `Diagnostics` and continue after an error where possible. The text form,
`file:line:column: error: message`, is that of compilers, which editors and build tools parse. `cli/printing.py` prints
it, at a terminal with the line of the file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from opwest.base.frozen_dataclass import dataclass
from opwest.base.packages import missing_package

if TYPE_CHECKING:
    from pathlib import Path

Severity = Literal["error", "warning", "note"]


class Location(NamedTuple):
    """A position in a file. `line` and `column` count from 1; line 0 denotes the whole file.

    A tuple: a large manifest has some for every operator.
    """

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        if self.line == 0:
            return self.file
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True)
class Diagnostic:
    """One error, warning or note."""

    severity: Severity
    message: str
    location: Location | None = None
    expected: str | None = None
    hint: str | None = None

    def __str__(self) -> str:
        lines = [f"{self.where}: {self.severity}: {readable(self.message)}"]
        return "\n".join([*lines, *(f"  {label}: {text}" for label, text in self.remarks())])

    @property
    def where(self) -> str:
        """The location as text; without one, `opwest`."""
        return printable(str(self.location)) if self.location else "opwest"

    def remarks(self) -> list[tuple[str, str]]:
        """Return the lines below the message, with their labels: `expected`, `hint`."""
        remarks = (("expected", self.expected), ("hint", self.hint))
        return [(label, readable(text)) for label, text in remarks if text]

    def as_json(self) -> dict[str, Any]:
        """Return the fields as plain JSON values."""
        return asdict(self) | {"location": self.location._asdict() if self.location else None}


def beginning(text: str) -> str:
    """Return a text, truncated to 300 characters: messages of libraries can quote a whole file."""
    return text if len(text) <= 300 else f"{text[:300]}…"


def printable(text: str, keep: str = "") -> str:
    """Return text with escaped control characters, which a hostile file could send to the terminal.

    `keep` are characters that are not escaped.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else _escape(ord(c)) for c in text)


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def readable(text: str) -> str:
    """Strip control characters; shorten words over 1,000 characters."""
    shortened = re.sub(r"\S{1001,}", lambda word: f"{word[0][:400]}…{word[0][-200:]}", text)
    return printable(shortened, keep="\n\t")


class FileError(Exception):
    """An unusable file: message, expected form, hint."""

    def __init__(self, message: str, expected: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.expected = expected
        self.hint = hint


class OpwestError(Exception):
    """Invalid input, with all collected diagnostics (exit code 1).

    `result` is what a function of the API found in spite of the errors, such as the projects that it updated.
    """

    __module__ = "opwest"  # its public name

    def __init__(self, diagnostics: Iterable[Diagnostic], result: Any = None) -> None:
        self.diagnostics = tuple(diagnostics)
        self.result = result
        super().__init__("\n".join(str(d) for d in self.diagnostics))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.diagnostics, self.result)


def fail(
    message: str, where: Path | Location | None = None, *, expected: str | None = None, hint: str | None = None
) -> OpwestError:
    """Return an OpwestError with one error."""
    location = where if isinstance(where, Location) or where is None else Location(str(where))
    return OpwestError([Diagnostic("error", message, location, expected, hint)])


def fault_of_system(error: OSError) -> Diagnostic:
    """Return the error for a file that was not checked before."""
    where = None if error.filename is None else Location(os.fsdecode(error.filename))
    return Diagnostic("error", f"cannot read or write the file: {error.strerror or error}", where)


def internal_error(error: BaseException, location: Location | None = None, *, hint: str) -> Diagnostic:
    """Return the error for an exception that opwest did not expect, with the innermost line of opwest.

    A package that is not installed is no defect of opwest: the error names it, and the command that installs it.
    """
    package = missing_package(error)
    if package is not None:
        from opwest.base.system import pip_command

        command = pip_command([package])
        return Diagnostic(
            "error", f"missing Python package {package}: this command requires it", location, hint=command
        )
    kind, text = type(error).__name__, first_line(error)
    shown = kind if text == kind else f"{kind}: {text}"
    own = [f"{module}:{line}" for module, line in frames_of(error) if is_own(module)]
    return Diagnostic("error", ", at ".join([f"internal error: {shown}", *own[-1:]]), location, hint=hint)


def frames_of(error: BaseException) -> list[tuple[str, int]]:
    """Return the modules and lines that an exception passed through, the innermost last."""
    import traceback

    steps = traceback.walk_tb(error.__traceback__)
    return [(str(frame.f_globals.get("__name__", "")), line) for frame, line in steps]


def first_line(error: BaseException) -> str:
    """Return the message of an exception in one line; its type if there is none."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:300] if lines else type(error).__name__


def is_own(module: str) -> bool:
    """Whether a module is a part of opwest."""
    return module.split(".")[0] == __name__.split(".")[0]


class Diagnostics:
    """Collects diagnostics in the order of their report, without duplicates."""

    def __init__(self) -> None:
        self._found: dict[Diagnostic, None] = {}
        self.sources: dict[str, bytes] = {}
        """Contents of files by the name in locations, as they were read."""
        self.common: set[Diagnostic] = set()
        """Diagnostics of parts, as they were reported."""

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def add(self, diagnostic: Diagnostic) -> None:
        """Add `diagnostic`, unless it is present."""
        self._found[diagnostic] = None

    def error(
        self,
        message: str,
        location: Location | None = None,
        *,
        expected: str | None = None,
        hint: str | None = None,
    ) -> None:
        """Report an error in the input."""
        self.add(Diagnostic("error", message, location, expected, hint))

    def warning(
        self,
        message: str,
        location: Location | None = None,
        *,
        expected: str | None = None,
        hint: str | None = None,
    ) -> None:
        """Report valid input that is likely a mistake."""
        self.add(Diagnostic("warning", message, location, expected, hint))

    def note(self, message: str, location: Location | None = None, *, hint: str | None = None) -> None:
        """Report information for the user."""
        self.add(Diagnostic("note", message, location, None, hint))

    @property
    def has_errors(self) -> bool:
        """Whether an error was reported."""
        return any(d.severity == "error" for d in self._found)

    def raise_if_errors(self) -> None:
        """Raise OpwestError with all diagnostics, in file order, if there is an error."""
        if self.has_errors:
            raise OpwestError(self.in_order())

    def in_order(self) -> list[Diagnostic]:
        """Return the diagnostics sorted by location, those without a location last."""
        return sorted(self._found, key=lambda d: (d.location is None, d.location or Location("")))


class PartDiagnostics(Diagnostics):
    """The diagnostics of one of several readings of a file, added to those of the whole.

    A diagnostic of an earlier reading is not added again. One outside of the own part of the file names the reading.
    """

    def __init__(self, whole: Diagnostics, name: str, is_own: Callable[[Location | None], bool]) -> None:
        self._found = whole._found
        self.sources = whole.sources
        self._common = whole.common
        self._name = name
        self._is_own = is_own

    def add(self, diagnostic: Diagnostic) -> None:
        """Add `diagnostic`, unless an earlier reading has it."""
        if diagnostic in self._found or diagnostic in self._common:
            return
        self._common.add(diagnostic)
        own = self._is_own(diagnostic.location)
        super().add(diagnostic if own else replace(diagnostic, message=f"{self._name}: {diagnostic.message}"))


def similar(name: str, known: Iterable[str]) -> str | None:
    """Return the hint "did you mean …?" for an unknown name; None if no known name is alike."""
    import difflib  # only commands that report a fault need it

    close = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else None


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the hint "did you mean …?" for an unknown name, else the known names, None if there are none."""
    names = sorted(known)
    if not names:
        return None
    shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
    return similar(name, names) or f"known names: {shown}"
