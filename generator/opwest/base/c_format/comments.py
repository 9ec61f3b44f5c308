# SPDX-License-Identifier: Apache-2.0
"""Comments that are moved to another column, and wrapped at 100 columns."""

from __future__ import annotations

import re
from typing import Final

_WIDTH: Final = 100
_TAB: Final = 8
_PROSE: Final = re.compile(r"(\s*\* )(\w.*)")
"""A line of text in a comment: no Doxygen command, and not the comment's end."""
_LINE: Final = re.compile(r"(\s*\* ?)(\s*)(.*)")


def indentation(columns: int) -> str:
    """Return white space of tabs and spaces."""
    return "\t" * (columns // _TAB) + " " * (columns % _TAB)


def columns(text: str) -> int:
    """Return the columns of a line."""
    return len(text.expandtabs(_TAB)) if "\t" in text else len(text)


def comment_lines(text: str, column: int, indent: int) -> list[str]:
    """Return the lines of a comment that was at `column` and begins at `indent`: at most 100 columns, if possible."""
    lines = _moved(text, column, indent)
    if text.startswith("//") or all(columns(line) <= _WIDTH for line in lines):
        return lines
    prefix = indentation(indent)
    mark = "/**" if text.startswith("/**") else "/*"
    first, *rest = lines
    if not rest:
        words = first.strip().removeprefix(mark).removesuffix("*/")
        return [prefix + mark, *_wrapped(words.strip(), f"{prefix} * "), f"{prefix} */"]
    if columns(first) > _WIDTH:
        words = first.strip().removeprefix(mark)
        lines = [prefix + mark, f"{prefix} * {words.strip()}", *rest]
    if not lines[-1].strip().startswith("*/") and columns(lines[-1]) > _WIDTH:
        lines[-1:] = [lines[-1].rstrip().removesuffix("*/").rstrip(), f"{prefix} */"]
    return _rewrapped(lines)


def inner_comment(text: str, indent: int) -> list[str]:
    """Return the lines of a comment between values: its lines do not begin with a star."""
    prefix = indentation(indent)
    if not text.startswith("/* ") or "\n" in text or indent + len(text) <= _WIDTH:
        return [prefix + text]
    lines = _wrapped(text[3:].removesuffix("*/").rstrip(), indentation(indent + 3))
    lines[0] = f"{prefix}/* {lines[0].lstrip()}"
    if columns(lines[-1]) + 3 > _WIDTH:
        return [*lines, f"{indentation(indent + 1)}*/"]
    return [*lines[:-1], f"{lines[-1]} */"]


def _rewrapped(lines: list[str]) -> list[str]:
    """Wrap the long lines of a comment; the rest of a line of prose is continued by the next one."""
    out: list[str] = []
    carried = carried_prefix = ""
    for line in lines:
        prose = _PROSE.fullmatch(line)
        if carried and prose:
            line = f"{prose[1]}{carried} {prose[2]}"
        elif carried:
            out.append(carried_prefix + carried)
        carried = ""
        if columns(line) <= _WIDTH:
            out.append(line)
            continue
        match = _LINE.match(line)
        if match is None:
            out.append(line)
            continue
        prefix, inner, words = match.groups()
        *full, rest = _wrapped(words, prefix + inner)
        out += full
        if prose:
            carried_prefix, carried = prose[1], rest.removeprefix(prose[1])
        else:
            out.append(rest)
    if carried:
        out.append(carried_prefix + carried)
    return out


def _wrapped(words: str, prefix: str) -> list[str]:
    """Return words in lines after a prefix; a word that does not fit is alone on its line."""
    room = _WIDTH - columns(prefix)
    lines: list[str] = []
    line = ""
    for word in words.split(" "):
        if line and len(line) + 1 + len(word) > room:
            lines.append(prefix + line.rstrip())
            line = word
        else:
            line = f"{line} {word}" if line else word
    return [*lines, prefix + line]


def _moved(text: str, column: int, indent: int) -> list[str]:
    """Return the lines of a comment; those after the first are moved with it."""
    prefix = indentation(indent)
    first, *rest = text.split("\n")
    moved = [prefix + first.rstrip()]
    for line in rest:
        body = line.strip()
        if body.startswith("*"):
            moved.append(f"{prefix} {body}")
        elif body:
            expanded = line.expandtabs(_TAB)
            start = len(expanded) - len(expanded.lstrip())
            moved.append(indentation(max(start + indent - column, 0)) + body)
        else:
            moved.append("")
    return moved
