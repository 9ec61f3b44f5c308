# SPDX-License-Identifier: Apache-2.0
"""The pool of a buffer, its size there, messages for pools that are too small, and the memory of two frames."""

import random
from dataclasses import replace

import pytest
from opwest.base.diagnostics import Diagnostics
from opwest.plan import memory
from opwest.plan.fixed import block_of
from opwest.plan.memory import Frames, frames_of, joined, plan_memory, plan_model, verify_frames
from opwest.plan.problem import Block, PoolPlan
from opwest.plan.schedule import Lifetime, Schedule, plan_schedule
from opwest.plan.verify import PlanError
from plan_support import HARD, buffer, model_of, pool

BOTH = ("fast", "slow")


def planned(rows, pools, planner="greedy"):
    """Plan buffers by name: size, first and last step, pools. Return the plan and the messages."""
    buffers = [buffer(name, size, pools=where) for name, (size, _, _, where) in rows.items()]
    lives = {name: Lifetime(first, last) for name, (_, first, last, _) in rows.items()}
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


FIXED, MOVABLE = ("fast",), BOTH
LARGEST = {"a": (20, 0, 1, FIXED), "b": (40, 0, 1, MOVABLE), "c": (40, 0, 1, MOVABLE)}


@pytest.mark.parametrize(
    ("rows", "fast", "moved"),
    [
        ({"a": (600, 0, 1, MOVABLE), "b": (500, 0, 1, MOVABLE)}, None, ""),
        ({"a": (60, 0, 1, MOVABLE), "b": (50, 0, 1, MOVABLE)}, 109, "b"),
        ({"a": (60, 0, 1, MOVABLE), "b": (50, 0, 1, MOVABLE)}, 110, ""),
        ({"a": (60, 0, 1, MOVABLE), "b": (50, 0, 1, MOVABLE)}, 59, "a"),
        ({"a": (60, 0, 1, MOVABLE), "b": (50, 0, 1, MOVABLE)}, 49, "ab"),
        # The largest above the limit moves: b ends at 90, c at 110; with b in the other pool, c fits.
        ({"a": (60, 0, 1, MOVABLE), "b": (30, 0, 1, MOVABLE), "c": (20, 0, 1, MOVABLE)}, 85, "b"),
        # If higher ones cannot, the largest movable one of the peak, not one with another lifetime; the last by name.
        (LARGEST, 99, "c"),
        (LARGEST | {"d": (70, 5, 6, MOVABLE)}, 99, "c"),
        ({"a": (60, 0, 1, FIXED), "b": (50, 0, 1, MOVABLE), "c": (10, 0, 1, MOVABLE)}, 100, "b"),
    ],
)
def test_buffers_above_the_limit_move_to_the_next_pool(rows, fast, moved):
    assert homes(rows, fast) == {name: "slow" if name in moved else "fast" for name in rows}


def test_overflow_continues_to_the_third_pool():
    three = ("fast", "slow", "far")
    rows = dict.fromkeys("abcd", (60, 0, 1, three))
    plan, messages = planned(rows, [pool("fast", 60), pool("slow", 100), pool("far")])
    assert messages == []
    assert sorted(plan.homes.values()) == ["far", "far", "fast", "slow"]
    assert plan.pools["far"].size == 120


def test_pools_that_are_too_small():
    rows = {"a": (50, 1, 2, ("fast",)), "b": (60, 0, 1, ("fast",)), "c": (70, 1, 1, ("slow",)), "d": (9, 0, 0, ("ok",))}
    plan, messages = planned(rows, [pool("fast", 100), pool("slow", 69), pool("ok", 9)])
    hint = "\n  hint: increase the size of the pool, or move a tensor to another pool"
    assert messages == [
        "m.yaml:9:9: error: pool 'fast' is too small: 110 bytes required, 100 available; "
        f"live at the peak, step 1: b (60), a (50)\n  expected: size: 110 or more{hint}",
        "m.yaml:9:9: error: pool 'slow' is too small: 70 bytes required, 69 available; "
        f"live at the peak, step 1: c (70)\n  expected: size: 70 or more{hint}",
    ]
    assert dict(plan.homes) == {"a": "fast", "b": "fast", "c": "slow", "d": "ok"}


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
    schedule = Schedule((), ((),), {"a": Lifetime(0, 0)})
    assert block_of(where, given, schedule).size == reserved
    plan = plan_memory(model_of(buffers=[given], pools=[where]), schedule, Diagnostics())
    assert (plan.pools["sram"].size, plan.pools["sram"].align, plan.place("a")) == (reserved, aligned, ("sram", 0))
    assert plan.schedule is schedule


def sizes(steps, **bytes_):
    """Return the size, the bound and the offsets of a plan of steps."""
    model = model_of(*steps, buffers=[buffer(name, size) for name, size in bytes_.items()])
    plan = plan_memory(model, plan_schedule(model), Diagnostics()).pools["sram"]
    return plan.size, plan.lower_bound, dict(plan.offsets)


@pytest.mark.parametrize(
    ("steps", "bytes_", "size", "shared"),
    [
        (["in -> a", "a -> b@0", "b -> c@0", "c -> out"], {"a": 64, "b": 64, "c": 64}, 64, "abc"),
        # A small result shares memory if the plan shrinks.
        (["in -> a", "a -> b@0", "b -> out"], {"a": 64, "b": 8}, 64, "ab"),
        # Of equal plans that with more sharing.
        (["in -> a", "a -> b@0", "b -> out", "in -> c", "c -> out"], {"a": 64, "b": 64, "c": 128}, 128, "abc"),
        # At the end b and c, 104 bytes; in the place of a, b would hold 100 of 200.
        (["in -> a", "a -> b@0", "in -> c", "b c -> out"], {"a": 100, "b": 4, "c": 100}, 104, ""),
        # With b over a: 200. With d over c alone: 104. With none: 204.
        (
            ["in -> a", "a -> b@0", "in -> c", "c -> d@0", "b d -> out"],
            {"a": 100, "b": 4, "c": 100, "d": 100},
            104,
            "cd",
        ),
        # The bound is the minimum over all shares.
        (["in -> a", "a -> b@0", "in -> c", "b c -> out"], {"a": 100, "b": 100, "c": 4}, 104, ""),
    ],
)
def test_results_share_memory_if_it_saves_some(steps, bytes_, size, shared):
    found, bound, offsets = sizes(steps, **bytes_)
    assert found == bound == size
    assert len({offsets[name] for name in shared}) <= 1


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


# --- The memory of two frames: constants and states once, all other tensors twice

ROLES = ("intermediate", "scratch", "input", "output", "constant", "state")


def planned_frames(buffers, *texts, **given):
    faults = Diagnostics()
    model = replace(model_of(*texts, buffers=buffers, **given), streams=True)
    _, plan = plan_model(model, faults)
    return plan, [fault.message for fault in faults]


def test_states_and_constants_are_first_and_once():
    buffers = [buffer("a", 40), buffer("s", 10, role="state"), buffer("b", 24), buffer("k", 6, role="constant")]
    plan, _ = planned_frames(buffers, "in -> a", "a s k -> b", "b -> out")
    offsets = plan.pools["sram"].offsets
    assert sorted((offsets["s"], offsets["k"])) == [0, 10]
    assert sorted((offsets["a"], offsets["b"])) == [16, 56]
    assert plan.pools["sram"].size == 80 == plan.pools["sram"].lower_bound
    assert plan.frames["sram"] == Frames(64, 144)


def test_a_pool_with_states_only_is_shared():
    plan, _ = planned_frames([buffer("s", 12, role="state")], "s -> out")
    assert plan.frames["sram"] == Frames(0, 12)


def test_frames_keep_alignment_and_cache_lines():
    buffers = [buffer("s", 3, role="state"), buffer("a", 5, align=16), buffer("b", 7, incoherent=True)]
    plan, _ = planned_frames(buffers, "in s -> a", "a -> b", "b -> out", pools=[pool(cache_line=64)])
    assert plan.frames["sram"].stride % 64 == 0


def test_two_frames_must_fit_the_pool():
    buffers = [buffer("a", 16), buffer("b", 16)]
    plan, errors = planned_frames(buffers, "in -> a", "a -> b", "b -> out", pools=[pool(size=48)])
    assert plan.pools["sram"].size == 32, "one frame fits"
    assert errors == [
        "pool 'sram' is too small for two frames: 64 bytes required, 48 available; live at the peak, step 1: a (16), "
        "b (16)"
    ]


def test_a_tensor_moves_to_another_pool_if_two_frames_do_not_fit():
    buffers = [buffer("a", 16, pools=("fast", "slow")), buffer("b", 16, pools=("fast", "slow"))]
    plan, errors = planned_frames(buffers, "in -> a", "a -> b", "b -> out", pools=[pool("fast", 40), pool("slow")])
    assert errors == []
    assert sorted(plan.homes.values()) == ["fast", "slow"]
    assert {name: both.size for name, both in plan.frames.items()} == {"fast": 32, "slow": 32}


def test_random_plans_are_verified():
    """plan_model raises PlanError for a plan that is not valid."""
    for seed in range(200):
        rng = random.Random(seed)
        names = [f"t{index}" for index in range(rng.randint(1, 9))]
        buffers = [
            buffer(name, rng.randint(1, 99), role=rng.choice(ROLES), align=rng.choice((1, 4, 32))) for name in names
        ]
        texts = [f"{rng.choice(names)} -> {rng.choice(names)}" for _ in range(8)] + [f"{name} -> out" for name in names]
        plan, _ = planned_frames(buffers, *texts)
        both, one = plan.frames["sram"], plan.pools["sram"]
        lasting = sum(b.type.size for b in buffers if b.role in ("constant", "state"))
        assert one.size + both.stride == both.size
        assert both.size <= 2 * one.size + 64
        assert lasting == 0 or both.size < 2 * one.size or both.stride % 32 == 0


def blocks_of(*rows):
    return [Block(name, size, align, 0, 3) for name, size, align in rows]


@pytest.mark.parametrize(
    ("frames", "fault"),
    [
        (Frames(8, 30), "overlaps"),  # the frames overlap
        (Frames(12, 20), "outside"),
        (Frames(14, 30), "not a multiple"),
    ],
)
def test_faults_of_frames_are_detected(frames, fault):
    blocks = blocks_of(("s", 4, 1), ("a", 12, 4))
    plan = PoolPlan({"s": 0, "a": 4}, 16, 4, 16)
    verify_frames(blocks, plan, frames_of(blocks, plan, frozenset("s")), frozenset("s"), ())
    with pytest.raises(PlanError, match=fault):
        verify_frames(blocks, plan, frames, frozenset("s"), ())


def test_a_shared_block_inside_a_frame_is_detected():
    blocks = blocks_of(("a", 4, 1), ("s", 4, 1), ("b", 4, 1))
    plan = PoolPlan({"a": 0, "s": 4, "b": 8}, 12, 1, 12)
    with pytest.raises(PlanError, match="overlaps"):
        verify_frames(blocks, plan, Frames(12, 24), frozenset("s"), ())


def test_joined_plans():
    shared = PoolPlan({"s": 0}, 5, 1, 5)
    own = PoolPlan({"a": 0, "b": 8}, 16, 8, 16)
    assert joined(shared, own) == PoolPlan({"s": 0, "a": 8, "b": 16}, 24, 8, 21)
