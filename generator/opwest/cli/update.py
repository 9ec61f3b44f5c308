# SPDX-License-Identifier: Apache-2.0
"""`opwest update`: update projects one after the other; continue after a failure."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from opwest.base.diagnostics import Diagnostic, Diagnostics, Location, OpwestError
from opwest.base.frozen_dataclass import dataclass
from opwest.base.paths import spelled
from opwest.base.result import Result
from opwest.cli.regenerate import FindZephyr, Outcome, UpdateRequest, update_project
from opwest.project.merge import of_file, unified
from opwest.zephyr.workspace import ZephyrOptions

_OWN = ".opwest/"
_EXPENSIVE_EVERY = 10
"""Projects between two garbage collections, as the automatic collection is disabled."""


@dataclass(frozen=True)
class _Row:
    """The result for one project."""

    project: Path
    outcome: Outcome | None
    state: str


def update(
    options: argparse.Namespace, faults: Diagnostics, zephyr: Callable[[argparse.Namespace], ZephyrOptions]
) -> Result:
    """Update every project of the command line; `zephyr` reads the options about Zephyr."""
    projects = _distinct(options.directories)
    if options.manifest and len(projects) > 1:
        message = "--manifest requires a single project"
        raise OpwestError([Diagnostic("error", message, hint="update the projects with moved manifests one at a time")])
    request = UpdateRequest(
        _cached(options, zephyr),
        tuple(options.manifest),
        options.template,
        options.no_template,
        tuple(options.board),
        options.zephyr_version,
        preview=options.check or options.dry_run,
    )
    rows = []
    for number, project in enumerate(projects, 1):
        rows.append(_one(project, request, faults))
        if len(projects) > 1 and not options.json and not options.quiet:
            print(
                f"[{number:{len(str(len(projects)))}}/{len(projects)}] {_line(rows[-1])}", file=sys.stderr, flush=True
            )
        if number % _EXPENSIVE_EVERY == 0:
            gc.collect()
    return Result(_text(rows, options), [_json(row, options) for row in rows], status=_status(rows, options))


def _one(project: Path, request: UpdateRequest, faults: Diagnostics) -> _Row:
    found = Diagnostics()
    outcome = None
    try:
        outcome = update_project(project, request, found)
    except OpwestError as error:
        for diagnostic in error.diagnostics:
            found.add(diagnostic)
    except OSError as error:
        found.error(f"cannot read the project or its inputs: {error}", Location(str(project)))
    for diagnostic in found:
        faults.add(diagnostic)
    faults.sources |= found.sources
    if outcome is None or (found.has_errors and outcome.state != "conflicts"):
        return _Row(project, outcome, "failed")
    return _Row(project, outcome, outcome.state)


def _distinct(directories: list[Path]) -> list[Path]:
    """Return the directories without duplicates; different spellings of a path are the same."""
    known: dict[str, Path] = {}
    for directory in directories:
        known.setdefault(os.path.realpath(directory), directory)
    return list(known.values())


def _cached(options: argparse.Namespace, zephyr: Callable[[argparse.Namespace], ZephyrOptions]) -> FindZephyr:
    """Return a function that finds Zephyr, with a cache by requested version."""
    known: dict[str | None, ZephyrOptions] = {}

    def find(boards: tuple[str, ...], version: str | None) -> ZephyrOptions:
        if version not in known:
            requested = argparse.Namespace(board=[], zephyr_version=version, zephyr_base=options.zephyr_base)
            known[version] = zephyr(requested)
        return replace(known[version], boards=boards)

    return find


def _status(rows: list[_Row], options: argparse.Namespace) -> int:
    return 1 if options.check and any(row.state != "unchanged" for row in rows) else 0


def _text(rows: list[_Row], options: argparse.Namespace) -> str:
    if options.dry_run:
        return "".join(_diff(row, prefix=len(rows) > 1) for row in rows).removesuffix("\n")
    lines = [line for row in rows for line in _would_change(row)] if options.check else []
    if len(rows) == 1:
        return "\n".join([_line(rows[0]), *lines])
    counts = {state: sum(row.state == state for row in rows) for state in dict.fromkeys(row.state for row in rows)}
    lines.append(f"{len(rows)} projects: " + ", ".join(f"{count} {state}" for state, count in sorted(counts.items())))
    lines += [f"  {row.state}: {row.project}" for row in rows if row.state in ("failed", "conflicts")]
    return "\n".join(lines)


def _line(row: _Row) -> str:
    """Return the line for one project; a preview has changed no files."""
    if row.outcome is None:
        return f"{row.project}: {row.state}"
    done = row.outcome.result
    preview = row.outcome.changes is not None
    verbs = ("to write", "to merge", "to remove") if preview else ("written", "merged", "removed")
    counts = zip(map(len, (done.written, done.merged, done.removed)), verbs, strict=True)
    text = ", ".join(f"{count} {what}" for count, what in counts if count)
    return f"{row.project}: {row.state}" + (f": {text}" if text else "")


def _would_change(row: _Row) -> list[str]:
    """Return a line per file that would change."""
    if row.outcome is None or row.outcome.changes is None:
        return []
    merged = set(row.outcome.result.merged)
    conflicts = {remark.path for remark in row.outcome.result.remarks if remark.kind == "conflict"}
    lines = [f"  {change.path}: migrate to the current version" for change in row.outcome.migrated]
    for change in sorted(row.outcome.changes, key=lambda change: change.path):
        if change.path.startswith(_OWN):
            continue
        verb = "remove" if change.new is None else "write" if change.old is None else "replace"
        if change.path in conflicts:
            verb = "merge, with conflicts"
        elif change.path in merged:
            verb = "merge"
        lines.append(f"  {row.project / change.path}: {verb}")
    if not lines and row.outcome.changes:
        lines.append(f"  {row.project / _OWN}: internal records of opwest")
    return lines


def _diff(row: _Row, *, prefix: bool) -> str:
    if row.outcome is None or row.outcome.changes is None:
        return ""
    changes = row.outcome.changes
    if prefix:
        own = [c for c in changes if not c.path.startswith(_OWN)]
        changes = tuple(replace(c, path=spelled(row.project / c.path).lstrip("/")) for c in own)
    manifests = (line for c in row.outcome.migrated for line in of_file(c.path.lstrip("/"), c.old, c.new))
    return "".join(manifests) + unified(changes)


def _json(row: _Row, options: argparse.Namespace) -> dict[str, Any]:
    value: dict[str, Any] = {"directory": str(row.project), "state": row.state}
    if row.outcome is None:
        return value
    done = row.outcome.result
    value |= {
        "written": list(done.written),
        "merged": list(done.merged),
        "removed": list(done.removed),
        "unchanged": done.unchanged,
        "kept": list(done.kept),
        "conflicts": [
            {"path": remark.path, "lines": list(remark.lines), "beside": remark.other}
            for remark in done.remarks
            if remark.kind in ("conflict", "beside", "unresolved")
        ],
        "migrated": [change.path for change in row.outcome.migrated],
    }
    if row.outcome.changes is not None:
        value["would_change"] = sorted(change.path for change in row.outcome.changes)
    if options.dry_run:
        value["diff"] = _diff(row, prefix=False)
    return value
