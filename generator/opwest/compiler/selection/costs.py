# SPDX-License-Identifier: Apache-2.0
"""What the cost of a layer depends on, as a key of the table of measurements and as numbers for estimates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from math import prod
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.convolution import has_nibbles
from opwest.compiler.ir.elements import Arithmetic, Compared, Float, Plain
from opwest.compiler.ir.movement import GatherSlices, Move, OneHot, ScatterSlices, UpdateSlice, runs
from opwest.compiler.ir.operations import (
    Convolution,
    ConvolutionSum,
    Copy,
    Depthwise,
    DirectConvolution,
    Elementwise,
    Filter,
    FloatMemory,
    HybridConvolution,
    HybridProduct,
    MatrixProduct,
    Memory,
    Pool,
    Reduce,
)
from opwest.compiler.ir.program import Operation
from opwest.compiler.ir.signal import FilterBank, InverseRealFft, RealFft
from opwest.compiler.ir.stripes import Striped
from opwest.compiler.lowering.passes import by_channel
from opwest.compiler.semantics.fixed_point import Requantisation
from opwest.compiler.semantics.signal_fft import products
from opwest.objects.flash import NONE, UNKNOWN, Flash, flash_of_source

GROUP = 8
"""The neighbouring taps whose weights are added for variants that sum several products in 16 bits."""

_KEYS: WeakKeyDictionary[Operation, str] = WeakKeyDictionary()
"""The keys of the operations in use: sums over weights take time."""


def kind_of(operation: Operation) -> str:
    """Return the name of the operation, or of the function of elements, and what else decides about the code."""
    if isinstance(operation, ConvolutionSum):
        return "convolutionsum"
    if isinstance(operation, Convolution) and operation.groups > 1:
        return "convolution groups"
    if isinstance(operation, Convolution):
        _, height, width, _ = operation.inputs[0].shape
        is_pixel = operation.results[0].size == len(operation.weights)
        return "dense" if is_pixel and not operation.window.is_padded((height, width)) else "convolution"
    if isinstance(operation, Striped):
        return "stripes"
    if isinstance(operation, Elementwise):
        return " ".join(_words_of(operation))
    words = [type(operation).__name__.lower()]
    if isinstance(operation, Pool | Reduce):
        words.append(operation.kind)
    elif isinstance(operation, HybridConvolution | DirectConvolution) and operation.is_transposed:
        words.append("transposed")
    elif getattr(operation, "is_depthwise", False) or getattr(operation, "groups", 1) == 0:
        words.append("depthwise")
    elif isinstance(operation, Filter | FloatMemory) and operation.hybrid is not None:
        words.append("hybrid")
    return " ".join(words)


OPERATORS = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide"}
"""The names of the operators of Arithmetic."""


def _words_of(operation: Elementwise) -> Iterator[str]:
    """Yield the name of a function of elements, its kind, and whether operands are repeated."""
    function = operation.function
    yield type(function).__name__.lower()
    if isinstance(function, Float | Plain):
        yield function.kind.lower()
    elif isinstance(function, Arithmetic):
        yield OPERATORS[function.operator]
    elif isinstance(function, Compared) and function.numbers is not None:
        yield "scaled"
    if any(value.size != operation.results[0].size for value in operation.inputs):
        yield "repeated"


MOVING = (Copy, Move, GatherSlices, ScatterSlices, UpdateSlice, OneHot)
"""The operations whose cost depends only on the size of elements."""


def estimate_key(operation: Operation) -> str:
    """Return the key of estimates: the kind, the dtype of the data, that of the result if it is another one."""
    data = (*operation.inputs, *operation.results)[0].dtype
    result = operation.results[0].dtype
    if isinstance(operation, MOVING):
        data = result = f"{8 * np.dtype(result).itemsize} bits"
    return f"{kind_of(operation)} {data}" if data == result else f"{kind_of(operation)} {data} to {result}"


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
    result = operation.results[0]
    words.append(
        f"to {_shape(result.shape)}" if result.dtype == data.dtype else f"to {result.dtype} {_shape(result.shape)}"
    )
    window = getattr(operation, "window", None)
    if window is not None:
        size, stride, dilation, before = map(_shape, (window.size, window.stride, window.dilation, window.before))
        words.append(f"window {size} stride {stride} dilation {dilation} before {before}")
    groups: int = getattr(operation, "groups", 1)
    if groups > 1:
        words.append(f"groups {groups}")
    if isinstance(operation, MatrixProduct) and any(operation.swaps):
        words.append("swapped " + "".join(name for name, swap in zip("ab", operation.swaps, strict=True) if swap))
    if isinstance(operation, Convolution) and has_nibbles(operation):
        words.append("nibbles")
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


TERMS = ("product", "block", "gather", "row", "weight", "result", "left", "data", "call")
"""What estimates are linear in, with coefficients of at least 0:

product   products of a layer with weights or of matrices, elements in the windows of a pool, runs of copies
block     the products with the channels of the result padded to a multiple of BLOCK
gather    elements that the windows of a layer read: the products for one channel of the result
row       rows of the result: all of its dimensions but the last one
weight    weights
result    elements of the result
left      elements of the result whose requantisation shifts to the left
data      elements of the inputs
call      1
"""
BLOCK = 4
"""The channels of the result that kernels compute together."""


def numbers_of(operation: Operation) -> dict[str, int]:
    """Return the numbers of TERMS; those that are 0 can be left out."""
    result = operation.results[0].size
    rows = result // max(1, operation.results[0].shape[-1] if operation.results[0].shape else 1)
    numbers = {"row": rows, "result": result, "data": sum(value.size for value in operation.inputs), "call": 1}
    depth = 0
    weights: Any = getattr(operation, "weights", None)
    if isinstance(operation, Convolution):
        depth, rows = prod(weights.shape[1:]), result // len(weights)
        padded = -(-len(weights) // BLOCK) * BLOCK
        numbers.update(row=rows, block=rows * padded * depth, gather=rows * depth, weight=weights.size)
    elif isinstance(operation, Depthwise):
        depth = prod(weights.shape[:2])
        padded = -(-weights.shape[2] // BLOCK) * BLOCK
        numbers.update(block=rows * padded * depth, gather=rows * depth, weight=weights.size)
    elif isinstance(operation, Pool):
        depth = prod(operation.window.size)
        numbers["gather"] = rows * depth
    elif isinstance(operation, MatrixProduct):
        depth = operation.inputs[0].shape[-2 if operation.swaps[0] else -1]
    elif isinstance(operation, DirectConvolution):
        depth = prod(operation.inputs[1].shape[1 : 3 if operation.groups == 0 else 4])
    elif isinstance(operation, HybridConvolution):
        depth = prod(weights.shape[:2] if operation.is_depthwise else weights.shape[1:])
    elif isinstance(operation, HybridProduct):
        depth = operation.data[-1]
    numbers["product"] = result * depth
    if isinstance(operation, HybridConvolution | DirectConvolution) and operation.is_transposed:
        data = operation.inputs[0]
        taps = operation.inputs[1].size if isinstance(operation, DirectConvolution) else weights.size
        numbers["product"] = data.size // data.shape[-1] * taps
    elif isinstance(operation, Filter):
        numbers["product"] = operation.inputs[0].shape[0] * (operation.feature.size + operation.time.size)
    elif isinstance(operation, Memory):
        # One product of the weights for each step of each sequence.
        numbers["product"] = prod(operation.inputs[0].shape[:-1]) * weights.size
    elif isinstance(operation, RealFft | InverseRealFft):
        numbers["product"] = operation.inputs[0].size // operation.inputs[0].shape[-1] * products(operation.length)
    elif isinstance(operation, FilterBank):
        numbers["product"] = 2 * int(np.maximum(operation.inputs[5].content, 0).sum())
    elif isinstance(operation, Move):
        # A copy costs more for each of its runs than for its elements.
        numbers["product"] = sum(runs(region) for region in operation.regions)
    finish = getattr(operation, "finish", None)
    if isinstance(finish, Requantisation) and max(multiplier.shift for multiplier in finish.multipliers) > 0:
        numbers["left"] = result
    return numbers


STALLS = ("stalls", "fill")
"""The coefficients of the cycles that a processor waits for the flash: for `stalls_per`, and for a call, which reads
the code of the layer."""


def stalls_per(operation: Operation) -> int:
    """Return what the coefficient `stalls` of an estimate is for: the products, or the results without products."""
    numbers = numbers_of(operation)
    return numbers["product"] or numbers["result"]


ABSENT = {"product": 12.0, "result": 40.0, "data": 10.0, "call": 400.0}
"""The estimate for a variant of another package, which opwest's own table cannot contain.

It is high: variants with measurements are preferred, until `opwest tune` has measured this one.
"""
ABSENT_CODE = 1500
ABSENT_FUNCTION = 8000
"""The bytes of a function of a library that was not measured, with those that it calls."""
MOVED, CALL = 1.0, 40.0
"""The cycles for a byte that a block in stripes copies, and for a call of a layer in it."""


@dataclass(frozen=True)
class Cost:
    """The cost of a variant."""

    cycles: float
    """With the stalls of the flash."""
    code: int
    """Bytes, without constants and functions of libraries."""
    is_measured: bool
    source: str = ""
    """That of a measurement, if it is known."""
    stalls: float = 0.0
    """The cycles that the processor waits for the flash, in a model; 0 if they were not counted, as on boards."""
    is_known: bool = True
    """Whether there is a measurement or an estimate of the variant."""

    @property
    def origin(self) -> str:
        """Whether the cycles are measured or estimated, in one word."""
        return "measured" if self.is_measured else "estimated"

    @property
    def is_of_board(self) -> bool:
        """Whether the cycles are of the counter of a board, not of instructions that QEMU counted."""
        return bool(self.source) and not self.source.startswith("qemu-system-")


@dataclass(frozen=True, eq=False)
class Table:
    """Measurements of one core."""

    core: str
    layers: Mapping[str, Mapping[str, Sequence[int]]]
    """By key and variant: cycles without wait states, or of a board; bytes of code; perhaps the stalls."""
    estimates: Mapping[str, Mapping[str, Mapping[str, float]]]
    """By kind and variant: cycles of TERMS and of STALLS, those that are not 0; `code`: bytes."""
    measured: str = ""
    """The source of the measurements: the emulator or the board with its counter, and the compiler."""
    sources: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """By key and variant: the source of a row in a table that was made of several."""
    functions: Mapping[str, int] = field(default_factory=dict)
    """By function of a library: bytes of code, with the functions that it calls."""
    flash: Flash = NONE
    """The flash of the costs. The stalls of the table are those with the flash of their source, else UNKNOWN."""

    def at(self, flash: Flash) -> Table:
        """Return the table for a flash."""
        return replace(self, flash=flash)

    def cost(self, operation: Operation, variant: str) -> Cost:
        """Return the measured cost, or an estimate; of a block in stripes, the sum of the costs of its layers."""
        if isinstance(operation, Striped):
            return self._striped(operation)
        key = key_of(operation)
        if variant not in self.layers.get(key, {}) and any(result.pitch for result in operation.results):
            # The stores have other addresses, and hardly any variant needs more instructions for them.
            key = key_without_pitch(operation)
        measured = self.layers.get(key, {}).get(variant)
        if measured is not None:
            source = self._source(key, variant)
            stalls = self._stalls(measured[2], source) if len(measured) > 2 else 0.0
            return Cost(measured[0] + stalls, measured[1], True, source, stalls)
        terms = self.estimate(operation, variant)
        numbers = numbers_of(operation)
        given: Mapping[str, float] = ABSENT if terms is None else terms
        cycles = sum(given.get(term, 0.0) * number for term, number in numbers.items())
        if terms is None:
            return Cost(cycles, ABSENT_CODE, False, is_known=False)
        each, once = (terms.get(name, 0.0) for name in STALLS)
        stalls = self._stalls(each * stalls_per(operation) + once)
        return Cost(cycles + stalls, int(terms["code"]), False, stalls=stalls)

    def estimate(self, operation: Operation, variant: str) -> Mapping[str, float] | None:
        """Return the coefficients of a variant; None if there are none, as for a variant of another package.

        Rare dtypes have those of the most similar entry for the same operation or the same function of elements.
        """
        key = estimate_key(operation)
        exact = self.estimates.get(key, {}).get(variant)
        if exact is not None:
            return exact
        words, names = key.split(), kind_of(operation).split()
        # The same operation; if it is not in the table, one of the same class, such as another function of elements.
        for count in range(len(names), 0, -1):
            similar = [
                (sum(word in words for word in other.split()), variants[variant])
                for other, variants in self.estimates.items()
                if variant in variants and other.split()[:count] == names[:count]
            ]
            if similar:
                return max(similar, key=lambda pair: pair[0])[1]
        return None

    def _striped(self, block: Striped) -> Cost:
        costs = [self.cost(layer.operation, layer.variant) for layer in block.layers]
        calls = [layer.height // layer.count for layer in block.layers]
        cycles = sum(count * (cost.cycles + CALL) for count, cost in zip(calls, costs, strict=True))
        code = sum(
            {key_of(layer.operation): cost.code for layer, cost in zip(block.layers, costs, strict=True)}.values()
        )
        stalls = sum(count * cost.stalls for count, cost in zip(calls, costs, strict=True))
        return Cost(cycles + block.moved * MOVED, code, all(cost.is_measured for cost in costs), stalls=stalls)

    def replaced_by(self, other: Table) -> Table:
        """Return a table with the entries of both. Those of `other` take precedence."""
        layers = {
            key: {**self.layers.get(key, {}), **other.layers.get(key, {})} for key in {**self.layers, **other.layers}
        }
        kinds = {**self.estimates, **other.estimates}
        estimates = {kind: {**self.estimates.get(kind, {}), **other.estimates.get(kind, {})} for kind in kinds}
        sources = {
            (key, variant): table._source(key, variant)
            for table in (self, other)
            for key, variants in table.layers.items()
            for variant in variants
        }
        functions = {**self.functions, **other.functions}
        return Table(self.core, layers, estimates, other.measured or self.measured, sources, functions)

    def _stalls(self, stalls: float, source: str = "") -> float:
        """Return the stalls with the flash, from those of a source."""
        if not self.flash.wait_states:
            return 0.0
        return stalls * self.flash.stalls_beside(flash_of_source(source) or UNKNOWN)

    def _source(self, key: str, variant: str) -> str:
        return self.sources.get((key, variant), self.measured)
