# SPDX-License-Identifier: Apache-2.0
"""State between runs under Zephyr: two interleaved streams with failures and resets, and the emitted suite."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import streams
from cover import configured
from gallery import Program, output
from zephyr_support import BACK_ENDS, ROOT, Workspace

pytestmark = pytest.mark.zephyr
Opwest = Callable[..., subprocess.CompletedProcess[str]]

FRAMES = 1000
PROGRAM_FILE = ROOT / "tests" / "compile" / "programs" / "two_streams.c"


def write(folder: Path) -> list[Path]:
    """Write the model and a main() that runs the two streams; return the manifest."""
    ignored = shutil.ignore_patterns("main.c")
    shutil.copytree(streams.PROJECT, folder, ignore=ignored, dirs_exist_ok=True)
    (folder / "main.c").write_text(PROGRAM_FILE.read_text())
    (folder / "two_streams.h").write_text(streams.header(FRAMES))
    return [folder / "manifest.yaml"]


PROGRAM = Program("state", write, BACK_ENDS)


@configured("board, back_end", BACK_ENDS)
def test_two_streams_equal_numpy(workspace: Workspace, opwest: Opwest, board: str, back_end: str) -> None:
    console = output(workspace, opwest, board, back_end, PROGRAM)
    assert f"two streams of {FRAMES} frames: 0 wrong" in console, console
