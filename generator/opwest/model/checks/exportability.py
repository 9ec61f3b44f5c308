# SPDX-License-Identifier: Apache-2.0
"""The table of objects: kind, target, sizes, state and stack of each, and why it cannot be exported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opwest.model.types.builds import Examined
from opwest.model.types.model import Model
from opwest.objects.facts import Member, ObjectError
from opwest.objects.linkability import state_of, verdict
from opwest.objects.stack import StackUse, stack_usage

_MAX_REASON_LENGTH = 60


def exportability(model: Model, objects: Sequence[Examined]) -> list[dict[str, Any]]:
    """Return a row for every linked and every rejected object."""
    symbols = {operator.symbol: operator.name for operator in model.operators}
    return [_row(examined, symbols) for examined in objects if examined.linked or examined.reasons]


def rows_json(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows for JSON output."""
    return [
        {
            **{key: row[key] for key in ("object", "kind", "target")},
            "exportable": not row["reasons"],
            "reasons": row["reasons"],
            **{f"{key}_bytes": row[key] for key in ("code", "constant", "state")},
            "variables": row["variables"],
            "stack": [{"operator": operator, "bytes": size} for operator, size in row["stack"].items()],
        }
        for row in rows
    ]


def _row(examined: Examined, symbols: dict[str, str]) -> dict[str, Any]:
    member, reasons = examined.member, examined.reasons
    stack = _stack(examined, member, symbols) if member else {}
    state = None if examined.item is None else state_of(examined.item)
    return {
        "object": examined.name,
        "kind": examined.kind,
        "target": examined.target,
        "exportable": verdict(reasons, examined.item) + (f": {_short(reasons[0])}" if reasons else ""),
        "reasons": list(reasons),
        "code": member.sizes.code if member else None,
        "constant": member.sizes.constant if member else None,
        "state": state.bytes if state is not None else None,
        "state_text": None if state is None else "unknown" if state.bytes is None else str(state.bytes),
        "variables": list(state.names) if state is not None else [],
        "stack": {operator: use.bytes if use.known else None for operator, use in stack.items()},
        "stack_text": _stack_text(stack),
    }


def _stack(examined: Examined, member: Member, symbols: dict[str, str]) -> dict[str, StackUse]:
    """Return the stack of the operators in an object; empty if its tables are damaged."""
    try:
        known = stack_usage(member, examined.stack_files)
    except ObjectError:
        return {}
    return {symbols[symbol]: known[symbol] for symbol in member.defined if symbol in symbols and symbol in known}


def _short(reason: str) -> str:
    """Return the first part of a reason; the error contains the rest."""
    text = reason.split("; ")[0]
    return text if len(text) <= _MAX_REASON_LENGTH else text[: _MAX_REASON_LENGTH - 1].rstrip() + "…"


def _stack_text(stack: dict[str, StackUse]) -> str:
    known = [use.bytes for use in stack.values() if use.known and use.bytes is not None]
    if not known:
        return "unknown"
    return f"{max(known)}" if len(known) == len(stack) else f"{max(known)}, others unknown"
