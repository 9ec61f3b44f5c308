# SPDX-License-Identifier: Apache-2.0
"""Breaks of string literals that are wider than a line."""

from __future__ import annotations

import re
from typing import Final

_PENALTY: Final = 1000
_CHARACTER: Final = re.compile(r"\\(?:x[0-9a-fA-F]+|[0-7]{1,3}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)|.", re.DOTALL)


def break_string(text: str, start: int, width: int, tail: int) -> tuple[list[str], int, int]:
    """Return the parts of a string literal at column `start`, the column after it and its `tail`, and the penalty."""
    prefix = text[: text.index('"') + 1]
    content = text[len(prefix) : -1]
    begin = start + len(prefix)
    parts: list[str] = []
    penalty = 0
    while begin + len(content) + 1 + tail > width:
        split = _split(content, begin, width - 1)
        if split <= 0:
            break
        parts.append(f'{prefix}{content[:split]}"')
        content = content[split:]
        penalty += _PENALTY
    parts.append(f'{prefix}{content}"')
    return parts, begin + len(content) + 1 + tail, penalty


def _split(content: str, begin: int, width: int) -> int:
    """Return the length of the first part: up to a space, a slash or the end of a word; -1 without one."""
    if not content or width <= begin:
        return -1
    space = slash = word = at = 0
    while True:
        match = _CHARACTER.match(content, at)
        if match is None:
            break
        advance = match.end() - at
        if at + advance > width - begin or at + advance >= len(content):
            break
        char = content[at]
        if char in " \t\v\f\r":
            space = at
        if char == "/":
            slash = at
        if advance == 1 and not (char.isascii() and char.isalnum()):
            word = at
        at += advance
    for found in (space, slash, word):
        if found:
            return found + 1
    return at or -1
