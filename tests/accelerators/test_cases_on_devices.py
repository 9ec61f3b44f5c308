# SPDX-License-Identifier: Apache-2.0
"""Programs with one case for each rule of devices: calls by name, ownership by opwest_own(), and streams."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from accelerators_support import PROGRAMS, SANITIZED, THREADED, build, generate_quickly
from c_support import pass_all_cases
from device_models import ARGS, EMULATION, TENSOR, difference, launch, write_model

CHAIN = {
    "stream": True,
    "inputs": {"x": {**TENSOR, "external": False}},
    "outputs": {"y": {**TENSOR, "external": True}},
    "state": {"kept": TENSOR},
    "steps": [
        launch("first", "x", "x", "a"),
        launch("second", "a", "kept", "b"),
        difference("b", "a", "kept"),
        difference("kept", "x", "y"),
    ],
}
"""Two devices in a chain; the second step reads a state that a later step writes."""


def by_name(work: Path) -> list[Path]:
    """Write a model with operators that require a type of devices and a program, and one that does not."""
    devices: dict[str, Any] = {
        "first": {"type": "npu", "program": "one.onpu", "timeout_ms": 5000},
        "second": {"type": "npu", "program": "two.onpu", "timeout_ms": 5000},
        "third": {"type": "dsp", "program": "one.onpu", "timeout_ms": 5000, "coherent": True},
        "slow": {"type": "npu", "program": "one.onpu", "timeout_ms": 100, "own_timeout_ms": 50},
    }
    operators = {
        "launch": {"args": ARGS, "device": {"type": "npu", "program": "one"}, "async": True},
        "launch_anywhere": {"symbol": "launch", "device": {}, "async": True, "args": ARGS},
        "difference": {"args": ARGS},
    }
    steps = [
        launch("first", "x", "x", "a"),
        {**launch("second", "x", "x", "b"), "call": "launch_anywhere"},
        {**launch("third", "a", "b", "c"), "call": "launch_anywhere"},
        difference("a", "c", "y"),
    ]
    memory = {"sram": {"cache_line": 32}}
    return [write_model(work / "named", devices, {"steps": steps}, operators=operators, memory=memory)]


def ownership(work: Path) -> list[Path]:
    """Write a model with three devices, a state and frames, and one with writable state in its operators."""
    common = {"program": "one.onpu", "own_timeout_ms": 50}
    fast, slow = {**common, "timeout_ms": 5000}, {**common, "timeout_ms": 60, "queue_depth": 1}
    run = {**CHAIN, "steps": [launch("slow", "x", "x", "a"), difference("a", "x", "y")]}
    del run["stream"], run["state"]
    return [
        write_model(work / "owned", {"first": fast, "second": fast, "slow": slow}, CHAIN),
        write_model(work / "single", {"slow": slow}, run, entry="files: [adders.c], stateful: true"),
    ]


def stream_edges(work: Path) -> list[Path]:
    """Write a model that streams."""
    device = {"program": "one.onpu", "timeout_ms": 150}
    return [write_model(work / "edges", {"first": device, "second": device}, CHAIN)]


@pytest.mark.parametrize("kind", ["addresses-c", "addresses-llvm", "threads-c"])
@pytest.mark.parametrize("write", [by_name, ownership, stream_edges])
def test_cases(write: Callable[[Path], list[Path]], kind: str, tmp_path: Path) -> None:
    """With a sanitizer and a back end."""
    sanitizer, metadata = kind.split("-")
    app = generate_quickly(write(tmp_path), tmp_path / "app", metadata=metadata)
    flags = SANITIZED if sanitizer == "addresses" else THREADED
    without = ("port_host_cache.c",) if write is by_name else ()
    sources = [PROGRAMS / f"{write.__name__}.c"]
    pass_all_cases(build(app, tmp_path / "build", sources, flags, without=without, extra=EMULATION))
