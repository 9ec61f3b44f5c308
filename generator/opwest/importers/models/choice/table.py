# SPDX-License-Identifier: Apache-2.0
"""The costs of variants on one core: measured by layer, estimated for other layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from opwest.importers.models.choice.geometry import key_of, key_without_pitch, kind_of, numbers_of
from opwest.importers.models.ir.program import Operation
from opwest.importers.models.ir.stripes import Striped
from opwest.records import dataclass

TERMS = ("product", "result", "data", "call")
ABSENT = {"product": 12.0, "result": 40.0, "data": 10.0, "call": 400.0}
"""The estimate for a variant without measurements. It is high: variants with measurements are preferred."""
ABSENT_CODE = 1500
ABSENT_FUNCTION = 8000
"""The bytes of a function of a library that was not measured, with those that it calls."""
MOVED, CALL = 1.0, 40.0
"""The cycles for a byte that a block in stripes copies, and for a call of a layer in it."""


@dataclass(frozen=True)
class Cost:
    """The cost of a variant."""

    cycles: float
    code: int
    """Bytes, without constants and functions of libraries."""
    is_measured: bool
    source: str = ""
    """That of a measurement, if it is known."""

    @property
    def is_of_board(self) -> bool:
        """Whether the cycles are of the counter of a board, not of instructions that QEMU counted."""
        return bool(self.source) and not self.source.startswith("qemu-system-")


@dataclass(frozen=True, eq=False)
class Table:
    """Measurements of one core."""

    core: str
    layers: Mapping[str, Mapping[str, tuple[int, int]]]
    """By key and variant: cycles, bytes of code."""
    estimates: Mapping[str, Mapping[str, Mapping[str, float]]]
    """By kind and variant: cycles of each of TERMS, and bytes of code."""
    measured: str = ""
    """The source of the measurements: the emulator or the board with its counter, and the compiler."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """By key: the source of a layer in a table that was made of several."""
    functions: Mapping[str, int] = field(default_factory=dict)
    """By function of a library: bytes of code, with the functions that it calls."""

    def cost(self, operation: Operation, variant: str) -> Cost:
        """Return the measured cost, or an estimate; of a block in stripes, the sum of the costs of its layers."""
        if isinstance(operation, Striped):
            return self._striped(operation)
        found = self.layers.get(key_of(operation), {}).get(variant)
        if found is None and any(one.pitch for one in operation.results):
            # The stores have other addresses, and hardly any variant needs more instructions for them.
            found = self.layers.get(key_without_pitch(operation), {}).get(variant)
        if found is not None:
            return Cost(found[0], found[1], True, self._source(key_of(operation)))
        terms = self.estimates.get(kind_of(operation), {}).get(variant)
        numbers = numbers_of(operation)
        given: Mapping[str, float] = ABSENT if terms is None else terms
        cycles = sum(given[term] * numbers[term] for term in TERMS)
        return Cost(cycles, ABSENT_CODE if terms is None else int(terms["code"]), False)

    def function_code(self, name: str) -> int:
        """Return the bytes of a function of a library, which all layers that call it share."""
        return self.functions.get(name, ABSENT_FUNCTION)

    def _striped(self, block: Striped) -> Cost:
        costs = [self.cost(one.operation, one.variant) for one in block.layers]
        calls = [one.height // one.count for one in block.layers]
        cycles = sum(count * (one.cycles + CALL) for count, one in zip(calls, costs, strict=True))
        code = sum({key_of(one.operation): cost.code for one, cost in zip(block.layers, costs, strict=True)}.values())
        return Cost(cycles + block.moved * MOVED, code, all(one.is_measured for one in costs))

    def replaced_by(self, other: Table) -> Table:
        """Return a table with the entries of both. Those of `other` take precedence."""
        layers = {
            key: {**self.layers.get(key, {}), **other.layers.get(key, {})} for key in {**self.layers, **other.layers}
        }
        kinds = {**self.estimates, **other.estimates}
        estimates = {kind: {**self.estimates.get(kind, {}), **other.estimates.get(kind, {})} for kind in kinds}
        sources = {key: table._source(key) for table in (self, other) for key in table.layers}
        functions = {**self.functions, **other.functions}
        return Table(self.core, layers, estimates, other.measured or self.measured, sources, functions)

    def _source(self, key: str) -> str:
        return self.sources.get(key, self.measured)
