# SPDX-License-Identifier: Apache-2.0
"""One workspace and two threads of Zephyr: functions of a running workspace return -EBUSY and change nothing."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from busy_project import write_manifest
from cover import configured
from requirements_support import need
from zephyr_support import ROOT, Workspace

pytestmark = pytest.mark.zephyr
Opwest = Callable[..., subprocess.CompletedProcess[str]]

PROGRAM = ROOT / "tests" / "zephyr" / "programs" / "busy" / "main.c"
TARGETS = {"native_sim/native/64": "x86-64", "mps2/an385": "cortex-m3"}
PAIRS = [(board, back_end) for board in reversed(TARGETS) for back_end in ("llvm", "c")]


@configured("board, back_end", PAIRS)
def test_a_running_workspace_is_refused(
    board: str, back_end: str, workspace: Workspace, opwest: Opwest, tmp_path: Path
) -> None:
    options = ["--metadata=llvm", "--target", TARGETS[board]] if back_end == "llvm" else []
    if back_end == "llvm":
        need("llvmlite")
    (tmp_path / "main.c").write_text(PROGRAM.read_text())
    manifest = write_manifest(tmp_path, more="\napplication:\n  sources: [main.c]\n")
    app = tmp_path / "app"
    opwest("generate", manifest, "-o", app, *options)
    console = workspace.build(app, board).run(r"two threads: \d+ wrong")
    assert "one workspace, two threads: 0 wrong" in console, console
