# SPDX-License-Identifier: Apache-2.0
"""The states of the search: what is known before a token about its line and about the brackets around it."""

from __future__ import annotations

from typing import Final, NamedTuple

from opwest.base.c_format.tokens import COMMA, CONDITIONAL, Token

INDENT_WIDTH: Final = 8
# The members of a bracket, which is a list of numbers: it is copied for each state.
(
    INDENT, LAST_SPACE, QUESTION, CALL_START, SUBSCRIPTS, MEMBERS, VARIABLE, CLOSE_BREAK, NO_PACKING, BREAK_NEXT,
    NO_BREAK, NO_BREAK_OPERAND, WRAPPED, HAS_BREAK, BUILDER, CHAINED, IS_CONDITIONAL, INLINED, SHIFT,
) = range(19)  # fmt: skip
Bracket = list[int]


class Break(NamedTuple):
    """A change of the white space before a token, or of a string."""

    token: Token
    column: int
    """The column of the token if it begins a line, else -1."""
    spaces: int = 0
    """Additional spaces before the token."""
    parts: tuple[str, ...] = ()
    """The parts of a string."""


class State:
    """The state before a token."""

    __slots__ = ("brackets", "breaks", "column", "forced", "line_nesting", "lowest", "string")

    def __init__(self) -> None:
        self.column = 0
        self.line_nesting = 0
        """The number of open brackets at the start of the line."""
        self.lowest = 0
        """The least number of open brackets on the line."""
        self.string = 0
        """The column of the first string of a sequence, else 0."""
        self.brackets: list[Bracket] = []
        self.breaks: tuple[object, ...] | None = None
        self.forced = False

    def copy(self) -> State:
        """Return a copy."""
        new = State.__new__(State)
        new.column = self.column
        new.line_nesting = self.line_nesting
        new.lowest = self.lowest
        new.string = self.string
        new.brackets = [bracket[:] for bracket in self.brackets]
        new.breaks = self.breaks
        new.forced = self.forced
        return new

    def key(self) -> tuple[object, ...]:
        """Return the members on which the rest of the line depends."""
        return (self.column, self.line_nesting, self.lowest, self.string, *map(tuple, self.brackets))


def opened(indent: int, last_space: int, *, no_packing: bool, no_break: bool) -> Bracket:
    """Return the state of a new bracket."""
    bracket = [0] * 19
    bracket[INDENT] = indent
    bracket[LAST_SPACE] = last_space
    bracket[NO_PACKING] = no_packing
    bracket[NO_BREAK] = no_break
    bracket[WRAPPED] = 1
    return bracket


def new_column(state: State, token: Token, first_indent: int) -> int:
    """Return the column of a token that begins a new line; `first_indent` is that of the first token."""
    brackets = state.brackets
    bracket = brackets[-1]
    left = token.prev
    assert left is not None
    continued = max(bracket[LAST_SPACE], bracket[INDENT]) + INDENT_WIDTH
    before = token.before()
    following = left.after() or token
    kind = token.kind
    if following.kind == "{" and following.block:
        return first_indent if token.nesting == 0 else bracket[INDENT]
    if kind in ("}", "]") and len(brackets) > 1:
        if kind == "}" and token.match is not None and token.match.is_values():
            return brackets[-2][LAST_SPACE]
        return first_indent
    if kind == ")" and len(brackets) > 1 and (token.next is None or token.next.kind in (";", "const", "{")):
        return brackets[-2][LAST_SPACE]
    if following.kind == "str" and state.string:
        return state.string
    if following.is_member():
        return bracket[MEMBERS] or continued
    if bracket[QUESTION] and (
        (following.kind == ":" and following.type == "conditional") or left.type == "conditional"
    ):
        after = following.next
        chained = (
            following.kind == ":" and after is not None and bool(after.left) and after.left[-1] == CONDITIONAL
        ) or (left.kind == ":" and bool(token.left) and token.left[-1] == CONDITIONAL)
        if chained and not bracket[IS_CONDITIONAL]:
            return bracket[INDENT] - INDENT_WIDTH - (2 if bracket[CHAINED] else 0)
        return bracket[QUESTION]
    if left.kind == "," and bracket[VARIABLE]:
        return bracket[VARIABLE]
    if before is not None and (
        (before.type == "attribute" and kind != "(") or before.type in ("attribute )", "annotation )")
    ):
        return max(bracket[LAST_SPACE], bracket[INDENT])
    if following.type == "function":
        return max(bracket[LAST_SPACE], bracket[INDENT])
    if following.type == "subscript":
        return bracket[SUBSCRIPTS] or continued
    if following.type in ("name", "pointer") or left.kind == "=":
        return continued
    if left.kind == ")" and not token.precedence() > COMMA and kind not in (":", "comment"):
        return continued
    if bracket[INDENT] == first_indent and before is not None and before.kind != "}":
        return bracket[INDENT] + INDENT_WIDTH
    return bracket[INDENT]
