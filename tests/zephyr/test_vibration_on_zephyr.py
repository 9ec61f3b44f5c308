# SPDX-License-Identifier: Apache-2.0
"""examples/vibration with `west build`: a sensor thread feeds the model; every condition equals the reference."""

import pytest
from cover import configured
from zephyr_support import ROOT

pytestmark = pytest.mark.zephyr


@configured("board", [("mps2/an385",), ("native_sim/native/64", "mps2/an385")], cost=9)
def test_sensor_thread_feeds_the_model(workspace, opwest, tmp_path, board):
    opwest("generate", ROOT / "examples" / "vibration" / "manifest.yaml", "-o", tmp_path / "app")
    consoles = [workspace.build(tmp_path / "app", name).run(r"^frames: .*|^error: .*") for name in board]
    for console in consoles:
        assert "frames: 64 of 64 equal the reference" in console, console
        assert " 160 ms: normal" in console, console
    shown = [[line for line in console.splitlines() if " ms: " in line] for console in consoles]
    assert shown[0][-1].endswith("bearing") and all(one == shown[0] for one in shown)
