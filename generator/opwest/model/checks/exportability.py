# SPDX-License-Identifier: Apache-2.0
"""The table of objects: kind, target, sizes, state and stack of each, and why it cannot be exported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opwest.base.frozen_dataclass import dataclass
from opwest.model.types.builds import Examined
from opwest.model.types.model import Model
from opwest.objects.facts import Member, ObjectError
from opwest.objects.linkability import state_of, verdict
from opwest.objects.stack import StackUse, stack_usage

_MAX_REASON_LENGTH = 60


@dataclass(frozen=True)
class ObjectRow:
    """An object, and whether it can be exported; sizes in bytes, None if they are unknown."""

    object: str
    kind: str
    target: str
    exportable: str
    """yes or no, with the beginning of the first reason."""
    reasons: tuple[str, ...]
    code: int | None
    constant: int | None
    state: int | None
    state_text: str | None
    variables: tuple[str, ...]
    """The names of its writable variables."""
    stack: Mapping[str, int | None]
    """The stack frame of each operator."""
    stack_text: str


def exportability(model: Model, objects: Sequence[Examined]) -> list[ObjectRow]:
    """Return a row for every linked and every rejected object."""
    symbols = {operator.symbol: operator.name for operator in model.operators}
    return [_row(examined, symbols) for examined in objects if examined.linked or examined.reasons]


def rows_json(rows: Sequence[ObjectRow]) -> list[dict[str, Any]]:
    """Return the rows for JSON output."""
    return [
        {
            "object": row.object,
            "kind": row.kind,
            "target": row.target,
            "exportable": not row.reasons,
            "reasons": list(row.reasons),
            "code_bytes": row.code,
            "constant_bytes": row.constant,
            "state_bytes": row.state,
            "variables": list(row.variables),
            "stack": [{"operator": operator, "bytes": size} for operator, size in row.stack.items()],
        }
        for row in rows
    ]


def _row(examined: Examined, symbols: dict[str, str]) -> ObjectRow:
    member, reasons = examined.member, examined.reasons
    stack = _stack(examined, member, symbols) if member else {}
    state = None if examined.item is None else state_of(examined.item)
    return ObjectRow(
        object=examined.name,
        kind=examined.kind,
        target=examined.target,
        exportable=verdict(reasons, examined.item) + (f": {_short(reasons[0])}" if reasons else ""),
        reasons=tuple(reasons),
        code=member.sizes.code if member else None,
        constant=member.sizes.constant if member else None,
        state=state.bytes if state is not None else None,
        state_text=None if state is None else "unknown" if state.bytes is None else str(state.bytes),
        variables=tuple(state.names) if state is not None else (),
        stack={operator: use.bytes if use.known else None for operator, use in stack.items()},
        stack_text=_stack_text(stack),
    )


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
