# SPDX-License-Identifier: Apache-2.0
"""A scripted agent: the commands of the skill in their order, from a .tflite file to a passing run of twister."""

import json
import os
import sys

import pytest
from cover import configured
from models.commands import dense
from requirements_support import need
from test_project_tests_on_zephyr import check_passed
from zephyr_support import ROOT

sys.path.insert(0, str(ROOT / "tests" / "docs"))  # the pages as programs

from pages import run
from test_agents import SKILL
from test_pages import environment

pytestmark = pytest.mark.zephyr
BOARD = "native_sim/native/64"


@configured(board=BOARD)
def test_commands_of_the_skill(workspace, tmp_path):
    """Twister runs the application and the tests of its model."""
    need("tflite")
    folder = tmp_path / "page"
    folder.mkdir()
    dense("int8", results=8).save(folder / "model.tflite")
    tools = environment(tmp_path)["PATH"].partition(os.pathsep)[0]
    env = workspace.environment(BOARD)
    env["PATH"] = f"{tools}{os.pathsep}{env['PATH']}"
    assert run(SKILL, folder, env, zephyr=True) > 7
    report = json.loads((folder / "twister-out" / "twister.json").read_text(encoding="utf-8"))
    check_passed(report, {BOARD}, "opwest.model.tests")
    passed = [s["name"].rsplit("/", 1)[-1] for s in report["testsuites"] if s["status"] == "passed" and s["runnable"]]
    assert sorted(passed) == ["opwest.model", "opwest.model.tests"], report["testsuites"]
