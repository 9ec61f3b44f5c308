# SPDX-License-Identifier: Apache-2.0
"""Spaces, possible line breaks and their penalties in a line, and the nesting of its expressions."""

from __future__ import annotations

from typing import Final

from opwest.base.c_format.kinds import Kinds, is_attribute, is_type, is_word
from opwest.base.c_format.lines import FOR_EACH, Line
from opwest.base.c_format.tokens import (
    ASSIGNMENT,
    CLOSES,
    COMMA,
    CONDITIONAL,
    OPENS,
    PRECEDENCES,
    UNARY,
    Token,
    link,
)

WIDTH: Final = 100
_WHOLE: Final = 100
"""Columns of a token that must be on a line of its own: the line does not fit."""
_SPACE_BEFORE_PARENTHESES: Final = frozenset("if for while switch return case else".split())
_NO_BREAK_AFTER_ANNOTATION: Final = frozenset("{ ; = ( <".split())


class Annotated:
    """A line whose tokens have spaces, possible breaks and penalties."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.tokens = line.tokens
        self.in_directive = bool(line.directive)
        link(line.tokens)
        kinds = Kinds(line)
        kinds.find()
        self.might_declare = kinds.might_declare
        self._is_multiple = kinds.is_multiple
        _Expressions(self.tokens[0]).parse()
        self._find_function()
        self._measure()

    @property
    def total(self) -> int:
        """The columns of the line without its indentation, if it is not broken; 100 more for each forced break."""
        return self.tokens[-1].total

    def _find_function(self) -> None:
        for token in self.tokens[1:]:
            if token.kind == "{":
                return
            if token.type != "name" or token.nesting:
                continue
            following = token.next
            if following is None or following.kind != "(" or following.match is None:
                continue
            if self._is_parameter_list(following):
                token.type = "function"
                if not following.type:
                    following.type = "parameters"
                return

    def _is_parameter_list(self, opening: Token) -> bool:
        closing = opening.match
        first = opening.next
        if self.tokens[-1].kind == "{" or first is closing:
            return True
        if first is not None and first.kind == "id" and self.tokens[-1].kind != ";":
            return True
        token = first
        while token is not None and token is not closing:
            if token.type == "type of":
                return True
            if token.kind == "(" and token.match is not None:
                token = token.match.next
                continue
            if token.kind in ("const", "...") or is_type(token) or token.type in ("pointer", "name"):
                return True
            if token.kind in ("{", "num", "str", "char"):
                return False
            token = token.next
        return False

    def _measure(self) -> None:
        first = self.tokens[0]
        first.total = first.width
        in_parameters = False
        for right in self.tokens[1:]:
            left = right.prev
            assert left is not None
            right.space = 1 if self._has_space(left, right) else 0
            right.must_break = bool(right.above) or _must_break(left, right)
            right.can_break = right.must_break or self._can_break(left, right)
            if right.type == "parameters":
                in_parameters = True
            elif right.kind == ")" and right.match is not None and right.match.type == "parameters":
                in_parameters = False
            elif in_parameters and right.type == "attribute" and left.type == "pointer":
                right.can_break = False
            if right.must_break or "\n" in right.text:
                right.total = left.total + _WHOLE
            else:
                right.total = left.total + right.width + right.space
            right.penalty = self._penalty(left, right) + 20 * right.binding
        tail = 0
        for token in reversed(self.tokens):
            token.tail = tail
            tail = 0 if token.can_break or token.kind in ("comment", "str") else tail + token.width + token.space
        for token in self.tokens:
            if token.kind == "{" and token.commas and token.match is not None and not token.block:
                _find_columns(token)

    def _has_space(self, left: Token, right: Token) -> bool:
        lk, rk = left.kind, right.kind
        if lk == "," and rk != "##":
            return True
        if rk in (";", ",") or lk == "(" or rk == ")":
            return False
        if lk == "return":
            return True
        if rk == "comment":
            return True
        if lk == "comment":
            return not left.text.endswith("=*/")
        if rk == "##" or lk == "##":
            return False
        if lk == "#":
            return False
        if lk == "[" or rk == "]":
            return False
        if (lk == "{" and not left.block) or (rk == "}" and right.match is not None and not right.match.block):
            return False
        if lk == "{" or rk == "}":
            return True
        lt, rt = left.type, right.type
        if lt == "unary":
            return rt == "binary"
        if lt == "cast":
            return rt == "binary"
        if rk == ":":
            return rt in ("conditional", "operands")
        if lk == ":":
            return True
        if rt == "postfix":
            return False
        if lt == "binary" or rt == "binary" or lt == "conditional" or rt == "conditional":
            return True
        if rt == "pointer":
            return lt != "pointer"
        if rt == "function type" and lt != "pointer":
            return True
        if lt == "pointer":
            return lk in ("num", "str", "char") or right.kind in ("num", "str", "char")
        if rk == "[":
            return rt == "designator ["
        if rk == "(":
            if lt == "attribute )":
                return True
            if lk == ";" or lk in _SPACE_BEFORE_PARENTHESES:
                return True
            if self.in_directive and not self.line.body and lk in ("if", "elif"):
                return True
            return not (is_word(left) or lk in (")", "]", "str") or left.text in FOR_EACH)
        if rt == "unary":
            return True
        if rk == "{" and not right.block:
            return not (lk in ("id", "]", ")") or is_type(left))
        return rk not in (".", "->") and lk not in (".", "->")

    def _can_break(self, left: Token, right: Token) -> bool:
        lk, rk, lt, rt = left.kind, right.kind, left.type, right.type
        if rk == "}":
            return right.match is not None and right.match.block
        if rk == ")":
            return False
        if rt == "pointer":
            following = right.next
            return self._is_multiple or following is None or following.type != "function"
        if rt in ("name", "function"):
            return True
        if lt == "pointer":
            return False
        if right.is_trailing():
            return lk == "{" and left.is_values()
        if rt == "conditional":
            return not (lk == "?" and rk == ":")
        if lt == "conditional":
            return False
        if rk == ":":
            return rt == "operands"
        if lt == "annotation )":
            return True
        if lt == "unary" or lt == "attribute (" or (lk == "(" and lt == "type of"):
            return False
        if lk == "(" and left.prev is not None and left.prev.type in ("binary", "cast"):
            return False
        if lt == "annotation":
            return rk not in _NO_BREAK_AFTER_ANNOTATION
        if is_attribute(right):
            return True
        if lk == "id" and rk == "str":
            return True
        if PRECEDENCES.get(lk, 0) > COMMA and lk != "<<" and lt != "postfix":
            return True
        return (
            lk in (",", ";", "{", "struct", "comment")
            or right.is_member()
            or rk in ("<<", "[")
            or (lk == ")" and rk in ("id", "const"))
            or lk == "("
        )

    def _penalty(self, left: Token, right: Token) -> int:
        lk, rk, lt, rt = left.kind, right.kind, left.type, right.type
        if lk == ";":
            return 0
        if rk == "[":
            if lk == "]":
                return 200
            if rt != "designator [":
                return 500
        if rt in ("name", "function"):
            if self.tokens[0].kind == "for" and right.multi:
                return 3
            if lt == "name":
                return 110
            return 60 if self.might_declare and right.nesting == 0 else 200
        if rt == "pointer":
            return 190
        if lk == "=" and rk == "{":
            return 160
        if lt == "cast":
            return 100
        if lk in ("struct", "union"):
            return 5000
        if lk == "comment":
            return 1000
        if right.is_member():
            operator = right.next_operator
            ends_call = operator is not None and operator.prev is not None and operator.prev.kind in CLOSES
            return 35 if ends_call else 150
        if rt == "annotation" and (right.next is None or right.next.kind != "("):
            return (100 if lk == ")" else 120) + (50 if right.width < 10 else 0)
        if self.tokens[0].kind == "for" and lk == "=":
            return 4
        if lk == "(" and self.might_declare:
            return 100
        if lk == "(" and left.prev is not None and left.prev.kind in ("for", "if", "_Generic"):
            return 1000
        if lk == "=" and self.might_declare:
            return 110
        if rk == "}":
            return 1
        if lk in OPENS:
            return 19
        if lt == "unary":
            return 60
        if lk == ",":
            return 1
        if rk == "<<":
            return 2 if lk != ")" or right.operator_index > 0 else 1
        if lt == "conditional":
            return CONDITIONAL
        level = left.precedence() or right.precedence()
        if level == ASSIGNMENT:
            return 2
        return level or 3


def _must_break(left: Token, right: Token) -> bool:
    if left.kind == "str" and right.kind == "str":
        return True
    closing: Token | None = None
    if left.kind == "{" and not left.block and left.match is not None:
        closing = left.match.prev
    elif right.kind == "}" and right.match is not None and not right.match.block:
        closing = left
    if closing is not None and (closing.kind == "," or closing.is_trailing()):
        return True
    if right.kind == "comment":
        return not (left.kind == "{" and left.is_values()) and right.newlines > 0 and not right.escaped
    return left.is_trailing()


class _Expressions:
    """Finds the nested expressions of a line: pairs of imaginary parentheses."""

    def __init__(self, first: Token) -> None:
        self._current: Token | None = first

    def parse(self) -> None:
        """Set the expressions of all tokens."""
        while self._current is not None:
            self._expression(0)
            if self._current is not None:
                self._step()

    def _step(self) -> None:
        token = self._current
        token = token.next if token is not None else None
        while token is not None and token.is_trailing():
            token = token.next
        self._current = token

    def _enclose(self, start: Token, level: int) -> None:
        start.left.append(level)
        if level:
            start.starts_binary = True
        end = self._current.before() if self._current is not None else None
        if end is not None:
            end.right += 1
            if level:
                end.ends_binary = True

    def _level(self) -> int:
        token = self._current
        if token is None:
            return -1
        if token.type == "conditional":
            return CONDITIONAL
        if token.kind == ";" or token.type == "operands":
            return 0
        if token.type == "binary" or token.kind == ",":
            return token.precedence()
        return -1

    def _operand(self) -> None:
        """Read an operand: unary operators, then everything up to the next operator."""
        unary = []
        while self._current is not None and self._current.type == "unary":
            unary.append(self._current)
            self._step()
        start, latest, index = self._current, None, 0
        while (token := self._current) is not None:
            if token.kind in CLOSES:
                if token.match is not None:
                    break
                self._step()
            elif token.kind in OPENS:
                while (inner := self._current) is not None and inner.kind not in CLOSES:
                    self._step()
                    self._expression(0)
                self._step()
            elif self._level() >= 0:
                break
            elif token.is_member():
                if latest is not None:
                    latest.next_operator = token
                latest = token
                token.operator_index = index
                index += 1
                self._step()
            else:
                self._step()
        if latest is not None and start is not None:
            self._enclose(start, 0)
        for token in reversed(unary):
            self._enclose(token, 0)

    def _expression(self, lowest: int) -> None:
        while self._current is not None and self._current.kind == "return":
            self._step()
        if self._current is None:
            return
        starts = [self._current] * UNARY
        latest: list[Token | None] = [None] * UNARY
        indices = [0] * UNARY
        read_operand = True
        while True:
            if read_operand:
                self._operand()
            read_operand = True
            token = self._current
            level = self._level()
            is_end = token is None or (token.kind in CLOSES and token.match is not None)
            is_operands = token is not None and token.type == "operands"
            is_alternative = token is not None and token.kind == ":" and level == CONDITIONAL and lowest != ASSIGNMENT
            if token is not None and (is_operands or is_alternative):
                level = COMMA if is_operands else ASSIGNMENT + 1
                self._close(starts, latest, indices, level)
                self._step()
                starts[level:] = [self._current or token] * (UNARY - level)
                continue
            if is_end or level < lowest or (level == CONDITIONAL and token is not None and token.kind == ":"):
                self._close(starts, latest, indices, lowest)
                return
            assert token is not None
            self._close(starts, latest, indices, level + 1)
            if level == CONDITIONAL:
                start = starts[CONDITIONAL]
                self._step()
                self._expression(ASSIGNMENT)
                if self._current is not None and self._current.type == "conditional":
                    self._step()
                    self._expression(ASSIGNMENT)
                    self._enclose(start, CONDITIONAL)
                read_operand = False
                continue
            previous = latest[level]
            if previous is not None:
                previous.next_operator = token
            latest[level] = token
            token.operator_index = indices[level]
            indices[level] += 1
            self._step()
            if self._current is not None:
                starts[level + 1 :] = [self._current] * (UNARY - level - 1)

    def _close(self, starts: list[Token], latest: list[Token | None], indices: list[int], lowest: int) -> None:
        """End the expressions of all levels from `lowest` on."""
        for level in range(UNARY - 1, lowest - 1, -1):
            if latest[level] is not None:
                if self._current is not None or level:
                    self._enclose(starts[level], level)
                latest[level] = None
                indices[level] = 0


def _find_columns(opening: Token) -> None:
    """Find the widths of columns with which the values in a brace can be laid out."""
    closing = opening.match
    assert closing is not None
    begin = opening.next
    commas = opening.commas
    lengths: list[int] = []
    ends: list[int] = []
    forced: list[bool] = []
    separated = False
    for number in range(len(commas) + 1):
        if begin is None:
            return
        while begin is not None and begin.is_trailing() and begin.newlines and not begin.escaped:
            begin = begin.next
            separated = number > 0
        if begin is None:
            return
        forced.append(begin.must_break)
        if begin.kind == "{":
            opening.has_nested = True
        if number == len(commas):
            last: Token | None = closing.before()
            end: Token = closing
            assert last is not None
            lengths.append(last.total - begin.total + begin.width)
            if closing.prev is not None and not closing.prev.is_trailing():
                while end.next is not None and not end.next.can_break:
                    end = end.next
            else:
                end = closing.prev or closing
        else:
            end = commas[number]
            lengths.append(end.total - begin.total + begin.width)
            if end.next is not None and end.next.is_trailing() and not end.next.newlines:
                end = end.next
        ends.append(end.total - begin.total + begin.width)
        if end.after() is closing:
            break
        begin = end.next
    if len(commas) < 5 or separated or (opening.nesting and len(commas) < 19):
        return
    for columns in range(1, WIDTH // 3 + 1):
        sizes = [0] * columns
        least = [1 << 30] * columns
        lines, column, is_full = 1, 0, False
        for number, length in enumerate(lengths):
            if forced[number] or column == columns:
                lines += 1
                column = 0
            if column == columns - 1:
                is_full = True
                length = ends[number]
            sizes[column] = max(sizes[column], length)
            least[column] = min(least[column], length)
            column += 1
        if not is_full:
            break
        if any(sizes[at] - least[at] > 10 for at in range(columns - 1)):
            continue
        width = columns - 1 + sum(sizes)
        if width > WIDTH and columns > 1:
            continue
        opening.columns.append((sizes, lines, width))
    opening.lengths = lengths
