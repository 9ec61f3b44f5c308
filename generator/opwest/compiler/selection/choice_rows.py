# SPDX-License-Identifier: Apache-2.0
"""The choice of variants for a class of processors as JSON values; `imports/choices.py` makes the table of them."""

from __future__ import annotations

from typing import Any

from opwest.compiler.ir.labels import layer
from opwest.compiler.ir.operations import UserCall
from opwest.compiler.selection.choose import Choice, Row
from opwest.objects.flash import UNKNOWN, Flash


def choice_rows(processor: str, core: str, choice: Choice, memory: int, flash: Flash) -> dict[str, Any]:
    """Return a row for each layer, with the costs for a flash and the other variants, and their sums.

    `memory`: the bytes of the plan. Operators of the user are left out: their costs are unknown.
    """
    own = [row for row in choice.rows if not isinstance(row.operation, UserCall)]
    cycles, stalls = (sum(getattr(row.cost, name) for row in own) for name in ("cycles", "stalls"))
    # The cycles of a board contain its own stalls.
    is_modelled = stalls and not any(row.cost.is_of_board for row in own)
    return {
        "processor": processor,
        "core": core,
        "source": _source(core, choice, flash),
        "flash": flash.text,
        "layers": [
            {"layer": layer(row.operation.label), **_variant(row), "others": list(map(_variant, row.others))}
            for row in own
        ],
        "cycles": round(cycles),
        "cycles_without_stalls": round(cycles - stalls) if is_modelled else None,
        "flash_bytes": sum(row.flash for row in own),
        "scratch_bytes": max((row.scratch for row in own), default=0),
        "ram_bytes": memory,
        "gap": choice.gap,
    }


def _variant(row: Row) -> dict[str, Any]:
    return {
        "variant": row.variant,
        "cycles": round(row.cost.cycles),
        "flash_bytes": row.flash,
        "scratch_bytes": row.scratch,
        "reason": row.why,
        "origin": "board" if row.cost.is_of_board else row.cost.origin,
    }


def _source(core: str, choice: Choice, flash: Flash) -> str:
    """Return where the cycles of the rows are from."""
    shown = "the flash of an unknown board" if flash == UNKNOWN else f"flash {flash.text}"
    memory = f" with {shown}" if flash.wait_states else ""
    model = f"a model of a {core}{memory}, from instructions counted in QEMU: not of silicon"
    boards = dict.fromkeys(row.cost.source for row in choice.rows if row.cost.is_of_board)
    if not boards:
        return f"cycles of {model}"
    others = [layer(row.operation.label) for row in choice.rows if not row.cost.is_of_board]
    rest = f"; of layers {', '.join(others)}: of {model}" if others else ""
    return f"cycles of {' and '.join(boards)}{rest}"
