# SPDX-License-Identifier: Apache-2.0
"""What the cost of a layer depends on, as a key of the table of measurements and as numbers for estimates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from math import prod
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.ir.movement import Move, runs
from opwest.compiler.ir.operations import Convolution, Depthwise, Elementwise, Pool
from opwest.compiler.ir.program import Operation
from opwest.compiler.ir.stripes import Striped
from opwest.compiler.lowering.passes import by_channel
from opwest.compiler.semantics.fixed_point import Requantisation

GROUP = 8
"""The neighbouring taps whose weights are added for variants that sum several products in 16 bits."""

_KEYS: WeakKeyDictionary[Operation, str] = WeakKeyDictionary()
"""The keys of the operations in use: sums over weights take time."""


def kind_of(operation: Operation) -> str:
    """Return the name of the operation: estimates are by kind."""
    if isinstance(operation, Convolution):
        return "dense" if operation.results[0].size == len(operation.weights) else "convolution"
    if isinstance(operation, Striped):
        return "stripes"
    if isinstance(operation, Elementwise):
        return type(operation.function).__name__.lower()
    return type(operation).__name__.lower()


def key_of(operation: Operation) -> str:
    """Return the geometry, the dtype and what the legality of variants depends on."""
    if operation not in _KEYS:
        _KEYS[operation] = " ".join([geometry_of(operation), *_legality(operation)])
    return _KEYS[operation]


def key_without_pitch(operation: Operation) -> str:
    """Return the key of a layer with a result whose rows follow each other."""
    return " ".join([geometry_of(operation, with_pitch=False), *_legality(operation)])


def geometry_of(operation: Operation, with_pitch: bool = True) -> str:
    """Return the shapes, the window and the dtype: layers that agree in them can share code."""
    if isinstance(operation, Striped):
        # Two blocks never share code.
        return operation.label
    data = (*operation.inputs, *operation.results)[0]
    words = [kind_of(operation), data.dtype, *(_shape(value.shape) for value in operation.inputs)]
    words.append(f"to {_shape(operation.results[0].shape)}")
    window = getattr(operation, "window", None)
    if window is not None:
        size, stride, dilation, before = map(_shape, (window.size, window.stride, window.dilation, window.before))
        words.append(f"window {size} stride {stride} dilation {dilation} before {before}")
    if isinstance(operation, Pool):
        words.append(operation.kind)
    if with_pitch:
        words += [f"pitch {result.pitch}" for result in operation.results if result.pitch]
    return " ".join(words)


def _shape(shape: Any) -> str:
    return "x".join(map(str, shape)) or "1"


def _legality(operation: Operation) -> list[str]:
    """Return what the legality of variants depends on beside the geometry."""
    if not isinstance(operation, Convolution | Depthwise):
        return []
    finish = operation.finish
    if not isinstance(finish, Requantisation):
        return ["float"]
    sizes = np.abs(by_channel(operation).astype(np.int64) - operation.weight_zero)
    padded = np.pad(sizes, ((0, 0), (0, -sizes.shape[1] % GROUP)))
    grouped = int(padded.reshape(len(padded), -1, GROUP).sum(axis=2).max(initial=0))
    shifts = [multiplier.shift for multiplier in finish.multipliers]
    words = [finish.rounding.value, "relu" if finish.low == finish.zero else "signed"]
    words.append("left" if max(shifts) > 0 else "unshifted" if max(shifts) == 0 else "right")
    words.append(f"weights {int(sizes.sum(axis=1).max(initial=0)).bit_length()}:{grouped.bit_length()}")
    return words


def numbers_of(operation: Operation) -> dict[str, int]:
    """Return what estimates are linear in: products or runs of copies, results, elements of data, calls."""
    result = operation.results[0].size
    products = 0
    if isinstance(operation, Convolution):
        products = result * prod(operation.weights.shape[1:])
    elif isinstance(operation, Depthwise):
        products = result * prod(operation.weights.shape[:2])
    elif isinstance(operation, Pool):
        products = result * prod(operation.window.size)
    elif isinstance(operation, Move):
        # A copy costs more for each of its runs than for its elements.
        products = sum(runs(region) for region in operation.regions)
    return {"product": products, "result": result, "data": sum(value.size for value in operation.inputs), "call": 1}


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
        measured = self.layers.get(key_of(operation), {}).get(variant)
        if measured is None and any(result.pitch for result in operation.results):
            # The stores have other addresses, and hardly any variant needs more instructions for them.
            measured = self.layers.get(key_without_pitch(operation), {}).get(variant)
        if measured is not None:
            return Cost(measured[0], measured[1], True, self._source(key_of(operation)))
        terms = self.estimates.get(kind_of(operation), {}).get(variant)
        numbers = numbers_of(operation)
        given: Mapping[str, float] = ABSENT if terms is None else terms
        cycles = sum(given[term] * numbers[term] for term in TERMS)
        return Cost(cycles, ABSENT_CODE if terms is None else int(terms["code"]), False)

    def _striped(self, block: Striped) -> Cost:
        costs = [self.cost(layer.operation, layer.variant) for layer in block.layers]
        calls = [layer.height // layer.count for layer in block.layers]
        cycles = sum(count * (cost.cycles + CALL) for count, cost in zip(calls, costs, strict=True))
        code = sum(
            {key_of(layer.operation): cost.code for layer, cost in zip(block.layers, costs, strict=True)}.values()
        )
        return Cost(cycles + block.moved * MOVED, code, all(cost.is_measured for cost in costs))

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
