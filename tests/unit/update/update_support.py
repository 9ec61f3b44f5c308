# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of regeneration."""

from pathlib import Path

import projects
from golden_support import copy_project
from opwest.api.update import UpdateRequest, update_project
from opwest.base.diagnostics import Diagnostics
from opwest.project.writer import write_project
from opwest.zephyr.workspace import ZephyrOptions
from write_support import RECORD


def merge(directory, *files, record=RECORD):
    """Write as `update` does; return the result."""
    return write_project(directory, files, record, merging=True)


def remarks(result):
    return [(remark.kind, remark.path, *remark.lines, *([remark.other] if remark.other else [])) for remark in result]


def no_zephyr(boards, version):
    return ZephyrOptions(boards)


def source_and_app(tmp_path, name="minimal", **options) -> tuple[Path, Path]:
    """Return the manifest of a golden project and the generated project."""
    (manifest,) = copy_project(name, tmp_path / "source")
    app = tmp_path / "app"
    projects.generate([manifest], app, vendored=False, faults=Diagnostics(), **options)
    return manifest, app


def update(app, **options):
    faults = Diagnostics()
    outcome = update_project(app, UpdateRequest(no_zephyr, **options), faults)
    return outcome, "\n".join(map(str, faults.in_order()))


def change(path: Path, old: str, new: str):
    text = path.read_text()
    assert old in text, (path, old)
    path.write_text(text.replace(old, new))
