# SPDX-License-Identifier: Apache-2.0
"""Vela's output for the shared models in images for the board with an Ethos-U55: linked only, QEMU has no NPU."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from cover import configured
from models.real import model_file
from requirements_support import need, skip_here
from zephyr_support import Workspace

pytestmark = pytest.mark.zephyr
BOARD = "mps3/corstone300/an547"
MODELS = {"kws_int8": (31104, 22192), "ad01_int8": (201184, 768), "ic_int8": (79248, 51840), "vww_int8": (76000, 74480)}
"""By model: the bytes of the weights and of the arena, of Vela 5.2 for ethos-u55-128."""


def used(log: str, region: str) -> int:
    """Return the bytes of a memory region that an image uses."""
    found = re.search(rf"^\s*{region}:\s+(\d+) (B|KB)", log, re.MULTILINE)
    assert found is not None, log[-2000:]
    return int(found[1]) * (1024 if found[2] == "KB" else 1)


def image(workspace: Workspace, opwest: Callable[..., object], folder: Path, name: str, *options: str) -> str:
    """Return the log of a build of a model; skip without what it needs."""
    need("ethosu", "tflite")
    if not (workspace.base.parent / "modules" / "hal" / "ethos_u" / "zephyr" / "module.yml").is_file():
        skip_here("the workspace has no module hal_ethos_u (west update hal_ethos_u)")
    words = ("--npu", "ethos-u55-128", "--board", BOARD, *options)
    opwest("import", "tflite", model_file(f"{name}.tflite"), "-o", folder / "model", *words)
    opwest("generate", folder / "model" / "manifest.yaml", "-o", folder / "app")
    return workspace.build(folder / "app", BOARD).log


@configured("name", MODELS, board=BOARD)
def test_models_of_vela_are_linked(
    workspace: Workspace, opwest: Callable[..., object], tmp_path: Path, name: str
) -> None:
    """Flash has the weights once, RAM the arena once."""
    log = image(workspace, opwest, tmp_path, name)
    weights, arena = MODELS[name]
    assert weights < used(log, "FLASH") < weights + 48 * 1024
    assert arena < used(log, "RAM") < arena + 24 * 1024


@configured(board=BOARD)
def test_arena_and_weights_are_in_memory_that_the_npu_reaches(
    workspace: Workspace, opwest: Callable[..., object], tmp_path: Path
) -> None:
    pools = ("--pool", f"arena={BOARD}:isram", "--pool", f"weights={BOARD}:isram")
    log = image(workspace, opwest, tmp_path, "kws_int8", *pools)
    weights, arena = MODELS["kws_int8"]
    assert weights + arena <= used(log, "ISRAM") < weights + arena + 4096
    assert used(log, "RAM") < arena
