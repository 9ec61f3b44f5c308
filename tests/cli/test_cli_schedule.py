# SPDX-License-Identifier: Apache-2.0
"""`check --schedule` and the emitted header, for a model with programs per step, a queue depth and cycles."""

import json
import re

import pytest

OPERATORS = """
#include <stdint.h>
struct device;
int32_t conv(const int8_t *x, int8_t *y, const struct device *dev) { y[0] = x[0]; return dev == 0; }
int32_t add(const int8_t *x, int8_t *y) { y[0] = x[0]; return 0; }
"""
MANIFEST = """
version: 1
model: steps
objects: [{files: [operators.c]}]
devices:
  npu0: {devicetree: {nodelabel: npu0}, program: conv.bin, queue_depth: 1, switch_cycles: 50}
operators:
  conv:
    device: {}
    async: true
    cycles: 100
    launch_cycles: 10
    args: &args [{name: x, dtype: int8, shape: [4]}, {name: y, dtype: int8, shape: [4], direction: out}]
  add:
    cycles: 7
    args: *args
run:
  inputs: {x: {dtype: int8, shape: [4]}}
  outputs: {y: {dtype: int8, shape: [4]}}
  steps:
    - {call: conv, device: npu0, args: [x, a]}
    - {call: conv, device: npu0, args: [x, b]}
    - {call: conv, device: npu0, program: dense.bin, cycles: 30, args: [b, c]}
    - {call: add, args: [c, y]}
"""


@pytest.fixture
def manifest(tmp_path):
    (tmp_path / "operators.c").write_text(OPERATORS)
    (tmp_path / "conv.bin").write_bytes(b"conv")
    (tmp_path / "dense.bin").write_bytes(b"dense")
    (tmp_path / "manifest.yaml").write_text(MANIFEST)
    return tmp_path / "manifest.yaml"


def edited(manifest, *pairs):
    text = manifest.read_text()
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    manifest.write_text(text)


@pytest.fixture
def schedule(succeed, manifest):
    """Return a function that returns the schedule that `check` prints, as lines, or as the JSON output."""

    def run(*options):
        done = succeed("check", "--schedule", manifest, *options)
        if "--json" in options:
            return json.loads(done.out)["result"][0]
        return done.out[done.out.index("steps: schedule") :].rstrip("\n").splitlines()

    return run


def test_timeline_shows_loads_partial_waits_ownership_and_the_bound(schedule):
    # 50 load, 10 launch, 100 work; 10 launch, 100 work; 50 load, 10 launch, 30 work; 7
    assert schedule() == [
        "steps: schedule, order: given",
        "  step  cpu            npu0     sram bytes  line",
        "        load npu0      (conv)",
        "     0                 conv >            8    21",
        "        wait npu0 (0)  done",
        "     1                 conv >            8    22",
        "        wait npu0 (1)  done",
        "        load npu0      (dense)",
        "     2                 conv >            8    23",
        "        wait npu0 (2)  done",
        "     3  add                              4    24",
        "  own npu0: from step 0 to the waits before step 3",
        "  latency bound: 367 cycles, without preemption, interrupts, contention for memory, other owners of the "
        "devices, full queues of drivers, and the time of run itself between the steps",
    ]


def test_timeline_of_a_longer_queue(manifest, schedule):
    third = ("program: dense.bin, cycles: 30, args: [b, c]", "args: [x, c]")
    edited(manifest, ("queue_depth: 1", "queue_depth: 2"), third)
    printed = schedule()
    assert "        wait npu0 (0), 1 left  |" in printed
    assert not any("load" in line for line in printed), "the device has one program"


ADD, CONV = ("cycles: 7\n    ", ""), ("cycles: 100\n    launch_cycles: 10\n    ", "")


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        ([ADD], "unknown, steps without cycles: 3"),
        ([CONV], "unknown, steps without cycles: 0, 1"),
        ([ADD, CONV, ("cycles: 30, ", "")], "unknown, no step has cycles"),
    ],
)
def test_steps_without_cycles(manifest, schedule, pairs, words):
    edited(manifest, *pairs)
    assert schedule()[-1] == f"  latency bound: {words}"


def test_long_lists_of_steps_are_cut(manifest, schedule):
    more = "".join(f"    - {{call: add, args: [x, t{index}]}}\n" for index in range(20))
    edited(manifest, ADD, ("    - {call: add, args: [c, y]}\n", f"{more}    - {{call: add, args: [c, y]}}\n"))
    assert schedule()[-1].endswith("cycles: 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 and 11 more")


def test_json(schedule):
    result = schedule("--json")
    assert result["latency"] == {"cycles": 367, "unknown": []}
    assert result["holds"] == [{"device": "npu0", "first": 0, "last": 3}]
    steps = [row for row in result["schedule"] if row["kind"] != "wait"]
    assert [(row["program"], row["load"], row["cycles"]) for row in steps] == [
        ("conv", True, 100),
        ("conv", False, 100),
        ("dense", True, 30),
        (None, False, 7),
    ]
    assert [row for row in result["schedule"] if row["kind"] == "wait"] == [
        {"kind": "wait", "device": "npu0", "steps": [index], "leave": 0} for index in range(3)
    ]


def test_header_defines_the_bound_only_where_it_is_known(manifest, tmp_path, succeed):
    succeed("generate", manifest, "-o", tmp_path / "app")
    header = (tmp_path / "app/models/steps/include/steps.h").read_text()
    found = re.search(r"/\*\*((?:(?!\*/).)*)\*/\n#define STEPS_LATENCY_CYCLES UINT64_C\(367\)\n", header, re.DOTALL)
    assert found
    comment = " ".join(line.strip(" *") for line in found[1].splitlines())
    assert "The longest duration of steps_run() in cycles" in comment
    assert "preemption, interrupts, contention for memory, other owners of the devices" in comment
    assert all(len(line) <= 100 for line in found[0].splitlines())
    edited(manifest, ADD)
    succeed("generate", manifest, "-o", tmp_path / "other")
    assert "LATENCY" not in (tmp_path / "other/models/steps/include/steps.h").read_text()


def profile(folder, *, unit="cycles", model="steps", steps=("conv", "conv", "conv", "add"), longest=(15, 20, 25, 9.5)):
    """Write a profile with the longest durations of calls; all steps except `add` are launches."""
    common = {"runs": 3, "min": 1, "mean": 2.0}
    points = [{"kind": "run", "step": None, "operator": None, "device": None, "max": 900, **common}]
    for index, (name, most) in enumerate(zip(steps, longest, strict=True)):
        kind, device = ("step", None) if name == "add" else ("launch", "npu0")
        points.append({"kind": kind, "step": index, "operator": name, "device": device, "max": most, **common})
        if device:
            points.append({"kind": "wait", "step": None, "steps": [index], "device": device, "max": 99, **common})
    content = {
        "kind": "opwest-profile",
        "format": 1,
        "model": model,
        "where": "a board",
        "clock": "board",
        "unit": unit,
    }
    path = folder / "profile.json"
    path.write_text(json.dumps({**content, "frequency_hz": 1000, "points": points, "stack": None}))
    return path


def test_bound_with_measured_durations(manifest, schedule, tmp_path):
    edited(manifest, ADD)
    measured = ["--profile", profile(tmp_path)]
    # 50 load, 15 launch, 100 work; 20 launch, 100 work; 50 load, 25 launch, 30 work; 10
    assert schedule(*measured)[-1].startswith("  latency bound: 400 cycles, without preemption")
    assert schedule(*measured, "--json")["latency"] == {"cycles": 400, "unknown": []}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"unit": "ns"}, "the profile of a board is in ns\n  expected: a profile in cycles, of a board\n"),
        ({"model": "step"}, "profile of unknown model 'step'\n  hint: did you mean 'steps'?\n"),
        (
            {"steps": ("conv", "add", "conv", "add")},
            "the profile is from another version of model 'steps': step 1 is add, in the manifest conv\n",
        ),
        (
            {"steps": ("conv", "conv", "conv", "add", "add"), "longest": (1, 1, 1, 1, 1)},
            "the profile is from another version of model 'steps': step 4 is add, in the manifest absent\n",
        ),
    ],
)
def test_profiles_that_do_not_fit(manifest, tmp_path, fail, values, message):
    path = profile(tmp_path, **values)
    assert f"{path}: error: {message}" in fail("check", "--schedule", manifest, "--profile", path).err


def test_profiles_that_cannot_be_read(manifest, tmp_path, fail):
    damaged, results = tmp_path / "damaged.json", tmp_path / "results.json"
    damaged.write_text("{")
    results.write_text(json.dumps({"result": {"model": "steps", "outputs": {}}}))
    for options, message in (
        (["--schedule", "--profile", damaged], f"{damaged}: error: cannot read the profile: not JSON"),
        (["--schedule", "--profile", results], "error: the result of model 'steps' has no profile\n"),
        (["--profile", profile(tmp_path)], "error: --profile requires --schedule\n"),
    ):
        assert message in fail("check", manifest, *options).err
