# SPDX-License-Identifier: Apache-2.0
"""The graph of steps: one row per step, one line per tensor from its writer to its readers."""

from __future__ import annotations

from typing import Any, Final

from opwest.base.frozen_dataclass import dataclass
from opwest.report import data

MOST_STEPS: Final = 100
ROW: Final = 26
_NODE: Final = 14
"""The horizontal position of the nodes, in pixels."""
_LANE: Final = 13
_GAP: Final = 4
"""Pixels from the middle of a row to the lines of results (below) and arguments (above)."""
_CHARACTER: Final = 7.3
"""Pixels of one character of a label, rounded up."""
_LONGEST: Final = 90


@dataclass(frozen=True)
class Edge:
    """A tensor between rows: from its writers to each reader, in a lane."""

    name: str
    role: str
    lane: int
    writers: tuple[int, ...]
    readers: tuple[int, ...]


def edges_of(model: data.Model) -> list[Edge]:
    """Return the tensors between rows; row 0 has the inputs, row s + 1 is step s, and the last row has the outputs.

    States begin in row 0 and end in the last row: they last from run to run. Lanes of tensors that overlap in rows
    differ.
    """
    last = len(model.steps) + 1
    roles = {one.name: one.role for one in model.buffers} | {one.name: one.role for one in model.tensors}
    writers: dict[str, list[int]] = {name: [0] for name, role in roles.items() if role in ("input", "state")}
    readers: dict[str, list[int]] = {name: [last] for name, role in roles.items() if role in ("output", "state")}
    for step in model.steps:
        for name in step.writes:
            writers.setdefault(name, []).append(step.index + 1)
        for name in step.reads:
            readers.setdefault(name, []).append(step.index + 1)
    ends: list[int] = []
    found = []
    for name, rows in sorted(writers.items(), key=lambda item: (item[1][0], max(readers.get(item[0], [0])), item[0])):
        targets = sorted(row for row in set(readers.get(name, ())) if row > rows[0])
        if not targets:
            continue
        lane = next((number for number, end in enumerate(ends) if end <= rows[0]), len(ends))
        ends[lane : lane + 1] = [targets[-1]]
        sources = tuple(row for row in rows if row < targets[-1])
        found.append(Edge(name, roles.get(name, "intermediate"), lane, sources, tuple(targets)))
    return found


def graph_row(model: data.Model) -> dict[str, Any] | None:
    """Return the figure of the graph; None without steps, or with too many."""
    if not 0 < len(model.steps) <= MOST_STEPS:
        return None
    edges = edges_of(model)
    lanes = max((edge.lane for edge in edges), default=-1) + 1
    text = _NODE + (lanes + 1) * _LANE + 6
    by_role = {role: [one.name for one in model.tensors if one.role == role] for role in ("input", "output")}
    states = [one.name for one in model.buffers if one.role == "state"]
    kept = " and state" if states else ""
    rows = [
        _row(0, f"inputs{kept}", ", ".join([*by_role["input"], *states]), None),
        *(
            _row(s.index + 1, f"{s.index} {s.operator}", f"{', '.join(s.reads)} → {', '.join(s.writes)}", s.device)
            for s in model.steps
        ),
        _row(len(model.steps) + 1, f"outputs{kept}", ", ".join([*by_role["output"], *states]), None),
    ]
    return {
        "width": round(text + max(len(row["label"]) + len(row["detail"]) + 3 for row in rows) * _CHARACTER),
        "height": len(rows) * ROW,
        "node": _NODE,
        "text": text,
        "rows": rows,
        "edges": [{"kind": edge.role, "name": edge.name, "path": _path(edge), "heads": _heads(edge)} for edge in edges],
    }


def _row(index: int, label: str, detail: str, device: str | None) -> dict[str, Any]:
    detail = detail if len(detail) <= _LONGEST else f"{detail[: _LONGEST - 1]}…"
    return {"y": _middle(index), "label": label, "detail": detail + (f" on {device}" if device else "")}


def _middle(row: int) -> int:
    return row * ROW + ROW // 2


def _path(edge: Edge) -> str:
    """Return the path of a line: from the nodes of the writers to the lane, and from the lane to each reader's node."""
    x = _NODE + (edge.lane + 1) * _LANE
    turn = 4
    bottom = _middle(edge.readers[-1]) - _GAP
    path = "".join(
        f"M{_NODE} {_middle(row) + _GAP}H{x - turn}q{turn} 0 {turn} {turn}V{bottom - turn}" for row in edge.writers
    )
    for row in edge.readers:
        y = _middle(row) - _GAP
        path += f"M{x} {y - turn}q0 {turn} -{turn} {turn}H{_NODE + 9}"
    return path


def _heads(edge: Edge) -> list[str]:
    """Return the arrowheads of a line at the nodes of its readers."""
    return [f"M{_NODE + 5} {_middle(row) - _GAP}l6 -3v6z" for row in edge.readers]
