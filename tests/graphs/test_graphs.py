# SPDX-License-Identifier: Apache-2.0
"""300 random graphs, and the graphs of faults that were found before."""

import sys
from pathlib import Path

import pytest
from campaign import sized
from requirements_support import need

need("cc", "tflite", "ai_edge_litert", "onnx", "onnxruntime", "arm-none-eabi-gcc", "qemu-system-arm")

sys.path[:0] = [str(Path(__file__).parents[1])]

from graphs.campaign import EXACT, FAULTS, ORACLE, REFUSED, Outcome, Runner, Subject  # noqa: E402
from graphs.runs import campaign, table  # noqa: E402
from graphs.shrink import keep, stored  # noqa: E402

GRAPHS = sized(300, 20000)


def test_random_graphs(tmp_path):
    """Each graph is exact, or refused for a limit of memory or flash; every mode, option and core has a share."""
    outcomes = campaign(0, GRAPHS, 1, 1e9)
    faults = [one for one in outcomes if one["outcome"] in FAULTS]
    assert not faults, "\n".join(keep(Runner(tmp_path, {}), one) for one in faults[:3])
    assert not [one for one in outcomes if one["outcome"] == ORACLE]
    refused = [one["detail"] for one in outcomes if one["outcome"] == REFUSED]
    expected = ("--max-ram", "--max-flash", "the scales give the multiplier")
    assert not [one for one in refused if not any(word in one for word in expected)]
    assert sum(one["outcome"] == EXACT for one in outcomes) > 0.9 * GRAPHS
    assert {one["core"] for one in outcomes} == {None, "mla", "dsp", "mve"}
    assert len({(one["format"], one["mode"]) for one in outcomes}) == 9
    assert {"optimize", "caller_memory", "max_ram", "max_flash", "prefer", "float_io", "kernels", "exact"} <= {
        name for one in outcomes for name in one["options"]
    }
    assert len({kind for one in outcomes for kind in one["kinds"]}) > 60
    print("\n".join(table(outcomes)))


@pytest.mark.parametrize(("name", "content", "options", "cases", "expected"), list(stored()))
def test_regressions(name, content, options, cases, expected, tmp_path):
    made = Outcome(0, "tflite" if content[4:8] == b"TFL3" else "onnx", "", 0, options, EXACT)
    found = Runner(tmp_path, {}).judge(made, Subject(content, cases, expected, False))
    assert found.outcome == EXACT, found.detail
