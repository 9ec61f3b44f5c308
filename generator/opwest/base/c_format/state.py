# SPDX-License-Identifier: Apache-2.0
"""The states of the search: what is known before a token about its line and about the brackets around it."""

from __future__ import annotations

from typing import NamedTuple

from opwest.base.c_format.tokens import Token

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
