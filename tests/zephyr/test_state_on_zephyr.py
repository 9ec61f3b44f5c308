# SPDX-License-Identifier: Apache-2.0
"""State between runs under Zephyr: two interleaved streams with failures and resets, and the emitted suite."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import streams
from cover import configured
from requirements_support import need
from zephyr_support import ROOT, Workspace

pytestmark = pytest.mark.zephyr
Opwest = Callable[..., subprocess.CompletedProcess[str]]

FRAMES = 1000
PROGRAM = ROOT / "tests" / "compile" / "programs" / "two_streams.c"
TARGETS = {"native_sim/native/64": "x86-64", "mps2/an385": "cortex-m3"}
PAIRS = [(board, back_end) for board in reversed(TARGETS) for back_end in ("llvm", "c")]


def generated(opwest: Opwest, tmp_path: Path, *options: str) -> Path:
    """Return an application whose main() runs the two streams."""
    manifest = tmp_path / "source" / "manifest.yaml"
    shutil.copytree(streams.PROJECT, manifest.parent, ignore=shutil.ignore_patterns("expected"))
    (manifest.parent / "main.c").write_text(PROGRAM.read_text())
    (manifest.parent / "two_streams.h").write_text(streams.header(FRAMES))
    manifest.write_text(manifest.read_text() + "\napplication:\n  sources: [main.c, two_streams.h]\n")
    app = tmp_path / "app"
    opwest("generate", manifest, "-o", app, *options)
    return app


@configured("board, back_end", PAIRS)
def test_two_streams_equal_numpy(
    board: str, back_end: str, workspace: Workspace, opwest: Opwest, tmp_path: Path
) -> None:
    options = ["--metadata=llvm", "--target", TARGETS[board]] if back_end == "llvm" else []
    if back_end == "llvm":
        need("llvmlite")
    app = generated(opwest, tmp_path, *options)
    console = workspace.build(app, board).run(r"frames: \d+ wrong")
    assert f"two streams of {FRAMES} frames: 0 wrong" in console, console
