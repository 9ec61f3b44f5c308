# SPDX-License-Identifier: Apache-2.0
"""Verification of plans: messages, and results against brute force over every byte of every step."""

import itertools
import random

import pytest
from opwest.packing.problem import Block, Share
from opwest.packing.verify import PlanError, verify

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
    """Return whether a plan is wrong."""
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


def test_both_neighbours_are_checked():
    low, high, new = Block("low", 8, 8, 0, 9), Block("high", 8, 8, 0, 9), Block("new", 12, 4, 5, 5)
    blocks = [low, high, new]
    assert rejection(blocks, {"low": 0, "high": 24, "new": 4}, 100) == "new at 4 overlaps low at 0"
    assert rejection(blocks, {"low": 0, "high": 24, "new": 8}, 100) is None
    assert rejection(blocks, {"low": 0, "high": 24, "new": 12}, 100) is None
    assert rejection(blocks, {"low": 0, "high": 24, "new": 16}, 100) == "new at 16 overlaps high at 24"
    assert rejection(blocks, {"low": 8, "high": 24, "new": 0}, 100) == "new at 0 overlaps low at 8"


def test_memory_is_free_in_the_step_after_a_lifetime():
    blocks = [Block(name, 8, 8, i, i) for i, name in enumerate("abcdef")]
    assert rejection(blocks, dict.fromkeys("abcdef", 0), 8) is None
    blocks[2] = Block("c", 8, 8, 2, 3)
    assert rejection(blocks, dict.fromkeys("abcdef", 0), 8) == "d at 0 overlaps c at 0"


def lives(*rows):
    """Return blocks of 8 bytes, named a, b and so on, by their first and last steps."""
    return [Block(name, 8, 1, first, last) for name, (first, last) in zip("abcdefgh", rows, strict=False)]


ALL = dict.fromkeys("abcdefgh", 0)


@pytest.mark.parametrize(
    ("blocks", "shares", "message"),
    [
        (lives((0, 2), (2, 4)), [("a", "b", 2)], None),
        (lives((0, 3), (2, 4)), [("a", "b", 2)], None),  # launched: both until their device was waited for
        (lives((2, 2), (2, 2)), [("a", "b", 2)], None),  # an input of the first step, a result without readers
        (lives((0, 2), (2, 4)), [("b", "a", 2)], "b at 0 overlaps a at 0"),
        (lives((0, 2), (2, 4)), [("a", "b", 1)], "b at 0 overlaps a at 0"),
        (lives((0, 2), (1, 4)), [("a", "b", 2)], "b at 0 overlaps a at 0"),
        (lives((3, 3), (2, 4)), [("a", "b", 2)], "a at 0 overlaps b at 0"),
        (lives((0, 5), (2, 4)), [("a", "b", 2)], "b at 0 overlaps a at 0"),  # needed longer
        (lives((0, 2), (2, 4)), [("x", "b", 2)], "b at 0 overlaps a at 0"),
        (lives((0, 2), (2, 4)), [("a", "x", 2)], "b at 0 overlaps a at 0"),
        (lives((0, 2), (2, 2), (2, 4)), [("a", "b", 2), ("b", "c", 2)], None),
        (lives((0, 2), (2, 2), (2, 4)), [("b", "c", 2), ("a", "b", 2)], None),
        (lives((0, 2), (2, 2), (2, 2), (2, 4)), [("a", "b", 2), ("b", "c", 2), ("c", "d", 2)], None),
        (lives((0, 2), (2, 2), (2, 2), (2, 4)), [("a", "b", 2), ("c", "d", 2)], "c at 0 overlaps b at 0"),
        # Two results on one argument, in every order of their names.
        (lives((0, 2), (2, 4), (2, 4)), [("a", "b", 2), ("a", "c", 2)], "c at 0 overlaps b at 0"),
        (lives((2, 4), (0, 2), (2, 4)), [("b", "a", 2), ("b", "c", 2)], "c at 0 overlaps b at 0"),
        (lives((2, 4), (2, 4), (0, 2)), [("c", "a", 2), ("c", "b", 2)], "b at 0 overlaps c at 0"),
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


def test_share_requires_equal_offsets():
    blocks, share = lives((0, 2), (2, 4)), [Share("a", "b", 2)]
    assert rejection(blocks, {"a": 0, "b": 4}, 16, share) == "b at 4 overlaps a at 0"
    assert rejection(blocks, {"a": 4, "b": 0}, 16, share) == "b at 0 overlaps a at 4"
    assert rejection(blocks, {"a": 0, "b": 8}, 16, share) is None


def test_share_does_not_hide_another_overlap():
    large, small, other = Block("a", 16, 1, 0, 2), Block("b", 4, 1, 2, 4), Block("c", 4, 1, 2, 2)
    share = [Share("a", "b", 2)]
    assert rejection([large, small], {"a": 0, "b": 0}, 16, share) is None
    for offset in range(12):
        found = rejection([large, small, other], {"a": 0, "b": 0, "c": offset}, 32, share)
        assert found and found.startswith(f"c at {offset} overlaps ")
    assert rejection([large, small, other], {"a": 0, "b": 0, "c": 16}, 32, share) is None


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
