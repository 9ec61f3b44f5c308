# SPDX-License-Identifier: Apache-2.0
"""One workspace and two threads of Zephyr: functions of a running workspace return -EBUSY and change nothing."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from busy_project import write_manifest
from cover import configured
from gallery import Program, output
from zephyr_support import BACK_ENDS, ROOT, Workspace

pytestmark = pytest.mark.zephyr
Opwest = Callable[..., subprocess.CompletedProcess[str]]


def write(folder: Path) -> list[Path]:
    """Write the model and main.c; return the manifest."""
    shutil.copy(ROOT / "tests" / "zephyr" / "programs" / "busy" / "main.c", folder)
    return [write_manifest(folder)]


PROGRAM = Program("busy", write, BACK_ENDS)


@configured("board, back_end", BACK_ENDS)
def test_a_running_workspace_is_refused(workspace: Workspace, opwest: Opwest, board: str, back_end: str) -> None:
    console = output(workspace, opwest, board, back_end, PROGRAM)
    assert "one workspace, two threads: 0 wrong" in console, console
