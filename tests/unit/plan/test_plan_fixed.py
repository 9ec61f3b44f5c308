# SPDX-License-Identifier: Apache-2.0
"""Plans that the manifest gives: accepted plans, sharing in place, pools, and every fault with its location."""

from opwest.diagnostics import Diagnostics, Location
from opwest.model.fixed_plan import FixedOffset, FixedPlan, FixedPool
from opwest.plan.memory import plan_model
from opwest.plan.table import pool_rows
from plan_support import buffer, model_of, pool

STEPS = ("in -> a", "a -> b", "a b -> c", "c -> out")
AT = Location("m.yaml", 5, 3)


def planned(offsets, *texts, buffers=None, pools=None, table=None):
    """Return the plan of offsets by pool, and the messages; offset `i` of a pool is at line `i` of a file `POOL`."""
    parts = [
        FixedPool(
            name, AT, tuple(FixedOffset(b, o, Location(name, line, 1)) for line, (b, o) in enumerate(given.items(), 1))
        )
        for name, given in offsets.items()
    ]
    if table is not None:
        parts.append(FixedPool("sram", AT, table=table, file="t.csv"))
    model = model_of(
        *(texts or STEPS), buffers=buffers, pools=pools, planner="fixed", fixed=FixedPlan(AT, tuple(parts))
    )
    faults = Diagnostics()
    ordered, plan = plan_model(model, faults)
    return ordered, plan, [str(d).splitlines()[0] for d in faults]


def test_given_offsets_are_the_plan():
    _, plan, messages = planned({"sram": {"a": 4, "b": 0, "c": 2}})
    assert messages == []
    assert plan.pools["sram"].offsets == {"a": 4, "b": 0, "c": 2}
    assert (plan.pools["sram"].size, plan.pools["sram"].lower_bound) == (5, 3)
    assert plan.homes == dict.fromkeys("abc", "sram")


def test_overlap_names_the_pair():
    _, _, messages = planned({"sram": {"a": 0, "b": 1, "c": 1}})
    assert messages == ["sram:3:1: error: 'c' overlaps 'b' in pool 'sram': bytes 1 to 1 and 1 to 1"]


def test_each_overlapping_tensor_is_reported():
    _, _, messages = planned({"sram": {"a": 0, "b": 0, "c": 0}})
    assert [m.split(" in pool")[0] for m in messages] == [
        "sram:2:1: error: 'b' overlaps 'a'",
        "sram:3:1: error: 'c' overlaps 'a'",
    ]


def test_result_in_place_may_have_the_offset_of_its_argument():
    steps = ("in -> a", "a -> b@0", "b -> out")
    ordered, plan, messages = planned({"sram": {"a": 0, "b": 0}}, *steps)
    assert messages == [] and plan.pools["sram"].size == 1
    assert [(row.name, row.lower, row.upper, row.offset) for row in pool_rows(ordered, plan, "sram")] == [
        ("a+b", 0, 3, 0)
    ]
    ordered, plan, messages = planned({"sram": {"a": 0, "b": 1}}, *steps)
    assert messages == [] and [row.name for row in pool_rows(ordered, plan, "sram")] == ["a", "b"]
    _, _, messages = planned({"sram": {"a": 0, "b": 0}}, "in -> a", "a -> b", "b -> out")
    assert messages == ["sram:2:1: error: 'b' overlaps 'a' in pool 'sram': bytes 0 to 0 and 0 to 0"]


def test_result_in_place_may_not_overlap_its_argument_elsewhere():
    buffers = [buffer("a", 4), buffer("b", 4)]
    _, _, messages = planned({"sram": {"a": 0, "b": 2}}, "in -> a", "a -> b@0", "b -> out", buffers=buffers)
    assert messages == ["sram:2:1: error: 'b' overlaps 'a' in pool 'sram': bytes 2 to 5 and 0 to 3"]


def test_alignment_and_size_of_the_pool():
    buffers = [buffer("a", 4, align=4), buffer("b", 4), buffer("c", 4)]
    pools = [pool(size=12)]
    _, _, messages = planned({"sram": {"a": 2, "b": 6, "c": 10}}, buffers=buffers, pools=pools)
    assert messages == [
        "sram:1:1: error: the offset of 'a' is 2",
        "sram:3:1: error: 'c' ends at 14, pool 'sram' has 12 bytes",
    ]
    _, _, messages = planned({"sram": {"a": 4, "b": 8, "c": 0}}, buffers=buffers, pools=pools)
    assert messages == []


def test_tensor_larger_than_the_pool():
    _, _, messages = planned({"sram": {"a": 0}}, "in -> a", buffers=[buffer("a", 16)], pools=[pool(size=8)])
    assert messages == ["sram:1:1: error: 'a' ends at 16, pool 'sram' has 8 bytes"]


def test_pools_have_plans_of_their_own():
    pools = [pool("fast", 8), pool("sram")]
    buffers = [buffer("a", pools=("fast", "sram")), buffer("b", pools=("fast", "sram")), buffer("c", pools=("sram",))]
    _, plan, messages = planned({"fast": {"a": 0}, "sram": {"b": 0, "c": 1}}, buffers=buffers, pools=pools)
    assert messages == [] and plan.homes == {"a": "fast", "b": "sram", "c": "sram"}
    _, _, messages = planned({"fast": {"a": 0, "c": 1}, "sram": {"b": 0, "a": 1}}, buffers=buffers, pools=pools)
    assert messages == ["fast:2:1: error: 'c' has an offset in pool 'fast'", "sram:2:1: error: duplicate offset of 'a'"]


def test_missing_and_unknown_tensors():
    _, _, messages = planned({"sram": {"a": 0, "bb": 1}})
    assert messages == [
        "sram:2:1: error: unknown tensor 'bb'",
        "m.yaml:5:3: error: missing offsets in pool 'sram': 'b', 'c'",
    ]
    many = [f"in -> t{i:02}" for i in range(20)]
    _, _, messages = planned({}, *many)
    listed = ", ".join(f"'t{i:02}'" for i in range(8))
    assert messages == [f"m.yaml:5:3: error: missing offsets in pool 'sram': {listed}, …"]


def test_table_with_lines_for_shared_memory():
    steps = ("in -> a", "a -> b@0", "b -> out")
    _, plan, messages = planned({}, *steps, table="id,lower,upper,size,offset\na+b,0,3,1,7\n")
    assert messages == [] and plan.pools["sram"].offsets == {"a": 7, "b": 7}
    _, _, messages = planned({}, *steps, table="id,lower,upper,size,offset\na,0,2,1,0\nb,1,3,1,x\n")
    assert messages == ["t.csv:3:9: error: offset is 'x'"]
    _, _, messages = planned({}, *steps, table="id,lower,upper,size,offset\na+c,0,3,1,7\n")
    assert messages == [
        "t.csv:2:11: error: unknown tensor 'c'",
        "m.yaml:5:3: error: missing offset in pool 'sram': 'b'",
    ]


def test_offsets_are_judged_by_the_model_not_by_the_table():
    _, _, messages = planned({}, table="id,lower,upper,size,offset\na,0,1,1,0\nb,1,2,1,0\nc,2,3,1,0\n")
    assert [m.split(" in pool")[0] for m in messages] == [
        "t.csv:3:9: error: 'b' overlaps 'a'",
        "t.csv:4:9: error: 'c' overlaps 'a'",
    ]


def test_rows_of_a_planned_model_are_its_problem():
    model = model_of(*STEPS, buffers=[buffer("a", 3, align=8), buffer("b", 16), buffer("c", 1)])
    model, plan = plan_model(model, Diagnostics())
    rows = pool_rows(model, plan, "sram")
    assert [(r.name, r.lower, r.upper, r.size, r.align) for r in rows] == [
        ("a", 0, 3, 8, 8),
        ("b", 1, 3, 16, 1),
        ("c", 2, 4, 1, 1),
    ]
    assert {r.name: r.offset for r in rows} == plan.pools["sram"].offsets
