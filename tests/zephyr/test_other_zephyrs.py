# SPDX-License-Identifier: Apache-2.0
"""Digits with all versions of Zephyr: equal predictions on all boards, with both back ends."""

import pytest
from cover import MAIN, configured
from digits_support import PREDICTIONS, predictions
from requirements_support import need
from zephyr_support import OTHER_VERSIONS

pytestmark = pytest.mark.zephyr
BOARDS = ("native_sim/native/64", "native_sim", "mps2/an385", "qemu_cortex_m3")
CONFIGURATIONS = [(version, board, end) for version in OTHER_VERSIONS for board in BOARDS for end in ("c", "llvm")]
# The other back end with this version: test_digits_on_zephyr.py.
CONFIGURATIONS += [(MAIN, board, "llvm") for board in (*BOARDS, "mps3/corstone300/an547")]


@configured("version, board, back_end", CONFIGURATIONS)
def test_digits(workspaces, opwest, digits, tmp_path, version, board, back_end):
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
        assert not [*app.glob("boards/native_*")], "the board needs no settings"
    assert (app / "models" / "digits" / "src" / "digits_run.c").exists() == (back_end == "c")
    assert predictions(other.build(app, own)) == PREDICTIONS
