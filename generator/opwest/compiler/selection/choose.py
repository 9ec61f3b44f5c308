# SPDX-License-Identifier: Apache-2.0
"""Choose the variants of a program for a class of processors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.function import Call
from opwest.compiler.ir.program import Operation, Program
from opwest.compiler.output.emit import candidates
from opwest.compiler.request import OBJECTIVES
from opwest.compiler.selection.costs import ABSENT_FUNCTION, Cost, Table, geometry_of
from opwest.compiler.selection.knapsack import Option, Solution, solve_shared

SPEED, FLASH, RAM = OBJECTIVES
WORTH = 20
"""The bytes of flash that a cycle is worth: twice the weights for a hundredth of the time is no gain."""


@dataclass(frozen=True, eq=False)
class Row:
    """The variant of one layer."""

    operation: Operation
    variant: str
    cost: Cost
    flash: int
    """The bytes of the constants, and of the code and the functions of libraries that no layer before it has."""
    scratch: int
    why: str


@dataclass(frozen=True, eq=False)
class Choice:
    """The variants of a program."""

    rows: tuple[Row, ...]
    gap: float
    """The greatest distance to the optimum, as a part of the cycles."""

    @property
    def variants(self) -> Mapping[Operation, str]:
        """The variant of each operation."""
        return {row.operation: row.variant for row in self.rows}

    @property
    def cycles(self) -> float:
        """The cycles of all layers."""
        return sum(row.cost.cycles for row in self.rows)

    @property
    def flash(self) -> int:
        """The bytes of all layers."""
        return sum(row.flash for row in self.rows)


@dataclass(frozen=True, eq=False)
class _Offer:
    """A variant of a group of equal layers."""

    name: str
    calls: Sequence[Call]
    costs: Sequence[Cost]
    functions: Mapping[str, int]
    """The functions of libraries that it needs, with their bytes."""

    @property
    def cycles(self) -> float:
        return sum(cost.cycles for cost in self.costs)

    @property
    def constants(self) -> Sequence[int]:
        return [constant_bytes(call) for call in self.calls]

    @property
    def flash(self) -> int:
        return sum(self.constants) + max(cost.code for cost in self.costs)

    @property
    def whole(self) -> int:
        return self.flash + sum(self.functions.values())

    @property
    def scratch(self) -> int:
        return max(map(scratch_bytes, self.calls))


def constant_bytes(call: Call) -> int:
    """Return the bytes of the constants of a call."""
    size = 0
    for argument in call.arguments:
        array = argument if isinstance(argument, np.ndarray) else getattr(argument, "content", None)
        size += 0 if array is None or getattr(argument, "role", "constant") != "constant" else array.nbytes
    return size


def scratch_bytes(call: Call) -> int:
    """Return the bytes of the scratch arguments of a call."""
    return sum(parameter.nbytes for parameter in call.function.parameters if parameter.direction == "scratch")


def choose(
    program: Program,
    processor: str,
    table: Table,
    objective: str = SPEED,
    max_flash: int | None = None,
    max_scratch: Mapping[Operation, int] | None = None,
    prefer: Sequence[str] = (),
    libraries: Sequence[str] = (),
) -> Choice | None:
    """Return a variant for each operation; None if no choice is within the limits.

    Layers of equal geometry get the same variant: they share code. `max_flash`: bytes of constants and code of
    operators. `max_scratch`: the bytes that the scratch memory of an operation may have. `prefer`: variants of which
    the first one that applies is chosen, whatever it costs. `libraries`: those whose functions are candidates; the
    code of each function counts once.
    """
    groups: dict[str, list[Operation]] = {}
    for operation in program.operations:
        groups.setdefault(geometry_of(operation), []).append(operation)
    offers = [_offers(group, processor, table, max_scratch or {}, libraries, prefer) for group in groups.values()]
    if not all(offers):
        return None
    options = [[_option(offer, objective) for offer in group] for group in offers]
    sizes = {name: size for group in offers for offer in group for name, size in offer.functions.items()}
    solution = solve_shared(options, sizes, _PRICES[objective], max_flash)
    if solution is None:
        return None
    rows = _rows(program, list(groups.values()), offers, solution, objective, max_flash is not None)
    return Choice(rows, solution.gap)


_PRICES = {SPEED: 1 / WORTH, FLASH: 1.0, RAM: 0.0}
"""By objective: the cost of a byte of code of libraries, in the units of `_option`."""


def _offers(
    group: Sequence[Operation],
    processor: str,
    table: Table,
    limits: Mapping[Operation, int],
    libraries: Sequence[str],
    prefer: Sequence[str],
) -> list[_Offer]:
    """Return the variants that apply to all layers of a group; the first preferred one alone."""
    each = [candidates(operation, processor, libraries) for operation in group]
    offers = []
    for name in each[0]:
        if not all(name in calls for calls in each):
            continue
        calls = [variants[name] for variants in each]
        functions = {
            function: table.functions.get(function, ABSENT_FUNCTION)
            for call in calls
            for function in call.function.external
        }
        offer = _Offer(name, calls, [table.cost(operation, name) for operation in group], functions)
        least = min((limits[operation] for operation in group if operation in limits), default=None)
        if least is None or offer.scratch <= least:
            offers.append(offer)
    by_name = {offer.name: offer for offer in offers}
    return next(([by_name[name]] for name in prefer if name in by_name), offers)


def _option(offer: _Offer, objective: str) -> Option:
    if objective == FLASH:
        # A millionth of a byte for a cycle decides between variants of equal size.
        cost = offer.flash + offer.cycles * 1e-9
    elif objective == RAM:
        cost = offer.scratch * 1e9 + offer.cycles
    else:
        cost = offer.cycles + offer.flash / WORTH
    return Option(cost, offer.flash, frozenset(offer.functions))


def _rows(
    program: Program,
    groups: Sequence[Sequence[Operation]],
    offers: Sequence[Sequence[_Offer]],
    solution: Solution,
    objective: str,
    is_limited: bool,
) -> tuple[Row, ...]:
    rows: dict[Operation, Row] = {}
    counted: dict[str, int] = {}
    for group, some, place in zip(groups, offers, solution.chosen, strict=True):
        offer = some[place]
        why = _why(offer, some, objective, is_limited)
        for number, operation in enumerate(group):
            flash = offer.constants[number] + (max(cost.code for cost in offer.costs) if number == 0 else 0)
            flash += sum(size for name, size in offer.functions.items() if name not in counted)
            counted.update(offer.functions)
            scratch = scratch_bytes(offer.calls[number])
            rows[operation] = Row(operation, offer.name, offer.costs[number], flash, scratch, why)
    return tuple(rows[operation] for operation in program.operations)


def _why(offer: _Offer, offers: Sequence[_Offer], objective: str, is_limited: bool) -> str:
    """Return the reason for a choice in a few words."""
    others = [other for other in offers if other is not offer]
    if not others:
        return "the only one"
    measured = "measured" if offer.costs[0].is_measured else "estimated"
    if offer.cycles <= min(other.cycles for other in others):
        return f"fastest, {measured}"
    fastest = min(offers, key=lambda one: one.cycles)
    if offer.whole < fastest.whole:
        limit = ", for the limit" if is_limited else ""
        return f"{fastest.whole - offer.whole} B less flash than {fastest.name}{limit}"
    if offer.scratch < fastest.scratch:
        return f"{fastest.scratch - offer.scratch} B less scratch than {fastest.name}"
    return objective
