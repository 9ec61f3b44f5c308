# SPDX-License-Identifier: Apache-2.0
"""The LLVM back end with `west build`: operators as IR, the metadata module as an object, equal predictions."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cover import configured
from requirements_support import skip_here
from test_digits_on_zephyr import END, predictions
from zephyr_support import ROOT, Workspace

pytestmark = [
    pytest.mark.zephyr,
    pytest.mark.needs("llvmlite"),
]
BOARDS = ["mps2/an385", "native_sim/native/64", "native_sim", "mps3/corstone300/an547"]
Opwest = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def digits_llvm(tmp_path_factory: pytest.TempPathFactory, opwest: Opwest) -> Path:
    """Digits with operators as IR and metadata as objects."""
    folder = tmp_path_factory.mktemp("digits_llvm")
    example = folder / "example"
    shutil.copytree(ROOT / "examples" / "digits", example, ignore=shutil.ignore_patterns("objects", "__pycache__"))
    opwest("generate", example / "manifest_ir.yaml", "-o", folder / "app", "--metadata=llvm")
    return folder / "app"


@pytest.fixture(scope="session")
def host_lines(digits: Path) -> list[str]:
    """The output of the C back end on the host."""
    done = subprocess.run(
        [sys.executable, "-m", "opwest", "run", digits, "--host"], capture_output=True, text=True, check=True
    )
    return predictions(done.stdout)


@configured("board", BOARDS, back_end="llvm")
def test_same_predictions_as_with_c_metadata(
    workspace: Workspace, digits_llvm: Path, host_lines: list[str], board: str
) -> None:
    assert not (digits_llvm / "models" / "digits" / "src" / "digits_run.c").exists()
    assert predictions(workspace.build(digits_llvm, board).run(END)) == host_lines


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
def test_cortex_m4f_board_with_every_float_abi(
    workspace: Workspace, digits_llvm: Path, options: tuple[str, ...], target: str
) -> None:
    if not (workspace.base.parent / "modules" / "hal" / "stm32").is_dir():
        skip_here("the workspace has no hal_stm32: west update hal_stm32")
    code, built = workspace.try_build(digits_llvm, "nucleo_l4r5zi", *options, target="")
    assert code == 0 and f"objects for {target}\n" in built.log, built.log
