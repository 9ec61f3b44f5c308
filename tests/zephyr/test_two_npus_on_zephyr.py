# SPDX-License-Identifier: Apache-2.0
"""examples/two_npus with `west build`: results equal numpy on every board, and overlap in simulated time."""

import platform
import re

import pytest
from cover import configured
from examples.example_files import held_out_of
from requirements_support import need
from zephyr_support import ROOT

pytestmark = pytest.mark.zephyr
EXAMPLE = ROOT / "examples" / "two_npus"
BOARDS = ["native_sim/native/64", "mps2/an385", "mps3/corstone300/an547"]
TARGETS = {
    "native_sim/native/64": {"x86_64": "x86-64", "aarch64": "aarch64-host"}.get(platform.machine(), ""),
    "mps2/an385": "cortex-m3",
    "mps3/corstone300/an547": "cortex-m55",
}


@configured("board, back_end", [(board, back_end) for board in BOARDS for back_end in ("llvm", "c")])
def test_correct_results_and_overlap(workspace, opwest, tmp_path, board, back_end):
    """One application with the model and its serial form; the boards of the manifests determine targets of objects."""
    if back_end == "llvm":
        need("llvmlite")
    manifests = (EXAMPLE / "manifest.yaml", EXAMPLE / "manifest_serial.yaml")
    opwest("generate", *manifests, "-o", tmp_path / "app", f"--metadata={back_end}")
    built = workspace.build(tmp_path / "app", board)
    if back_end == "llvm":
        assert not list((tmp_path / "app").glob("models/*/src/*_run.c"))
        assert f"opwest: model two_npus: objects for {TARGETS[board]}\n" in built.log
    console = built.run("^done|^error:")
    for model in ("two_npus", "two_npus_serial"):
        printed = re.search(rf"^{model}:((?: [0-9])+)$", console, re.MULTILINE)
        assert printed, console
        assert [int(word) for word in printed[1].split()] == held_out_of("two_npus")[2].tolist()
    ratio = re.search(r"^makespan: ([0-9]+\.[0-9]{3}) of the serial one$", console, re.MULTILINE)
    assert ratio and 0.4 <= float(ratio[1]) <= 0.6, console
    print(f"{board}: {ratio[0]}")


@configured(board="native_sim/native/64")
def test_a_stream_overlaps_frames(workspace, opwest, tmp_path):
    """Code takes no time on native_sim: 41 jobs of 50 ms for 40 frames, where run takes 80."""
    opwest("generate", EXAMPLE / "manifest_pipeline.yaml", "-o", tmp_path / "app")
    console = workspace.build(tmp_path / "app", "native_sim/native/64").run("^done|^error:")
    assert "stream: 40 of 40 equal run" in console
    rates = re.search(r"^frames per second: ([0-9.]+) by run, ([0-9.]+) by submit and poll$", console, re.MULTILINE)
    assert rates, console
    print(rates[0])
    assert 9.8 <= float(rates[1]) <= 10.1
    assert 19.0 <= float(rates[2]) <= 19.6
