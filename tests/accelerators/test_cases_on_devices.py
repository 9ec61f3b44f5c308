# SPDX-License-Identifier: Apache-2.0
"""Programs with one case for each rule of devices: calls by name, ownership, streams, and models that share devices."""

import itertools

import pytest
from accelerators_support import PROGRAMS, SANITIZED, THREADED, build, generate_quickly
from c_support import pass_all_cases
from device_models import ARGS, EMULATION, OPERATORS, TENSOR, difference, launch, write_manifest, write_model

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


def by_name(work):
    """Write a model with operators that require a type of devices and a program, and one that does not."""
    devices = {
        "first": {"type": "npu", "program": "one.onpu", "timeout_ms": 5000},
        "second": {"type": "npu", "program": "two.onpu", "timeout_ms": 5000},
        "third": {"type": "dsp", "program": "one.onpu", "timeout_ms": 5000, "coherent": True},
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


def ownership(work):
    """Write a model with three devices, a state and frames, and one with writable state in its operators."""
    common = {"program": "one.onpu", "own_timeout_ms": 50}
    fast, slow = {**common, "timeout_ms": 5000}, {**common, "timeout_ms": 60, "queue_depth": 1}
    run = {"outputs": CHAIN["outputs"], "steps": [launch("slow", "x", "x", "a"), difference("a", "x", "y")]}
    return [
        write_model(work / "owned", {"first": fast, "second": fast, "slow": slow}, CHAIN),
        write_model(work / "single", {"slow": slow}, run, entry="files: [adders.c], stateful: true"),
    ]


def stream_edges(work):
    device = {"program": "one.onpu", "timeout_ms": 150}
    return [write_model(work / "edges", {"first": device, "second": device}, CHAIN)]


WORK = """
#include <string.h>

#include <opwest/port_sync.h>

int32_t work(const int8_t *x, int8_t *y)
{
	opwest_port_sleep_us(4000);
	memcpy(y, x, ELEMENTS);
	return 0;
}
"""


def shared(work):
    """Write a model that has a device over its work on the processor, and an urgent one with another program.

    Without the order that test_device_holds.py tests, they wait for each other.
    """

    def devices(first, second):
        limits = {"timeout_ms": 20_000, "own_timeout_ms": 20_000}
        return {"first": {"program": first, **limits}, "second": {"program": second, **limits}}

    operators = {**OPERATORS, "work": {"args": [ARGS[0], ARGS[2]]}}
    source = (PROGRAMS / "adders.c").read_text() + WORK
    on_processor = [{"call": "work", "args": [a, b]} for a, b in itertools.pairwise("xbcdef")]
    long = [launch("first", "x", "x", "a"), *on_processor, launch("second", "f", "a", "y")]
    urgent = [launch("first", "x", "x", "a"), launch("second", "a", "a", "y")]
    models = {"long_hold": (("one.onpu", "two.onpu"), long), "urgent": (("one.onpu", "one.onpu"), urgent)}
    return [
        write_model(work / name, devices(*programs), {"steps": steps}, source=source, operators=operators)
        for name, (programs, steps) in models.items()
    ]


COUNT = """#include <stdint.h>

int32_t count(const int32_t *x, int32_t *sum, int32_t *y)
{
	static int32_t total;

	total += *x;
	*sum = total;
	*y = *sum;
	return 0;
}
"""


def one_workspace(work):
    """Write a model with writable state in its operator.

    test_fault_injection.py tests that each failure of open and run of such models permits the next open.
    """
    number = {"dtype": "int32", "shape": [1]}
    x, y = {**number, "external": True}, {"name": "y", **number, "direction": "out"}
    args = [{"name": "x", **number}, {"name": "sum", **number, "direction": "scratch"}, y]
    manifest = {
        "version": 1,
        "model": "counting",
        "operators": {"count": {"stateful": True, "args": args}},
        "run": {"inputs": {"x": x}, "outputs": {"y": x}, "steps": [{"call": "count", "args": ["x", "y"]}]},
    }
    (work / "count.c").write_text(COUNT)
    return [write_manifest(work, manifest, "files: [count.c]")]


@pytest.mark.parametrize("kind", ["addresses-c", "addresses-llvm", "threads-c"])
@pytest.mark.parametrize("write", [by_name, ownership, stream_edges, shared, one_workspace])
def test_cases(write, kind, tmp_path):
    sanitizer, metadata = kind.split("-")
    app = generate_quickly(write(tmp_path), tmp_path / "app", metadata=metadata)
    flags = SANITIZED if sanitizer == "addresses" else THREADED
    without = ("port_host_cache.c",) if write is by_name else ()
    sources = [PROGRAMS / f"{write.__name__}.c"]
    pass_all_cases(build(app, tmp_path / "build", sources, flags, without=without, extra=EMULATION))
