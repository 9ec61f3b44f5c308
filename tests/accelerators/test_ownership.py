# SPDX-License-Identifier: Apache-2.0
"""A workspace that owns a device by opwest_own(): the calls that are refused meanwhile, by thread, without effect."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from accelerators_support import PROGRAMS, SANITIZED, THREADED, build, generate_quickly, play
from test_shared_devices import EMULATION, POSIX, _onpu

CASES = ("refused", "second_workspace", "several_devices", "time_out", "stateful", "frames", "threads")
TENSOR: dict[str, Any] = {"dtype": "int8", "shape": [16]}
ARGS = [{"name": "a", **TENSOR}, {"name": "b", **TENSOR}, {"name": "y", **TENSOR, "direction": "out"}]


def _manifest(folder: Path, devices: dict[str, Any], run: dict[str, Any], state: str = "") -> Path:
    folder.mkdir()
    (folder / "adders.c").write_bytes((PROGRAMS / "adders.c").read_bytes())
    (folder / "one.onpu").write_bytes(_onpu(2))
    manifest = {
        "version": 1,
        "model": folder.name,
        "devices": {
            name: {"devicetree": {"nodelabel": name}, "program": "one.onpu", "own_timeout_ms": 50, **keys}
            for name, keys in devices.items()
        },
        "operators": {"launch": {"args": ARGS, "device": {}, "async": True}, "difference": {"args": ARGS}},
        "run": {"inputs": {"x": {**TENSOR, "external": False}}, "outputs": {"y": {**TENSOR, "external": True}}, **run},
    }
    text = "".join(f"{key}: {json.dumps(value)}\n" for key, value in manifest.items())
    (folder / "manifest.yaml").write_text(text + f"\nobjects:\n  - {{files: [adders.c]{state}}}\n")
    return folder / "manifest.yaml"


def _manifests(work: Path) -> list[Path]:
    """Write a model with three devices, a state and frames, and one with writable state in its operators."""
    fast, slow = {"timeout_ms": 5000}, {"timeout_ms": 60, "queue_depth": 1}
    steps = [
        {"call": "launch", "device": "first", "args": ["x", "x", "a"]},
        {"call": "launch", "device": "second", "args": ["a", "kept", "b"]},
        {"call": "difference", "args": ["b", "a", "kept"]},
        {"call": "difference", "args": ["kept", "x", "y"]},
    ]
    owned = {"stream": True, "state": {"kept": TENSOR}, "steps": steps}
    single = [
        {"call": "launch", "device": "slow", "args": ["x", "x", "a"]},
        {"call": "difference", "args": ["a", "x", "y"]},
    ]
    return [
        _manifest(work / "owned", {"first": fast, "second": fast, "slow": slow}, owned),
        _manifest(work / "single", {"slow": slow}, {"steps": single}, ", stateful: true"),
    ]


@pytest.fixture(scope="module", params=["addresses-c", "addresses-llvm", "threads-c"])
def program(request, tmp_path_factory):
    """The program with a sanitizer and a back end."""
    sanitizer, metadata = request.param.split("-")
    work = tmp_path_factory.mktemp("ownership")
    app = generate_quickly(_manifests(work), work / "app", metadata=metadata)
    flags = [*(SANITIZED if sanitizer == "addresses" else THREADED), *POSIX]
    return build(app, work / "build", [PROGRAMS / "ownership.c"], flags, extra=EMULATION)


@pytest.mark.parametrize("case", CASES)
def test_owned_devices(program, case):
    assert play(program, "", case) == "done\n"
