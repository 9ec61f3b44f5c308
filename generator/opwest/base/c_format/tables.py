# SPDX-License-Identifier: Apache-2.0
"""Tables and arrays whose layout needs no search: a line for each value, or values in columns."""

from __future__ import annotations

import re

from opwest.base.c_format.calls import SIGNS, TAB, WIDTH, call, is_irregular


def table(lines: list[str], at: int, tabs: int, width: int = WIDTH) -> list[str] | None:
    """Return the lines of an initialiser with a line for each value; None if its values can be laid out otherwise."""
    head = lines[at]
    if not head.endswith("= {") or len(head) + 7 * tabs > width or head[tabs] == "}":
        return None
    end = at + 1
    prefix = "\t" * (tabs + 1)
    room = width - TAB * (tabs + 1)
    rows: list[str] = []
    while end < len(lines) and lines[end].startswith(prefix):
        body = lines[end][tabs + 1 :]
        if body == "{" and len(rows) < 4 and (nested := _nested(lines, end, tabs + 1, width)):
            rows.append("\n".join([body, *lines[end + 1 : nested]]))
            end = nested
            continue
        if not body or body[-1] != "," or body[0] in "\t/#" or body.endswith(",},") or is_irregular(body):
            return None
        if body.count("(") != body.count(")") or body.count("{") != body.count("}"):
            return None
        rows.append(body)
        end += 1
    if not rows or end == len(lines) or lines[end] != "\t" * tabs + "};":
        return None
    out = [head]
    is_grid = rows[0][0] != "." and len(rows) >= 5 and "\n" not in "".join(rows) and 2 * min(map(len, rows)) < WIDTH
    if is_grid and (max(map(len, rows)) > room or any(_values(row) != 1 for row in rows)):
        return None
    for row in _grid(rows, room) if is_grid else rows:
        if len(row) <= room or (row[0] == "{" and "\n" in row):
            out.append(prefix + row)
        elif row[0].isalpha() and (broken := call(row, tabs + 1, width)) is not None:
            out += broken
        else:
            return None
    return [*out, lines[end]]


def _nested(lines: list[str], at: int, tabs: int, width: int) -> int:
    """Return the end of a structure with a line for each member in a table; 0 if it is laid out otherwise."""
    end = at + 1
    prefix = "\t" * (tabs + 1) + "."
    while end < len(lines) and lines[end].startswith(prefix):
        row = lines[end]
        if row[-1] != "," or "{" in row or len(row) + 7 * (tabs + 1) > width or is_irregular(row[tabs + 1 :]):
            return 0
        end += 1
    return end + 1 if end > at + 1 and end < len(lines) and lines[end] == "\t" * tabs + "}," else 0


def _values(row: str) -> int:
    """Return the number of values in a row of a table."""
    depth = count = 0
    for match in SIGNS.finditer(row):
        sign = match[0]
        depth += (sign in "([{") - (sign in ")]}")
        count += sign == "," and depth == 0
    return count


def _grid(rows: list[str], room: int) -> list[str]:
    """Return values in columns; unchanged if only one column is possible."""
    lengths = [len(row) for row in rows]
    sizes = _sizes(lengths, lengths, room)
    if sizes is None:
        return rows
    lines = [rows[start : start + len(sizes)] for start in range(0, len(rows), len(sizes))]
    return [" ".join(f"{row:{size}}" for row, size in zip(line, sizes, strict=False)).rstrip() for line in lines]


def _sizes(lengths: list[int], ends: list[int], room: int) -> list[int] | None:
    """Return the widths of the columns with which values need the fewest lines, and of those the fewest columns.

    `ends` are the lengths of values at the end of a line. None if only one column is possible.
    """
    layouts: list[tuple[int, int, list[int]]] = []
    for columns in range(1, min(WIDTH // 3, len(lengths)) + 1):
        parts = [lengths[column::columns] for column in range(columns - 1)] + [ends[columns - 1 :: columns]]
        sizes = [max(part) for part in parts]
        if any(size - min(part) > 10 for size, part in zip(sizes[:-1], parts, strict=False)):
            continue
        width = columns - 1 + sum(sizes)
        if width <= WIDTH or columns == 1:
            layouts.append((width, -(-len(lengths) // columns), sizes))
    best: tuple[int, list[int]] | None = None
    for width, count, sizes in reversed(layouts):
        if width <= room or len(sizes) == 1:
            if best is not None and count > best[0]:
                break
            best = count, sizes
    return best[1] if best is not None and len(layouts) > 1 else None


def numbers(body: str, tabs: int) -> list[str] | None:
    """Lay out an array of numbers or names in columns: behind the brace, or on lines of its own if that is better."""
    head, _, rest = body.partition("= {")
    if not rest.endswith("};") or re.search(r"[^\w, -]", rest[:-2]) or head.count("(") or head.count("{"):
        return None
    values = rest[:-2].split(", ")
    if len(values) < 6 or not all(values) or any(" " in value for value in values):
        return None
    texts = [f"{value}," for value in values[:-1]] + [values[-1]]
    lengths = [len(text) for text in texts]
    ends = [*lengths[:-1], lengths[-1] + 2]
    start, inner = TAB * tabs + len(head) + 3, TAB * (tabs + 1)
    options: list[tuple[int, int, list[int], int]] = []
    for penalty, column in ((0, start), (74, inner)):
        sizes = _sizes(lengths, ends, WIDTH - column)
        if sizes is None or sum(sizes) + len(sizes) - 1 > WIDTH - column:
            return None
        options.append((penalty + 41 * (-(-len(texts) // len(sizes)) - 1), column, sizes, penalty))
    _, column, sizes, own_line = min(options)
    indent = "\t" * (column // TAB) + " " * (column % TAB)
    lines = []
    for first in range(0, len(texts), len(sizes)):
        row = texts[first : first + len(sizes)]
        lines.append(indent + " ".join(f"{text:{size}}" for text, size in zip(row, sizes, strict=False)).rstrip())
    lines[-1] += "};"
    prefix = "\t" * tabs + head + "= {"
    return [prefix, *lines] if own_line else [prefix + lines[0].lstrip(), *lines[1:]]
