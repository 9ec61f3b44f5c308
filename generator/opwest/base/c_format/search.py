# SPDX-License-Identifier: Apache-2.0
"""The breaks of a line with the least penalty: Dijkstra's search over the states after each token."""

from __future__ import annotations

import heapq
from itertools import count
from typing import Final

from opwest.base.c_format.annotation import WIDTH, Annotated
from opwest.base.c_format.state import (
    BREAK_NEXT,
    BUILDER,
    CALL_START,
    CHAINED,
    CLOSE_BREAK,
    HAS_BREAK,
    INDENT,
    INDENT_WIDTH,
    INLINED,
    IS_CONDITIONAL,
    LAST_SPACE,
    MEMBERS,
    NO_BREAK,
    NO_BREAK_OPERAND,
    NO_PACKING,
    QUESTION,
    SHIFT,
    SUBSCRIPTS,
    VARIABLE,
    WRAPPED,
    Break,
    State,
    new_column,
    opened,
)
from opwest.base.c_format.strings import break_string
from opwest.base.c_format.tokens import ASSIGNMENT, CLOSES, COMMA, CONDITIONAL, OPENS, RELATIONAL, Token

_FIRST_BREAK: Final = 15
"""The penalty of the first break between two brackets."""
_EXCESS: Final = 1_000_000
_NO_COLUMNS: Final = 10_000
_MAX_STATES: Final = 50_000
"""From this number on, states that differ in their brackets only are equal."""


class Search:
    """Finds the breaks of a line."""

    def __init__(self, line: Annotated, indent: int) -> None:
        self._line = line
        self._first = line.tokens[0]
        self._indent = indent
        self._width = WIDTH - 2 if line.in_directive else WIDTH

    def breaks(self) -> list[Break]:
        """Return the breaks in the order of the tokens."""
        rows = self._rows()
        if rows:
            penalty, breaks = self._search(rows)
            if penalty < _EXCESS:
                return breaks
        return self._search(frozenset())[1]

    def _search(self, rows: frozenset[Token]) -> tuple[int, list[Break]]:
        """Return the least penalty and its breaks. `rows` begin lines that are independent of each other."""
        state = State()
        state.column = self._indent
        state.brackets = [opened(self._indent, self._indent, no_packing=False, no_break=False)]
        self._move(state, self._first, newline=False)
        numbers = count()
        queue: list[tuple[int, int, Token | None, State]] = [(0, next(numbers), self._first.next, state)]
        seen: set[object] = set()
        while queue:
            penalty, number, token, state = heapq.heappop(queue)
            if token is None:
                return penalty, _path(state)
            key = (id(token), state.key() if number < _MAX_STATES else state.column)
            if key in seen:
                continue
            seen.add(key)
            if token in rows and self._can_break(
                state, token
            ):  # every layout continues from this state, so the others cannot be better
                queue.clear()
                seen.clear()
            for newline in (False, True):
                if newline and not self._can_break(state, token):
                    continue
                if not newline and self._must_break(state, token):
                    continue
                new = state.copy()
                added, following = self._place(new, token, newline=newline)
                heapq.heappush(queue, (penalty + added, next(numbers), following, new))
        return 0, []

    def _rows(self) -> frozenset[Token]:
        """Return the tokens that begin rows of a table: each is on a line of its own."""
        for token in self._line.tokens:
            if token.kind == "{":
                closing = token.match
                is_whole = closing is not None and closing.next is not None and closing.next.kind == ";"
                if token.nesting or not is_whole or closing is None or closing.prev is None:
                    break
                if closing.prev.kind != "," or len(token.columns) > 1:
                    break
                return frozenset(comma.next for comma in token.commas if comma.next is not None)
        return frozenset()

    def _place(self, state: State, token: Token, *, newline: bool, spaces: int = 0) -> tuple[int, Token | None]:
        """Place a token; a list in columns is placed as a whole. Return the penalty and the next token."""
        penalty = self._new_line(state, token) if newline else self._same_line(state, token, spaces)
        added = self._move(state, token, newline=newline)
        penalty += added
        following = token.next
        before = token.before()
        if before is not None and before.kind == "{" and len(before.columns) > 1 and not before.block:
            added, following = self._columns(state, before, token)
            penalty += added
        elif before is not None and before.kind == "{" and before.commas and not before.columns:
            pass
        return penalty, following

    def _columns(self, state: State, opening: Token, placed: Token) -> tuple[int, Token | None]:
        following = placed.next
        first = opening.next
        if first is None or first.type == "designator":
            return 0, following
        room = WIDTH - state.column + placed.width
        best: tuple[list[int], int, int] | None = None
        for layout in reversed(opening.columns):
            if layout[2] <= room or len(layout[0]) == 1:
                if best is not None and layout[1] > best[1]:
                    break
                best = layout
        if best is None:
            return _NO_COLUMNS, following
        sizes = best[0]
        penalty = column = item = 0
        commas = opening.commas
        while following is not None and following is not opening.match:
            newline, spaces = False, 0
            if item < len(commas) and following.prev is commas[item]:
                if not following.is_trailing():
                    spaces = sizes[column] - opening.lengths[item]
                    column += 1
                item += 1
            if column == len(sizes) or following.must_break:
                column = 0
                newline = True
            added, following = self._place(state, following, newline=newline, spaces=spaces)
            penalty += added
        return penalty, following

    def _can_break(self, state: State, token: Token) -> bool:
        bracket = state.brackets[-1]
        left = token.prev
        assert left is not None
        if not token.can_break and not (bracket[CLOSE_BREAK] and token.kind == "}" and _is_block(token)):
            return False
        if (
            not token.must_break
            and left.kind == "{"
            and not left.block
            and left.prev is not None
            and left.prev.kind in ("{", "(", ",")
        ):
            return False
        if left.kind in ("(", "[") and state.lowest < state.line_nesting and state.lowest < token.nesting:
            return False
        if token.is_member() and bracket[BUILDER]:
            return False
        if token.type == "function" and state.column < 6:
            return False
        if token.type != "binary" and token.kind != "," and bracket[NO_BREAK_OPERAND]:
            return False
        return not bracket[NO_BREAK]

    def _must_break(self, state: State, token: Token) -> bool:
        if token.must_break or state.forced or token.type == "operands":
            return True
        bracket = state.brackets[-1]
        left = token.prev
        assert left is not None
        if bracket[CLOSE_BREAK] and token.kind == "}" and _is_block(token):
            return True
        begins = (
            (left.kind == "," and not token.is_trailing())
            or left.kind == ";"
            or (token.type == "conditional" and left.kind != "?")
        )
        if begins and bracket[BREAK_NEXT] and not token.is_trailing() and token.kind not in (")", "}"):
            return True
        if bracket[CHAINED] and token.type == "conditional" and token.kind == ":":
            return True
        column = new_column(state, token, self._indent)
        if (
            token.is_member()
            and token.next_operator is not None
            and state.column + token.next_operator.total - token.total > WIDTH
            and (state.column > column or token.nesting < state.line_nesting)
        ):
            return True
        if token.is_member() and left.kind in CLOSES and (bracket[MEMBERS] or bracket[BREAK_NEXT]):
            return True
        if self._first.kind != "enum" and state.column <= column:
            return False
        if left.type == "binary" and token.can_break:
            level = left.precedence()
            if level != ASSIGNMENT and bracket[BREAK_NEXT] and not token.is_trailing():
                before = left.prev
                if before is not None and before.ends_binary:
                    return True
                is_comparison = level in (RELATIONAL, RELATIONAL - 1) and before is not None and before.type != "binary"
                if not is_comparison:
                    return True
        elif token.type == "binary" and token.can_break and token.precedence() != ASSIGNMENT and bracket[BREAK_NEXT]:
            return True
        if (
            token.nesting == 0
            and not token.is_trailing()
            and left.type == "annotation )"
            and not self._line.in_directive
        ):
            return True
        if token.type == "function" and bracket[BREAK_NEXT]:
            return True
        return left.kind == "comment" and "\n" in left.text

    def _same_line(self, state: State, token: Token, extra: int) -> int:
        bracket = state.brackets[-1]
        left = token.prev
        assert left is not None
        if (
            token.kind == "="
            and (self._first.kind == "for" or token.nesting == 0)
            and bracket[VARIABLE] == 0
            and (left.prev is None or left.prev.type != "designator")
        ):
            bracket[VARIABLE] = state.column
            name: Token | None = left
            while name is not None and bracket[VARIABLE] >= name.width:
                bracket[VARIABLE] -= name.width
                if name.space:
                    break
                name = name.prev
            if left.multi:
                bracket[LAST_SPACE] = bracket[VARIABLE]
        spaces = token.space + extra
        if extra:
            state.breaks = (state.breaks, Break(token, -1, extra))
        if left.kind in OPENS and (not token.text.startswith("//") or left.kind == "{"):
            bracket[INDENT] = state.column + spaces
        if bracket[NO_PACKING] and left.kind == "," and not token.is_trailing():
            bracket[NO_BREAK] = 1
        if token.is_member() and left.kind in CLOSES:
            if state.column > new_column(state, token, self._indent):
                bracket[BUILDER] = 1
            if left.kind == ")" and left.match is not None and left.total - left.match.total > 10:
                bracket[NO_BREAK] = 1
        before = token.before()
        if (
            token.kind != "comment"
            and before is not None
            and (before.type == "binary" or before.kind == "," or (before.type == "conditional" and before.kind == ":"))
            and before.precedence() not in (ASSIGNMENT, RELATIONAL)
        ):
            breaks_before = before.must_break or before.kind == "<<" or before.type == "conditional"
            has_two = before.operator_index == 0 and before.next_operator is None and before.type != "conditional"
            if (not breaks_before and not has_two) or (breaks_before and not bracket[WRAPPED]):
                bracket[NO_BREAK_OPERAND] = 1
        state.column += spaces
        if (
            (token.kind != "comment" and left.kind == "(" and left.prev is not None and left.prev.kind in ("for", "if"))
            or (token.kind not in ("comment", "^") and left.kind == ",")
            or left.type == "conditional"
            or (
                left.type == "binary"
                and (
                    (
                        left.precedence() != ASSIGNMENT
                        and (left.kind != "<<" or left.operator_index != 0 or left.next_operator is not None)
                    )
                    or token.starts_binary
                )
            )
        ):
            bracket[LAST_SPACE] = state.column
        elif left.kind in OPENS and left.match is not None:
            following = left.match.after()
            brackets = state.brackets
            if following is not None and following.is_member() and len(brackets) > 1 and not brackets[-2][MEMBERS]:
                bracket[LAST_SPACE] = state.column
        return 0

    def _new_line(self, state: State, token: Token) -> int:
        brackets = state.brackets
        bracket = brackets[-1]
        left = token.prev
        assert left is not None
        before = token.before()
        following = left.after() or token
        penalty = token.penalty
        if not bracket[HAS_BREAK]:
            penalty += _FIRST_BREAK
            bracket[HAS_BREAK] = 1
        state.column = new_column(state, token, self._indent)
        state.breaks = (state.breaks, Break(token, state.column))
        if following.is_member() and not bracket[MEMBERS]:
            bracket[MEMBERS] = state.column
        if (before is not None and before.kind in (",", ";") and not bracket[NO_PACKING]) or left.type == "binary":
            bracket[BREAK_NEXT] = 0
        if following.kind == "?" or (before is not None and before.kind == "?"):
            bracket[BREAK_NEXT] = 1
        if token.type == "binary" and token.can_break:
            bracket[BREAK_NEXT] = 0
        if not token.is_trailing():
            bracket[LAST_SPACE] = state.column
        state.line_nesting = state.lowest = token.nesting
        for outer in brackets[:-1]:
            outer[BREAK_NEXT] = 1
        if before is not None:
            if (
                before.kind not in (",", ":", ";")
                and before.type not in ("binary", "annotation )")
                and token.type not in ("binary", "operands")
                and before.kind not in OPENS
            ):
                bracket[BREAK_NEXT] = 1
            if before.kind == "{":
                bracket[CLOSE_BREAK] = 1
        if bracket[NO_PACKING] and not (left.kind in ("(", "{") or left.type == "binary"):
            bracket[BREAK_NEXT] = 1
        return penalty

    def _move(self, state: State, token: Token, *, newline: bool) -> int:
        brackets = state.brackets
        bracket = brackets[-1]
        kind, type_ = token.kind, token.type
        state.forced = False
        if kind == "," or type_ == "binary":
            bracket[NO_BREAK_OPERAND] = 0
        if type_ == "binary" and kind != "<<":
            bracket[WRAPPED] = newline
        elif kind == "<<" and type_ == "binary":
            if bracket[SHIFT] == 0:
                bracket[SHIFT] = state.column
            else:
                bracket[WRAPPED] = newline
        elif type_ == "conditional" and token.prev is not None and token.prev.type != "conditional":
            bracket[WRAPPED] = newline
        elif type_ == "subscript" and not bracket[SUBSCRIPTS]:
            bracket[SUBSCRIPTS] = state.column
        if kind == "?":
            bracket[QUESTION] = state.column
            after = token.after()
            if token.must_break or (after is not None and after.must_break):
                bracket[IS_CONDITIONAL] = 1
        opens, closes = kind in OPENS, kind in CLOSES
        if not opens and not closes and type_ != "pointer" and token.nesting < state.lowest:
            state.lowest = token.nesting
        if token.is_member():
            bracket[CALL_START] = state.column if token.next_operator is not None else 0
        before = token.before()
        if before is not None:
            if before.kind == "{" and len(brackets) > 1 and kind != "comment":
                if brackets[-2][INLINED] and newline:
                    for outer in brackets[:-1]:
                        outer[NO_BREAK] = 1
                brackets[-2][INLINED] = 0
            if before.type in ("binary", "conditional") or before.kind in ("(", ",", ":"):
                bracket[INLINED] = not newline and (before.kind != "(" or before.count > 1)
        if token.left:
            self._open_expressions(state, token)
        if closes:
            if len(brackets) > 1:
                brackets.pop()
            if kind == "]":
                after = token.after()
                if after is not None and after.kind != "[":
                    brackets[-1][SUBSCRIPTS] = 0
        top = brackets[-1]
        allows = not top[NO_BREAK] and not top[NO_BREAK_OPERAND]
        if opens:
            self._open(state, token)
        for _ in range(token.right):
            if len(brackets) == 1:
                break
            variable = brackets.pop()[VARIABLE]
            brackets[-1][VARIABLE] = variable
        if kind == "str":
            state.string = state.string or state.column
        elif kind not in ("comment", "id", "#"):
            state.string = 0
        start = state.column
        state.column += token.width
        penalty = 0
        if kind == "str" and allows and state.column + token.tail > self._width:
            penalty = self._string(state, token, start)
        elif kind == "comment" and "\n" in token.text:
            state.column = len(token.text.rsplit("\n", 1)[1].expandtabs(8))
        if state.column > self._width:
            penalty += _EXCESS * (state.column - self._width)
        if opens and kind == "{" and (len(token.columns) == 1 or token.has_nested):
            brackets[-1][NO_PACKING] = 1
        return penalty

    def _string(self, state: State, token: Token, start: int) -> int:
        """Break a string that does not fit."""
        following = token.next
        tail = 0 if following is not None and self._can_break(state, following) else token.tail
        if self._line.in_directive and not self._line.line.body:
            return 0
        parts, column, penalty = break_string(token.text, start, self._width, tail)
        state.column = column - token.tail
        if len(parts) > 1:
            state.breaks = (state.breaks, Break(token, start, parts=tuple(parts)))
            for bracket in state.brackets:
                bracket[BREAK_NEXT] = 1
            state.brackets[-1][LAST_SPACE] = start
        return penalty

    def _open_expressions(self, state: State, token: Token) -> None:
        before = token.before()
        is_assignment = before is not None and before.precedence() == ASSIGNMENT
        is_return = before is not None and before.kind == "return"
        opens = before is not None and before.kind in OPENS
        skip = before is not None and (opens or before.kind in (";", "return") or is_assignment)
        brackets = state.brackets
        for at in range(len(token.left) - 1, -1, -1):
            level = token.left[at]
            outer = brackets[-1]
            new = outer[:]
            new[HAS_BREAK] = new[CHAINED] = new[IS_CONDITIONAL] = 0
            new[WRAPPED] = 1
            new[NO_BREAK] = outer[NO_BREAK] or outer[NO_BREAK_OPERAND]
            if level > COMMA:
                new[NO_PACKING] = 0
            if not token.is_trailing() and (not is_return or level > 0):
                new[INDENT] = max(state.column, new[INDENT], outer[LAST_SPACE])
            is_generic = opens and before is not None and before.prev is not None and before.prev.kind == "_Generic"
            if is_generic and len(brackets) > 1:
                new[INDENT] = brackets[-2][INDENT] + INDENT_WIDTH
            if level > 0:
                new[LAST_SPACE] = max(new[LAST_SPACE], state.column)
            if level != CONDITIONAL and token.type != "unary":
                new[CALL_START] = state.column
            if (
                level == CONDITIONAL
                and before is not None
                and before.kind == ":"
                and before.type == "conditional"
                and at == len(token.left) - 1
                and not outer[IS_CONDITIONAL]
            ):
                new[CHAINED] = 1
            elif level == CONDITIONAL or (not skip and level > ASSIGNMENT and not token.is_trailing()):
                new[INDENT] += INDENT_WIDTH
            if (before is not None and not opens) or level != COMMA:
                new[BREAK_NEXT] = 0
            brackets.append(new)
            skip = False

    def _open(self, state: State, token: Token) -> None:
        bracket = state.brackets[-1]
        last_space = bracket[LAST_SPACE]
        break_next = False
        if token.kind == "{":
            ends_in_comma = False
            if token.match is not None:
                last = token.match.before()
                ends_in_comma = last is not None and last.kind == ","
            following = token.after()
            indent = last_space + INDENT_WIDTH
            no_packing = ends_in_comma or (following is not None and following.type in ("designator", "designator ["))
            break_next = ends_in_comma
        else:
            indent = INDENT_WIDTH + max(last_space, bracket[CALL_START])
            before = token.before()
            no_packing = before is not None and before.kind == "_Generic"
        no_break = bool(bracket[NO_BREAK] or bracket[NO_BREAK_OPERAND])
        new = opened(indent, last_space, no_packing=no_packing, no_break=no_break)
        new[BREAK_NEXT] = break_next
        state.brackets.append(new)


def _is_block(token: Token) -> bool:
    return token.match is not None and token.match.block


def _path(state: State) -> list[Break]:
    breaks: list[Break] = []
    node = state.breaks
    while node is not None:
        node, item = node  # type: ignore[assignment]
        assert isinstance(item, Break)
        breaks.append(item)
    return breaks[::-1]
