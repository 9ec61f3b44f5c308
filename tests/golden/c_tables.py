# SPDX-License-Identifier: Apache-2.0
"""Tables of structures in joined C, without the members that most rows of the full trees have.

A member is omitted if its value is that of more than half of the rows of its structure in the full trees. A new member
with one value everywhere then does not change a brief table. The full trees have all members.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

Usual = Mapping[str, str]
"""The usual value of each member, as `.member = value`, by the structure and the member."""

_TABLE = re.compile(r".*\bstruct (opwest_\w+) \w+\[\w*\] = \{")
_MEMBER = re.compile(r"\.(\w+) = (.*)", re.DOTALL)


def usual_members(*texts: str) -> Usual:
    """Return the values that more than half of the rows have."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for text in texts:
        for struct, row in _rows(text):
            for key, member in _members(struct, row):
                counts[key][member] += 1
    common = {key: found.most_common(1)[0] for key, found in counts.items()}
    return {key: value for key, (value, count) in common.items() if 2 * count > counts[key].total()}


def brief_tables(text: str, usual: Usual) -> str:
    """Return joined C whose tables have the other members only."""
    lines = text.split("\n")
    for number, struct in _places(lines):
        lines[number] = f"\t{_brief(struct, lines[number].strip().removesuffix(','), usual)},"
    return "\n".join(lines)


def _brief(struct: str, row: str, usual: Usual) -> str:
    members: list[str] = []
    for key, member in _members(struct, row):
        if usual.get(key) != member:
            name, value = _parsed(member)
            members.append(f".{name} = {_brief(key, value, usual)}" if value.startswith("{.") else member)
    return "{" + ", ".join(members) + "}"


def _rows(text: str) -> Iterator[tuple[str, str]]:
    """Yield the structure and the text of each row."""
    lines = text.split("\n")
    for number, struct in _places(lines):
        pending = [(struct, lines[number].strip().removesuffix(","))]
        while pending:
            struct, row = pending.pop()
            yield struct, row
            for key, member in _members(struct, row):
                value = _parsed(member)[1]
                if value.startswith("{."):
                    pending.append((key, value))


def _places(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines that are rows, and their structure."""
    struct = None
    for number, line in enumerate(lines):
        if match := _TABLE.fullmatch(line):
            struct = match[1]
        elif not line.startswith("\t{."):
            struct = None
        elif struct:
            yield number, struct


def _members(struct: str, row: str) -> list[tuple[str, str]]:
    """Return the key and the text of each member of a row `{.a = x, .b = {.c = y}}`."""
    parts, depth = [""], 0
    for piece in re.findall(r'"(?:\\.|[^"\\])*"|, (?=\.)|[{}()]|[^"{}(),]+|.', row[1:-1]):
        depth += (piece in ("{", "(")) - (piece in ("}", ")"))
        if piece == ", " and depth == 0:
            parts.append("")
        else:
            parts[-1] += piece
    return [(f"{struct}.{_parsed(part)[0]}", part) for part in parts if part]


def _parsed(member: str) -> tuple[str, str]:
    match = _MEMBER.fullmatch(member)
    assert match, member
    return match[1], match[2]
