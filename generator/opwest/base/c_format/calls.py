# SPDX-License-Identifier: Apache-2.0
"""Breaks of statements with one call, and of arrays, that need no search: those that the search would find."""

from __future__ import annotations

import re
from typing import Final

WIDTH: Final = 100
TAB: Final = 8
IRREGULAR: Final = r"  |\t|,[^ )]|[\w)]\{|\}\w|[^ ] ;|\( | \)(?<!, \))|\) \)| ,[^ ]|^ |\s$|\{ (?!$)|[^{;,)] \}(?! |;|$)"
"""White space that is not Zephyr's: the text needs all stages."""
STRING: Final = r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\''
CONTROL: Final = ("if (", "for (", "while (", "switch (", "else", "do ")
SIGNS: Final = re.compile(
    r'[()\[\]{},]|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'| (?:[-+*/%&|^<>!=]=?|&&|\|\||<<|>>|\?|:) |/\*'
)


def is_irregular(body: str) -> bool:
    """Whether the white space of a line is not Zephyr's. Most lines need no regular expression."""
    if (
        "  " in body
        or "( " in body
        or " )" in body
        or " ;" in body
        or "{" in body[:-1]
        or "\t" in body
        or body[0] == " "
        or body[-1] == " "
        or body.count(",") != body.count(", ") + (body[-1] == ",")
    ):
        return re.search(IRREGULAR, body) is not None and re.search(IRREGULAR, re.sub(STRING, '""', body)) is not None
    return False


def call(body: str, tabs: int, width: int = WIDTH) -> list[str] | None:
    """Break a statement or the head of a function at one comma between the arguments of its call, or behind || or &&.

    The search breaks there if two lines are enough: a break behind an assignment has a lower penalty, all others have
    a higher one. Conditions with three or more operands are broken behind each last operator that fits, because the
    search does not break such an operand. None if this line is another one.
    """
    is_control = body.startswith("if (")
    if body[-1] not in (";),{" if is_control else ";),") or (body.startswith(CONTROL) and not is_control):
        return None
    if is_irregular(body):
        return None
    depth = 0
    comma = assignment = opening = 0
    last = 0
    commas: list[int] = []
    nested: list[int] = []
    operators: list[int] = []
    signs: set[str] = set()
    room = width - TAB * tabs
    for match in SIGNS.finditer(body):
        sign = match[0]
        first = sign[0]
        if first in "([":
            depth += 1
            if depth == 1 and sign == "(":
                if opening and (comma or operators):
                    return None
                opening = match.end()
        elif first in ")]":
            depth -= 1
        elif first == ",":
            if depth == 0 and match.end() < len(body):
                return None
            if depth > 1:
                nested.append(match.end())
            elif opening:
                commas.append(match.end())
                comma = match.end() if match.end() <= room else comma
        elif first == " ":
            if sign in (" ? ", " : ") or (depth == 0 and (sign != " = " or assignment)):
                return None
            if depth == 0:
                assignment = match.end()
            elif depth > 1:
                nested.append(match.end())
            else:
                signs.add(sign)
                if sign in (" || ", " && "):
                    operators.append(match.end() - 1)
        elif first in "}/" or (first == "{" and match.end() < len(body)) or (first == '"' and len(sign) > room - TAB):
            return None
        if first == '"':
            if last and not body[last : match.start()].strip():
                return None
            last = match.end()
    if depth:
        return None
    prefix = "\t" * tabs
    if assignment and assignment - 1 <= room and len(body) - assignment <= room - TAB:
        return [prefix + body[: assignment - 1], f"{prefix}\t{body[assignment:]}"]
    column = TAB * tabs + opening
    indent = "\t" * (column // TAB) + " " * (column % TAB)
    if not comma and len(operators) > 1 and len(signs) == 1:
        return _chain(body, operators, prefix, indent, width)
    places = [place for place in operators if place <= room]
    place = comma or (places[-1] if places and len(signs) == 1 else 0)
    if not place:
        return None
    if column + len(body) - place - 1 > width:
        is_head = tabs == 0 and not assignment and not signs and len(body) - body[:opening].rfind(" ") - 1 > width
        lines = _chain(body, commas, prefix, indent, width) if comma else None
        if is_head:
            return lines if lines is not None and len(lines) in (3, 4) else None
        if not tabs or signs or any(place < end <= room for end in nested):
            return None
        return (
            _after_parenthesis(body, opening, assignment, tabs, width)
            or _after_assignment(body, opening, assignment, commas, tabs, width)
            or (lines if lines is not None and len(lines) == 3 else None)
        )
    return [prefix + body[:place], indent + body[place + 1 :]]


def _after_parenthesis(body: str, opening: int, assignment: int, tabs: int, width: int) -> list[str] | None:
    """Break a call behind its parenthesis, if all arguments fit on a line."""
    head = body[:opening]
    callee = head[assignment:].removeprefix("return ")
    if not callee[:-1].isidentifier() or len(head) + TAB * tabs > width:
        return None
    if len(body) - opening + TAB * (tabs + 1) > width:
        return None
    return ["\t" * tabs + head, "\t" * (tabs + 1) + body[opening:]]


def _after_assignment(
    body: str, opening: int, assignment: int, commas: list[int], tabs: int, width: int
) -> list[str] | None:
    """Break an assignment of a call behind the operator and behind one comma."""
    room = width - TAB * (tabs + 1)
    places = [place for place in commas if place - assignment <= room]
    if not assignment or not places or not body[assignment : opening - 1].isidentifier():
        return None
    column = TAB * (tabs + 1) + opening - assignment
    if column + len(body) - places[-1] - 1 > width:
        return None
    indent = "\t" * (column // TAB) + " " * (column % TAB)
    prefix = "\t" * tabs
    return [
        prefix + body[: assignment - 1],
        f"{prefix}\t{body[assignment : places[-1]]}",
        indent + body[places[-1] + 1 :],
    ]


def _chain(body: str, operators: list[int], prefix: str, indent: str, width: int) -> list[str] | None:
    """Break a condition behind each last operator that fits."""
    out: list[str] = []
    start, lead, column = 0, prefix, TAB * len(prefix)
    ends = [*operators, len(body)]
    while start < len(body):
        fitting = [end for end in ends if end > start and column + end - start <= width]
        if not fitting:
            return None
        out.append(lead + body[start : fitting[-1]])
        start, lead, column = fitting[-1] + 1, indent, len(indent.expandtabs(TAB))
    return out
