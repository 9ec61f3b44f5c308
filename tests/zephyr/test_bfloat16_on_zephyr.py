# SPDX-License-Identifier: Apache-2.0
"""A bfloat16 model under Zephyr: golden vectors in the emitted suite."""

from collections.abc import Callable
from pathlib import Path

import pytest
from compile.bfloat16_support import write_project
from cover import configured
from test_project_tests_on_zephyr import END
from zephyr_support import Workspace

pytestmark = pytest.mark.zephyr
BOARDS = ["mps2/an385", "native_sim/native/64"]


@configured("board", BOARDS)
def test_suite_passes(workspace: Workspace, opwest: Callable[..., object], tmp_path: Path, board: str) -> None:
    opwest("generate", write_project(tmp_path / "source") / "manifest.yaml", "-o", tmp_path / "app")
    console = workspace.build(tmp_path / "app" / "tests" / "brain", board).run(END)
    assert "PASS - test_vectors " in console and " FAIL - test_" not in console
    assert "PROJECT EXECUTION SUCCESSFUL" in console
