# SPDX-License-Identifier: Apache-2.0
"""The bytes that steps have written: boundaries, and random ranges against a set of bytes."""

import itertools
import random

import pytest
from opwest.model.coverage import Coverage
from opwest.model.dtypes import DTYPES, TensorType

GAPS = {
    "nothing is written": ([], (0, 4), (0, 4)),
    "all is written": ([(0, 4)], (0, 4), None),
    "one byte less at the end": ([(0, 3)], (0, 4), (3, 4)),
    "one byte less at the begin": ([(1, 4)], (0, 4), (0, 1)),
    "one byte in the middle": ([(0, 2), (3, 5)], (0, 5), (2, 3)),
    "two neighbours": ([(0, 2), (2, 5)], (0, 5), None),
    "neighbours in the other order": ([(2, 5), (0, 2)], (0, 5), None),
    "the part between two neighbours": ([(0, 2), (4, 6), (2, 4)], (0, 6), None),
    "a range within another": ([(0, 8), (2, 3)], (0, 8), None),
    "ranges that overlap": ([(0, 5), (3, 8)], (1, 8), None),
    "a part is read": ([(4, 8)], (5, 7), None),
    "before what is written": ([(4, 8)], (0, 4), (0, 4)),
    "after what is written": ([(4, 8)], (8, 9), (8, 9)),
    "the first of two gaps": ([(2, 3), (5, 6)], (0, 8), (0, 2)),
    "the second gap": ([(0, 3), (5, 6)], (1, 8), (3, 5)),
}


@pytest.mark.parametrize("case", GAPS)
def test_gaps(case):
    written, asked, expected = GAPS[case]
    coverage = Coverage()
    for begin, end in written:
        coverage.add("t", begin, end)
    assert coverage.gap("t", *asked) == expected
    assert coverage.gap("other", *asked) == asked
    assert ("t" in coverage) == bool(written)
    assert coverage.tensors == ({"t"} if written else set())


def test_whole_tensor_has_any_size():
    coverage = Coverage()
    coverage.add("t", 3, 4)
    coverage.add_whole("t")
    coverage.add("t", 5, 9)
    assert coverage.gap("t", 0, 1 << 40) is None


def test_random_ranges_equal_a_set_of_bytes():
    rng = random.Random(7)
    gaps = 0
    for _ in range(300):
        coverage, known = Coverage(), {"a": set(), "b": set()}
        for _ in range(rng.randint(1, 12)):
            name, begin = rng.choice("ab"), rng.randrange(40)
            end = begin + rng.randint(1, 12)
            coverage.add(name, begin, end)
            known[name] |= set(range(begin, end))
            low = rng.randrange(50)
            high = low + rng.randint(1, 20)
            for other, written in known.items():
                gap = coverage.gap(other, low, high)
                missing = [at for at in range(low, high) if at not in written]
                assert (gap is None) == (not missing)
                if gap is not None:
                    stop = next((at for at in range(missing[0], high) if at in written), high)
                    assert gap == (missing[0], stop)
                    gaps += 1
    assert gaps > 1000


def rows(begin, width, pitch, count, dtype="int8"):
    """Return a view with a pitch, its first byte, and its bytes."""
    item = DTYPES[dtype].size
    type_ = TensorType(DTYPES[dtype], (count, width), pitch)
    places = {begin + (row * pitch + at) * item + byte for row, at, byte in _each(count, width, item)}
    return begin, type_, places


def _each(*counts):
    return itertools.product(*map(range, counts))


def test_rows_of_views_together_are_whole_ranges():
    coverage = Coverage()
    coverage.add_view("t", *rows(0, 2, 5, 4)[:2])
    assert coverage.gap("t", 0, 20) == (2, 5)
    coverage.add_view("t", *rows(2, 2, 5, 4)[:2])
    assert coverage.gap("t", 0, 20) == (4, 5)
    assert coverage.gap("t", 10, 14) is None
    coverage.add_view("t", *rows(4, 1, 5, 4)[:2])
    assert coverage.gap("t", 0, 20) is None
    assert coverage.gap("t", 0, 21) == (20, 21)


def test_random_rows_equal_a_set_of_bytes():
    rng = random.Random(8)
    gaps = 0
    for _ in range(300):
        coverage, known = Coverage(), set()
        for _ in range(rng.randint(1, 6)):
            if rng.random() < 0.3:
                begin = rng.randrange(40)
                end = begin + rng.randint(1, 12)
                coverage.add("t", begin, end)
                known |= set(range(begin, end))
            else:
                width = rng.randint(1, 5)
                dtype = rng.choice(["int8", "int16"])
                shape = (width, width + rng.randint(0, 5), rng.randint(1, 6))
                begin, type_, places = rows(rng.randrange(0, 20, 2), *shape, dtype)
                assert begin + type_.size == max(places) + 1
                coverage.add_view("t", begin, type_)
                known |= places
            low = rng.randrange(50)
            high = low + rng.randint(1, 30)
            missing = [at for at in range(low, high) if at not in known]
            stop = next((at for at in range(missing[0], high) if at in known), high) if missing else None
            assert coverage.gap("t", low, high) == ((missing[0], stop) if missing else None)
            gaps += bool(missing)
    assert gaps > 300
