# SPDX-License-Identifier: Apache-2.0
"""Digits with other versions of Zephyr: equal predictions on all boards, with both back ends."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from cover import configured
from requirements_support import need
from zephyr_support import OTHER_VERSIONS, Workspace

pytestmark = pytest.mark.zephyr
Opwest = Callable[..., subprocess.CompletedProcess[str]]
BOARDS = ("native_sim/native/64", "native_sim", "mps2/an385", "qemu_cortex_m3")
CONFIGURATIONS = [(version, board, end) for version in OTHER_VERSIONS for board in BOARDS for end in ("c", "llvm")]


@configured("version, board, back_end", CONFIGURATIONS)
def test_digits(
    workspaces: Callable[[str], Workspace],
    opwest: Opwest,
    digits: Path,
    tmp_path: Path,
    version: str,
    board: str,
    back_end: str,
) -> None:
    if back_end == "llvm":
        need("llvmlite")
    other = workspaces(version)
    own = other.board(board)
    assert version != "3.4" or own in ("native_posix_64", "native_posix", "mps2_an385", "qemu_cortex_m3")
    manifest = digits.parent / "example" / ("manifest_ir.yaml" if back_end == "llvm" else "manifest.yaml")
    app = tmp_path / "app"
    given = ["--board", own, "--zephyr-base", other.base, f"--metadata={back_end}"]
    opwest("generate", manifest, "-o", app, *given)
    if own.startswith("native_"):
        assert not (app / "boards").exists(), "the board needs no settings"
    console = other.build(app, own).run(r"^accuracy: .*$")
    assert "predictions: 360 of 360 equal the reference" in console
    assert "accuracy: 99.17 %" in console
