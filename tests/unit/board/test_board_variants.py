# SPDX-License-Identifier: Apache-2.0
"""The service of projects with variants: a source for each, and the record of the variant in an image."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "golden"))

from golden_support import generate_project
from opwest.board.services import write_services
from opwest.diagnostics import OpwestError
from opwest.host.project_data import choose_model, project_record, selected_variant


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generate_project("variants", tmp_path_factory.mktemp("variants"))


def test_each_variant_has_its_service(project: Path, tmp_path: Path) -> None:
    record = project_record(project)
    assert record is not None
    write_services(tmp_path, project, record)
    found = {path.relative_to(tmp_path).as_posix(): path.read_text() for path in tmp_path.rglob("*.c")}
    assert found.keys() == {"adder_service.c", *(f"{name}/adder_service.c" for name in ("mla", "dsp", "mve"))}
    assert "fast" in found["dsp/adder_service.c"] and "fast" not in found["adder_service.c"]


def test_configuration_selects_the_record(project: Path) -> None:
    record = project_record(project)
    assert record is not None
    base = choose_model(None, project, record)
    dsp = selected_variant(base, {"CONFIG_OPWEST_MODEL_ADDER_VARIANT_DSP": "y"})
    assert dsp["steps"] == ["widen", "add_packed"]
    assert selected_variant(base, {"CONFIG_OPWEST_MODEL_ADDER_BASE": "y"}) is base


@pytest.mark.parametrize(("key", "value"), [("variant", "../x"), ("variant", 1), ("tensors", None)])
def test_damaged_record_of_a_variant(tmp_path: Path, key: str, value: object) -> None:
    project = generate_project("variants", tmp_path)
    lock = project / ".opwest" / "lock.json"
    content = json.loads(lock.read_text())
    content["record"]["models"][0]["variants"][1][key] = value
    lock.write_text(json.dumps(content))
    with pytest.raises(OpwestError, match="the lock is damaged"):
        project_record(project)
