# SPDX-License-Identifier: Apache-2.0
"""The properties of an output stream: a terminal or not, colours, width."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Mapping
from typing import Literal, TextIO

from opwest.records import dataclass

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
