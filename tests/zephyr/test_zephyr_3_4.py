# SPDX-License-Identifier: Apache-2.0
"""The oldest Zephyr that emitted projects are built with: native_posix, which later versions do not have."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from requirements_support import skip_here
from zephyr_support import Workspace

pytestmark = pytest.mark.zephyr
Opwest = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def old_base(workspace: Workspace) -> Path:
    """A tree of Zephyr 3.4 to 3.6; skips the test without one."""
    base = Path(os.environ.get("ZEPHYR_3_4_BASE") or Path.home() / "zephyrproject-3.4" / "zephyr")
    text = (base / "VERSION").read_text() if (base / "VERSION").is_file() else ""
    if not re.search(r"VERSION_MAJOR = 3\nVERSION_MINOR = [456]\n", text):
        skip_here(f"ZEPHYR 3.4 SKIPPED: no such tree at {base}, and ZEPHYR_3_4_BASE is not set")
    return base


@pytest.mark.parametrize("board", ["native_posix_64", "native_posix"])
def test_digits_on_native_posix(
    workspace: Workspace, old_base: Path, opwest: Opwest, digits: Path, tmp_path: Path, board: str
) -> None:
    app = tmp_path / "app"
    manifest = digits.parent / "example" / "manifest.yaml"
    opwest("generate", manifest, "-o", app, "--board", board, "--zephyr-base", old_base)
    assert not (app / "boards").exists(), "the board needs no settings"
    env = workspace.environment("native_posix") | {"ZEPHYR_BASE": str(old_base)}
    build = tmp_path / "build"
    ninja = shutil.which("ninja")
    assert ninja is not None
    # Without west, which would use the modules of the other workspace.
    for command in (
        ["cmake", "-GNinja", f"-DBOARD={board}", "-DZEPHYR_MODULES=", "-B", str(build), "-S", str(app)],
        [ninja, "-C", str(build)],
    ):
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    done = subprocess.run(
        ["timeout", "5", build / "zephyr" / "zephyr.exe"], capture_output=True, text=True, check=False
    )
    assert "predictions: 360 of 360 equal the reference" in done.stdout
