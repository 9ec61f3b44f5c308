# SPDX-License-Identifier: Apache-2.0
"""An urgent model beside a long one: its latency on the host port, and runs that another thread cancels."""

import itertools
import re

import pytest
from accelerators_support import POSIX, PROGRAMS, SANITIZED, THREADED, build, generate_quickly, play
from campaign import sized
from device_models import ARGS, EMULATION, OPERATORS, launch, write_model

SOURCE = """\
#include <stdint.h>
struct device;
int32_t adder_launch(const int8_t *a, const int8_t *b, int8_t *y, const struct device *dev);
int32_t busy(const int8_t *x, int8_t *y);
int32_t launch(const int8_t *a, const int8_t *b, int8_t *y, const struct device *dev);
int32_t work(const int8_t *x, int8_t *y);
int32_t launch(const int8_t *a, const int8_t *b, int8_t *y, const struct device *dev)
{
	return adder_launch(a, b, y, dev);
}
int32_t work(const int8_t *x, int8_t *y) { return busy(x, y); }
"""
WORK = ["a", "b", "c", "d", "e", "f"]
"""Five steps of 4 ms on the processor."""
RUNS = 40
CANCELS = sized(100, 2000)


def _steps(last: dict) -> list[dict]:
    """Return the steps of a model whose first step is on the device, and the next five are not."""
    work = ({"call": "work", "args": [a, b]} for a, b in itertools.pairwise(WORK))
    return [launch("only", "x", "x", "a"), *work, last]


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    work = tmp_path_factory.mktemp("urgent")
    models = {
        "long_hold": _steps(launch("only", "f", "f", "y")),
        "short_hold": _steps({"call": "work", "args": ["f", "y"]}),
        "urgent": [launch("only", "x", "x", "y")],
    }
    device = {"only": {"program": "one.onpu", "timeout_ms": 20_000}}
    operators = {"launch": OPERATORS["launch"], "work": {"args": [ARGS[0], ARGS[2]]}}
    manifests = [
        write_model(work / name, device, {"steps": steps}, source=SOURCE, operators=operators)
        for name, steps in models.items()
    ]
    return generate_quickly(manifests, work / "app")


def test_latency_of_an_urgent_model(app, tmp_path, record_property):
    """A device that a long run uses only at its begin is free afterwards.

    `before` is a model whose first and last steps are on the device: it owns it over the whole run, as every run did.
    """
    flags = ["-std=c11", "-O1", *POSIX]
    program = build(app, tmp_path, [PROGRAMS / "urgent.c"], flags, extra=EMULATION)
    text = play(program, "", "latency", str(RUNS))
    found = {name: (int(a), int(b)) for name, a, b in re.findall(r"^(before|after) (\d+) (\d+)$", text, re.MULTILINE)}
    assert text.splitlines()[-1] == "close 0 0 0"
    for name, (median, most) in found.items():
        print(f"host port, {name}: median {median} us, 90 % below {most} us")
        record_property(f"median us {name}", median)
    # The run on the device takes 0.3 ms, the work of the long model on the processor 20 ms.
    assert found["before"][0] > 4_000
    assert found["after"][0] * 2 < found["before"][0]


@pytest.mark.parametrize("flags", [THREADED, SANITIZED], ids=["threads", "addresses"])
def test_cancelled_runs_do_not_disturb_others(app, flags, tmp_path):
    program = build(app, tmp_path, [PROGRAMS / "urgent.c"], flags, extra=EMULATION)
    text = play(program, "", "cancel", str(CANCELS), "7")
    cancelled, finished, urgent = map(int, re.search(r"^(\d+) cancelled, (\d+) finished, (\d+) urgent", text).groups())
    assert text.splitlines()[0].endswith(", released once")
    assert text.splitlines()[1] == "close 0 0 0"
    assert cancelled > CANCELS // 10 and urgent > 10
    print(f"{cancelled} cancelled, {finished} finished, {urgent} runs beside them")
