# SPDX-License-Identifier: Apache-2.0
"""Threads and models that share devices: no deadlock, no race, equal results, programs that change.

test_device_holds.py has devices that only ownership protects, and models with another order, which wait for each other.
"""

from pathlib import Path

import pytest
from accelerators_support import PROGRAMS, SANITIZED, THREADED, build, generate_quickly, play
from device_models import EMULATION, difference, launch, write_model
from requirements_support import skip_here

RUNS = 10_000
STEPS = [
    launch("first", "x", "x", "a"),
    difference("a", "a", "c"),
    launch("second", "c", "x", "d"),
    launch("first", "c", "a", "e"),
    difference("d", "e", "y"),
]


def _generate(work: Path, metadata: str) -> Path:
    required = {"ab": ("one", "two"), "ba": ("two", "one"), "other": ("two", "two")}
    limits = {"timeout_ms": 20_000, "own_timeout_ms": 20_000}
    manifests = []
    for name, programs in required.items():
        devices = zip(("first", "second"), programs, strict=True)
        devices = {device: {"program": f"{program}.onpu", **limits} for device, program in devices}
        manifests.append(write_model(work / "source" / name, devices, {"steps": STEPS}))
    return generate_quickly(manifests, work / "app", metadata=metadata)


def _good(runs: int, of_one: int) -> list[str]:
    return [
        "open 0 0 0",
        f"opposite orders: {runs} and {runs} runs, 0 wrong, returned 0 and 0",
        f"one model: {of_one} and {of_one} runs, 0 wrong, returned 0 and 0",
        "another program: open 0, run 0, right, close 0",
        "close 0 0 0",
    ]


@pytest.fixture(scope="module")
def app(metadata, tmp_path_factory):
    return _generate(tmp_path_factory.mktemp("shared"), metadata)


def test_models_share_devices(app, tmp_path):
    program = build(app, tmp_path, [PROGRAMS / "owners.c"], SANITIZED, extra=EMULATION)
    runs = RUNS // 10  # all of them with the thread sanitizer
    assert play(program, "", str(runs), str(runs)).splitlines() == _good(runs, runs)


def test_thread_sanitizer_reports_no_race(app, metadata, tmp_path):
    if metadata == "llvm":
        skip_here("objects that LLVM made have no instrumentation for the thread sanitizer")
    program = build(app, tmp_path, [PROGRAMS / "owners.c"], THREADED, extra=EMULATION)
    assert play(program, "", str(RUNS), str(RUNS // 10)).splitlines() == _good(RUNS, RUNS // 10)
