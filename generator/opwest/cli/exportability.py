# SPDX-License-Identifier: Apache-2.0
"""The table of `check`: kind, target, exportability, sizes, state and stack of every object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opwest.diagnostics import printable

_HEAD = ("object", "kind", "target", "exportable", "code", "constant", "state", "operators' stack")
_LONGEST_NAME = 80


def _cell(value: object) -> str:
    """Return a value as text; a long path is shortened to its end."""
    text = "-" if value is None else printable(str(value))
    return text if len(text) <= _LONGEST_NAME else "…" + text[1 - _LONGEST_NAME :]


def table(rows: Sequence[dict[str, Any]], most: int = 24) -> str:
    """Return the rows as a table; stack is the largest frame of the object's operators, in bytes."""
    if len(rows) > most:
        rows = sorted(rows, key=lambda row: not row["reasons"])  # rejected objects first, so that they are shown
    shown = [
        [
            _cell(row[key])
            for key in ("object", "kind", "target", "exportable", "code", "constant", "state_text", "stack_text")
        ]
        for row in rows[:most]
    ]
    cells = [list(_HEAD), *shown]
    widths = [max(len(line[i]) for line in cells) for i in range(len(_HEAD))]
    lines = ["  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in cells]
    if len(rows) > most:
        lines.append(f"... and {len(rows) - most} more: --json shows all")
    return "\n".join(f"  {line}" for line in lines)
