# SPDX-License-Identifier: Apache-2.0
"""Greedy planning against a plain implementation that tries every byte in every order, and verification of plans."""

import itertools
import random
import sys
import time

import pytest
from opwest.plan import greedy
from opwest.plan.greedy import _place, plan_pool
from opwest.plan.problem import Block, Peak, PoolPlan, Share, peak
from opwest.plan.verify import PlanError, verify


def random_blocks(seed, most=10):
    rng = random.Random(seed)
    blocks = []
    for number in range(rng.randint(1, most)):
        first = rng.randint(0, 9)
        last = first + rng.choice([0, 1, 1, 3, 8])
        blocks.append(Block(f"b{number}", rng.randint(1, 9), rng.choice([1, 1, 2, 4]), first, last))
    return blocks


def together(one, other):
    return one.first <= other.last and other.first <= one.last


def free(block, offset, neighbours):
    return offset % block.align == 0 and all(offset + block.size <= a or z <= offset for a, z in neighbours)


def plain_place(blocks, limit):
    """Place blocks in order: at the bottom; with a limit, at the highest offset below it, or the lowest."""
    placed = {}
    for block in blocks:
        beside = [(at, at + b.size) for b, at in placed.items() if together(b, block)]
        lowest = next(at for at in range(999) if free(block, at, beside))
        below = [at for at in range((limit or 0) - block.size + 1) if free(block, at, beside)]
        placed[block] = lowest if lowest == 0 or not below else max(below)
    return {block.name: at for block, at in placed.items()}


@pytest.mark.parametrize("seed", range(40))
def test_plan_is_the_first_of_the_smallest(seed):
    blocks = random_blocks(seed)
    bound = max(sum(b.size for b in blocks if b.first <= step <= b.last) for step in range(20))
    tries = [plain_place(sorted(blocks, key=o), limit) for limit in (None, bound) for o in greedy._ORDERS]
    needed = [max(offsets[b.name] + b.size for b in blocks) for offsets in tries]
    least = min(needed)
    align = max(b.align for b in blocks)
    assert plan_pool(blocks) == PoolPlan(tries[needed.index(least)], least, align, bound)


def test_search_for_an_order_ends_at_the_bound(monkeypatch):
    tried = []

    def place(blocks, limit):
        tried.append(limit)
        return _place(blocks, limit)

    monkeypatch.setattr(greedy, "_place", place)
    plan_pool([Block("a", 4, 1, 0, 0), Block("b", 4, 1, 0, 0)])
    assert tried == [None], "the first order reaches it"
    tried.clear()
    # No order reaches the bound here: all are tried from below, and all from both ends.
    blocks = [Block("A", 100, 1, 0, 1), Block("B", 60, 1, 2, 3), Block("C", 30, 1, 1, 2), Block("D", 64, 64, 1, 1)]
    plan = plan_pool(blocks)
    assert plan.size > plan.lower_bound == 194
    assert tried == [None] * 5 + [194] * 5


def test_orders_differ_in_the_first_block():
    """By size, by time, by area, by life, by death."""
    large, early, long_ = Block("large", 50, 1, 5, 5), Block("early", 1, 1, 0, 1), Block("long", 9, 1, 2, 8)
    late = Block("late", 2, 1, 9, 9)
    blocks = [late, long_, early, large]
    assert [min(blocks, key=order).name for order in greedy._ORDERS] == ["large", "early", "long", "long", "late"]


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        ([], (0, 0, [])),
        ([Block("a", 4, 1, 3, 5)], (3, 4, ["a"])),
        ([Block("a", 4, 1, 0, 2), Block("b", 4, 1, 3, 4)], (0, 4, ["a"])),  # the first of two of equal height
        ([Block("a", 4, 1, 0, 2), Block("b", 5, 1, 3, 4)], (3, 5, ["b"])),
        ([Block("a", 4, 1, 0, 2), Block("b", 4, 1, 2, 4), Block("c", 1, 1, 3, 9)], (2, 8, ["a", "b"])),
        ([Block("a", 4, 1, 2, 2), Block("b", 4, 1, 2, 4), Block("c", 4, 1, 2, 9)], (2, 12, ["a", "b", "c"])),
        ([Block("a", 4, 1, 0, 0), Block("b", 3, 1, 1, 1), Block("c", 3, 1, 1, 1)], (1, 6, ["b", "c"])),
    ],
)
def test_peak(blocks, expected):
    step, size, names = expected
    assert peak(blocks) == Peak(step, size, tuple(b for b in blocks if b.name in names))


def chain(sizes):
    """Tensor i is written in step i and read in step i + 1."""
    return [Block(f"t{i}", size, 8, i, i + 1) for i, size in enumerate(sizes)]


def test_every_small_chain_reaches_the_lower_bound():
    for sizes in itertools.product([8, 24, 64], repeat=5):
        plan = plan_pool(chain(sizes))
        assert plan.size == plan.lower_bound, sizes


@pytest.mark.parametrize("skip", [8, 64, 200])
@pytest.mark.parametrize("branch", [8, 64, 200])
def test_diamonds_reach_the_lower_bound(skip, branch):
    """A chain of residual blocks: t is alive beside the branch until both are added."""
    blocks = []
    for turn in range(4):
        at = 3 * turn
        blocks += [
            Block(f"t{turn}", skip, 8, at, at + 3),
            Block(f"a{turn}", branch, 8, at + 1, at + 2),
            Block(f"b{turn}", skip, 8, at + 2, at + 3),
        ]
    plan = plan_pool(blocks)
    assert plan.size == plan.lower_bound


def test_pool_overflow_missed_by_tvm():
    """A pool of 100 bytes: A (100) and B (60) are disjoint in time, C (30) overlaps both. No plan fits."""
    blocks = [Block("A", 100, 1, 0, 1), Block("B", 60, 1, 2, 3), Block("C", 30, 1, 1, 2)]
    plan = plan_pool(blocks)
    assert plan.size == plan.lower_bound == 130
    assert plan.offsets["C"] >= 60
    with pytest.raises(PlanError, match="overlaps"):
        verify(blocks, {"A": 0, "B": 0, "C": 60}, 100)
    with pytest.raises(PlanError, match="outside"):
        verify(blocks, plan.offsets, 100)


@pytest.mark.slow
def test_a_long_chain_is_planned_quickly():
    generator = random.Random(1)
    blocks = chain([8 * generator.randint(1, 1000) for _ in range(10_000)])
    tracer = sys.gettrace()
    sys.settrace(None)  # measure the planner without coverage, which takes two thirds of the time
    try:
        start = time.process_time()
        plan = plan_pool(blocks)
        verify(blocks, plan.offsets, plan.size)
        took = time.process_time() - start
    finally:
        sys.settrace(tracer)
    assert took < 2
    assert plan.size == plan.lower_bound


# --- Verification of plans: messages, and results against brute force over every byte of every step

A = Block("a", 16, 8, 0, 2)


def related(blocks, shares):
    """Return the pairs that may overlap by the rules of sharing, with the transitive closure."""
    known = {block.name: block for block in blocks}
    taken, takers, pairs = set(), set(), set()
    for share in shares:
        if not {share.taken, share.taker} <= set(known) or share.taken in taken or share.taker in takers:
            continue
        below, above = known[share.taken], known[share.taker]
        circle = below is above or (above.name, below.name) in pairs
        if not circle and above.first == share.step >= below.first and above.last >= below.last:
            taken.add(below.name)
            takers.add(above.name)
            before = {below.name} | {low for low, high in pairs if high == below.name}
            after = {above.name} | {high for low, high in pairs if low == above.name}
            pairs |= set(itertools.product(before, after))
    return pairs | {(high, low) for low, high in pairs}


def wrong(blocks, offsets, size, shares=()):
    allowed = related(blocks, shares)
    for block in blocks:
        start = offsets[block.name]
        if start % block.align or not 0 <= start <= size - block.size:
            return True
    for one, other in itertools.combinations(blocks, 2):
        together = set(range(one.first, one.last + 1)) & set(range(other.first, other.last + 1))
        start, place = offsets[one.name], offsets[other.name]
        bytes_ = set(range(start, start + one.size)) & set(range(place, place + other.size))
        if together and bytes_ and not (start == place and (one.name, other.name) in allowed):
            return True
    return False


def rejection(blocks, offsets, size, shares=()):
    """Return the message of `verify`, None if it accepts; brute force must agree for any order."""
    messages = []
    for order in (blocks, blocks[::-1]):
        try:
            verify(order, offsets, size, shares)
            messages.append(None)
        except PlanError as error:
            messages.append(str(error))
    assert [message is not None for message in messages] == [wrong(blocks, offsets, size, shares)] * 2
    return messages[0]


@pytest.mark.parametrize(
    ("block", "offset", "size", "message"),
    [
        (A, 4, 100, "a is at 4, not a multiple of 8"),
        (A, -8, 100, "a is at -8, not a multiple of 8"),
        (A, 8, 23, "a ends at 24, outside 23 bytes"),
        (A, 0, 0, "a ends at 16, outside 0 bytes"),
        (A, 8, 24, None),
        (A, 0, 16, None),
        (Block("b", 1, 1, 5, 5), 3, 4, None),
    ],
)
def test_one_block(block, offset, size, message):
    assert rejection([block], {block.name: offset}, size) == message


def test_block_without_offset_is_rejected():
    with pytest.raises(PlanError) as caught:
        verify([A, Block("b", 8, 8, 9, 9)], {"a": 0}, 100)
    assert str(caught.value) == "b has no offset"


@pytest.mark.parametrize(
    ("other", "offset", "message"),
    [
        (Block("b", 16, 8, 0, 2), 8, "b at 8 overlaps a at 0"),  # both begin: reported in the order of names
        (Block("Z", 16, 8, 0, 2), 8, "a at 0 overlaps Z at 8"),
        (Block("Z", 16, 8, 1, 2), 8, "Z at 8 overlaps a at 0"),  # else the later one
        (Block("b", 16, 8, 2, 9), 8, "b at 8 overlaps a at 0"),  # in the last step of a
        (Block("b", 16, 8, 3, 9), 8, None),  # after it
        (Block("b", 16, 8, 0, 0), 16, None),  # above
        (Block("b", 40, 8, 1, 1), 0, "b at 0 overlaps a at 0"),
        (Block("b", 1, 1, 1, 1), 15, "b at 15 overlaps a at 0"),
        (Block("b", 1, 1, 1, 1), 16, None),
    ],
)
def test_two_blocks(other, offset, message):
    assert rejection([A, other], {"a": 0, other.name: offset}, 100) == message


def lives(*rows):
    """Return blocks of 8 bytes, named a, b and so on, by their first and last steps."""
    return [Block(name, 8, 1, first, last) for name, (first, last) in zip("abcdefgh", rows, strict=False)]


@pytest.mark.parametrize(
    ("blocks", "shares", "message"),
    [
        (lives((0, 2), (2, 4)), [("a", "b", 2)], None),
        (lives((0, 3), (2, 4)), [("a", "b", 2)], None),  # launched: both until their device was waited for
        (lives((3, 3), (2, 4)), [("a", "b", 2)], "a at 0 overlaps b at 0"),
        (lives((0, 5), (2, 4)), [("a", "b", 2)], "b at 0 overlaps a at 0"),  # needed longer
        (lives((0, 2), (2, 2), (2, 4)), [("a", "b", 2), ("b", "c", 2)], None),
        # Two results on one argument.
        (lives((0, 2), (2, 4), (2, 4)), [("a", "b", 2), ("a", "c", 2)], "c at 0 overlaps b at 0"),
        # One result on two arguments.
        (lives((0, 2), (0, 2), (2, 4)), [("a", "c", 2), ("b", "c", 2)], "b at 0 overlaps a at 0"),
        # Cyclic shares and a share with itself: the first one counts.
        (lives((2, 2), (2, 2), (2, 2)), [("a", "b", 2), ("b", "a", 2)], "c at 0 overlaps a at 0"),
        (lives((2, 2), (2, 2)), [("a", "a", 2), ("a", "b", 2)], None),
    ],
)
def test_blocks_at_one_place(blocks, shares, message):
    found = rejection(blocks, {b.name: 0 for b in blocks}, 8, [Share(*share) for share in shares])
    if message is None or found is None:
        assert found is message
    else:  # the reported one of several depends on the sort order
        assert found.split(" overlaps ")[0] == message.split(" overlaps ")[0]


def random_problem(rng):
    """Return blocks and shares, some of which the lifetimes do not permit."""
    blocks = []
    for name in "abcdefg"[: rng.randint(2, 7)]:
        first = rng.randint(0, 5)
        blocks.append(Block(name, rng.randint(1, 4), rng.choice([1, 1, 2]), first, first + rng.randint(0, 2)))
    shares = []
    for taken, taker in itertools.permutations(blocks, 2):
        if taker.first - 2 <= taken.first <= taker.first and rng.random() < 0.4:
            shares.append(Share(taken.name, taker.name, taker.first - (rng.random() < 0.1)))
    rng.shuffle(shares)
    return blocks, shares


def test_random_plans_equal_brute_force():
    rng = random.Random(7)
    accepted = shared = 0
    for _ in range(300):
        blocks, shares = random_problem(rng)
        for _ in range(10):
            offsets = {b.name: rng.choice([0, 0, 2, 4, 6, 8, rng.randint(-1, 12)]) for b in blocks}
            if rejection(blocks, offsets, 14, shares) is None:
                accepted += 1
                shared += wrong(blocks, offsets, 14)
    print(accepted, shared)
    assert 600 < accepted < 2400
    assert shared > 100, "some plans are valid only because of their shares"
