# SPDX-License-Identifier: Apache-2.0
"""Results in the memory of an argument, and accesses through views."""

import random

import pytest
from opwest.plan.access import Accessed, Pending, access_of
from opwest.plan.problem import Block, Share
from opwest.plan.schedule import plan_schedule
from opwest.plan.sharing import find_shares, merged
from plan_support import buffer, device, model_of, pool, step_of


def shares(*steps, buffers=None, reorder=False):
    """Return the possible shares as `argument > result at step`."""
    model = model_of(*steps, buffers=buffers, reorder=reorder)
    return [f"{s.taken} > {s.taker} at {s.step}" for s in find_shares(model, plan_schedule(model))]


CASES = {
    "a chain": (["in -> a", "a -> b@0", "b -> c@0"], ["a > b at 1", "b > c at 2"]),
    "what is not declared": (["in -> a", "a -> b"], []),
    "one of two arguments": (["in -> a", "in -> b", "a b -> c@1"], ["b > c at 2"]),
    "the first that is allowed": (["in -> a", "in -> b", "a b -> c@0,1"], ["a > c at 2"]),
    "the other, where the first is read later": (["-> a", "-> b", "a b -> c@0,1", "a -> out"], ["b > c at 2"]),
    "one argument, two results": (["in -> a", "a -> b@0 c@0"], ["a > b at 1"]),
    "two arguments, two results": (["-> a", "-> b", "a b -> c@0 d@0,1"], ["a > c at 2", "b > d at 2"]),
    "written later": (["in -> a", "a -> b@0", "in -> a"], []),
    "the result was there before": (["in -> a b", "a -> b@0"], []),
    "the result is written again": (["in -> a", "a -> b@0", "in -> b"], ["a > b at 1"]),
    "an argument that is grown": (["in -> a", "-> +a b@0"], []),
    "scratch memory takes nothing over": (["in -> a", "a -> ^s@0"], []),
    "the caller's input": (["in -> a@0"], []),
    "the caller's output": (["in -> a", "a -> out@0"], []),
    "a constant": (["w -> a@0"], []),
    "a launch": (["in -> a", "left: a -> b@0", "b -> c"], ["a > b at 1"]),
    "launches in one queue": (["in -> a", "left: a -> c", "left: a -> b@0"], ["a > b at 2"]),
    "another device has been waited for": (["in -> a", "left: a -> c", "c -> d", "a -> b@0"], ["a > b at 3"]),
    "a view as the argument": (["in -> a", "a[0:1] -> b@0"], []),
    "a view as the result": (["in -> a", "a -> b[0:1]@0"], []),
    "a view that is not named": (["in -> a", "a a[0:1] -> b@0"], []),
    "a view begins elsewhere, also if it is named": (["in -> a", "a a[1:2] -> b@0,1"], []),
    "a view that was read before": (["in -> a", "a[1:2] -> c", "a -> b@0"], ["a > b at 2"]),
    "a view that is read later": (["in -> a", "a -> b@0", "a[1:2] -> c"], []),
    "the queue of another device": (["left: in -> a", "right: a -> b@0"], ["a > b at 1"]),
}


@pytest.mark.parametrize("case", CASES)
def test_cases(case):
    steps, expected = CASES[case]
    assert shares(*steps) == expected


def test_only_dead_buffers_are_shared():
    """Inputs in the workspace may share memory: the caller writes them again. Constants, outputs and states may not."""
    steps = ["x -> a@0", "k -> b@0", "o -> c@0", "z -> d@0", "in -> e", "e -> f@0"]
    roles = {
        "x": "input",
        "k": "constant",
        "o": "output",
        "a": "intermediate",
        "b": "intermediate",
        "c": "intermediate",
        "z": "state",
        "d": "intermediate",
        "e": "intermediate",
        "f": "state",
    }
    assert shares(*steps, buffers=[buffer(name, role=role) for name, role in roles.items()]) == ["x > a at 0"]
    assert shares(*steps, buffers=[buffer("s", role="scratch"), *map(buffer, "abc")]) == []


def test_steps_are_those_of_the_new_order():
    steps = ["in -> a", "a -> b@0", "left: in -> c", "c b -> out"]
    assert shares(*steps) == ["a > b at 1"]
    assert shares(*steps, reorder=True) == ["a > b at 2"]


def plain(model, schedule):
    """Return the pairs that a step permits, by checking the whole schedule for each."""
    ended = {}
    for before, syncs in enumerate(schedule.syncs):
        for sync in syncs:
            ended.update(dict.fromkeys(sync.steps, before))
    pairs = set()
    for step in schedule.steps:
        given = list(zip(step.operator.args, step.bindings, strict=True))
        for result, binding in given:
            for name in {b.name for _, b in given if b.role == "buffer"}:
                readers = [a for a, b in given if b.name == name]
                if result.direction != "out" or binding.role != "buffer" or not readers:
                    continue
                if any(a.direction != "in" or a.name not in result.in_place for a in readers):
                    continue
                users = [s for s in schedule.steps if any(b.name == name for b in s.bindings)]
                before = [
                    s is step
                    or (s.index < step.index and not s.operator.is_async)
                    or (s.index < step.index and (s.device == step.device or ended[s.index] <= step.index))
                    for s in users
                ]
                first = next(s for s in schedule.steps if any(b.name == binding.name for b in s.bindings))
                if all(before) and first is step:
                    pairs.add(Share(name, binding.name, step.index))
    return pairs


def random_model(seed):
    """Return random steps; some results may use the memory of arguments."""
    rng = random.Random(seed)
    known, texts = ["in"], []
    for number in range(rng.randint(2, 9)):
        reads = rng.choices(known[-4:], k=rng.randint(1, 3))
        result = f"t{number}" if rng.random() < 0.8 else rng.choice(["out", *known[1:]])
        places = ",".join(str(place) for place in range(len(reads)) if rng.random() < 0.8)
        device = rng.choice(["", "", "left: ", "left: ", "right: ", "right! "])
        texts.append(f"{device}{' '.join(reads)} -> {result}{'@' * bool(places)}{places}")
        known += [result] if result not in (*known, "out") else []
    return model_of(*texts)


def test_random_schedules_equal_the_reference():
    found = 0
    for seed in range(200):
        model = random_model(seed)
        schedule = plan_schedule(model)
        chosen = find_shares(model, schedule)
        allowed = plain(model, schedule)
        assert set(chosen) <= allowed, seed
        taken, takers = [s.taken for s in chosen], [s.taker for s in chosen]
        assert len(set(taken)) == len(taken) and len(set(takers)) == len(takers)
        assert all(s.taken in taken or s.taker in takers for s in allowed), "no other share can be added"
        found += len(chosen)
    print(found)
    assert found > 100


def test_merged_blocks_have_the_largest_size_alignment_and_lifetime():
    blocks = [Block("a", 8, 4, 0, 2), Block("b", 6, 2, 2, 4), Block("c", 4, 8, 4, 9), Block("d", 1, 1, 0, 0)]
    whole, owner = merged(blocks, [Share("b", "c", 4), Share("a", "b", 2)])
    assert whole == [Block("a", 8, 8, 0, 9), Block("d", 1, 1, 0, 0)]
    assert owner == {"a": "a", "b": "a", "c": "a", "d": "d"}
    assert merged(blocks, []) == (blocks, {b.name: b.name for b in blocks})


# --- Accesses of steps through views, in bytes and in cache lines, and random ones against sets of bytes


def ranges(text, line):
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
