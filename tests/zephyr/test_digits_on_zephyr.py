# SPDX-License-Identifier: Apache-2.0
"""The digits example with `west build`, with equal predictions on all boards."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from cover import configured
from digits_support import PREDICTIONS, predictions
from zephyr_support import ROOT, need_module

pytestmark = pytest.mark.zephyr
BOARDS = ["qemu_cortex_m3", "mps2/an385", "native_sim/native/64", "native_sim"]


@configured("board", BOARDS, cost=4)
def test_same_predictions_as_on_the_host(workspace, digits, tmp_path, board):
    """Then built again: an unchanged build runs no steps, a changed constant is linked."""
    app = shutil.copytree(digits, tmp_path / "app")
    built = workspace.build(app, board)
    assert predictions(built) == PREDICTIONS
    log = built.rebuilt()
    if not board.startswith("native_"):  # Zephyr links its runner anew each time
        assert "ninja: no work to do" in log
    constant = app / "models" / "digits" / "constants" / "dense_weight.bin"
    constant.write_bytes(bytes(constant.stat().st_size))
    assert "constants.S" in built.rebuilt()
    assert PREDICTIONS[-2] not in predictions(built)


@configured(board="native_sim/native/64")
def test_presets_of_the_example(workspace, digits, tmp_path):
    """CMake lists them, and configures one as `west build` does."""
    app, board = shutil.copytree(digits, tmp_path / "app"), BOARDS[2]
    presets = shutil.copy(ROOT / "examples" / "digits" / "CMakePresets.json", app)

    def cmake(*words):
        one = {"cwd": app, "env": workspace.environment(board), "stdout": subprocess.PIPE, "text": True}
        return subprocess.run(["cmake", *words], stderr=subprocess.STDOUT, check=True, **one).stdout

    listed = re.findall(r'^  "([\w-]+)" ', cmake("--list-presets"), re.MULTILINE)
    declared = json.loads(Path(presets).read_text())["configurePresets"]
    assert listed == [preset["name"] for preset in declared if "hidden" not in preset]
    assert {preset["cacheVariables"]["BOARD"] for preset in declared[1:]} <= {*BOARDS}
    assert "opwest: model digits: objects for x86-64" in cmake("--preset", "native_sim")
    assert f"BOARD:STRING={board}\n" in (app / "build/native_sim/CMakeCache.txt").read_text()


@configured(board="nucleo_l4r5zi")
def test_builds_for_a_real_board(workspace, digits):
    need_module(workspace, "hal/stm32")
    built = workspace.build(digits, "nucleo_l4r5zi")
    assert "objects for cortex-m4" in built.log
    assert built.elf.is_file()


@configured(
    "options, target",
    [
        (("-DCONFIG_FPU=y", "-DCONFIG_FP_SOFTABI=y"), "cortex-m4f-softfp"),
        (("-DCONFIG_FPU=n",), "cortex-m4"),
        (("-DCONFIG_FPU=y",), "cortex-m4f"),
    ],
    board="nucleo_l4r5zi",
    back_end="llvm",
)
@pytest.mark.needs("llvmlite")
def test_cortex_m4f_board_with_every_float_abi(workspace, digits, opwest, tmp_path, options, target):
    need_module(workspace, "hal/stm32")
    opwest("generate", digits.parent / "example" / "manifest_ir.yaml", "-o", tmp_path / "app", "--metadata=llvm")
    code, built = workspace.try_build(tmp_path / "app", "nucleo_l4r5zi", *options, target="")
    assert code == 0 and f"objects for {target}\n" in built.log, built.log
