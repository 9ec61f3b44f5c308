# SPDX-License-Identifier: Apache-2.0
"""The output of `opwest update`."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

from opwest.api.calls import collecting
from opwest.api.update import OWN, ProjectUpdate
from opwest.api.update import update as update_projects
from opwest.base.diagnostics import Diagnostics
from opwest.base.result import Result, counted

_EXPENSIVE_EVERY = 10
"""Projects between two garbage collections, as the automatic collection is disabled."""


def update(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Update every project of the command line; print a line after each of several."""
    count = len(set(map(os.path.realpath, options.directories)))
    done: list[ProjectUpdate] = []

    def show(row: ProjectUpdate) -> None:
        done.append(row)
        if count > 1 and not options.json and not options.quiet:
            position = f"[{len(done):{len(str(count))}}/{count}]"
            print(f"{position} {_line(row)}", file=sys.stderr, flush=True)
        if len(done) % _EXPENSIVE_EVERY == 0:
            gc.collect()

    result = collecting(update_projects, faults)(
        options.directories,
        dry_run=options.dry_run,
        check=options.check,
        manifest=options.manifest,
        template=options.template,
        no_template=options.no_template,
        board=options.board,
        zephyr_version=options.zephyr_version,
        zephyr_base=options.zephyr_base,
        progress=show,
    )
    status = 1 if options.check and result.changed else 0
    return Result(_text(result.projects, options), [_json(row, options) for row in result.projects], status)


def _text(rows: Sequence[ProjectUpdate], options: argparse.Namespace) -> str:
    if options.dry_run:
        several = len(rows) > 1
        return "".join(row.diff(row.directory if several else None) for row in rows).removesuffix("\n")
    lines = [line for row in rows for line in _would_change(row)] if options.check else []
    if len(rows) == 1:  # a failure is an error, which is printed
        return "" if rows[0].state == "failed" else "\n".join([_line(rows[0]), *lines])
    counts = Counter(row.state for row in rows)
    lines.append(
        f"{counted(len(rows), 'project')}: " + ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
    )
    lines += [f"  {row.state}: {row.directory}" for row in rows if row.state in ("failed", "conflicts")]
    return "\n".join(lines)


def _line(row: ProjectUpdate) -> str:
    """Return the line for one project; a preview has changed no files."""
    verbs = ("to write", "to merge", "to remove") if row.changes is not None else ("written", "merged", "removed")
    counts = zip(map(len, (row.written, row.merged, row.removed)), verbs, strict=True)
    text = ", ".join(f"{count} {what}" for count, what in counts if count)
    return f"{row.directory}: {row.state}" + (f": {text}" if text else "")


def _would_change(row: ProjectUpdate) -> list[str]:
    """Return a line per file that would change."""
    if row.changes is None:
        return []
    conflicts = {conflict.path for conflict in row.conflicts if conflict.lines}
    lines = [f"  {change.path}: migrate to the current version" for change in row.migrated]
    for change in sorted(row.changes, key=lambda change: change.path):
        if change.path.startswith(OWN):
            continue
        verb = "remove" if change.new is None else "write" if change.old is None else "replace"
        if change.path in conflicts:
            verb = "merge, with conflicts"
        elif change.path in row.merged:
            verb = "merge"
        lines.append(f"  {row.directory / change.path}: {verb}")
    if not lines and row.changes:
        lines.append(f"  {row.directory / OWN}: internal records of opwest")
    return lines


def _json(row: ProjectUpdate, options: argparse.Namespace) -> dict[str, Any]:
    value: dict[str, Any] = {"directory": str(row.directory), "state": row.state.replace(" ", "_")}
    if row.state == "failed":
        return value
    value |= {
        "written": list(row.written),
        "merged": list(row.merged),
        "removed": list(row.removed),
        "unchanged_count": row.unchanged,
        "kept": list(row.kept),
        "conflicts": [
            {"path": conflict.path, "lines": list(conflict.lines), "beside": conflict.beside}
            for conflict in row.conflicts
        ],
        "migrated": [change.path for change in row.migrated],
    }
    if row.changes is not None:
        value["would_change"] = sorted(change.path for change in row.changes)
    if options.dry_run:
        value["diff"] = row.diff()
    return value
