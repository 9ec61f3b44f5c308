# SPDX-License-Identifier: Apache-2.0
"""Planning problems and plans as CSV tables in MiniMalloc's format: id, lower, upper, size; of plans, also offset.

A buffer is live at the times `lower` <= t < `upper`; sizes and offsets are in bytes.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import field

from opwest.base.diagnostics import Diagnostics, Location, nearest
from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.plan.problem import Block

_NEEDED = ("id", "lower", "upper", "size")
_OPTIONAL = ("alignment", "offset")
_MAX_NUMBER = 1 << 48
"""Exclusive limit on all numbers, so that sums are exact in 64 bits."""
_MAX_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class Row:
    """One buffer of the table."""

    name: str
    lower: int
    upper: int
    size: int
    align: int
    offset: int | None = None
    """None in a table without offsets."""
    place: Location = field(default=Location(""), compare=False)
    """The location of the offset, else of the line."""


def read_table(text: str, file: str, faults: Diagnostics) -> list[Row]:
    """Return the buffers of a table; report all errors with line and column."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows: list[Row] = []
    first: dict[str, int] = {}
    columns: list[str] | None = None
    try:
        for cells in reader:
            if not cells or cells == [""]:
                continue
            cells = [cell.strip() for cell in cells]
            if columns is None:
                columns = cells
                if not _check_header(columns, Location(file, reader.line_num, 1), faults):
                    return []
                continue
            row = _row(columns, cells, Location(file, reader.line_num, 1), faults)
            if row is None:
                continue
            at = first.setdefault(row.name, reader.line_num)
            if at != reader.line_num:
                faults.error(
                    f"duplicate buffer {row.name!r}",
                    Location(file, reader.line_num, 1),
                    expected="unique ids",
                    hint=f"first defined at line {at}",
                )
            rows.append(row)
    except csv.Error as error:
        faults.error(f"invalid CSV: {error}", Location(file, reader.line_num, 1))
        return []
    if columns is None:
        faults.error("the table is empty", Location(file), expected=f"a header: {','.join(_NEEDED)}")
    elif not rows and not faults.has_errors:
        faults.error("the table has no buffer", Location(file), expected="one line per buffer below the header")
    elif len(rows) > _MAX_ROWS:
        faults.error(f"the table has {counted(len(rows), 'buffer')}", Location(file), expected=f"at most {_MAX_ROWS}")
    return rows


def blocks_of(rows: Sequence[Row]) -> list[Block]:
    """Return the buffers as blocks, with one step per distinct time in the table."""
    steps = {time: step for step, time in enumerate(sorted({t for row in rows for t in (row.lower, row.upper)}))}
    return [Block(row.name, row.size, row.align, steps[row.lower], steps[row.upper] - 1) for row in rows]


def written_table(rows: Sequence[Row], offsets: Mapping[str, int] | None) -> str:
    """Return the table in MiniMalloc's format, with an alignment column if needed, and an offset column for a plan."""
    aligned = any(row.align > 1 for row in rows)
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*_NEEDED, *(["alignment"] if aligned else []), *(["offset"] if offsets is not None else [])])
    for row in rows:
        align = [row.align] if aligned else []
        offset = [offsets[row.name]] if offsets is not None else []
        writer.writerow([row.name, row.lower, row.upper, row.size, *align, *offset])
    return out.getvalue()


def _check_header(columns: Sequence[str], at: Location, faults: Diagnostics) -> bool:
    known = (*_NEEDED, *_OPTIONAL)
    expected = f"{','.join(_NEEDED)}; also {', '.join(_OPTIONAL)}"
    before = len(faults)
    for name in columns:
        if name not in known:
            faults.error(f"unknown column {name!r}", at, expected=expected, hint=nearest(name, known))
        elif columns.count(name) > 1:
            faults.error(f"duplicate column {name!r}", at, expected="unique columns")
    missing = [name for name in _NEEDED if name not in columns]
    if missing and len(faults) == before:  # otherwise the unknown column is likely a misspelt required one
        faults.error(f"missing columns in the header: {', '.join(map(repr, missing))}", at, expected=expected)
    return len(faults) == before


def _row(columns: Sequence[str], cells: Sequence[str], line: Location, faults: Diagnostics) -> Row | None:
    """Return the buffer of a line. Locations of cells are exact without quoted cells."""
    if len(cells) != len(columns):
        faults.error(
            f"the line has {len(cells)} value{'s' * (len(cells) != 1)}, the header {len(columns)}",
            line,
            expected=",".join(columns),
        )
        return None
    place = {
        name: line._replace(column=1 + sum(len(cell) + 1 for cell in cells[:index]))
        for index, name in enumerate(columns)
    }
    value = dict(zip(columns, cells, strict=True))
    if not value["id"]:
        faults.error("the id is empty", place["id"], expected="a unique name of the buffer")
    numbers = {}
    for name, least in (("lower", 0), ("upper", 0), ("size", 1), ("alignment", 1), ("offset", 0)):
        text = value.get(name, "1")
        if not (text.isascii() and text.isdigit()) or not least <= int(text[:20]) < _MAX_NUMBER or len(text) > 20:
            faults.error(f"{name} is {text!r}", place[name], expected=f"an integer, {least} to {_MAX_NUMBER - 1}")
        else:
            numbers[name] = int(text)
    if not value["id"] or len(numbers) < 5:
        return None
    if numbers["lower"] >= numbers["upper"]:
        faults.error(
            f"buffer {value['id']!r} ends at {numbers['upper']} and begins at {numbers['lower']}",
            place["upper"],
            expected="upper: greater than lower (the first time after the lifetime)",
        )
        return None
    offset = numbers["offset"] if "offset" in value else None
    at = place.get("offset", place["id"])
    return Row(value["id"], numbers["lower"], numbers["upper"], numbers["size"], numbers["alignment"], offset, at)
