# SPDX-License-Identifier: Apache-2.0
"""The pool of a buffer, its size there, and messages for pools that are too small."""

import random

import projects
import pytest
from opwest.diagnostics import Diagnostics, OpwestError
from opwest.packing.problem import PoolPlan
from opwest.packing.verify import PlanError
from opwest.plan import memory
from opwest.plan.blocks import reserved_bytes
from opwest.plan.memory import plan_memory
from opwest.plan.schedule import Life, Schedule, plan_schedule
from plan_support import HARD, buffer, model_of, pool

BOTH = ("fast", "slow")


def planned(rows, pools, planner="greedy"):
    """Plan buffers by name: size, first and last step, pools. Return the plan and the messages."""
    buffers = [buffer(name, size, pools=where) for name, (size, _, _, where) in rows.items()]
    lives = {name: Life(first, last) for name, (_, first, last, _) in rows.items()}
    faults = Diagnostics()
    model = model_of(buffers=buffers, pools=pools, planner=planner)
    plan = plan_memory(model, Schedule((), ((),), lives), faults)
    return plan, [str(d) for d in faults]


def homes(rows, fast, slow=None):
    """Return the pool of every buffer, with two pools of the given sizes."""
    plan, messages = planned(rows, [pool("fast", fast), pool("slow", slow)])
    assert messages == []
    assert all(plan.place(name)[0] == home for name, home in plan.homes.items())
    return dict(plan.homes)


def test_fitting_buffers_use_the_first_pool():
    rows = {"a": (60, 0, 1, BOTH), "b": (40, 1, 2, BOTH), "c": (60, 2, 3, BOTH)}
    plan, messages = planned(rows, [pool("fast", 100), pool("slow", 100), pool("spare", 100)])
    assert (dict(plan.homes), messages) == (dict.fromkeys("abc", "fast"), [])
    assert list(plan.pools) == ["fast"], "empty pools are omitted"
    assert (plan.pools["fast"].size, plan.pools["fast"].lower_bound) == (100, 100)
    assert {plan.place(name) for name in "ac"} == {("fast", 0)} and plan.place("b") == ("fast", 60)


def test_no_buffer_moves_without_a_limit():
    assert homes({"a": (600, 0, 1, BOTH), "b": (500, 0, 1, BOTH)}, None) == {"a": "fast", "b": "fast"}


def test_buffers_above_the_limit_move_to_the_next_pool():
    rows = {"a": (60, 0, 1, BOTH), "b": (50, 0, 1, BOTH)}
    assert homes(rows, 109) == {"a": "fast", "b": "slow"}
    assert homes(rows, 110) == {"a": "fast", "b": "fast"}
    assert homes(rows, 59) == {"a": "slow", "b": "fast"}
    assert homes(rows, 49) == {"a": "slow", "b": "slow"}


def test_largest_buffer_above_the_limit_moves_to_the_next_pool():
    rows = {"a": (60, 0, 1, BOTH), "b": (30, 0, 1, BOTH), "c": (20, 0, 1, BOTH)}
    # b ends at 90, c at 110; with b in the other pool, c fits.
    assert homes(rows, 85) == {"a": "fast", "b": "slow", "c": "fast"}


def test_largest_movable_buffer_of_the_peak_moves_if_higher_ones_cannot():
    rows = {"a": (20, 0, 1, ("fast",)), "b": (40, 0, 1, BOTH), "c": (40, 0, 1, BOTH)}
    assert homes(rows, 99) == {"a": "fast", "b": "fast", "c": "slow"}, "the last by name of two equal ones"
    rows["d"] = (70, 5, 6, BOTH)
    assert homes(rows, 99) == {"a": "fast", "b": "fast", "c": "slow", "d": "fast"}, "not one with another lifetime"


def test_larger_buffers_without_another_pool_are_not_moved():
    rows = {"a": (60, 0, 1, ("fast",)), "b": (50, 0, 1, BOTH), "c": (10, 0, 1, BOTH)}
    assert homes(rows, 100) == {"a": "fast", "b": "slow", "c": "fast"}


def test_overflow_continues_to_the_third_pool():
    three = ("fast", "slow", "far")
    rows = dict.fromkeys("abcd", (60, 0, 1, three))
    plan, messages = planned(rows, [pool("fast", 60), pool("slow", 100), pool("far")])
    assert messages == []
    assert sorted(plan.homes.values()) == ["far", "far", "fast", "slow"]
    assert plan.pools["far"].size == 120


def test_pools_that_are_too_small():
    rows = {"a": (60, 0, 1, ("fast",)), "b": (50, 1, 2, ("fast",)), "c": (70, 1, 1, ("slow",)), "d": (9, 0, 0, ("ok",))}
    plan, messages = planned(rows, [pool("fast", 100), pool("slow", 69), pool("ok", 9)])
    hint = "\n  hint: increase the size of the pool, or move a tensor to another pool"
    assert messages == [
        "m.yaml:9:9: error: pool 'fast' is too small: 110 bytes required, 100 available; "
        f"live at the peak, step 1: a (60), b (50)\n  expected: size: 110 or more{hint}",
        "m.yaml:9:9: error: pool 'slow' is too small: 70 bytes required, 69 available; "
        f"live at the peak, step 1: c (70)\n  expected: size: 70 or more{hint}",
    ]
    assert dict(plan.homes) == {"a": "fast", "b": "fast", "c": "slow", "d": "ok"}


def test_live_buffers_of_the_peak_are_listed_by_size():
    rows = {
        "a": (10, 0, 9, ("sram",)),
        "b": (30, 3, 4, ("sram",)),
        "c": (20, 2, 3, ("sram",)),
        "d": (40, 0, 1, ("sram",)),
    }
    _, (message,) = planned(rows, [pool(size=59)])
    assert "60 bytes required, 59 available; live at the peak, step 3: b (30), c (20), a (10)" in message


def test_possible_better_plan_is_reported():
    rows = {b.name: (b.size, b.first, b.last, ("sram",)) for b in HARD}
    _, (message,) = planned(rows, [pool(size=13)])
    assert message.endswith(
        "  expected: size: 14 or more\n  hint: increase the size of the pool, or move a tensor to another pool"
        " (lower bound of all plans: 13 bytes)"
    )
    plan, messages = planned(rows, [pool(size=13)], planner="search")
    assert (messages, plan.pools["sram"].size) == ([], 13)


@pytest.mark.parametrize(
    ("size", "own", "pools_", "line", "incoherent", "reserved", "aligned"),
    [
        (5, 1, 1, None, False, 5, 1),
        (5, 4, 1, None, False, 8, 4),
        (5, 1, 16, None, False, 16, 16),
        (17, 8, 16, None, True, 32, 16),
        (5, 64, 16, 32, False, 64, 64),
        (5, 1, 1, 32, False, 5, 1),  # all accesses use the cache
        (5, 1, 1, 32, True, 32, 32),
        (33, 1, 16, 32, True, 64, 32),
        (32, 1, 1, 32, True, 32, 32),
        (5, 64, 1, 32, True, 64, 64),
    ],
)
def test_occupied_bytes_of_a_buffer(size, own, pools_, line, incoherent, reserved, aligned):
    given = buffer("a", size, align=own, incoherent=incoherent)
    where = pool(align=pools_, cache_line=line)
    schedule = Schedule((), ((),), {"a": Life(0, 0)})
    assert reserved_bytes(where, given, schedule) == reserved
    plan = plan_memory(model_of(buffers=[given], pools=[where]), schedule, Diagnostics())
    assert (plan.pools["sram"].size, plan.pools["sram"].align, plan.place("a")) == (reserved, aligned, ("sram", 0))
    assert plan.schedule is schedule


def sizes(steps, **bytes_):
    """Return the size, the bound and the offsets of a plan of steps."""
    model = model_of(*steps, buffers=[buffer(name, size) for name, size in bytes_.items()])
    plan = plan_memory(model, plan_schedule(model), Diagnostics()).pools["sram"]
    return plan.size, plan.lower_bound, dict(plan.offsets)


def test_equal_sizes_are_shared():
    steps = ["in -> a", "a -> b@0", "b -> c@0", "c -> out"]
    assert sizes(steps, a=64, b=64, c=64) == (64, 64, {"a": 0, "b": 0, "c": 0})


def test_small_result_shares_memory_if_the_plan_shrinks():
    assert sizes(["in -> a", "a -> b@0", "b -> out"], a=64, b=8) == (64, 64, {"a": 0, "b": 0})


def test_equal_plans_prefer_more_sharing():
    steps = ["in -> a", "a -> b@0", "b -> out", "in -> c", "c -> out"]
    assert sizes(steps, a=64, b=64, c=128) == (128, 128, {"a": 0, "b": 0, "c": 0})


def test_small_result_does_not_keep_a_large_argument_alive():
    steps = ["in -> a", "a -> b@0", "in -> c", "b c -> out"]
    size, bound, _ = sizes(steps, a=100, b=4, c=100)
    # At the end b and c, 104 bytes; in the place of a, b would hold 100 of 200.
    assert (size, bound) == (104, 104)


def test_equal_sizes_are_shared_if_others_save_no_memory():
    steps = ["in -> a", "a -> b@0", "in -> c", "c -> d@0", "b d -> out"]
    size, bound, offsets = sizes(steps, a=100, b=4, c=100, d=100)
    # With b over a: 200. With d over c alone: 104. With none: 204.
    assert (size, bound) == (104, 104) and offsets["c"] == offsets["d"]


def test_bound_is_the_minimum_over_all_shares():
    steps = ["in -> a", "a -> b@0", "in -> c", "b c -> out"]
    size, bound, _ = sizes(steps, a=100, b=100, c=4)
    assert (size, bound) == (104, 104)


def test_bound_may_be_that_of_a_plan_that_is_not_the_smallest(monkeypatch):
    def plan_pool(blocks, planner):
        shared = len(blocks) == 1
        return PoolPlan(
            {b.name: 64 * i for i, b in enumerate(blocks)}, 150 if shared else 128, 1, 64 if shared else 128
        )

    monkeypatch.setattr(memory, "plan_pool", plan_pool)
    assert sizes(["in -> a", "a -> b@0", "b -> out"], a=64, b=64) == (128, 64, {"a": 0, "b": 64})


def test_no_shares_across_pools():
    model = model_of(
        *["in -> a", "a -> b@0", "b -> out"],
        buffers=[buffer("a", 64, pools=("fast",)), buffer("b", 64, pools=("slow",))],
        pools=[pool("fast"), pool("slow")],
    )
    plan = plan_memory(model, plan_schedule(model), Diagnostics())
    assert (plan.place("a"), plan.place("b")) == (("fast", 0), ("slow", 0))


@pytest.mark.parametrize("offsets", [{"a": 0, "b": 4}, {"a": 0, "b": 16}, {"a": 0, "b": 0}])
def test_every_plan_is_verified(monkeypatch, offsets):
    monkeypatch.setattr(memory, "plan_pool", lambda blocks, planner: PoolPlan(offsets, 16, 8, 16))
    with pytest.raises(PlanError, match=r"^b "):
        planned({"a": (8, 0, 1, ("sram",)), "b": (8, 0, 1, ("sram",))}, [pool()])


def test_random_buffers_keep_to_their_pools():
    for seed in range(60):
        rng = random.Random(seed)
        rows = {}
        for name in "abcdefgh"[: rng.randint(1, 8)]:
            first = rng.randint(0, 4)
            where = rng.choice([("fast",), ("slow",), BOTH, BOTH, BOTH])
            rows[name] = (rng.randint(1, 9), first, first + rng.randint(0, 3), where)
        limit = {"fast": rng.randint(8, 16), "slow": rng.choice([None, 14])}
        plan, messages = planned(rows, [pool(name, size) for name, size in limit.items()])
        for name, home in plan.homes.items():
            assert home in rows[name][3]
            assert plan.place(name) == (home, plan.pools[home].offsets[name])
        small = [name for name, p in plan.pools.items() if limit[name] is not None and p.size > limit[name]]
        assert [message.split("'")[1] for message in messages] == small
        held = [rows[name] for name, home in plan.homes.items() if home == "fast"]
        alive = [[row for row in held if row[1] <= step <= row[2]] for step in range(9)]
        most = max(alive, key=lambda together: sum(row[0] for row in together))
        if "fast" in small:
            assert all(row[3] == ("fast",) for row in most), "all movable buffers of the peak were moved"


# --- Planning of a whole model: pools one by one, and the message if one is too small

SOURCE = """#include <stdint.h>
int32_t op(const int8_t *x, int8_t *y);
int32_t op(const int8_t *x, int8_t *y)
{
	*y = *x;
	return 0;
}
"""


def planned_memory(work, memory, tensors="", size=100):
    """Return the plan of a chain of four tensors of `size` bytes."""
    (work / "op.c").write_text(SOURCE)
    shape = f"dtype: int8, shape: [{size}]"
    (work / "manifest.yaml").write_text(
        f"version: 1\nmodel: chained\nobjects: [{{files: [op.c]}}]\n{memory}\n"
        f"operators: {{op: {{args: [{{name: x, {shape}}}, {{name: y, {shape}, direction: out}}]}}}}\n"
        f"run:\n  inputs: {{x: {{{shape}}}}}\n  outputs: {{y: {{{shape}}}}}\n{tensors}"
        "  steps:\n    - {call: op, args: [x, a]}\n    - {call: op, args: [a, b]}\n"
        "    - {call: op, args: [b, c]}\n    - {call: op, args: [c, d]}\n    - {call: op, args: [d, y]}\n"
    )
    faults = Diagnostics()
    ((_, plan),) = projects.check([work / "manifest.yaml"], faults)
    return plan


def test_default_pool_is_as_large_as_needed(tmp_path):
    plan = planned_memory(tmp_path, "")
    assert {name: pool.size for name, pool in plan.pools.items()} == {"sram": 208}
    assert plan.place("a") == plan.place("c") != plan.place("b")


def test_pools_are_planned_independently(tmp_path):
    memory = "memory: {one: {size: 1KiB}, two: {align: 64}, three: {size: 1}}"
    tensors = "  tensors: {b: {pool: two}, d: {align: 256}}\n"
    plan = planned_memory(tmp_path, memory, tensors)
    assert list(plan.pools) == ["one", "two"]
    assert plan.pools["two"].size == 128 and plan.pools["two"].align == 64
    assert plan.pools["one"].align == 256 and plan.place("d")[1] % 256 == 0


@pytest.mark.parametrize(("size", "fits"), [("208", True), ("1KiB", True), ("207", False), ("1", False)])
def test_pool_that_is_too_small(tmp_path, size, fits):
    memory = f"memory: {{tight: {{size: {size}}}}}"
    if fits:
        assert planned_memory(tmp_path, memory).pools["tight"].size == 208
        return
    with pytest.raises(OpwestError) as caught:
        planned_memory(tmp_path, memory)
    (fault,) = caught.value.diagnostics
    assert fault.message == (
        f"pool 'tight' is too small: 208 bytes required, {size} available; live at the peak, step 1: a (104), b (104)"
    )
    assert fault.expected == "size: 208 or more"
    assert fault.location.line == 4
