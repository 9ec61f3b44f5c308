# SPDX-License-Identifier: Apache-2.0
"""Accesses of steps through views, in bytes and in cache lines, and random ones against sets of bytes."""

import random

import pytest
from opwest.plan.access import Accessed, Pending, access_of
from opwest.plan.schedule import plan_schedule
from plan_support import device, model_of, pool, step_of


def ranges(text, line):
    """Return the reads and writes of a step."""
    access = access_of(step_of(text, 0), line)
    return access.reads, access.writes


@pytest.mark.parametrize(
    ("view", "line", "extent"),
    [
        ("a[0:1]", 1, (0, 1)),
        ("a[31:33]", 1, (31, 33)),
        ("a[0:1]", 32, (0, 32)),
        ("a[31:32]", 32, (0, 32)),
        ("a[31:33]", 32, (0, 64)),
        ("a[32:64]", 32, (32, 64)),
        ("a[32:65]", 32, (32, 96)),
    ],
)
def test_views_extend_to_whole_lines(view, line, extent):
    assert ranges(f"{view} -> b[0:4]", line)[0] == {"a": [extent]}
    assert ranges(f"b -> {view}", line)[1] == {"a": [extent]}
    both = ranges(f"-> +{view}", line)
    assert both == ({"a": [extent]}, {"a": [extent]})


def test_inputs_of_the_caller_and_constants_cannot_conflict():
    assert ranges("in[0:4] w[2:4] 7 -> out[4:8]", 32) == ({}, {"out": [(0, 32)]})


def test_whole_tensors_conflict_with_each_view():
    pending = Pending()
    pending.add(access_of(step_of("left: in -> a", 0), 1), 0)
    assert pending.conflicts(access_of(step_of("a[100000:100001] -> b", 1), 1))
    assert not pending.conflicts(access_of(step_of("c[0:1] -> b", 1), 1))


def waits(*steps, coherent, lines):
    """Return the devices that each step waits for."""
    pools = [pool(f"p{line}", cache_line=line) for line in lines]
    devices = [device(f"d{number}", coherent=each) for number, each in enumerate(coherent)]
    model = model_of(*steps, pools=pools, devices=devices)
    return [[sync.device for sync in before] for before in plan_schedule(model).syncs]


def test_lines_count_only_with_devices_that_bypass_the_cache():
    steps = ("left: in -> a[0:4]", "in -> a[32:36]", "in -> a[60:64]")
    assert waits(*steps, coherent=[True], lines=[64]) == [[], [], [], ["left"]]
    assert waits(*steps, coherent=[False], lines=[None]) == [[], [], [], ["left"]]
    assert waits(*steps, coherent=[False], lines=[32]) == [[], [], [], ["left"]]
    # The pool of a tensor is chosen later: the longest line of all pools counts.
    assert waits(*steps, coherent=[True, False], lines=[32, 64, None]) == [[], ["left"], [], []]


def random_access(rng, index):
    """Return a step that reads and writes views of two tensors."""
    views = []
    for _ in range(2):
        begin = rng.randrange(24)
        views.append(f"{rng.choice('ab')}[{begin}:{begin + rng.randint(1, 8)}]")
    return step_of(f"{views[0]} -> {views[1]}", index)


def touched(step, line):
    """Return the lines of a step by tensor: read, written."""
    found = []
    for argument, binding in zip(step.operator.args, step.bindings, strict=True):
        end = binding.offset + argument.type.size
        found.append({(binding.name, at // line) for at in range(binding.offset, end)})
    return found


@pytest.mark.parametrize("line", [1, 4])
def test_random_accesses_depend_on_those_with_common_bytes(line):
    """Direct predecessors may be omitted, but not those that no other predecessor depends on."""
    rng = random.Random(line)
    direct = needed = 0
    for _ in range(60):
        steps = [random_access(rng, index) for index in range(12)]
        accessed, before = Accessed(), []
        for index, step in enumerate(steps):
            found = accessed.add(access_of(step, line), index)
            reads, writes = touched(step, line)
            expected = set()
            for other in range(index):
                their_reads, their_writes = touched(steps[other], line)
                pending = Pending()
                pending.add(access_of(steps[other], line), other)
                clash = bool(reads & their_writes or writes & (their_reads | their_writes))
                assert pending.conflicts(access_of(step, line)) == clash
                expected |= {other} if clash else set()
            assert found <= expected
            reached = set(found).union(*(before[other] for other in found))
            assert expected <= reached
            before.append(reached)
            direct, needed = direct + len(found), needed + len(expected)
    assert 0 < direct < needed
