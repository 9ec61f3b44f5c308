# SPDX-License-Identifier: Apache-2.0
"""The table of the variants of operators, for `opwest import`."""

from __future__ import annotations

from opwest.compiler.ir.rows import UserCall
from opwest.compiler.selection.choose import Choice


def layer(label: str) -> str:
    """Return the number and the operator of a label, without the name of its result."""
    return label.partition(", result ")[0]


def table_text(processor: str, core: str, choice: Choice, memory: int) -> str:
    """Return the table of a class of processors with the bytes of the planned memory; ends without a line end.

    Operators of the user are left out: their costs are unknown.
    """
    own = [row for row in choice.rows if not isinstance(row.operation, UserCall)]
    heads = ("layer", "variant", "cycles", "flash", "scratch", "why")
    rows = [
        (
            layer(row.operation.label),
            row.variant,
            f"{row.cost.cycles:,.0f}",
            f"{row.flash:,}",
            f"{row.scratch:,}",
            row.why,
        )
        for row in own
    ]
    sums = (sum(row.cost.cycles for row in own), sum(row.flash for row in own), max(row.scratch for row in own))
    total = ("all", "", f"{sums[0]:,.0f}", f"{sums[1]:,}", f"{sums[2]:,}", "")
    widths = [max(len(row[i]) for row in (heads, *rows, total)) for i in range(len(heads))]
    lines = [f"{processor} ({_source(core, choice)}; bytes)"]
    for row in (heads, *rows, total):
        cells = [
            cell.rjust(width) if 2 <= i <= 4 else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(f"  {'  '.join(cells).rstrip()}")
    lines.append(f"  {memory:,} bytes of memory for tensors between layers and scratch memory")
    if choice.gap:
        lines.append(f"  at most {choice.gap:.2%} above the least cycles")
    return "\n".join(lines)


def _source(core: str, choice: Choice) -> str:
    """Return where the cycles of the rows are from."""
    model = f"a {core} in QEMU's model, not of silicon"
    boards = dict.fromkeys(row.cost.source for row in choice.rows if row.cost.is_of_board)
    if not boards:
        return f"cycles of {model}"
    others = [layer(row.operation.label) for row in choice.rows if not row.cost.is_of_board]
    rest = f"; of layers {', '.join(others)}: of {model}" if others else ""
    return f"cycles of {' and '.join(boards)}{rest}"
