# SPDX-License-Identifier: Apache-2.0
"""From a project, or manifests, to a report: what is read where, and whether it is still what was generated."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from opwest import __version__, pipeline
from opwest.diagnostics import Diagnostic, Diagnostics, Location, OpwestError
from opwest.host.project_data import project_record
from opwest.project.origin import ORIGIN, moved, read_origin
from opwest.render.project_files import project_record as record_of
from opwest.report import data
from opwest.report.collect import collect
from opwest.report.images import add_images
from opwest.report.measured import add_measured
from opwest.request import Examination, Request
from opwest.write.lock import to_json
from opwest.zephyr.options import ZephyrOptions

_FROM_MANIFEST = "make the report from the manifest: opwest report MANIFEST"


def make_report(
    paths: Sequence[Path], measured: Sequence[Path], faults: Diagnostics, images: Sequence[Path] = ()
) -> data.Report:
    """Return the report of one project, or of manifests, with what was measured and linked.

    Raises OpwestError with every fault.
    """
    folders = [path for path in paths if path.is_dir()]
    if folders and len(paths) > 1:
        raise OpwestError([_fault("a report is of one project, or of manifests", folders[0], expected="one folder")])
    record = _record(folders[0]) if folders else None
    manifests: Sequence[Path] = paths
    zephyr = ZephyrOptions()
    if folders:
        manifests, zephyr = _origin(folders[0])
    found = pipeline.run(Request(tuple(manifests), zephyr=zephyr), faults, "plan").found
    faults.raise_if_errors()
    stale = () if record is None else _stale(folders[0], record, found, faults)
    models = add_measured([collect(one) for one in found], measured, faults)
    models = add_images(models, images, faults)
    faults.raise_if_errors()
    return data.Report(__version__, tuple(models), stale)


def _record(project: Path) -> dict[str, Any]:
    record = project_record(project)
    if record is None:
        hint = "opwest generate MANIFEST -o DIR makes one; a manifest will do too: opwest report MANIFEST"
        raise OpwestError([_fault("this is not a folder that opwest generated", project, hint=hint)])
    return record


def _origin(project: Path) -> tuple[Sequence[Path], ZephyrOptions]:
    """Return where a project's manifests are now, and the boards that it was generated for."""
    origin = read_origin(project)
    if origin is None:
        message = "the project does not say where its manifest is"
        raise OpwestError([_fault(message, project, expected=str(ORIGIN), hint=_FROM_MANIFEST)])
    if fault := moved(origin.manifests, project):
        raise OpwestError([fault])
    return origin.manifests, ZephyrOptions(origin.boards)


def _stale(
    project: Path, record: dict[str, Any], found: Sequence[Examination], faults: Diagnostics
) -> tuple[data.Stale, ...]:
    """Return in what the project is not what its inputs would give now; warn of it."""
    known = record.get("models")
    before = {
        model["name"]: model
        for model in (known if isinstance(known, list) else [])
        if isinstance(model, dict) and isinstance(model.get("name"), str)
    }
    made = record_of([(one.model, one.plan) for one in found], vendored=True)
    now = {model["name"]: model for model in json.loads(to_json(made))["models"]}
    stale = []
    for name in [*before, *(name for name in now if name not in before)]:
        old, new = (side.get(name, {}).get("inputs", {}) for side in (before, now))
        old = old if isinstance(old, dict) else {}
        for file in sorted({*old, *new}):
            if old.get(file) != new.get(file):
                state = "gone" if file not in new else "new" if file not in old else "changed"
                stale.append(data.Stale(name, file, state))
        if old == new and before.get(name) != now.get(name):
            stale.append(data.Stale(name, "", "opwest"))
    if stale:
        _warn(project, stale, faults)
    return tuple(stale)


def _warn(project: Path, stale: Sequence[data.Stale], faults: Diagnostics) -> None:
    files = [f"{one.file} ({one.state})" for one in stale if one.state != "opwest"]
    shown = ", ".join(files[:5]) + (f" and {len(files) - 5} more" if len(files) > 5 else "")
    what = f"the project is older than what it is made from: {shown}" if files else "another opwest made the project"
    faults.warning(
        f"{what}; the report shows what would be generated now",
        Location(str(project)),
        hint=f"bring it along: opwest update {project}",
    )


def _fault(message: str, place: Path, *, expected: str | None = None, hint: str | None = None) -> Diagnostic:
    return Diagnostic("error", message, Location(str(place)), expected, hint)
