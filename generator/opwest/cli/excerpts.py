# SPDX-License-Identifier: Apache-2.0
"""The line of a file with a caret below a location, as GCC and Clang print it."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from pathlib import Path

from opwest.cli.terminal import Style, Terminal, cells
from opwest.diagnostics import Location

_LARGEST = 64 << 20
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
            text = (content or b"").removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")
            self._lines[file] = _BREAK.split(text) if text else []
        return self._lines[file]


def _read(path: Path) -> bytes | None:
    """Return the content of a regular file, None if it cannot be read."""
    try:
        return path.read_bytes() if path.is_file() and path.stat().st_size <= _LARGEST else None
    except OSError:
        return None


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
