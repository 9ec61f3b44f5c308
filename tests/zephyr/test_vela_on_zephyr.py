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


@configured("name", MODELS, board=BOARD)
def test_models_of_vela_are_linked(
    workspace: Workspace, opwest: Callable[..., object], tmp_path: Path, name: str
) -> None:
    """Flash has the weights once, RAM the arena once. A second model has both in memory that the NPU reaches."""
    need("ethosu", "tflite")
    if not (workspace.base.parent / "modules" / "hal" / "ethos_u" / "zephyr" / "module.yml").is_file():
        skip_here("the workspace has no module hal_ethos_u (west update hal_ethos_u)")
    other = "ad01_int8" if name != "ad01_int8" else "kws_int8"
    pools = ("--pool", f"arena={BOARD}:isram", "--pool", f"weights={BOARD}:isram")
    for one, options in ((name, ()), (other, pools)):
        words = ("--npu", "ethos-u55-128", "--board", BOARD, *options)
        opwest("import", "tflite", model_file(f"{one}.tflite"), "-o", tmp_path / one, *words)
    opwest("generate", *(tmp_path / one / "manifest.yaml" for one in (name, other)), "-o", tmp_path / "app")
    log = workspace.build(tmp_path / "app", BOARD).log
    (weights, arena), (copied, _) = MODELS[name], MODELS[other]
    assert weights + copied < used(log, "FLASH") < weights + copied + 48 * 1024
    assert arena < used(log, "RAM") < arena + 24 * 1024
    assert sum(MODELS[other]) <= used(log, "ISRAM") < sum(MODELS[other]) + 4096
