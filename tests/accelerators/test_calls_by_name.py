# SPDX-License-Identifier: Apache-2.0
"""opwest_call() and opwest_launch() on devices: waits, ownership, requirements, caches, failures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from accelerators_support import PROGRAMS, SANITIZED, build, generate_quickly, play
from test_shared_devices import EMULATION, POSIX, _onpu

CASES = (
    "call_waits",
    "launch_does_not_wait",
    "wrong_devices",
    "any_device",
    "time_out",
    "another_owner",
    "caches",
    "busy",
)


def _manifest(folder: Path) -> Path:
    tensor = {"dtype": "int8", "shape": [16]}
    args = [{"name": "a", **tensor}, {"name": "b", **tensor}, {"name": "y", **tensor, "direction": "out"}]
    (folder / "adders.c").write_bytes((PROGRAMS / "adders.c").read_bytes())
    for number, name in enumerate(("one", "two")):
        (folder / f"{name}.onpu").write_bytes(_onpu(number + 2))
    devices = {
        "first": {"type": "npu", "program": "one.onpu", "timeout_ms": 5000},
        "second": {"type": "npu", "program": "two.onpu", "timeout_ms": 5000},
        "third": {"type": "dsp", "program": "one.onpu", "timeout_ms": 5000, "coherent": True},
        "slow": {"type": "npu", "program": "one.onpu", "timeout_ms": 100, "own_timeout_ms": 50},
    }
    any_device = {"symbol": "launch", "device": {}, "async": True, "args": args}
    steps = [
        {"call": "launch", "device": "first", "args": ["x", "x", "a"]},
        {"call": "launch_anywhere", "device": "second", "args": ["x", "x", "b"]},
        {"call": "launch_anywhere", "device": "third", "args": ["a", "b", "c"]},
        {"call": "difference", "args": ["a", "c", "y"]},
    ]
    manifest = {
        "version": 1,
        "model": "named",
        "devices": {name: {"devicetree": {"nodelabel": name}, **device} for name, device in devices.items()},
        "operators": {
            "launch": {"args": args, "device": {"type": "npu", "program": "one"}, "async": True},
            "launch_anywhere": any_device,
            "difference": {"args": args},
        },
        "memory": {"sram": {"cache_line": 32}},
        "run": {"inputs": {"x": tensor}, "outputs": {"y": tensor}, "steps": steps},
    }
    text = "".join(f"{key}: {json.dumps(value)}\n" for key, value in manifest.items())
    (folder / "manifest.yaml").write_text(text + "\nobjects:\n  - {files: [adders.c]}\n")
    return folder / "manifest.yaml"


@pytest.fixture(scope="module", params=["c", "llvm"])
def program(request, tmp_path_factory):
    """The program with either back end."""
    work = tmp_path_factory.mktemp("by_name")
    app = generate_quickly([_manifest(work)], work / "app", metadata=request.param)
    flags = [*SANITIZED, *POSIX]
    return build(app, work / "build", [PROGRAMS / "by_name.c"], flags, without=("port_host_cache.c",), extra=EMULATION)


@pytest.mark.parametrize("case", CASES)
def test_calls_on_devices(program, case):
    assert play(program, "", case) == "done\n"
