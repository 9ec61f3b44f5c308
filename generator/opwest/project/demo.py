# SPDX-License-Identifier: Apache-2.0
"""The demo, src/main.c: whether a user replaced it with a program of their own, or only changed its layout.

Formatters change lines, not statements. So the file is compared by its statements, without comments and white space.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Final

PATH: Final = "src/main.c"

_TOKEN = re.compile(
    r"/\*.*?\*/|//[^\n]*"
    r'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    r"|^[ \t]*\#(?:\\\r?\n|[^\n])*"
    r"|\w+|[^\w\s]",
    re.DOTALL | re.MULTILINE,
)
_COMMENT = ("/*", "//")
_ENDS = (";", "{", "}")


def is_rewritten(base: str, yours: str) -> bool:
    """Whether `yours` has less than half of the statements of the generated demo, `base`."""
    return _kept(_statements(base), _statements(yours)) < 0.5


def has_other_layout(base: str, yours: str) -> bool:
    """Whether `yours` has many statements of `base` in other lines: a merge by lines would be one conflict."""
    lines = _kept(filter(None, base.splitlines()), filter(None, yours.splitlines()))
    return lines < 0.75 * _kept(_statements(base), _statements(yours))


def is_only_formatted(base: str, yours: str) -> bool:
    """Whether `yours` differs from `base` in white space only."""
    return [*map(_squeezed, _TOKEN.findall(base))] == [*map(_squeezed, _TOKEN.findall(yours))]


def _kept(base: Iterable[Hashable], yours: Iterable[Hashable]) -> float:
    """Return the share of the items of `base` that are in `yours`; 1 if there are none."""
    before = Counter(base)
    return (before & Counter(yours)).total() / before.total() if before else 1.0


def _statements(text: str) -> list[tuple[str, ...]]:
    """Return the statements and the heads of blocks, as their tokens; without the lines of the preprocessor."""
    statements: list[tuple[str, ...]] = []
    tokens: list[str] = []
    for token in _TOKEN.findall(text):
        if token in _ENDS:
            statements += [tuple(tokens)] if tokens else []
            tokens = []
        elif not token.startswith(_COMMENT) and not token.lstrip().startswith("#"):
            tokens.append(token)
    return statements


def _squeezed(token: str) -> str:
    """Return a comment or a line of the preprocessor with single spaces, without the stars that begin its lines."""
    if token.startswith('"'):
        return token
    return " ".join(word for word in token.split() if word not in ("*", "\\"))
