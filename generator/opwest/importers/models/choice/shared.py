# SPDX-License-Identifier: Apache-2.0
"""The multiple-choice knapsack with functions that several options need: their size counts once.

Each set of functions is one knapsack of the options that need no others. Sets are solved in the order of a lower bound
of their cost, so few are solved: exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from opwest.importers.models.choice.knapsack import Option, Solution, solve
from opwest.records import dataclass


@dataclass(frozen=True)
class Needing:
    """An option, and the functions that it needs."""

    option: Option
    needs: frozenset[str] = frozenset()


def solve_shared(
    groups: Sequence[Sequence[Needing]], sizes: Mapping[str, int], price: float, limit: int | None = None
) -> Solution | None:
    """Return the options with the least cost, and the least size among those; None if none fits.

    `sizes`: of each function; `price`: the cost of a unit of size of a function.
    """
    kinds = sorted({one.needs for group in groups for one in group if one.needs}, key=sorted)
    best: Solution | None = None
    for bound, size, allowed in sorted(_cases(groups, kinds, sizes, price), key=lambda one: one[:2]):
        if best is not None and bound > best.cost:
            break
        found = solve([[one for _, one in group] for group in allowed], None if limit is None else limit - size)
        # Equal costs: the lesser size, because a solution can leave functions of its set unused.
        if found is None or (
            best is not None and (found.cost + size * price, found.size + size) >= (best.cost, best.size)
        ):
            continue
        chosen = tuple(group[place][0] for group, place in zip(allowed, found.chosen, strict=True))
        best = Solution(chosen, found.cost + size * price, found.size + size, found.gap)
    return best


_Case = tuple[float, int, list[list[tuple[int, Option]]]]
"""The least cost, the size of the functions, the options of each group with their places."""


def _cases(
    groups: Sequence[Sequence[Needing]], kinds: Sequence[frozenset[str]], sizes: Mapping[str, int], price: float
) -> Iterator[_Case]:
    for count in range(len(kinds) + 1):
        for some in combinations(kinds, count):
            names = frozenset[str]().union(*some)
            size = sum(sizes[name] for name in names)
            allowed = [
                [(place, one.option) for place, one in enumerate(group) if one.needs <= names] for group in groups
            ]
            if all(allowed):
                least = sum(min(option.cost for _, option in group) for group in allowed)
                yield least + size * price, size, allowed
