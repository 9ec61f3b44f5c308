# SPDX-License-Identifier: Apache-2.0
"""Phases of operators: memory that a step uses one after the other can overlap."""

import random
from dataclasses import replace

import pytest
from opwest.base.diagnostics import Diagnostics
from opwest.model.types.model import FixedOffset, FixedPlan, FixedPool
from opwest.plan import greedy, search
from opwest.plan.memory import plan_model
from opwest.plan.problem import LAST_PHASE, Block, Share, in_moments, peak
from opwest.plan.schedule import plan_schedule
from opwest.plan.sharing import merged
from opwest.plan.uses import Lifetime
from opwest.plan.verify import flaws
from plan_support import HERE, buffer, model_of


def phased(model, *phases):
    """Return a model whose steps have phases: for each step, one entry for each argument."""
    steps = []
    for step, listed in zip(model.steps, phases, strict=True):
        args = tuple(replace(a, phases=p) for a, p in zip(step.operator.args, listed, strict=True))
        steps.append(replace(step, operator=replace(step.operator, args=args)))
    return replace(model, steps=tuple(steps))


END = LAST_PHASE
LIVES = {
    "an argument and a result": (["in -> a", "a -> b", "b ->"], [[None, None], [(0, 0), (1, 2)], [None]], {
        "a": Lifetime(0, 1, 0, 0),
        "b": Lifetime(1, 2, 1, END),
    }),
    "a result that no step reads": (["-> a"], [[(0, 1)]], {"a": Lifetime(0, 0, 0, END)}),
    "scratch": (["-> ^s ^t"], [[(0, 1), (2, 2)]], {"s": Lifetime(0, 0, 0, 1), "t": Lifetime(0, 0, 2, 2)}),
    "twice in a step": (["-> a", "a a ->"], [[None], [(1, 1), (3, 3)]], {"a": Lifetime(0, 1, 0, 3)}),
    "once in all phases": (["-> a", "a a ->"], [[None], [None, (3, 3)]], {"a": Lifetime(0, 1, 0, END)}),
    "steps between": (["-> a", "a ->", "a ->"], [[(2, 2)], [(5, 5)], [(1, 1)]], {"a": Lifetime(0, 2, 2, 1)}),
    "a launch": (["left: -> a", "a -> b"], [[(1, 1)], [(0, 0), None]], {"a": Lifetime(0, 1, 0, 0)}),
}  # fmt: skip


@pytest.mark.parametrize("case", LIVES)
def test_lifetimes(case):
    texts, phases, wanted = LIVES[case]
    lives = plan_schedule(phased(model_of(*texts), *phases)).lives
    assert {name: lives[name] for name in wanted} == wanted


@pytest.mark.parametrize(("role", "wanted"), [
    ("input", Lifetime(0, 0, 0, 0)),
    ("output", Lifetime(0, 0, 0, END)),
    ("state", Lifetime(0, 0, 0, END)),
])  # fmt: skip
def test_buffers_that_others_use_before_or_after_the_run(role, wanted):
    begin = 1 if role == "output" else 0
    model = phased(model_of("a ->", buffers=[buffer("a", role=role)]), [(begin, 0 if begin == 0 else 1)])
    assert plan_schedule(model).lives["a"] == replace(wanted, begin=begin)


def test_memory_of_a_device_that_is_not_coherent_is_used_in_whole_steps():
    model = phased(model_of("a -> b", buffers=[buffer("a", incoherent=True), buffer("b")]), [(0, 0), (1, 1)])
    lives = plan_schedule(model).lives
    assert (lives["a"], lives["b"]) == (Lifetime(0, 0), Lifetime(0, 0, 1, END))


def random_blocks(seed):
    source = random.Random(seed)
    blocks = []
    for number in range(source.randint(1, 7)):
        first = source.randint(0, 3)
        last = first + source.choice([0, 0, 1, 2])
        begin, end = source.randint(0, 2), source.randint(0, 2)
        if first == last and begin > end:
            begin, end = end, begin
        spans = source.choice([(begin, end), (begin, end), (0, LAST_PHASE)])
        blocks.append(Block(f"b{number}", source.randint(1, 9), source.choice([1, 1, 2, 4]), first, last, *spans))
    return blocks


def together(one, other):
    """Whether two blocks are in use at the same time, by comparison of steps and phases."""
    return (one.first, one.begin) <= (other.last, other.end) and (other.first, other.begin) <= (one.last, one.end)


@pytest.mark.parametrize("planner", [greedy.plan_pool, search.search_pool])
def test_planners_and_verification_agree_with_the_definition(planner):
    smaller = 0
    for seed in range(200):
        blocks = random_blocks(seed)
        plan = planner(blocks)
        assert not list(flaws(blocks, plan.offsets, plan.size))
        for one in blocks:
            for other in blocks:
                apart = plan.offsets[one.name] + one.size <= plan.offsets[other.name]
                apart = apart or plan.offsets[other.name] + other.size <= plan.offsets[one.name]
                assert one is other or apart or not together(one, other)
        most = max(sum(o.size for o in blocks if (o.first, o.begin) <= at <= (o.last, o.end))
                   for at in ((b.first, b.begin) for b in blocks))  # fmt: skip
        assert (plan.lower_bound, peak(blocks).size) == (most, most)
        whole = planner([replace(block, begin=0, end=LAST_PHASE) for block in blocks])
        smaller += plan.size < whole.size
    assert smaller >= 10


def test_every_overlap_is_found():
    """All pairs at one address: exactly those in use at the same time are flaws, and have common moments."""
    for seed in range(300):
        blocks = [replace(block, align=1) for block in random_blocks(seed)[:2]]
        if len(blocks) == 2:
            found = [flaw.kind for flaw in flaws(blocks, {b.name: 0 for b in blocks}, 99)]
            one, other = in_moments(blocks)
            moments = one.first <= other.last and other.first <= one.last
            assert (found == ["overlap"]) == moments == together(*blocks)


def test_blocks_without_phases_are_planned_as_they_are():
    blocks = [Block("a", 4, 1, 0, 3), Block("b", 4, 1, 2, 5)]
    assert in_moments(blocks) is blocks


def test_merged_blocks_begin_and_end_with_their_phases():
    blocks = [Block("a", 4, 1, 0, 1, 2, 1), Block("b", 4, 1, 1, 1, 1, 3)]
    assert merged(blocks, [Share("a", "b", 1)])[0] == [Block("a", 4, 1, 0, 1, 2, 3)]


STEPS, SIZES = ["in -> a", "a -> b ^s"], [buffer("a", 8), buffer("b", 8), buffer("s", 12)]
PHASES = [[None, None], [(0, 0), (1, 1), (1, 1)]]


def fixed(phases, **offsets):
    """Return the messages for given offsets."""
    given = FixedPlan(HERE, (FixedPool("sram", HERE, tuple(FixedOffset(n, at, HERE) for n, at in offsets.items())),))
    faults = Diagnostics()
    _, plan = plan_model(phased(model_of(*STEPS, buffers=SIZES, planner="fixed", fixed=given), *phases), faults)
    return [fault.message for fault in faults] or plan.pools["sram"].size


def test_given_offsets_can_overlap_only_in_different_phases():
    assert fixed(PHASES, a=0, b=4, s=12) == 24
    everywhere = [[None, None], [None, None, None]]
    assert fixed(everywhere, a=0, b=4, s=12) == [
        "'b' overlaps 'a' in pool 'sram': bytes 4 to 11 and 0 to 7",
    ]
    assert fixed(PHASES, a=0, b=4, s=8) == ["'s' overlaps 'b' in pool 'sram': bytes 8 to 19 and 4 to 11"]
