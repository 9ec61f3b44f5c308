# SPDX-License-Identifier: Apache-2.0
"""The results of submit and poll apart from success, with emulated devices: failures, time-outs, cancellation."""

import json

import pytest
from accelerators_support import PROGRAMS, SANITIZED, THREADED, build, generate_quickly, play
from test_shared_devices import EMULATION, POSIX, _onpu

CASES = (
    *(
        "arguments",
        "closed",
        "in_flight",
        "threads",
        "busy",
        "race",
        "overlaps",
        "runs_between",
        "job_fails",
        "younger_fails",
        "submit_fails",
    ),
    *("operator_busy", "open_fails", "close_fails", "hangs", "slow", "cancelled", "cancelled_late", "notified"),
)


def manifest(folder):
    """Write a model of two devices in a chain, whose last step writes a state that the second step reads."""
    tensor = {"dtype": "int8", "shape": [16]}
    args = [{"name": "a", **tensor}, {"name": "b", **tensor}, {"name": "y", **tensor, "direction": "out"}]
    (folder / "adders.c").write_bytes((PROGRAMS / "adders.c").read_bytes())
    (folder / "one.onpu").write_bytes(_onpu(2))
    device = {"program": "one.onpu", "timeout_ms": 150}
    found = {
        "version": 1,
        "model": "edges",
        "devices": {name: {"devicetree": {"nodelabel": name}, **device} for name in ("first", "second")},
        "operators": {"launch": {"args": args, "device": {}, "async": True}, "difference": {"args": args}},
        "run": {
            "stream": True,
            "inputs": {"x": {**tensor, "external": False}},
            "outputs": {"y": {**tensor, "external": True}},
            "state": {"kept": tensor},
            "steps": [
                {"call": "launch", "device": "first", "args": ["x", "x", "a"]},
                {"call": "launch", "device": "second", "args": ["a", "kept", "b"]},
                {"call": "difference", "args": ["b", "a", "kept"]},
                {"call": "difference", "args": ["kept", "x", "y"]},
            ],
        },
    }
    text = "".join(f"{key}: {json.dumps(value)}\n" for key, value in found.items())
    (folder / "manifest.yaml").write_text(text + "\nobjects:\n  - {files: [adders.c]}\n")
    return folder / "manifest.yaml"


@pytest.fixture(scope="module", params=["addresses-c", "addresses-llvm", "threads-c"])
def program(request, tmp_path_factory):
    """The program with a sanitizer and a back end."""
    sanitizer, metadata = request.param.split("-")
    work = tmp_path_factory.mktemp("edges")
    app = generate_quickly([manifest(work)], work / "app", metadata=metadata)
    flags = [*(SANITIZED if sanitizer == "addresses" else THREADED), *POSIX, "-D_DEFAULT_SOURCE"]
    return build(app, work / "build", [PROGRAMS / "stream_edges.c"], flags, extra=EMULATION)


@pytest.mark.parametrize("case", CASES)
def test_submit_and_poll(program, case):
    assert play(program, "", case) == "done\n"
