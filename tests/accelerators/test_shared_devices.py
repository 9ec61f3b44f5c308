# SPDX-License-Identifier: Apache-2.0
"""Threads and models that share devices: no deadlock, no race, equal results, programs that change."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from accelerators_support import PROGRAMS, SANITIZED, THREADED, build, generate_quickly, play
from c_support import RUNTIME
from device_models import CONTEXT, EMULATION, POSIX, difference, launch, write_model
from requirements_support import skip_here

RUNS = 10_000
STEPS = [
    launch("first", "x", "x", "a"),
    difference("a", "a", "c"),
    launch("second", "c", "x", "d"),
    launch("first", "c", "a", "e"),
    difference("d", "e", "y"),
]


def _generate(work: Path, metadata: str, timeout_ms: int) -> Path:
    required = {"ab": ("one", "two"), "ba": ("two", "one"), "other": ("two", "two")}
    limits = {"timeout_ms": timeout_ms, "own_timeout_ms": timeout_ms}
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
    return _generate(tmp_path_factory.mktemp("shared"), metadata, 20_000)


def test_models_share_devices(app, tmp_path):
    program = build(app, tmp_path, [PROGRAMS / "owners.c"], [*SANITIZED, *POSIX], extra=CONTEXT)
    assert play(program, "", str(RUNS), str(RUNS)).splitlines() == _good(RUNS, RUNS)


def test_models_share_emulated_devices(app, tmp_path):
    flags = [*SANITIZED, *POSIX, "-DEMULATED"]
    program = build(app, tmp_path, [PROGRAMS / "owners.c"], flags, extra=EMULATION)
    runs = RUNS // 10  # all of them with the thread sanitizer
    assert play(program, "", str(runs), str(runs)).splitlines() == _good(runs, runs)


@pytest.mark.parametrize("emulated", [False, True], ids=["guarded", "emulated"])
def test_thread_sanitizer_reports_no_race(app, metadata, emulated, tmp_path):
    if metadata == "llvm":
        skip_here("objects that LLVM made have no instrumentation for the thread sanitizer")
    flags = [*THREADED, *(["-DEMULATED"] if emulated else [])]
    program = build(app, tmp_path, [PROGRAMS / "owners.c"], flags, extra=EMULATION if emulated else CONTEXT)
    of_one = RUNS // 10 if emulated else RUNS
    assert play(program, "", str(RUNS), str(of_one)).splitlines() == _good(RUNS, of_one)


def test_different_orders_would_deadlock(tmp_path):
    """The test above can fail: with a different order per model, the models wait for each other until the timeout."""
    app = _generate(tmp_path, "c", 500)
    devices = (RUNTIME / "src" / "device_ownership.c").read_text()
    changed, count = re.subn(r"\(uintptr_t\)slots\[before\]\.dev <= \(uintptr_t\)slots\[i\]\.dev", "true", devices)
    assert count == 1
    (tmp_path / "ownership_in_any_order.c").write_text(changed)
    sources = [PROGRAMS / "owners.c", tmp_path / "ownership_in_any_order.c"]
    flags = ["-std=c11", "-O1", f"-I{RUNTIME / 'src'}", *POSIX]
    program = build(app, tmp_path / "build", sources, flags, without=("device_ownership.c",), extra=CONTEXT)
    done = subprocess.run([program, str(RUNS)], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert "-16" in done.stdout.splitlines()[1]
    assert ": open of device " in done.stderr
