# SPDX-License-Identifier: Apache-2.0
"""examples/two_npus with `west build`: results equal numpy on every board, and overlap in simulated time."""

import importlib.util
import platform
import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from cover import configured
from requirements_support import need
from zephyr_support import ROOT, Workspace

pytestmark = pytest.mark.zephyr
EXAMPLE = ROOT / "examples" / "two_npus"
BOARDS = ["native_sim/native/64", "mps2/an385", "mps3/corstone300/an547"]
TARGETS = {
    "native_sim/native/64": {"x86_64": "x86-64", "aarch64": "aarch64-host"}.get(platform.machine(), ""),
    "mps2/an385": "cortex-m3",
    "mps3/corstone300/an547": "cortex-m55",
}
MODELS = ["two_npus", "two_npus_serial"]
LARGEST_RATIO = 0.6


@pytest.fixture(scope="module")
def predictions() -> list[int]:
    """The results of numpy for the images in the application."""
    spec = importlib.util.spec_from_file_location("two_npus_reference", EXAMPLE / "reference.py")
    assert spec is not None and spec.loader is not None
    reference = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = reference  # dataclasses search there
    spec.loader.exec_module(reference)
    text = (EXAMPLE / "application" / "held_out.h").read_text(encoding="ascii")
    rows = re.findall(r'^\t\{"([a-q]{64})", ', text, flags=re.MULTILINE)
    pixels = np.array([list(row.encode()) for row in rows]) - ord("a")
    found: list[int] = reference.predict(pixels.astype(np.int8).reshape(-1, 8, 8, 1)).tolist()
    return found


@configured("board, back_end", [(board, back_end) for board in BOARDS for back_end in ("llvm", "c")])
def test_correct_results_and_overlap(
    workspace: Workspace,
    opwest: Callable[..., object],
    predictions: list[int],
    tmp_path: Path,
    board: str,
    back_end: str,
) -> None:
    """One application with the model and its serial form; the boards of the manifests determine targets of objects."""
    if back_end == "llvm":
        need("llvmlite")
    manifests = (EXAMPLE / "manifest.yaml", EXAMPLE / "manifest_serial.yaml")
    opwest("generate", *manifests, "-o", tmp_path / "app", f"--metadata={back_end}")
    built = workspace.build(tmp_path / "app", board)
    if back_end == "llvm":
        assert not list((tmp_path / "app").glob("models/*/src/*_run.c"))
        assert f"opwest: model two_npus: objects for {TARGETS[board]}\n" in built.log
    check_console(built.run("^done|^error:"), predictions, board)


@configured(board="native_sim/native/64")
def test_a_stream_overlaps_frames(
    workspace: Workspace, opwest: Callable[..., object], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Code takes no time on native_sim: 41 jobs of 50 ms for 40 frames, where run takes 80."""
    app = tmp_path_factory.mktemp("pipeline") / "app"
    opwest("generate", EXAMPLE / "manifest_pipeline.yaml", "-o", app)
    console = workspace.build(app, "native_sim/native/64").run("^done|^error:")
    assert "stream: 40 of 40 equal run" in console
    rates = re.search(r"^frames per second: ([0-9.]+) by run, ([0-9.]+) by submit and poll$", console, re.MULTILINE)
    assert rates, console
    print(rates[0])
    assert 9.8 <= float(rates[1]) <= 10.1
    assert 19.0 <= float(rates[2]) <= 19.6


def check_console(console: str, predictions: list[int], board: str) -> None:
    """Compare the output of an image with the results of numpy, and check that the branches overlap."""
    for model in MODELS:
        printed = re.search(rf"^{model}:((?: [0-9])+)$", console, re.MULTILINE)
        assert printed, console
        assert [int(word) for word in printed[1].split()] == predictions
    ratio = re.search(r"^makespan: ([0-9]+\.[0-9]{3}) of the serial one$", console, re.MULTILINE)
    assert ratio and 0.4 <= float(ratio[1]) <= LARGEST_RATIO, console
    print(f"{board}: {ratio[0]}")
