# SPDX-License-Identifier: Apache-2.0
"""Print diagnostics: lines that tools parse, and at a terminal also the lines of the files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from opwest.cli.excerpts import Excerpts
from opwest.cli.terminal import Terminal, cells, wrapped
from opwest.diagnostics import Diagnostic, readable

_NAME = re.compile(r"(?<!\w)'[^'\n]*'(?!\w)")
_INDENT = 4
_LISTED = 8
"""Lines in the list of other errors with the same remarks."""

Group = tuple[tuple[str, str], ...]


def shown(found: Sequence[Diagnostic], sources: Mapping[str, bytes], terminal: Terminal) -> list[str]:
    """Return the diagnostics as text, in the given order. `sources` are contents of files by name.

    `expected` and `hint` that several diagnostics share are printed once, with the locations of the others.
    """
    excerpts = Excerpts(sources)
    groups: dict[Group, list[Diagnostic]] = {}
    for diagnostic in found:
        groups.setdefault(tuple(diagnostic.remarks()), []).append(diagnostic)
    texts = []
    for diagnostic in found:
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
        found = [other.location for other in others if other.location]
        in_line = all(place.line == own.line for place in found)
        places = list(dict.fromkeys(str(place.column if in_line else place.line) for place in found))
        label = ("column" if in_line else "line") + (" " if len(places) == 1 else "s ")
    else:
        places, label = list(dict.fromkeys(other.where for other in others)), ""
    more = f" and {len(places) - _LISTED} more" if len(places) > _LISTED else ""
    return f"{label}{', '.join(places[:_LISTED])}{more}"
