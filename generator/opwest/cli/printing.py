# SPDX-License-Identifier: Apache-2.0
"""Print diagnostics: lines that tools parse, and at a terminal also the lines of the files."""

from __future__ import annotations

import codecs
import os
import re
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, TextIO

from opwest.base.diagnostics import Diagnostic, Location, readable
from opwest.base.frozen_dataclass import dataclass

Colour = Literal["auto", "always", "never"]
Style = Literal["place", "error", "warning", "note", "label", "gutter"]

_CODES: dict[Style, str] = {
    "place": "1",
    "error": "1;31",
    "warning": "1;35",
    "note": "1;36",
    "label": "1",
    "gutter": "34",
}
"""SGR parameters (ECMA-48, 8.3.117), in the colours of GCC."""
_NARROWEST = 40


@dataclass(frozen=True)
class Terminal:
    """How to print on a stream."""

    detailed: bool = False
    """Whether lines of files are shown: on a terminal, and where colours are requested."""
    colour: bool = False
    width: int | None = None
    """Columns for text; None: lines are not wrapped."""

    def styled(self, text: str, style: Style) -> str:
        """Return a text in a colour."""
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if self.colour and text else text


def terminal_of(stream: TextIO | None, colour: Colour, environment: Mapping[str, str] = os.environ) -> Terminal:
    """Return the properties of a stream.

    `colour` is --color, as in Cargo; with `auto`, NO_COLOR (no-color.org) and CLICOLOR_FORCE (bixense.com/clicolors)
    select, and TERM=dumb has no colours.
    """
    live = stream is not None and stream.isatty()
    if colour == "auto":
        forced = environment.get("CLICOLOR_FORCE", "0") not in ("", "0")
        coloured = not environment.get("NO_COLOR") and (forced or (live and environment.get("TERM") != "dumb"))
    else:
        coloured = colour == "always"
    return Terminal(live or coloured, coloured, _width(stream, environment) if live and stream is not None else None)


def _width(stream: TextIO, environment: Mapping[str, str]) -> int:
    columns = environment.get("COLUMNS", "")
    try:
        width = int(columns) if columns.isdecimal() else os.get_terminal_size(stream.fileno()).columns
    except OSError:
        width = 0
    return max(width, _NARROWEST) if width else 80


def cells(text: str) -> int:
    """Return the number of columns of a text: 2 for wide characters, 0 for combining ones (UAX #11)."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def wrapped(text: str, width: int, first: int, indent: int) -> str:
    """Return a text with line breaks between words.

    `first` columns of the first line are occupied; the next lines begin with `indent` spaces. Words are not broken.
    """
    lines, column = [""], first
    for word in text.split(" "):
        needed = cells(word) + (1 if lines[-1] else 0)
        if lines[-1] and column + needed > width:
            lines.append(" " * indent)
            column, needed = indent, needed - 1
            lines[-1] += word
        else:
            lines[-1] += f" {word}" if needed > cells(word) else word
        column += needed
    return "\n".join(lines)


_MAX_BYTES = 64 << 20
"""Bytes of a file that is read for an excerpt; as the largest manifest."""
_BREAK = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")
"""The line breaks of YAML 1.1 (section 4.2), which PyYAML counts."""
_TOKEN = re.compile(r"""\"(?:\\.|[^"\\])*\"|'(?:''|[^'])*'|[^\s,:\[\]{}"'#]+""")
"""What is underlined: a quoted scalar or a word."""
_TAB = 8
_REACH = 1000
"""Characters of a line that are considered on each side of the caret."""
_ASSUMED_WIDTH = 120
"""Columns of an excerpt in a pipe."""
_CUT = "…"


class Excerpts:
    """Lines of files, each file read once. `known` are the contents of files that were read before, by name."""

    def __init__(self, known: Mapping[str, bytes]) -> None:
        self._known = known
        self._lines: dict[str, list[str]] = {}

    def excerpt(self, location: Location | None, style: Style, terminal: Terminal) -> list[str]:
        """Return the line and the line with the caret; nothing if the location has no line."""
        if location is None or location.line < 1 or location.column < 1:
            return []
        lines = self._of(location.file)
        if location.line > len(lines) or location.column > len(lines[location.line - 1]) + 1:
            return []  # the file has changed
        number = f"{location.line:>5}"
        room = (terminal.width or _ASSUMED_WIDTH) - len(number) - len(" | ")
        before, marked, after = _fitted(*_parts(lines[location.line - 1], location.column - 1), room)
        caret = "^" + "~" * (cells(marked) - 1)
        bar = terminal.styled("|", "gutter")
        return [
            f"{terminal.styled(number, 'gutter')} {bar} {before}{terminal.styled(marked, style)}{after}".rstrip(),
            f"{' ' * len(number)} {bar} {' ' * cells(before)}{terminal.styled(caret, style)}",
        ]

    def _of(self, file: str) -> list[str]:
        if file not in self._lines:
            content = self._known.get(file)
            content = _read(Path(file)) if content is None else content
            text = content.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")
            self._lines[file] = _BREAK.split(text) if text else []
        return self._lines[file]


def _read(path: Path) -> bytes:
    """Return the content of a regular file, nothing if it cannot be read."""
    try:
        return path.read_bytes() if path.is_file() and path.stat().st_size <= _MAX_BYTES else b""
    except OSError:
        return b""


def _parts(line: str, start: int) -> tuple[str, str, str]:
    """Return the parts of a line before, in and after the token at `start`, as they are shown."""
    first = max(0, start - _REACH)
    token = _TOKEN.match(line, start, start + _REACH)
    end = token.end() if token else start
    before = _visible(line[first:start], 0)
    marked = _visible(line[start:end], cells(before))
    after = _visible(line[end : end + _REACH], cells(before + marked))
    return before, marked, after


def _visible(text: str, column: int) -> str:
    """Return a text that begins in a column, with expanded tabs and without control characters."""
    shown = ""
    for character in text:
        if character == "\t":
            shown += " " * (_TAB - (column + cells(shown)) % _TAB)
        elif "\udc80" <= character <= "\udcff":
            shown += f"<{ord(character) - 0xDC00:02x}>"  # a byte that is no UTF-8
        else:
            shown += character if character.isprintable() else f"<U+{ord(character):04X}>"
    return shown


def _fitted(before: str, marked: str, after: str, room: int) -> tuple[str, str, str]:
    """Return the parts without what exceeds `room` columns; an ellipsis replaces it."""
    if cells(before + marked + after) <= room:
        return before, marked, after
    marked = _cut(marked, room // 2)
    # A third of the other columns shows what is before the caret, more of them if less is after it.
    left = room - max(cells(marked), 1)  # the caret can be behind the line
    most = max(left // 3, left - cells(after))
    if cells(before) > most:
        before = _CUT + _cut(before[::-1], most, mark="")[::-1]
    return before, marked, _cut(after, left - cells(before))


def _cut(text: str, most: int, mark: str = _CUT) -> str:
    """Return the beginning of a text with at most `most` columns."""
    if cells(text) <= most:
        return text
    while text and cells(text) > most - 1:
        text = text[: min(len(text) - 1, most)]
    return text + mark


_NAME = re.compile(r"(?<!\w)'[^'\n]*'(?!\w)")
_INDENT = 4
_LISTED = 8
"""Lines in the list of other errors with the same remarks."""


def shown(diagnostics: Sequence[Diagnostic], sources: Mapping[str, bytes], terminal: Terminal) -> list[str]:
    """Return the diagnostics as text, in the given order. `sources` are contents of files by name.

    `expected` and `hint` that several diagnostics share are printed once, with the locations of the others.
    """
    excerpts = Excerpts(sources)
    groups: dict[tuple[tuple[str, str], ...], list[Diagnostic]] = {}
    for diagnostic in diagnostics:
        groups.setdefault(tuple(diagnostic.remarks()), []).append(diagnostic)
    texts = []
    for diagnostic in diagnostics:
        lines = [_message(diagnostic, terminal)]
        if terminal.detailed:
            lines += excerpts.excerpt(diagnostic.location, diagnostic.severity, terminal)
        group = groups[tuple(diagnostic.remarks())]
        if diagnostic is group[0]:
            lines += _remarks(diagnostic, group[1:], terminal)
        texts.append("\n".join(lines))
    return texts


def _message(diagnostic: Diagnostic, terminal: Terminal) -> str:
    severity = f"{diagnostic.severity}:"
    text = _wrapped(readable(diagnostic.message), terminal, cells(f"{diagnostic.where}: {severity} "))
    if terminal.colour:
        text = _NAME.sub(lambda name: terminal.styled(name[0], "label"), text)
    return f"{terminal.styled(f'{diagnostic.where}:', 'place')} {terminal.styled(severity, diagnostic.severity)} {text}"


def _remarks(diagnostic: Diagnostic, others: Sequence[Diagnostic], terminal: Terminal) -> list[str]:
    lines = []
    for label, text in diagnostic.remarks():
        text = _wrapped(text, terminal, len(f"  {label}: "))
        lines.append(f"  {terminal.styled(f'{label}:', 'label')} {text}")
    if lines and others:
        lines.append(f"  {_wrapped(f'(also for {_listed(diagnostic, others)})', terminal, 2)}")
    return lines


def _wrapped(text: str, terminal: Terminal, first: int) -> str:
    """Return a text with its first line wrapped; the others quote another program."""
    if terminal.width is None:
        return text
    line, *others = text.split("\n")
    return "\n".join([wrapped(line, terminal.width, first, _INDENT), *others])


def _listed(first: Diagnostic, others: Sequence[Diagnostic]) -> str:
    """Return the locations of other diagnostics: as lines of the first one's file, or columns of its line."""
    own = first.location
    file = own.file if own else None
    if own and all(other.location and other.location.line and other.location.file == file for other in others):
        locations = [other.location for other in others if other.location]
        in_line = all(place.line == own.line for place in locations)
        places = list(dict.fromkeys(str(place.column if in_line else place.line) for place in locations))
        label = ("column" if in_line else "line") + (" " if len(places) == 1 else "s ")
    else:
        places, label = list(dict.fromkeys(other.where for other in others)), ""
    more = f" and {len(places) - _LISTED} more" if len(places) > _LISTED else ""
    return f"{label}{', '.join(places[:_LISTED])}{more}"
