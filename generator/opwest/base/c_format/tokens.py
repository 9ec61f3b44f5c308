# SPDX-License-Identifier: Apache-2.0
"""The tokens of C source text, with the white space before each."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from opwest.base.c_format.lines import Line

_TOKEN: Final = re.compile(
    r"""
    (?P<space>(?:[ \t\f\v\r]|\\\r?\n)+)
    |(?P<newline>\n)
    |(?P<word>[A-Za-z_]\w*(?!["'\w])|(?!(?:u8|[uUL])["'])[A-Za-z_]\w*)
    |(?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)
    |(?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*")
    |(?P<char>[uUL]?'(?:\\.|[^'\\\n])*')
    |(?P<comment>/\*.*?\*/|//(?:\\\n|[^\n])*)
    |(?P<sign><<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\#\#|[^\s])
    """,
    re.VERBOSE | re.DOTALL,
)

TYPES: Final = frozenset(
    "void char short int long float double signed unsigned bool _Bool wchar_t char16_t char32_t "
    "clock_t int16_t int32_t int64_t int8_t intptr_t ptrdiff_t size_t time_t "
    "uint16_t uint32_t uint64_t uint8_t uintptr_t".split()
)
"""The names that are types in every context."""
KEYWORDS: Final = frozenset(
    "auto break case const continue default do else enum extern false for goto if inline register return "
    "sizeof static struct switch true typedef typeof union volatile while _Alignas _Alignof _Atomic _Generic "
    "_Static_assert static_assert alignas alignof __attribute__ asm __asm__".split()
) | (TYPES - frozenset(name for name in TYPES if name.endswith("_t") and name not in ("wchar_t", "char16_t")))
ATTRIBUTES: Final = frozenset(
    "__aligned __deprecated __packed __printf_like __syscall __syscall_always_inline __subsystem".split()
)
"""The identifiers that Zephyr's options declare as attributes."""

COMMA, ASSIGNMENT, CONDITIONAL, LOGICAL_OR, LOGICAL_AND = range(1, 6)
INCLUSIVE_OR, EXCLUSIVE_OR, AND, EQUALITY, RELATIONAL, _SPACESHIP, SHIFT, ADDITIVE, MULTIPLICATIVE = range(6, 15)
UNARY, MEMBER = 16, 17
"""Levels of precedence, from weak to strong."""

PRECEDENCES: Final = {
    ",": COMMA,
    **dict.fromkeys("= *= /= %= += -= <<= >>= &= ^= |=".split(), ASSIGNMENT),
    "?": CONDITIONAL,
    "||": LOGICAL_OR,
    "&&": LOGICAL_AND,
    "|": INCLUSIVE_OR,
    "^": EXCLUSIVE_OR,
    "&": AND,
    **dict.fromkeys("== !=".split(), EQUALITY),
    **dict.fromkeys("< > <= >=".split(), RELATIONAL),
    **dict.fromkeys("<< >>".split(), SHIFT),
    **dict.fromkeys("+ -".split(), ADDITIVE),
    **dict.fromkeys("* / %".split(), MULTIPLICATIVE),
}

OPENS: Final = frozenset("([{")
CLOSES: Final = frozenset(")]}")
CLOSING: Final = {"(": ")", "[": "]", "{": "}"}


class Token:
    """A token, and what the stages of the formatter find out about it."""

    __slots__ = (
        "above",
        "binding",
        "block",
        "can_break",
        "column",
        "columns",
        "commas",
        "count",
        "ends_binary",
        "escaped",
        "has_nested",
        "kind",
        "left",
        "lengths",
        "match",
        "multi",
        "must_break",
        "nesting",
        "newlines",
        "next",
        "next_operator",
        "operator_index",
        "penalty",
        "prev",
        "right",
        "space",
        "start",
        "starts_binary",
        "tail",
        "text",
        "total",
        "type",
        "whole",
        "width",
    )  # fmt: skip

    def __init__(self, text: str, kind: str, newlines: int, *, escaped: bool, start: int, column: int) -> None:
        self.text = text
        self.kind = kind
        """The text of a keyword or sign; else id, num, str, char or comment."""
        self.newlines = newlines
        """The line breaks before the token, with those after a backslash."""
        self.escaped = escaped
        """Whether all of them follow a backslash."""
        self.start = start
        """The place in the text."""
        self.column = column
        self.block = False
        """Whether a brace contains statements, not values."""
        self.whole = False
        """Whether a brace is the initialiser of a variable outside functions."""
        self.above: list[Line] = []
        """Finished lines between the previous token and this one."""
        self.width = len(text)
        self.prev: Token | None = None
        self.next: Token | None = None
        self.reset()

    def reset(self) -> None:
        """Forget what the annotation found out."""
        self.type = ""
        self.nesting = 0
        """The number of open brackets."""
        self.binding = 1
        self.match: Token | None = None
        self.count = 0
        """The number of parameters of an opening bracket."""
        self.commas: list[Token] = []
        self.left: list[int] = []
        """The precedences of the expressions that begin here, the outermost last."""
        self.right = 0
        """The number of expressions that end here."""
        self.starts_binary = self.ends_binary = False
        self.operator_index = 0
        self.next_operator: Token | None = None
        self.space = 0
        """The number of spaces before the token on its line."""
        self.can_break = self.must_break = False
        self.penalty = 0
        """The penalty of a line break before the token."""
        self.total = 0
        """The columns from the start of the line to the end of the token, without line breaks."""
        self.tail = 0
        """The columns after the token that cannot be separated from it."""
        self.columns: list[tuple[list[int], int, int]] = []
        self.lengths: list[int] = []
        self.has_nested = False
        self.multi = False

    def is_comment(self) -> bool:
        """Whether the token is a comment."""
        return self.kind == "comment"

    def is_trailing(self) -> bool:
        """Whether the token is a comment at the end of its line."""
        return self.kind == "comment" and (self.next is None or self.next.newlines > 0 or self.text.startswith("//"))

    def is_values(self) -> bool:
        """Whether a brace contains values: not that of an initialiser as a whole, which the formatter does not know."""
        return not self.block and not self.whole

    def precedence(self) -> int:
        """Return the precedence of a binary operator, comma or question mark; 0 for other tokens."""
        return PRECEDENCES.get(self.kind, 0)

    def before(self) -> Token | None:
        """Return the previous token that is no comment."""
        token = self.prev
        while token is not None and token.kind == "comment":
            token = token.prev
        return token

    def after(self) -> Token | None:
        """Return the next token that is no comment."""
        token = self.next
        while token is not None and token.kind == "comment":
            token = token.next
        return token

    def is_member(self) -> bool:
        """Whether the token accesses a member: no designation."""
        return self.kind == "->" or (self.kind == "." and self.type != "designator")

    def __repr__(self) -> str:
        return f"<{self.text!r} {self.type}>"


def tokenize(text: str) -> list[Token]:
    """Return the tokens of `text`."""
    tokens: list[Token] = []
    newlines, escaped, line_start = 0, True, 0
    for match in _TOKEN.finditer(text):
        group = match.lastgroup
        start = match.start()
        if group == "space":
            count = match[0].count("\n")
            if count:
                newlines += count
                line_start = start + match[0].rindex("\n") + 1
            continue
        if group == "newline":
            newlines += 1
            escaped = False
            line_start = start + 1
            continue
        word = match[0]
        if group == "word":
            kind = word if word in KEYWORDS else "id"
        elif group == "sign":
            kind = word
        elif group == "number":
            kind = "num"
        elif group == "string":
            kind = "str"
        else:
            kind = group or ""
        before = text[line_start:start]
        column = len(before.expandtabs(8)) if kind == "comment" or newlines else 0
        tokens.append(Token(word, kind, newlines, escaped=escaped, start=start, column=column))
        newlines, escaped = 0, True
        if kind == "comment" and "\n" in word:
            line_start = start + word.rindex("\n") + 1
    return tokens


def link(tokens: Iterable[Token]) -> None:
    """Connect the tokens of one line."""
    previous: Token | None = None
    for token in tokens:
        token.prev = previous
        token.next = None
        if previous is not None:
            previous.next = token
        previous = token
