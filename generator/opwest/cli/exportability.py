# SPDX-License-Identifier: Apache-2.0
"""The table of `check`: every object that is linked, with its kind, sizes, state and stack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opwest.model.model import Model, TargetBuild
from opwest.objects.facts import Member
from opwest.objects.inspect import read_member
from opwest.objects.stack import StackUse, stack_usage

_HEAD = ("object", "kind", "target", "exportable", "code", "constant", "state", "operators' stack")


def exportability(model: Model) -> list[dict[str, Any]]:
    """Return a row for every object and source that is linked."""
    rows = []
    for build in model.builds:
        symbols = {operator.symbol: operator.name for operator in model.operators}
        for item in build.objects:
            member = read_member(item.origin, item.content)
            rows.append(_object_row(item.origin, member, build, symbols))
    sources = model.builds[0].sources if model.builds else ()
    for source in sources:
        if source.compiled:
            rows.append(_row(str(source.path), "C source", "any", "when it is compiled", None, {}))
    return rows


def _object_row(origin: str, member: Member, build: TargetBuild, symbols: dict[str, str]) -> dict[str, Any]:
    kind = "LLVM IR" if origin.endswith((".ll", ".bc")) else "archive member" if origin.endswith(")") else "ELF object"
    stack = stack_usage(member)
    used = {symbols[s]: stack[s] for s in member.defined if s in symbols and s in stack}
    target = build.target.name if build.target else "any"
    return _row(origin, kind, target, "; ".join(member.faults) or "yes", member, used)


def _row(
    name: str, kind: str, target: str, exportable: str, member: Member | None, stack: dict[str, StackUse]
) -> dict[str, Any]:
    return {
        "object": name,
        "kind": kind,
        "target": target,
        "exportable": exportable,
        "code": member.sizes.code if member else None,
        "constant": member.sizes.constant if member else None,
        "state": member.sizes.writable if member else None,
        "stack": {operator: use.bytes if use.known else None for operator, use in stack.items()},
        "stack_text": _stack_text(stack),
    }


def _stack_text(stack: dict[str, StackUse]) -> str:
    known = [use.bytes for use in stack.values() if use.known and use.bytes is not None]
    if not known:
        return "unknown"
    return f"{max(known)}" if len(known) == len(stack) else f"{max(known)}, others unknown"


def table(rows: Sequence[dict[str, Any]], most: int = 24) -> str:
    """Return the rows as a table; stack is the largest frame of the object's own operators, bytes."""
    shown = [
        [
            str(row[key]) if row[key] is not None else "-"
            for key in ("object", "kind", "target", "exportable", "code", "constant", "state", "stack_text")
        ]
        for row in rows[:most]
    ]
    cells = [list(_HEAD), *shown]
    widths = [max(len(line[i]) for line in cells) for i in range(len(_HEAD))]
    lines = ["  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in cells]
    if len(rows) > most:
        lines.append(f"... and {len(rows) - most} more: --json shows all")
    return "\n".join(f"  {line}" for line in lines)
