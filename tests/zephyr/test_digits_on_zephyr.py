# SPDX-License-Identifier: Apache-2.0
"""The digits example with `west build`, with equal predictions on all boards, and with `west twister`."""

import shutil

import pytest
from cover import configured
from digits_support import PREDICTIONS, predictions
from test_project_tests_on_zephyr import check_passed, twister
from zephyr_support import need_module

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


@configured(board="native_sim/native/64")
def test_twister_runs_it(workspace, digits, tmp_path):
    report = twister(workspace, digits, tmp_path / "twister", "-p", BOARDS[2], toolchain_of=BOARDS[2])
    check_passed(report, {BOARDS[2]}, "opwest.digits.tests")
    executed = [s for s in report["testsuites"] if s["status"] == "passed" and s.get("runnable")]
    names = {suite["name"].rsplit("/", 1)[-1] for suite in executed}
    assert names == {"opwest.digits", "opwest.digits.tests"}, report["testsuites"]
    assert {suite["platform"] for suite in executed} == {BOARDS[2]}
