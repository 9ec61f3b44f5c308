# SPDX-License-Identifier: Apache-2.0
"""Frames per second of submit and poll beside run, on emulated devices of this host (benchmarks/pipelines.py)."""

import importlib
import sys
from pathlib import Path

import pytest
from requirements_support import need

MIN_GAIN = 0.75
"""Of the gain that the stages permit. Run suffers from a loaded machine in the same way."""


@pytest.fixture(scope="module")
def pipelines():
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
    try:
        return importlib.import_module("pipelines")
    finally:
        sys.path.pop(0)


# 30 frames of 20 ms a stage take 1.8 s, the compilation as long again.
def test_a_stream_is_nearly_as_fast_as_its_slowest_stage(pipelines, tmp_path, record_property):
    need("cc")
    stages = (20_000, 20_000)
    by_run, by_stream = pipelines.measure(tmp_path, stages, 30)
    print(f"{by_run:.1f} frames/s by run, {by_stream:.1f} by submit and poll, bound {pipelines.bound(stages):.1f}")
    record_property("by_run", by_run)
    record_property("by_stream", by_stream)
    assert by_run <= 1e6 / sum(stages) * 1.01, "the devices take their latency"
    assert by_stream <= pipelines.bound(stages) * 1.01
    ideal = pipelines.bound(stages) * sum(stages) / 1e6
    assert by_stream / by_run >= MIN_GAIN * ideal
