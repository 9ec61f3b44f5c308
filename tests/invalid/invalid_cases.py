# SPDX-License-Identifier: Apache-2.0
r"""The tables of invalid manifests, `<area>.cases`.

    base relu: one operator, called once    a valid manifest, which the cases below it change
      version: 1
      ...
    base pool of relu: a pool               one that differs from a base of bases.cases: its lines are changes
    base relu                               the cases below change this base of bases.cases
    case bad_dtype: A dtype is unknown.     its id is `<area>/bad_dtype`; `case NAME (2 errors): ...` for several errors
    ~ dtype: int8 => dtype: int9            replaces a text that occurs once in the base
      model: tiny                           a line or several of the base, which occur once there, before added lines
    - boards: []                            removes a line; with the lines above, it occurs once in the base
    + boards: [7]                           adds a line; at the end of the base, if no line of the base is above
    ! model: \xe9{{a# * 3}}                 adds a line with escaped bytes and with repetitions: `\xe9a0a1a2`
    @@                                      ends a change, between removed lines that are not adjacent in the base
    second:                                 the changes below it make another manifest, `second.yaml`
    9:30: error: unknown dtype 'int9'       the output of `opwest check`, without `manifest.yaml:` and the last line
      hint: did you mean 'int8'?            with the number of errors

`base empty:` has no lines; its cases add all lines. `pytest tests/invalid --rewrite` writes the output into the tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, takewhile
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
FIRST = "manifest.yaml"
HEADER = re.compile(r"(base|case) (\w+)(?: of (\w+)| \((\d+) errors\))?:(?: (.+))?|base (\w+)")
CHANGES = "~ -+!@"
"""The first characters of changes; the output begins with another one."""
OTHER = re.compile(r"(\w+):")


class TableError(Exception):
    """A fault of a table, with its file and line."""


class Row(NamedTuple):
    """A line of a table; `place` is its file and line."""

    place: str
    text: str


class Base(NamedTuple):
    """A manifest that cases change."""

    id: str
    text: str


class Case(NamedTuple):
    """Changes of a base, and what `opwest check` prints for the changed manifest."""

    id: str
    path: Path
    place: str
    base: Base
    changes: Mapping[str, Sequence[Row]]
    """The changes of each manifest, by file name."""
    errors: int
    output: range
    """The lines of the file with the expected output."""
    expected: str

    def manifests(self) -> dict[str, bytes]:
        """Return the content of each manifest, by file name."""
        texts = {name: changed(self.base.text, rows) for name, rows in self.changes.items()}
        return {name: text.encode("utf-8", "surrogateescape") for name, text in texts.items()}

    def printed(self) -> str:
        """Return the expected output in full."""
        count = f"opwest: {self.errors} errors\n" if self.errors > 1 else ""
        return re.sub(r"(?m)^(?=\d+:\d+: )", f"{FIRST}:", self.expected) + count

    def rewrite(self, printed: str) -> Case:
        """Write the output into the table; return the new case. Other cases of the file may have moved."""
        text = re.sub(rf"(?m)^opwest: \d+ errors\n|^{FIRST}:(?=\d+:\d+: )", "", printed)
        lines = self.path.read_text(encoding="utf-8").splitlines()
        now = next(case for case in read(self.path)[1] if case.id == self.id)
        lines[now.output.start : now.output.stop] = text.splitlines()
        self.path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return now._replace(expected=text)


def read(path: Path) -> tuple[list[Base], list[Case]]:
    """Return the bases and the cases of a table."""
    bases: list[Base] = []
    cases: list[Case] = []
    base = None
    lines = path.read_text(encoding="utf-8").splitlines()
    headers = {at: found for at, line in enumerate(lines) if (found := HEADER.fullmatch(line))}
    for (start, header), end in zip(headers.items(), [*headers, len(lines)][1:], strict=True):
        place = f"{path.name}:{start + 1}"
        block = [Row(f"{path.name}:{at + 1}", lines[at]) for at in range(start + 1, end) if lines[at]]
        kind, name, origin, errors, text, shared = header.groups()
        if shared is not None:
            base = SHARED[shared]
        elif kind == "base":
            whole = changed(SHARED[origin].text, block) if origin else "".join(f"{row.text[2:]}\n" for row in block)
            base = Base(f"{path.stem}/{name}", whole)
            bases.append(base)
        elif base is None or text is None:
            raise TableError(f"{place}: {'no description' if base else 'no base above the case'}")
        else:
            rows = list(takewhile(lambda row: row.text[0] in CHANGES or OTHER.fullmatch(row.text), block))
            output = range(start + 1 + len(rows), start + 1 + len(block))
            expected = "".join(f"{lines[at]}\n" for at in output)
            id_ = f"{path.stem}/{name}"
            cases.append(Case(id_, path, place, base, _by_file(rows), int(errors or 1), output, expected))
    return bases, cases


def _by_file(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the changes of each manifest."""
    found: dict[str, list[Row]] = {FIRST: []}
    for row in rows:
        if OTHER.fullmatch(row.text):
            found[f"{row.text[:-1]}.yaml"] = []
        else:
            found[list(found)[-1]].append(row)
    return found


def changed(base: str, rows: Sequence[Row]) -> str:
    """Return a base with all changes; bytes that are no UTF-8 are surrogates."""
    edits = sorted((_edit(base, rows) for rows in _groups(rows)), key=lambda edit: edit[:2])
    for (_, end, _, _), (start, _, _, place) in pairwise(edits):
        if start < end:
            raise TableError(f"{place}: two changes of one line")
    for start, end, text, _ in reversed(edits):
        base = base[:start] + text + base[end:]
    return base


def _groups(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Yield the rows of each change: lines that remain, lines that are removed, lines that are added."""
    group: list[Row] = []
    order = {" ": 0, "-": 1, "+": 2, "!": 2}
    for row in rows:
        mark = row.text[0]
        if group and (mark not in order or order[mark] < order[group[-1].text[0]]):
            yield group
            group = []
        if mark == "~":
            yield [row]
        elif mark != "@":
            group.append(row)
    if group:
        yield group


def _edit(base: str, rows: list[Row]) -> tuple[int, int, str, str]:
    """Return the start and the end of a part of the base, and its replacement."""
    place = rows[0].place
    if rows[0].text[0] == "~":
        old, arrow, new = rows[0].text[2:].partition(" => ")
        if not arrow or base.count(old) != 1:
            fault = f"'{old}' occurs {base.count(old)} times in the base" if arrow else "expected `~ OLD => NEW`"
            raise TableError(f"{place}: {fault}")
        start = base.index(old)
        return start, start + len(old), new, place
    kept, removed = ("".join(f"{row.text[2:]}\n" for row in rows if row.text[0] == mark) for mark in " -")
    added = "".join(
        _escaped(row.text[2:]) if row.text[0] == "!" else row.text[2:] + "\n" for row in rows if row.text[0] in "+!"
    )
    if not removed + added:
        raise TableError(f"{place}: no line is removed or added")
    if not kept + removed:
        return len(base), len(base), added, place
    found = [match.start() for match in re.finditer(f"(?m)^(?={re.escape(kept + removed)})", base)]
    if len(found) != 1:
        raise TableError(f"{place}: {(kept + removed).rstrip()!r} occurs {len(found)} times in the base")
    start = found[0] + len(kept)
    return start, start + len(removed), added, place


def _escaped(text: str) -> str:
    """Return a line with its repetitions and escaped bytes."""

    def repeat(match: re.Match[str]) -> str:
        return "".join(match[1].replace("#", str(number)) for number in range(int(match[2])))

    def byte(match: re.Match[str]) -> str:
        return "\n" if match[0] == r"\n" else bytes([int(match[1], 16)]).decode("utf-8", "surrogateescape")

    return re.sub(r"\\x(..)|\\n", byte, re.sub(r"\{\{(.+?) \* (\d+)\}\}", repeat, text)) + "\n"


SHARED = {base.id.partition("/")[2]: base for base in read(HERE / "bases.cases")[0]}
"""The bases of several tables, by name."""
TABLES = [read(path) for path in sorted(HERE.glob("*.cases"))]
BASES = [base for bases, _ in TABLES for base in bases if base.text]
CASES = [case for _, cases in TABLES for case in cases]
assert len({case.id for case in CASES}) == len(CASES), "two cases have the same name"


def find(name: str) -> Case:
    """Return the case with an id."""
    return next(case for case in CASES if case.id == name)
