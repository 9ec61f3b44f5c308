# SPDX-License-Identifier: Apache-2.0
"""Operators and an application in C++, two models in one image, on native_sim and in QEMU."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from cover import configured
from cpp_project import write_models
from requirements_support import need
from zephyr_support import Workspace

pytestmark = pytest.mark.zephyr
LINES = "times_two: -2 4 -6 8\ntimes_five: -5 10 -15 20\n"


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory, opwest: Callable[..., subprocess.CompletedProcess[str]]) -> Path:
    folder = tmp_path_factory.mktemp("cpp")
    opwest("generate", *write_models(folder), "-o", folder / "app")
    return folder / "app"


@configured("board", ["mps2/an385", "native_sim/native/64"])
def test_two_models(workspace: Workspace, app: Path, board: str) -> None:
    if board == "mps2/an385":
        need("arm-none-eabi-g++", "qemu-system-arm")
    built = workspace.build(app, board)
    configuration = (built.folder / "zephyr/.config").read_text()
    assert "CONFIG_CPP=y\n" in configuration and "CONFIG_MINIMAL_LIBCPP=y\n" in configuration
    console = built.run("times_five: .*\n")
    assert LINES in console
