# SPDX-License-Identifier: Apache-2.0
"""The oldest Zephyr that emitted projects are built with: native_posix, which later versions do not have."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from campaign import sized
from zephyr_support import Workspace

pytestmark = pytest.mark.zephyr
Opwest = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize("board", sized(["native_posix_64"], ["native_posix_64", "native_posix"]))
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
