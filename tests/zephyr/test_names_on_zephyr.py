# SPDX-License-Identifier: Apache-2.0
"""Names of macros of Zephyr, CMSIS and C libraries, in an application that includes their headers."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import names_project
import pytest
from cover import configured
from zephyr_support import Workspace

pytestmark = pytest.mark.zephyr
Opwest = Callable[..., subprocess.CompletedProcess[str]]


@configured("board", ["mps2/an385", "native_sim/native/64"])
def test_model_with_names_of_macros(board: str, workspace: Workspace, opwest: Opwest, tmp_path: Path) -> None:
    opwest("generate", names_project.write(tmp_path / "source"), "-o", tmp_path / "app")
    console = workspace.build(tmp_path / "app", board).run("tvmgen 0\r?\nresults .*\n")
    assert names_project.EXPECTED in console
