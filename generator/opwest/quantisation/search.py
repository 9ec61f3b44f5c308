# SPDX-License-Identifier: Apache-2.0
"""The fewest layers in another arithmetic with which a model holds a bound.

The layers are ordered by the error of the outputs if only one of them is quantised. The shortest beginning of this
order that holds the bound is found by bisection, then each of its layers is left out where the bound holds without it.
Smaller choices among the first layers are tried at the end. Every decision is a measurement of the whole model on all
samples.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import combinations, islice
from typing import Generic, TypeVar

Item = TypeVar("Item", bound=Hashable)
MAX_LEFT_OUT = 32
"""The most measurements of the second stage."""
MAX_CHOICES = 24
"""The most measurements of the last stage."""
_FIRST = 6
"""The layers of which smaller choices are tried."""
_SLACK = 1e-9
"""Losses are quotients of counts, in floating point."""


class Search(Generic[Item]):
    """Measures choices of layers, each of them once."""

    def __init__(self, loss: Callable[[frozenset[Item]], float], bound: float) -> None:
        self._loss, self._bound = loss, bound
        self.losses: dict[frozenset[Item], float] = {}

    def holds(self, items: Sequence[Item]) -> bool:
        """Whether the loss with these layers is within the bound."""
        key = frozenset(items)
        if key not in self.losses:
            self.losses[key] = self._loss(key)
        return self.losses[key] <= self._bound + _SLACK

    def fewest(self, order: Sequence[Item]) -> list[Item] | None:
        """Return the layers to keep, by their order; None if all of them do not hold the bound."""
        if self.holds([]):
            return []
        if not self.holds(order):
            return None
        low, high = 0, len(order)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.holds(order[:middle]) else (middle, high)
        kept = list(order[:high])
        # The layers with the least effect first.
        for item in list(reversed(kept))[:MAX_LEFT_OUT]:
            rest = [other for other in kept if other is not item]
            if self.holds(rest):
                kept = rest
        return self._smaller(order, len(kept)) or kept

    def _smaller(self, order: Sequence[Item], count: int) -> list[Item] | None:
        """Return fewer layers than a number that hold the bound; None if none of the choices tried do."""
        choices = (choice for size in range(1, count) for choice in combinations(order[:_FIRST], size))
        return next((list(choice) for choice in islice(choices, MAX_CHOICES) if self.holds(choice)), None)
