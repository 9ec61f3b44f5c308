# SPDX-License-Identifier: Apache-2.0
"""A fault at every position of a stream: each hook and operator call of open, submit, poll and close fails once.

The device of the test is deterministic and has no thread. stream_oracle.py has the rules.
"""

import errno
import re

import pytest
from accelerators_support import PROGRAMS, SANITIZED, build, generate_quickly, play
from campaign import sized
from device_models import ARGS, TENSOR, difference, launch, write_manifest
from stream_oracle import BrokenError, Oracle

OPERATORS = """#include <stdint.h>
#include <opwest/launch.h>

int32_t faulty_launch(int32_t step, const int8_t *a, const int8_t *b, int8_t *y, const struct opwest_launch *launch);
int32_t faulty_call(int32_t step);
int32_t launch(int32_t step, const int8_t *a, const int8_t *b, int8_t *y, const struct opwest_launch *launch);
int32_t difference(int32_t step, const int8_t *a, const int8_t *b, int8_t *y);
int32_t output(const int8_t *a, const int8_t *b, int8_t *y);

int32_t launch(int32_t step, const int8_t *a, const int8_t *b, int8_t *y, const struct opwest_launch *launch)
{
	return faulty_launch(step, a, b, y, launch);
}

int32_t output(const int8_t *a, const int8_t *b, int8_t *y)
{
	for (int i = 0; i < 16; i++) {
		y[i] = (int8_t)(a[i] - b[i]);
	}
	return 0;
}

int32_t difference(int32_t step, const int8_t *a, const int8_t *b, int8_t *y)
{
	const int32_t rc = faulty_call(step);

	return rc == 0 ? output(a, b, y) : rc;
}
"""
DRIVERS = sized(
    # The pace of the device, the depth of its queue, the cost of programs, the missing hooks.
    ("1 0 1 -", "2 1 1 -", "3 2 0 -", "2 0 1 u", "1 0 2 sd"),
    tuple(
        f"{pace} {depth} {switching} {hooks}"
        for pace in (1, 2, 3)
        for depth in (0, 1, 2)
        for switching in (0, 1, 2)
        for hooks in ("-", "u", "s", "sd", "usd")
    ),
)
KINDS = (("code", -errno.EILSEQ), ("code", -errno.EINTR), ("cancel", 0), ("again", 1), ("again", 2), ("again", 1000))


def manifest(folder):
    """Write a model: three devices, two programs on one of them, a state that the last step writes."""
    step = {"name": "step", "dtype": "int32", "scalar": True}
    (folder / "operators.c").write_text(OPERATORS)
    for name in "pq":
        (folder / f"{name}.bin").write_text(name)
    steps = [
        {**launch("first", 0, "x", "x", "a"), "program": "p.bin"},
        {**launch("second", 1, "a", "x", "b"), "program": "q.bin"},
        difference(2, "b", "x", "c"),
        {**launch("third", 3, "c", "kept", "d"), "program": "p.bin"},
        {**launch("third", 4, "d", "c", "e"), "program": "q.bin"},
        difference(5, "e", "c", "kept"),
        {"call": "output", "args": ["kept", "x", "y"]},
    ]
    found = {
        "version": 1,
        "model": "faulty",
        "devices": {name: {"devicetree": {"nodelabel": name}} for name in ("first", "second", "third")},
        "operators": {
            "launch": {"args": [step, *ARGS], "device": {"launch": True}, "async": True},
            "difference": {"args": [step, *ARGS]},
            "output": {"args": ARGS},
        },
        "run": {
            "stream": True,
            "inputs": {"x": {**TENSOR, "external": False}},
            "outputs": {"y": {**TENSOR, "external": True}},
            "state": {"kept": TENSOR},
            "steps": steps,
        },
    }
    return write_manifest(folder, found, "files: [operators.c]")


@pytest.fixture(scope="module", params=["c", "llvm"])
def program(request, tmp_path_factory):
    """The program with either back end."""
    work = tmp_path_factory.mktemp("faults")
    app = generate_quickly([manifest(work)], work / "app", metadata=request.param)
    return build(app, work / "build", [PROGRAMS / "stream_faults.c"], SANITIZED)


def played(program, cases):
    """Return the lines of events of some cases."""
    lines = play(program, "".join(f"{case}\n" for case in cases)).splitlines()
    assert len(lines) == len(cases)
    return lines


def cases_of(program):
    """Return all cases: position, kind, code, driver."""
    clean = played(program, [f"-1 none 0 {driver}" for driver in DRIVERS])
    for driver, line in zip(DRIVERS, clean, strict=True):
        positions = int(re.search(r"positions:(\d+)", line)[1])
        for at in range(positions):
            yield from (f"{at} {kind} {code} {driver}" for kind, code in KINDS)


def judge(case, line):
    """Raise BrokenError if the events of a case break a rule."""
    _, kind, code, _, depth, switching, _ = case.split()
    Oracle(kind, int(code), int(depth), int(switching)).check(line)


def test_streams_without_faults(program):
    cases = [f"-1 none 0 {driver}" for driver in DRIVERS]
    for case, line in zip(cases, played(program, cases), strict=True):
        judge(case, line)
        assert line.count("poll:0") == 5
        assert re.search(r"x0@1p:\d=0 .*x0@1p:\d=0 .*poll:0", line), "two frames were in flight"


def test_every_call_of_a_stream_may_fail(program, record_property):
    cases = list(cases_of(program))
    failed = 0
    for case, line in zip(cases, played(program, cases), strict=True):
        try:
            judge(case, line)
        except BrokenError as rule:
            raise AssertionError(f"{case}\n{line}\n{rule}") from None
        failed += bool(re.search(r"(open|submit\d|poll|close):-", line))
    print(f"{len(cases)} cases, {failed} with a failure")
    record_property("cases", len(cases))
    assert failed > len(cases) // 4


MUTATIONS = {
    "a missing close": (r" C1=0", "", "owned"),
    "two closes": (r" C1=0", " C1=0 C1=0", "without ownership"),
    "a missing deactivation": (r" D2=0(.*)active:0", r" \1active:1", "active at the end"),
    "a wrong output": (r"poll:0 [0-9a-f]{8}", "poll:0 00000000", "sequential execution"),
    "devices in another order": (r"O0=0 O1=0", "O1=0 O0=0", "higher address"),
    "a step with another program": (r"x3@2p", "x3@2q", "step 3 with q"),
    "a failure without a cause": (r"submit1:0", "submit1:-5", "without a failure"),
}


@pytest.mark.parametrize(("pattern", "by", "rule"), MUTATIONS.values(), ids=MUTATIONS)
def test_the_oracle_detects(program, pattern, by, rule):
    case = "-1 none 0 1 0 1 -"
    (line,) = played(program, [case])
    changed = re.sub(pattern, by, line, count=1)
    assert changed != line
    with pytest.raises(BrokenError, match=rule):
        judge(case, changed)
