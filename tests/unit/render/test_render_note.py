# SPDX-License-Identifier: Apache-2.0
"""The note of a model has the members that `opwest inspect` reads, and no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from golden_support import copy_project
from opwest.diagnostics import Diagnostics
from opwest.objects.image import NOTE_SHAPE
from opwest.render.note import note_record
from projects import check


def deviations(value: Any, shape: Any, where: str) -> list[str]:
    """Return the places where a value has other members or types than a shape."""
    if isinstance(shape, dict):
        if not isinstance(value, dict) or value.keys() != shape.keys():
            return [where]
        return [fault for key, inner in shape.items() for fault in deviations(value[key], inner, f"{where}.{key}")]
    if isinstance(shape, list):
        if not isinstance(value, list):
            return [where]
        return [fault for item in value for fault in deviations(item, shape[0], f"{where}[]")]
    return [] if type(value) is shape else [where]


@pytest.mark.parametrize("project", ["devices", "many_kinds", "asynchronous", "tvmgen"])
def test_note_and_reader_have_the_same_members(project: str, tmp_path: Path) -> None:
    for model, plan, *_ in check(copy_project(project, tmp_path / "source"), Diagnostics()):
        assert deviations(note_record(model, plan), NOTE_SHAPE, "note") == []


def test_every_list_of_the_note_has_items_in_a_project(tmp_path: Path) -> None:
    records = [
        note_record(model, plan)
        for project in ("devices", "many_kinds", "targets")
        for model, plan, *_ in check(copy_project(project, tmp_path / project), Diagnostics())
    ]
    pools = [pool for record in records for pool in record["pools"]]
    lists = {key for key, shape in NOTE_SHAPE.items() if isinstance(shape, list)}
    assert {key for record in records for key in lists if record[key]} == lists
    assert {key for pool in pools for key in ("reach", "regions", "buffers") if pool[key]} == {
        *("reach", "regions", "buffers")
    }
