# SPDX-License-Identifier: Apache-2.0
"""Choose the variants of a program for a class of processors."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.function import Call
from opwest.compiler.ir.program import Operation, Program, Value
from opwest.compiler.output.emit import NIBBLES, candidates
from opwest.compiler.output.placement import layers_of
from opwest.compiler.request import OBJECTIVES
from opwest.compiler.selection.costs import ABSENT_FUNCTION, Cost, Table, geometry_of
from opwest.compiler.selection.knapsack import Option, solve_shared

SPEED, FLASH, RAM = OBJECTIVES
WORTH = 20
"""The bytes of flash that a cycle is worth: twice the weights for a hundredth of the time is no gain."""
GROWTH = 1.5
"""The most bytes of constants in a pool, as a multiple of the portable constants: a copy in RAM is not worth more."""


@dataclass(frozen=True)
class Limits:
    """The names of the limits of a choice: what a user can change."""

    flash: str = "--max-flash"
    scratch: str = "--max-ram"
    objective: str = SPEED
    """Of the user; a choice for another one can be a step towards it."""


@dataclass(frozen=True, eq=False)
class Row:
    """The variant of one layer."""

    operation: Operation
    variant: str
    cost: Cost
    flash: int
    """The bytes of the constants, and of the code and the functions of libraries that no layer before it has."""
    scratch: int
    kept: int
    """The bytes of an input that the portable variant would replace by the result."""
    why: str
    group: _Group
    """The layers of equal geometry, with all variants."""
    number: int
    """The place of the layer in the group."""

    @property
    def call(self) -> Call:
        """The call of the variant."""
        return self.group.permitted[self.group.place].calls[self.number]

    @property
    def others(self) -> Iterator[Row]:
        """The other variants of the layer; `why` is the origin of the cost. The code counts in each."""
        for offer in self.group.every:
            if offer.name != self.variant:
                yield _row(self.group, self.number, offer, offer.whole_of(self.number), offer.costs[self.number].origin)


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
    kept: Sequence[int]
    """By layer: the bytes of an input that the portable variant would replace by the result."""

    @property
    def cycles(self) -> float:
        return sum(cost.cycles for cost in self.costs)

    @property
    def constants(self) -> Sequence[int]:
        return [constant_bytes(call) for call in self.calls]

    @property
    def code(self) -> int:
        return max(cost.code for cost in self.costs)

    @property
    def flash(self) -> int:
        return sum(self.constants) + self.code

    def whole_of(self, number: int) -> int:
        """Return the bytes that a layer alone needs."""
        return constant_bytes(self.calls[number]) + self.code + sum(self.functions.values())

    @property
    def whole(self) -> int:
        return self.flash + sum(self.functions.values())

    @property
    def memory(self) -> int:
        """The bytes of scratch memory, and of inputs that are not replaced."""
        return max(scratch_bytes(call) + kept for call, kept in zip(self.calls, self.kept, strict=True))


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
    limits: Limits | None = None,
    given: Mapping[Operation, str] | None = None,
    other: Table | None = None,
    placed: Collection[str] = (),
) -> Choice | None:
    """Return a variant for each operation; None if no choice is within the limits.

    Layers of equal geometry get the same variant: they share code. `max_flash`: bytes of constants and code of
    operators. `max_scratch`: the bytes that the scratch memory of an operation may have, and an input that it could
    replace. `prefer`: variants of which the first one that applies is chosen, whatever it costs. `libraries`: those
    whose functions are candidates; the code of each function counts once. `limits`: the names of the limits in the
    reasons. `given`: the variants of all operations, if only their costs are wanted: the rows have no reasons.
    `other`: a core on which no variant may be slower than the portable one.
    `placed`: the numbers of layers whose constants are copied to a pool; they have no variants with many more bytes.
    """
    limits = limits or Limits(objective=objective)
    groups: dict[str, list[Operation]] = {}
    for operation in program.operations:
        groups.setdefault(geometry_of(operation), []).append(operation)
    last = {value.base: operation for operation in program.operations for value in operation.inputs}
    applying = [_offers(group, processor, table, libraries, last) for group in groups.values()]
    excluded = [
        _excluded(some, group, other, placed, prefer) for some, group in zip(applying, groups.values(), strict=True)
    ]
    offers = [
        _permitted([offer for offer in some if offer.name not in reasons], group, max_scratch or {}, prefer)
        for some, group, reasons in zip(applying, groups.values(), excluded, strict=True)
    ]
    if given is not None:
        names = [given[group[0]] for group in groups.values()]
        offers = [[offer for offer in some if offer.name == name] for some, name in zip(applying, names, strict=True)]
    if not all(offers):
        return None
    options = [[_option(offer, objective) for offer in group] for group in offers]
    sizes = {name: size for group in offers for offer in group for name, size in offer.functions.items()}
    solution = solve_shared(options, sizes, _PRICES[objective], max_flash)
    if solution is None:
        return None
    free = solution if max_flash is None else solve_shared(options, sizes, _PRICES[objective])
    assert free is not None
    made = [
        _Group(operations, every, some, reasons, place, limits if place != unlimited else replace(limits, flash=""))
        for operations, every, some, reasons, place, unlimited in zip(
            groups.values(), applying, offers, excluded, solution.chosen, free.chosen, strict=True
        )
    ]
    return Choice(_rows(program, made, None if given is not None else prefer), solution.gap)


_PRICES = {SPEED: 1 / WORTH, FLASH: 1.0, RAM: 0.0}
"""By objective: the cost of a byte of code of libraries, in the units of `_option`."""


def _offers(
    group: Sequence[Operation],
    processor: str,
    table: Table,
    libraries: Sequence[str],
    last: Mapping[Value, Operation],
) -> Sequence[_Offer]:
    """Return the variants that apply to all layers of a group. `last`: by value, the last operation that reads it."""
    each = [candidates(operation, processor, libraries) for operation in group]
    replaced = [_replaced(operation, calls.get("portable"), last) for operation, calls in zip(group, each, strict=True)]
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
        costs = [table.cost(operation, name) for operation in group]
        kept = [
            sum(value.nbytes for value in some - _replaced(operation, call, last))
            for operation, call, some in zip(group, calls, replaced, strict=True)
        ]
        offers.append(_Offer(name, calls, costs, functions, kept))
    return offers


def _replaced(operation: Operation, call: Call | None, last: Mapping[Value, Operation]) -> set[Value]:
    """Return the tensors between layers that the result of a call replaces."""
    if call is None:
        return set()
    parameters = [parameter for parameter in call.function.parameters if parameter.direction != "scratch"]
    names = {name for parameter in parameters for name in parameter.in_place}
    return {
        value
        for parameter, value in zip(parameters, call.arguments, strict=True)
        if parameter.name in names and isinstance(value, Value) and value.root is None
        if value.role == "intermediate" and last.get(value) is operation
    }


def _excluded(
    offers: Sequence[_Offer],
    group: Sequence[Operation],
    other: Table | None,
    placed: Collection[str],
    prefer: Sequence[str],
) -> dict[str, str]:
    """Return the reasons against variants that are neither portable nor preferred, by name.

    A variant of known costs is slower than the portable one on the core of `other`; those of packed weights do not
    depend on costs. The constants of a layer in `placed` are many more than the portable ones.
    """
    portable = next((offer for offer in offers if offer.name == "portable"), None)
    if portable is None:
        return {}
    reasons = {}
    numbers = [n for n, operation in enumerate(group) if not set(layers_of(operation.label)).isdisjoint(placed)]
    most = 0.0 if other is None else _known_cycles(other, group, "portable")
    for offer in offers:
        if offer.name in ("portable", *prefer):
            continue
        if any(offer.constants[n] > GROWTH * portable.constants[n] > 0 for n in numbers):
            more = sum(offer.constants[n] - portable.constants[n] for n in numbers)
            equal = f" in {len(numbers)} equal layers" if len(numbers) > 1 else ""
            reasons[offer.name] = f"{more:,} B less RAM than {offer.name}{equal}, for --place"
        elif other is not None and not offer.name.endswith(NIBBLES) and _known_cycles(other, group, offer.name) > most:
            reasons[offer.name] = f"{offer.name} is slower on a {other.core}"
    return reasons


def _known_cycles(table: Table, group: Sequence[Operation], name: str) -> float:
    """Return the cycles of a variant; 0 if they are not known."""
    costs = [table.cost(operation, name) for operation in group]
    return sum(cost.cycles for cost in costs) if all(cost.is_known for cost in costs) else 0.0


def _permitted(
    offers: Sequence[_Offer], group: Sequence[Operation], limits: Mapping[Operation, int], prefer: Sequence[str]
) -> Sequence[_Offer]:
    """Return the variants within the limits of scratch memory; the first preferred one, or packed weights, alone."""
    least = min((limits[operation] for operation in group if operation in limits), default=None)
    by_name = {offer.name: offer for offer in offers if least is None or offer.memory <= least}
    packed = [offer for offer in by_name.values() if offer.name.endswith(NIBBLES)]
    return next(([by_name[name]] for name in prefer if name in by_name), packed or list(by_name.values()))


def _option(offer: _Offer, objective: str) -> Option:
    if objective == FLASH:
        # A millionth of a byte for a cycle decides between variants of equal size.
        cost = offer.flash + offer.cycles * 1e-9
    elif objective == RAM:
        cost = offer.memory * 1e9 + offer.cycles
    else:
        cost = offer.cycles + offer.flash / WORTH
    return Option(cost, offer.flash, frozenset(offer.functions))


@dataclass(frozen=True, eq=False)
class _Group:
    """Equal layers with the choice of their variant."""

    operations: Sequence[Operation]
    every: Sequence[_Offer]
    """The variants that apply."""
    permitted: Sequence[_Offer]
    excluded: Mapping[str, str]
    """The reasons against other variants than `permitted`, except limits of memory."""
    place: int
    """The chosen one of `permitted`."""
    limits: Limits
    """The names of the limits. flash: empty if the limit does not change the choice."""


def _rows(program: Program, groups: Sequence[_Group], prefer: Sequence[str] | None) -> tuple[Row, ...]:
    """Return the rows; without `prefer`, they have no reasons."""
    rows: dict[Operation, Row] = {}
    counted: dict[str, int] = {}
    for group in groups:
        offer = group.permitted[group.place]
        why = "" if prefer is None else _why(offer, group, prefer)
        for number, operation in enumerate(group.operations):
            flash = constant_bytes(offer.calls[number]) + (offer.code if number == 0 else 0)
            flash += sum(size for name, size in offer.functions.items() if name not in counted)
            counted.update(offer.functions)
            rows[operation] = _row(group, number, offer, flash, why)
    return tuple(rows[operation] for operation in program.operations)


def _row(group: _Group, number: int, offer: _Offer, flash: int, why: str) -> Row:
    scratch, kept = scratch_bytes(offer.calls[number]), offer.kept[number]
    return Row(group.operations[number], offer.name, offer.costs[number], flash, scratch, kept, why, group, number)


def _why(offer: _Offer, group: _Group, prefer: Sequence[str]) -> str:
    """Return the reason for a choice in a few words."""
    if len(group.every) == 1:
        return "the only variant"
    if offer.name in prefer:
        return "--prefer"
    fastest = min(group.every, key=lambda other: other.cycles)
    if offer.cycles <= fastest.cycles:
        return f"fastest, {offer.costs[0].origin}"
    equal = f" in {len(group.operations)} equal layers" if len(group.operations) > 1 else ""
    slower = f"{offer.cycles - fastest.cycles:,.0f} more cycles{equal}"
    objective = group.limits.objective
    reason = slower if objective == SPEED else f"for --optimize {objective}"
    less, what = fastest.memory - offer.memory, "memory" if any((*fastest.kept, *offer.kept)) else "scratch"
    if fastest.name in group.excluded:
        return group.excluded[fastest.name]
    if offer.name.endswith(NIBBLES):
        return "weights of 4 bits stay packed"
    if fastest not in group.permitted:
        return f"{less:,} B less {what} than {fastest.name}, for {group.limits.scratch}"
    if offer.whole < fastest.whole:
        reason = f"for {group.limits.flash}{equal}" if group.limits.flash else reason
        return f"{fastest.whole - offer.whole:,} B less flash than {fastest.name}, {reason}"
    if less > 0:
        return f"{less:,} B less {what} than {fastest.name}, {reason}"
    return f"shares functions of a library, {reason}"
