# SPDX-License-Identifier: Apache-2.0
"""The multiple-choice knapsack: one option of each group, the least cost within a limit of size.

The groups are merged one after the other to the front of sums that no other sum beats in both cost and size: exact.
Fronts that grow beyond a limit are cut; then the linear relaxation bounds the distance to the optimum. The effort is
counted in sums, not in seconds: a slow machine makes the same choice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise

from opwest.base.frozen_dataclass import dataclass

MAX_SUMS = 20_000
"""The sums of a front; more are thinned out."""


@dataclass(frozen=True)
class Option:
    """A choice for a group."""

    cost: float
    size: int
    needs: frozenset[str] = frozenset()
    """The functions that it shares with other options that need them; `size` does not contain them."""


@dataclass(frozen=True)
class Solution:
    """The indices of the options, and the greatest distance to the optimum, as a part of the cost."""

    chosen: tuple[int, ...]
    cost: float
    size: int
    gap: float


def solve(groups: Sequence[Sequence[Option]], limit: int | None = None) -> Solution | None:
    """Return the options with the least cost, and the least size among those; None if none fits."""
    fronts = [_front(list(enumerate(group))) for group in groups]
    least = [min(option.size for _, option in front) for front in fronts]
    if limit is not None and sum(least) > limit:
        return None
    picked = [min(front, key=lambda one: (one[1].cost, one[1].size)) for front in fronts]
    if limit is None or sum(option.size for _, option in picked) <= limit:
        chosen = tuple(place for place, _ in picked)
        return Solution(chosen, sum(one.cost for _, one in picked), sum(one.size for _, one in picked), 0.0)
    return _within(fronts, least, limit)


def _front(options: list[tuple[int, Option]]) -> list[tuple[int, Option]]:
    """Return the options that no other one beats in both numbers, by size."""
    kept: list[tuple[int, Option]] = []
    for place, option in sorted(options, key=lambda one: (one[1].size, one[1].cost)):
        if not kept or option.cost < kept[-1][1].cost:
            kept.append((place, option))
    return kept


_Sum = tuple[int, float, "_Sum | None", int]
"""Size, cost, the sum without the last group, the option of the last group."""


def _within(fronts: list[list[tuple[int, Option]]], least: list[int], limit: int) -> Solution:
    sums: list[_Sum] = [(0, 0.0, None, 0)]
    rest, is_exact = sum(least), True
    for front, smallest in zip(fronts, least, strict=True):
        rest -= smallest
        merged: list[_Sum] = []
        for one in sums:
            for place, option in front:
                size = one[0] + option.size
                if size + rest > limit:
                    break
                merged.append((size, one[1] + option.cost, one, place))
        merged.sort(key=lambda one: (one[0], one[1]))
        sums = []
        for one in merged:
            if not sums or one[1] < sums[-1][1]:
                sums.append(one)
        if len(sums) > MAX_SUMS:
            is_exact = False
            step = -(-len(sums) // MAX_SUMS)
            sums = sums[::step] + ([sums[-1]] if (len(sums) - 1) % step else [])
    best: _Sum | None = min(sums, key=lambda one: one[1])
    assert best is not None
    size, cost = best[0], best[1]
    chosen: list[int] = []
    while best is not None and best[2] is not None:
        chosen.append(best[3])
        best = best[2]
    gap = 0.0 if is_exact else max(0.0, 1 - relaxed(fronts, limit) / cost)
    return Solution(tuple(reversed(chosen)), cost, size, gap)


def relaxed(fronts: Sequence[Sequence[tuple[int, Option]]], limit: int) -> float:
    """Return the cost of the linear relaxation, a lower bound: parts of options are permitted."""
    size = sum(front[0][1].size for front in fronts)
    cost = sum(front[0][1].cost for front in fronts)
    steps: list[tuple[float, int, float]] = []
    for front in fronts:
        for before, after in pairwise(_hull([option for _, option in front])):
            gained, added = before.cost - after.cost, after.size - before.size
            steps.append((gained / added, added, gained))
    for _, added, gained in sorted(steps, reverse=True):
        part = min(1.0, (limit - size) / added)
        if part <= 0:
            break
        size += added
        cost -= gained * part
    return cost


def _hull(options: list[Option]) -> list[Option]:
    """Return the options on the lower convex hull, by size."""
    hull: list[Option] = []
    for option in options:
        while len(hull) > 1 and _is_above(hull[-2], hull[-1], option):
            hull.pop()
        hull.append(option)
    return hull


def _is_above(first: Option, middle: Option, last: Option) -> bool:
    return (first.cost - middle.cost) * (last.size - first.size) <= (first.cost - last.cost) * (
        middle.size - first.size
    )


def solve_shared(
    groups: Sequence[Sequence[Option]], sizes: Mapping[str, int], price: float, limit: int | None = None
) -> Solution | None:
    """Return the options with the least cost, and the least size among those; None if none fits.

    `sizes`: of each function; `price`: the cost of a unit of size of a function.
    """
    kinds = sorted({option.needs for group in groups for option in group if option.needs}, key=sorted)
    best: Solution | None = None
    for bound, size, allowed in sorted(_cases(groups, kinds, sizes, price), key=lambda one: one[:2]):
        if best is not None and bound > best.cost:
            break
        part = solve([[option for _, option in group] for group in allowed], None if limit is None else limit - size)
        if part is None:
            continue
        cost, total = part.cost + size * price, part.size + size
        # Equal costs: the lesser size, because a solution can leave functions of its set unused.
        if best is None or (cost, total) < (best.cost, best.size):
            chosen = tuple(group[place][0] for group, place in zip(allowed, part.chosen, strict=True))
            best = Solution(chosen, cost, total, part.gap)
    return best


_Case = tuple[float, int, list[list[tuple[int, Option]]]]
"""The least cost, the size of the functions, the options of each group with their places."""


def _cases(
    groups: Sequence[Sequence[Option]], kinds: Sequence[frozenset[str]], sizes: Mapping[str, int], price: float
) -> Iterator[_Case]:
    for count in range(len(kinds) + 1):
        for some in combinations(kinds, count):
            names = frozenset[str]().union(*some)
            size = sum(sizes[name] for name in names)
            allowed = [
                [(place, option) for place, option in enumerate(group) if option.needs <= names] for group in groups
            ]
            if all(allowed):
                least = sum(min(option.cost for _, option in group) for group in allowed)
                yield least + size * price, size, allowed
