# SPDX-License-Identifier: Apache-2.0
"""The text of lines: indentation with tabs, aligned macros and comments, backslashes at the right edge."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Final

from opwest.base.c_format.annotation import WIDTH, Annotated
from opwest.base.c_format.comments import columns, comment_lines, indentation, inner_comment
from opwest.base.c_format.lines import Line, parse, parse_part
from opwest.base.c_format.search import Search
from opwest.base.c_format.state import Break
from opwest.base.c_format.tokens import Token

_TAB: Final = 8


class _Row:
    """A line of output, before comments and macros are aligned."""

    __slots__ = ("comment", "escaped", "is_comment", "newlines", "text", "value")

    def __init__(self, text: str, newlines: int, *, escaped: bool = False) -> None:
        self.text = text
        self.newlines = newlines
        """The line breaks before the row: two after an empty line."""
        self.escaped = escaped
        """Whether the line break before the row follows a backslash."""
        self.value = -1
        """The place of the value of a macro in the text, if its name is before it on the row or above it."""
        self.comment = -1
        """The place of a comment at the end of a row with code."""
        self.is_comment = False


def format_text(text: str) -> str:
    """Return C source text in Zephyr's format."""
    out = _text(parse(text))
    return out + "\n" if out else ""


@functools.lru_cache(maxsize=4096)
def format_part(text: str, level: int, *, in_function: bool) -> list[str] | None:
    """Return the lines of a part of C source text at a level; None if it is not whole statements."""
    lines = parse_part(text, level, in_function=in_function)
    return None if lines is None else _text(lines).split("\n")


def _text(lines: Sequence[Line]) -> str:
    rows: list[_Row] = []
    _layout(lines, rows, first=True)
    _align_values(rows)
    rows = _with_comments_above(rows)
    _align_comments(rows)
    out: list[str] = []
    edges = _edges(rows)
    for number, row in enumerate(rows):
        if number:
            if row.escaped:
                width = columns(rows[number - 1].text)
                out.append(" " * max(1, edges[number] - width - 1) + "\\")
            out.append("\n" * row.newlines)
        out.append(row.text.rstrip())
    return "".join(out)


def _edges(rows: Sequence[_Row]) -> list[int]:
    """Return for each row the column behind the backslash before it: the same for all rows of a macro."""
    edges = [WIDTH] * len(rows)
    start = 0
    for number in range(1, len(rows) + 1):
        if number < len(rows) and rows[number].escaped:
            continue
        if number - start > 1:
            edge = max(WIDTH, *(columns(row.text) + 2 for row in rows[start : number - 1]))
            edges[start:number] = [edge] * (number - start)
        start = number
    return edges


def _layout(lines: Sequence[Line], rows: list[_Row], *, first: bool = False) -> None:
    _set_comment_levels(lines)
    at = 0
    while at < len(lines):
        line = lines[at]
        newlines = 0 if first and not rows else min(max(line.newlines, 1), 2)
        if newlines == 2 and line.tokens and line.tokens[0].kind == "}":
            only = len(line.tokens) == 1 or (line.tokens[1].kind == ";" and len(line.tokens) == 2)
            newlines = 1 if only else 2
        if line.verbatim is not None:
            rows.append(_Row(line.verbatim, newlines))
            at += 1
        elif line.directive == "define" and not line.body:
            end = at + 1
            while end < len(lines) and lines[end].body:
                end += 1
            _macro(line, lines[at + 1 : end], newlines, rows)
            at = end
        else:
            _rows(line, newlines, rows, escaped=False)
            at += 1


def _set_comment_levels(lines: Sequence[Line]) -> None:
    """Give comments that are aligned with the next line its level."""
    following: Line | None = None
    for line in reversed(lines):
        first = line.tokens[0]
        is_comment = all(token.kind == "comment" for token in line.tokens)
        if is_comment and not line.directive and following is not None:
            after = following.tokens[0]
            if after.newlines < 2 and after.column == first.column:
                line.level = following.level
                continue
        if not is_comment:
            following = line if first.kind != "}" else None


def _macro(head: Line, body: Sequence[Line], newlines: int, rows: list[_Row]) -> None:
    start = len(rows)
    _rows(head, newlines, rows, escaped=False, is_last=True)
    if len(body) == 1 and body[0].verbatim is not None:
        rows[start].text += " " + body[0].verbatim
        return
    if len(body) == 1 and start + 1 == len(rows):
        line = Annotated(body[0])
        text = rows[start].text + " "
        last = line.tokens[-1]
        behind = len(last.text) + 1 if last.kind == "comment" and len(line.tokens) > 1 else 0
        if "\n" not in text and len(text.expandtabs(_TAB)) + line.total - behind <= WIDTH:
            rows[start].value = len(text)
            rows[start].text = text + _joined(line.tokens)
            _find_comment(rows[start], line.tokens, len(text))
            return
    if body:
        del rows[start:]
        _rows(head, newlines, rows, escaped=False)
    for part in body:
        _rows(part, min(max(part.newlines, 1), 2), rows, escaped=True, is_last=part is body[-1])


def _joined(tokens: Sequence[Token]) -> str:
    return tokens[0].text + "".join(" " * token.space + token.text for token in tokens[1:])


def _find_comment(row: _Row, tokens: Sequence[Token], start: int) -> None:
    last = tokens[-1]
    if last.kind == "comment":
        if len(tokens) == 1 and start == len(row.text) - len(row.text.lstrip()):
            row.is_comment = True
        else:
            row.comment = len(row.text) - len(last.text)


def _rows(line: Line, newlines: int, rows: list[_Row], *, escaped: bool, is_last: bool = False) -> None:
    """Add the rows of a line. `is_last`: no line of its macro follows."""
    indent = line.level * _TAB
    tokens = line.tokens
    if len(tokens) == 1 and tokens[0].kind == "comment":
        _comment(tokens[0], indent, newlines, rows, escaped=escaped)
        return
    if tokens[-1].kind == "comment" and not tokens[-1].newlines and not line.body and len(tokens) > 1:
        _trailing(line, indent, newlines, rows)
        return
    _code(line, indent, newlines, rows, escaped=escaped, is_last=is_last)


def _trailing(line: Line, indent: int, newlines: int, rows: list[_Row]) -> None:
    """Add a line with a comment behind it: above it, if it does not fit."""
    start = len(rows)
    _code(line, indent, newlines, rows, escaped=False, is_last=True)
    if all(columns(row.text) <= WIDTH for row in rows[start:]):
        return
    del rows[start:]
    *code, comment = line.tokens
    _comment(comment, indent, newlines, rows)
    _code(line.with_tokens(code), indent, 1, rows, escaped=False, is_last=True)


def _code(line: Line, indent: int, newlines: int, rows: list[_Row], *, escaped: bool, is_last: bool) -> None:
    tokens = line.tokens
    if tokens[0].above:
        _layout(tokens[0].above, rows)
        tokens[0].above = []
    annotated = Annotated(line)
    width = WIDTH - 2 if line.directive == "define" and not is_last else WIDTH
    has_forced = any(token.must_break for token in tokens[1:])
    if not has_forced and indent + annotated.total <= width:
        row = _Row(indentation(indent) + _joined(tokens), newlines, escaped=escaped)
        _find_comment(row, tokens, indent // _TAB)
        rows.append(row)
        return
    for number, token in enumerate(tokens):
        if token.type == "annotation )" and token.nesting == 1 and (line.body or not line.directive):
            _code(line.with_tokens(tokens[: number + 1]), indent, newlines, rows, escaped=escaped, is_last=False)
            _code(line.with_tokens(tokens[number + 1 :]), indent, 1, rows, escaped=line.body, is_last=is_last)
            return
    breaks = Search(annotated, indent).breaks()
    _broken(line, breaks, newlines, rows, escaped=escaped)


def _comment(token: Token, indent: int, newlines: int, rows: list[_Row], *, escaped: bool = False) -> None:
    for number, text in enumerate(comment_lines(token.text, token.column, indent)):
        row = _Row(text, 1 if number else newlines, escaped=escaped)
        row.is_comment = True
        rows.append(row)


def _broken(line: Line, breaks: Sequence[Break], newlines: int, rows: list[_Row], *, escaped: bool) -> None:
    changes: dict[int, list[Break]] = {}
    for change in breaks:
        changes.setdefault(id(change.token), []).append(change)
    row = _Row(indentation(line.level * _TAB), newlines, escaped=escaped)
    current: list[Token] = []
    continues = bool(line.directive)
    for number, token in enumerate(line.tokens):
        spaces = token.space if number else 0
        parts: tuple[str, ...] = ()
        column = 0
        for change in changes.get(id(token), ()):
            if change.parts:
                parts, column = change.parts, change.column
            elif change.column < 0:
                spaces += change.spaces
            else:
                rows.append(row)
                _find_comment(row, current, -1)
                current = []
                if token.above:
                    _layout(token.above, rows)
                    token.above = []
                row = _Row(indentation(change.column), 1, escaped=continues)
                if (token.kind == "comment" and token.newlines > 1) or token.newlines > 1:
                    row.newlines = 2
                spaces = 0
        row.text += " " * spaces
        if parts:
            for part in parts[:-1]:
                row.text += part
                rows.append(row)
                row = _Row(indentation(column), 1, escaped=continues)
            row.text += parts[-1]
            current.append(token)
            continue
        if token.kind == "comment" and not row.text.strip():
            *above, row.text = inner_comment(token.text, columns(row.text))
            for text in above:
                rows.append(_Row(text, row.newlines, escaped=row.escaped))
                row.newlines = 1
        else:
            row.text += token.text
        current.append(token)
    rows.append(row)
    if current:
        _find_comment(row, current, len(row.text) - len(row.text.lstrip()) - (1 if len(current) > 1 else 0))


def _align_values(rows: list[_Row]) -> None:
    """Align the values of macros on consecutive lines, also with comments between them."""
    sequence: list[_Row] = []

    def finish() -> None:
        width = max((_column(row, row.value) for row in sequence), default=0)
        for row in sequence:
            added = width - _column(row, row.value)
            row.text = row.text[: row.value] + " " * added + row.text[row.value :]
            if row.comment >= 0:
                row.comment += added
        sequence.clear()

    for number, row in enumerate(rows):
        if number:
            previous = rows[number - 1]
            if row.newlines > 1 or (previous.value < 0 and not previous.is_comment):
                finish()
        if row.value >= 0:
            sequence.append(row)
    finish()


def _with_comments_above(rows: Sequence[_Row]) -> list[_Row]:
    """Move the comments of macros on consecutive lines above them, if they do not fit behind them."""
    out: list[_Row] = []
    start = 0
    for end in range(1, len(rows) + 1):
        if end < len(rows) and rows[end].newlines < 2 and min(rows[end].value, rows[end].comment) >= 0:
            continue
        run = [row for row in rows[start:end] if row.value >= 0 and row.comment >= 0]
        column = max((row.comment for row in run), default=0)
        is_wide = any(column + len(row.text) - row.comment > WIDTH - 2 for row in run)
        for row in rows[start:end]:
            if is_wide and row in run:
                out.append(_Row(row.text[row.comment :], row.newlines))
                out[-1].is_comment = True
                row.text, row.newlines, row.comment = row.text[: row.comment].rstrip(), 1, -1
            out.append(row)
        start = end
    return out


def _column(row: _Row, at: int) -> int:
    return len(row.text[:at].expandtabs(_TAB))


def _align_comments(rows: list[_Row]) -> None:
    """Align comments at the ends of consecutive lines, as far as they fit."""
    sequence: list[tuple[_Row, int]] = []
    least, most = 0, 1 << 30

    def finish() -> None:
        for row, column in sequence:
            row.text = row.text[: row.comment] + " " * (least - column) + row.text[row.comment :]
        sequence.clear()

    for row in rows:
        if row.comment < 0:
            finish()
            least, most = 0, 1 << 30
            continue
        column = _column(row, row.comment)
        length = len(row.text) - row.comment
        limit = max(WIDTH - length - (2 if row.escaped else 0), 0) if length <= WIDTH else column
        if sequence and (row.newlines > 1 or column > most or limit < least):
            finish()
        if not sequence:
            least, most = column, limit
        else:
            least, most = max(least, column), min(most, limit)
        sequence.append((row, column))
    finish()
