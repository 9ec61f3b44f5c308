# SPDX-License-Identifier: Apache-2.0
"""The digits example with `west build`, with equal predictions on all boards, and with `west twister`."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from cover import configured
from in_process import succeed
from requirements_support import skip_here
from test_project_tests_on_zephyr import check_passed
from zephyr_support import Workspace, again

pytestmark = pytest.mark.zephyr
BOARDS = ["qemu_cortex_m3", "mps2/an385", "native_sim/native/64", "native_sim"]
END = r"^accuracy: .*$"


def predictions(console: str) -> list[str]:
    """Return the lines that the application prints, without Zephyr's own."""
    return [line for line in console.splitlines() if re.match(r"(predictions|accuracy):", line)]


@pytest.fixture(scope="session")
def host_predictions(digits: Path) -> list[str]:
    return predictions(succeed("run", digits, "--host").stdout)


@configured("board", BOARDS, cost=4)
def test_same_predictions_as_on_the_host(
    workspace: Workspace, digits: Path, host_predictions: list[str], tmp_path: Path, board: str
) -> None:
    """Then built again: an unchanged build runs no steps, a changed constant is linked."""
    app = shutil.copytree(digits, tmp_path / "app")
    built = workspace.build(app, board)
    console = built.run(END)
    assert predictions(console) == host_predictions
    assert "predictions: 360 of 360 equal the reference" in console
    accuracy = float(host_predictions[-1].split()[1])
    assert accuracy >= 95
    code, log = again(workspace, built.folder, board)
    assert code == 0, log[-3000:]
    if not board.startswith("native_"):  # Zephyr links its runner anew each time
        assert "ninja: no work to do" in log
    constant = app / "models" / "digits" / "constants" / "dense_weight.bin"
    constant.write_bytes(bytes(constant.stat().st_size))
    code, log = again(workspace, built.folder, board)
    assert code == 0 and "constants.S" in log, log[-3000:]
    assert "predictions: 360 of 360" not in built.run(END)


@configured(board="nucleo_l4r5zi")
def test_builds_for_a_real_board(workspace: Workspace, digits: Path) -> None:
    if not (workspace.base.parent / "modules" / "hal" / "stm32").is_dir():
        skip_here("the workspace has no hal_stm32: west update hal_stm32")
    built = workspace.build(digits, "nucleo_l4r5zi")
    assert "objects for cortex-m4" in built.log
    assert (built.folder / "zephyr" / "zephyr.elf").is_file()


@configured(board="native_sim/native/64")
def test_twister_runs_it(workspace: Workspace, digits: Path, tmp_path: Path) -> None:
    env = workspace.environment("native_sim/native/64")
    usable = subprocess.run(
        [workspace.west, "twister", "--help"], env=env, capture_output=True, cwd=workspace.base.parent
    )
    if usable.returncode != 0:
        skip_here("west twister does not start: the workspace lacks scripts/requirements-build-test.txt")
    out = tmp_path / "twister"
    done = subprocess.run(
        [workspace.west, "twister", "-T", digits, "-p", "native_sim/native/64", "-O", out, "-v"],
        cwd=workspace.base.parent,
        env=env,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    report = json.loads((out / "twister.json").read_text())
    check_passed(report, {"native_sim/native/64"}, "opwest.digits.tests")
    executed = [s for s in report["testsuites"] if s["status"] == "passed" and s.get("runnable")]
    names = {suite["name"].rsplit("/", 1)[-1] for suite in executed}
    assert names == {"opwest.digits", "opwest.digits.tests"}, report["testsuites"]
    assert {suite["platform"] for suite in executed} == {"native_sim/native/64"}
