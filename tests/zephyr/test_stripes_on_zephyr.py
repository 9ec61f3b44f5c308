# SPDX-License-Identifier: Apache-2.0
"""A model with layers in stripes in every variant: golden vectors in whole images, by board."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from cover import configured
from requirements_support import need
from zephyr_support import Workspace

need("tflite")

from models.test_stripes import pyramid  # noqa: E402

pytestmark = pytest.mark.zephyr
Opwest = Callable[..., subprocess.CompletedProcess[str]]

BOARDS = {
    "mps2/an386": ("variant dsp", []),
    "native_sim/native/64": ("portable operators", []),
    "mps2/an385": ("variant mla", []),
    "mps3/corstone300/an547": ("variant mve", ["-DCONFIG_FPU=y"]),
}
"""By board: the implementation of the model, and options; GCC has MVE only with the registers of the FPU."""


@pytest.fixture(scope="module")
def app(opwest: Opwest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the application of a model with the least memory, with inputs in the workspace."""
    folder = tmp_path_factory.mktemp("stripes")
    file = folder / "m.tflite"
    file.write_bytes(pyramid())
    opwest("import", file, "-o", folder / "model", "--optimize", "ram", "--io", "workspace", "--vectors", 3)
    text = (folder / "model" / "manifest.yaml").read_text()
    assert text.count("stripes") >= 4
    opwest("generate", folder / "model" / "manifest.yaml", "-o", folder / "app")
    return folder / "app"


@configured("board", BOARDS)
def test_golden_vectors(workspace: Workspace, app: Path, board: str) -> None:
    name, options = BOARDS[board]
    built = workspace.build(app / "tests" / "m", board, *options)
    assert (f"opwest: model m: {name}\n" in built.log) == name.startswith("variant")
    assert "SUITE PASS" in built.run("SUITE (PASS|FAIL)")
