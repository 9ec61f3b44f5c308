# SPDX-License-Identifier: Apache-2.0
"""Integer constant expressions of C (ISO C 6.6), without casts and `sizeof`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence

_NUMBER = re.compile(r"(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)[uUlL]*")
_CHARACTER = re.compile(r"'(\\?.)'")
_LEVELS: tuple[dict[str, Callable[[int, int], int]], ...] = (
    {"||": lambda a, b: int(bool(a or b))},
    {"&&": lambda a, b: int(bool(a and b))},
    {"|": operator.or_},
    {"^": operator.xor},
    {"&": operator.and_},
    {"==": lambda a, b: int(a == b), "!=": lambda a, b: int(a != b)},
    {
        "<=": lambda a, b: int(a <= b),
        ">=": lambda a, b: int(a >= b),
        "<": lambda a, b: int(a < b),
        ">": lambda a, b: int(a > b),
    },
    {"<<": lambda a, b: a << b if 0 <= b < _BITS else 0, ">>": lambda a, b: a >> b if 0 <= b < _BITS else 0},
    {"+": operator.add, "-": operator.sub},
    {"*": operator.mul, "/": lambda a, b: int(a / b), "%": lambda a, b: a - b * int(a / b)},
)
"""The binary operators, those that bind least first."""
_BITS = 64
_MAX_DEPTH = 30
_DOUBLE = re.compile(r"\|\||&&|[=!<>]=|<<|>>")


class _InvalidError(Exception):
    """The text is no expression that is supported."""


def evaluate(words: Sequence[str]) -> int | None:
    """Return the value of an expression, given as tokens of one character or more; None if it is unknown."""
    parser = _Parser(_joined(words))
    try:
        value = parser.conditional(0)
        if parser.words:
            return None
    except (_InvalidError, ZeroDivisionError, OverflowError, ValueError):  # ValueError: thousands of digits
        return None
    return value


def _joined(words: Sequence[str]) -> list[str]:
    """Return the tokens, with operators of two characters as one, last first."""
    joined: list[str] = []
    for word in words:
        if joined and _DOUBLE.fullmatch(joined[-1] + word):
            joined[-1] += word
        else:
            joined.append(word)
    return joined[::-1]


class _Parser:
    """Recursive descent; values are bounded to 64 bits."""

    def __init__(self, words: list[str]) -> None:
        self.words = words
        """Those not read yet, the next one last."""

    def next(self) -> str:
        return self.words[-1] if self.words else ""

    def take(self, wanted: str) -> None:
        if self.next() != wanted:
            raise _InvalidError
        self.words.pop()

    def conditional(self, depth: int) -> int:
        value = self.binary(0, depth)
        if self.next() != "?":
            return value
        self.take("?")
        first = self.conditional(depth + 1)
        self.take(":")
        second = self.conditional(depth + 1)
        return first if value else second

    def binary(self, level: int, depth: int) -> int:
        if level == len(_LEVELS):
            return self.unary(depth + 1)
        value = self.binary(level + 1, depth)
        while self.next() in _LEVELS[level]:
            function = _LEVELS[level][self.words.pop()]
            value = function(value, self.binary(level + 1, depth))
            if abs(value) >> _BITS:
                raise _InvalidError
        return value

    def unary(self, depth: int) -> int:
        if depth > _MAX_DEPTH or not self.words:
            raise _InvalidError
        word = self.words.pop()
        if word == "(":
            value = self.conditional(depth)
            self.take(")")
            return value
        if word in ("-", "+", "!", "~"):
            value = self.unary(depth + 1)
            return {"-": -value, "+": value, "!": int(not value), "~": ~value}[word]
        return _literal(word)


def _literal(word: str) -> int:
    number = _NUMBER.fullmatch(word)
    if number is not None:
        digits = number[1]
        return int(digits, 8) if re.fullmatch("0[0-7]+", digits) else int(digits, 0)
    character = _CHARACTER.fullmatch(word)
    if character is not None and len(character[1]) == 1:
        return ord(character[1])
    raise _InvalidError
