# SPDX-License-Identifier: Apache-2.0
"""A bfloat16 model under Zephyr: golden vectors in the emitted suite."""

from collections.abc import Callable
from pathlib import Path

import pytest
from compile.bfloat16_support import write_project
from cover import configured
from test_project_tests_on_zephyr import END, cases, twister
from zephyr_support import Workspace

pytestmark = pytest.mark.zephyr
NATIVE, AN385 = "native_sim/native/64", "mps2/an385"


@pytest.fixture
def app(opwest: Callable[..., object], tmp_path: Path) -> Path:
    opwest("generate", write_project(tmp_path / "source") / "manifest.yaml", "-o", tmp_path / "app")
    return tmp_path / "app"


@configured(board=NATIVE)
def test_twister_passes_the_suite(workspace: Workspace, app: Path, tmp_path: Path) -> None:
    report = twister(workspace, app / "tests", tmp_path / "twister", "-p", NATIVE)
    (suite,) = report["testsuites"]
    assert suite["platform"] == NATIVE
    results = cases(suite)
    assert results["vectors"] == "passed" and set(results.values()) <= {"passed", "skipped"}, suite


@configured(board=AN385)
def test_suite_passes_in_qemu(workspace: Workspace, app: Path) -> None:
    console = workspace.build(app / "tests" / "brain", AN385).run(END)
    assert "PASS - test_vectors " in console and " FAIL - test_" not in console
    assert "PROJECT EXECUTION SUCCESSFUL" in console
