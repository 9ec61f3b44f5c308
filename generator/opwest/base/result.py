# SPDX-License-Identifier: Apache-2.0
"""The result of a command: text for people, values for programs, an exit code."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from opwest.base.frozen_dataclass import dataclass


@dataclass(frozen=True)
class Result:
    """The result of a command, for people and for programs."""

    as_text: str
    as_json: Any
    status: int = 0
    """The exit code of a successful command."""
    is_content: bool = False
    """Whether the text is a file that was requested on standard output."""


def counted(count: int, what: str) -> str:
    """Return `1 step`, `2 steps`."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def table_lines(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """Return the rows of a table as lines of aligned cells, two spaces apart; `right` are the right-aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
