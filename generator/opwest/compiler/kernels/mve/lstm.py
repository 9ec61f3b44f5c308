# SPDX-License-Identifier: Apache-2.0
"""Integer LSTMs without peepholes, projection and normalisation: the sums of 4 cells, then vectors of gates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.expressions import plus
from opwest.compiler.emission.function import Call, Lines, Parameter, call_of, emits
from opwest.compiler.emission.lstm import Sizes, sizes_of
from opwest.compiler.ir.operations import IntegerMemory
from opwest.compiler.kernels.assembly import NAKED, naked
from opwest.compiler.kernels.gates import Gates, gates_of, sample_pairs
from opwest.compiler.kernels.mve.epilogue import COPY
from opwest.compiler.kernels.mve.gate_functions import (
    GATE_BITS,
    cell_function,
    power_function,
    result_function,
    sampled_function,
)
from opwest.compiler.semantics.recurrent import GATE_TANH, LstmNumbers

CELLS = 4
"""The cells of a group."""
LANES = 8
VECTOR = 16
"""The bytes of a vector."""
UNROLLED = 6
"""Rows of more vectors are loops."""
MAX_ROWS = 4095
"""The most bytes of a row of data and one of last results: all other registers are sums."""
ORDER = (0, 1, 3, 2)
"""Input, forget, output gate, then that of the cells: those with the logistic function follow each other."""
SUMS = (("r0", "r2", "r4", "r6"), ("r8", "r10", "r12", "lr"))
_SCALES = (("r0", "r2", "r4"), ("r6", "r8", "r10"))


def products(row: int, sums: tuple[str, ...], item: int) -> Iterator[str]:
    """Yield the sums of a row of bytes with the weights of four channels; r1 and r7 move past both.

    r9 is changed only within a loop.
    """
    weights = "vldrb.8 q2, [r1], #16" if item == 1 else "vldrb.s16 q2, [r1], #8"

    def vector(is_first: bool) -> Iterator[str]:
        yield "vldrb.8 q3, [r7], #16"
        for total in sums:
            yield weights
            yield f"vmladav{'' if is_first else 'a'}.s{8 * item} {total}, q3, q2"

    count = row // VECTOR
    yield from vector(True)
    if count <= UNROLLED:
        for _ in range(count - 1):
            yield from vector(False)
        return
    # Pairs of vectors, after another one if their number is odd.
    if (count - 1) % 2:
        yield from vector(False)
    yield from ("push {r9}", f"movw r9, #{(count - 1) // 2}", "3:", *vector(False), *vector(False))
    yield from ("subs r9, #1", "bne 3b", "pop {r9}")


@dataclass(frozen=True, eq=False)
class _Layer:
    """The functions of a layer."""

    size: Sizes
    gates: Gates
    numbers: LstmNumbers
    item: int
    """The bytes of an element of the data."""

    @property
    def places(self) -> tuple[int, ...]:
        """The gates of the stream."""
        return ORDER[1:] if self.gates.is_coupled else ORDER

    @property
    def cells(self) -> int:
        """The cells with those that pad groups."""
        return -(-self.size.cells // CELLS) * CELLS

    @property
    def elements(self) -> int:
        """The int16 numbers of the gates."""
        return len(self.places) * self.cells

    def row(self, length: int) -> int:
        """Return the bytes of a row in whole vectors."""
        return -(-length * self.item // VECTOR) * VECTOR

    @property
    def kind(self) -> str:
        """The C type of data."""
        return f"int{8 * self.item}_t"

    def sums(self) -> tuple[str, str]:
        """Return the name and the definition of void f(rows, stream, numbers, gates) for all gates of a step."""
        scales = [part.scales for part in self.gates.parts]
        lefts = [any(some.lefts[place] for place in self.places) for some in scales]
        fixes = [any(not some.rights[place] for place in self.places) for some in scales]
        words = [f"{self.row(length)}" for length in (self.size.length, self.size.units)]
        words += [f"{self.cells}x{len(self.places)}", "micro" if self.numbers.is_micro else "litert"]
        words += [
            f"{name}{place}" for place in range(2) for name, some in (("left", lefts), ("masked", fixes)) if some[place]
        ]
        name = f"mve_gates{8 * self.item}_{'_'.join(words)}"
        parameters = (f"const {self.kind} *rows", "const int32_t *stream", "const int32_t *numbers", "int16_t *gates")
        return name, naked(name, parameters, self._lines(lefts, fixes))

    def _lines(self, lefts: list[bool], fixes: list[bool]) -> Iterator[str]:
        """Yield the function: r1 stream, r3 gates, r5 numbers, r7 rows, r9 groups, r11 gates that are left."""
        yield from ("push {r4-r11, lr}", "mov r5, r2", "mov r7, r0", f"mov r11, #{len(self.places)}")
        yield from ("1:", f"movw r9, #{self.cells // CELLS}", "2:")
        rows = [self.row(length) for length in (self.size.length, self.size.units)]
        for row, sums in zip(rows, SUMS, strict=True):
            yield from products(row, sums, self.item)
        yield f"sub r7, r7, #{sum(rows)}"
        for place, sums in enumerate(SUMS):
            first, second, third, fourth = sums
            yield f"vmov q{place}[2], q{place}[0], {first}, {third}"
            yield f"vmov q{place}[3], q{place}[1], {second}, {fourth}"
        yield "ldm r5, {r0, r2, r4, r6, r8, r10}"
        for place in range(2):
            yield from self._scaled(f"q{place}", _SCALES[place], lefts[place], fixes[place])
        is_micro = self.numbers.is_micro
        yield "vqmovnb.s32 q0, q0"
        yield from (
            ("vqmovnb.s32 q1, q1", "vqadd.s16 q0, q0, q1")
            if is_micro
            else ("vmovlb.s16 q0, q0", "vadd.i32 q0, q0, q1", "vqmovnb.s32 q0, q0")
        )
        yield from ("vstrh.32 q0, [r3], #8", "subs r9, #1", "bne 2b", "adds r5, #24", "subs r11, #1", "bne 1b")
        yield "pop {r4-r11, pc}"

    def _scaled(self, q: str, numbers: tuple[str, ...], has_left: bool, is_masked: bool) -> Iterator[str]:
        """Yield the values of sums: their first sums are in the stream."""
        multiplier, left, right = numbers
        yield from ("vldrw.32 q2, [r1], #16", f"vadd.i32 {q}, {q}, q2")
        if has_left:
            yield f"vshl.s32 {q}, {left}"
        if not self.gates.parts[0].scales.is_doubled:
            yield from (f"vdup.32 q2, {multiplier}", f"vmulh.s32 {q}, {q}, q2", f"vrshl.s32 {q}, {right}")
            return
        yield f"vqrdmulh.s32 {q}, {q}, {multiplier}"
        if is_masked:
            # Where nothing is shifted, nothing is rounded.
            yield from (f"vdup.32 q2, {right}", f"vand q2, q2, {q}", "vshr.s32 q2, q2, #31")
        else:
            yield f"vshr.s32 q2, {q}, #31"
        yield from (f"vadd.i32 {q}, {q}, q2", f"vrshl.s32 {q}, {right}")

    def functions(self) -> tuple[list[str], list[str]]:
        """Return the calls for the gates, the cells and the results of a step, and the definitions."""
        numbers, cells, count = self.numbers, self.size.cells, self.elements - self.cells
        if numbers.is_micro:
            made = [sampled_function(by, is_tanh) for by, is_tanh in ((GATE_TANH, False), (GATE_TANH, True))]
            made.append(sampled_function(numbers.tanh, True))
            more = ", table"
        else:
            made = [power_function(GATE_BITS, False), power_function(GATE_BITS, True)]
            made.append(power_function(15 + numbers.power, True))
            more = ""
        made.append(cell_function(numbers, self.gates.is_coupled))
        made.append(result_function(self.gates.hidden, numbers.hidden_zero, 8 * self.item))
        logistic, tanh, of_cells, cell, result = (name for name, _ in made)
        forget = count - 2 * self.cells
        fresh, output = f"gates + {count}", f"gates{plus(count - self.cells)}"
        calls = [
            f"{logistic}(gates, gates, {count}{more});",
            f"{tanh}({fresh}, {fresh}, {cells}{more});",
            f"{cell}(gates, gates{plus(forget)}, {fresh}, {cells}, c);",
            f"{of_cells}(c, {fresh}, {cells}{more});",
            f"{result}({output}, {fresh}, {cells}, y);",
        ]
        return calls, list(dict.fromkeys(text for _, text in made))


@emits(IntegerMemory, "mve-lstm")
def render(operation: IntegerMemory) -> Call | None:
    """Return the call; None with peepholes, projections, normalisation, and numbers that do not fit."""
    numbers, size = operation.numbers, sizes_of(operation)
    gates = gates_of(operation)
    if gates is None:
        return None
    layer = _Layer(size, gates, numbers, 2 if operation.inputs[0].dtype == "int16" else 1)
    if layer.row(size.length) + layer.row(size.units) > MAX_ROWS:
        return None
    name, text = layer.sums()
    calls, definitions = layer.functions()
    body, kind, item, before = Lines(), layer.kind, layer.item, layer.row(size.length)
    with body.repeat("n", size.batch):
        state = f"last + n * {size.units}" if size.batch > 1 else "last"
        cells = f"cell + n * {size.cells}" if size.batch > 1 else "cell"
        body.add(f"const {kind} *h = {state};", f"int16_t *c = {cells};", "")
        with body.loop("t", size.steps):
            body.add(f"const {kind} *x = data + {size.step(size.length)};")
            body.add(f"{kind} *y = result + {size.step(size.units)};", "")
            body.add(f"mve_copy((int8_t *)rows, (const int8_t *)x, {item * size.length});")
            body.add(f"mve_copy((int8_t *)rows + {before}, (const int8_t *)h, {item * size.units});")
            body.add(f"{name}(rows, stream, numbers, gates);", *calls, "h = y;")
        body.add(f"memcpy({state}, h, {size.units} * sizeof(*h));")
    constants: list[tuple[str, Any]] = [("stream", _stream(layer)), ("numbers", _numbers(layer))]
    if numbers.is_micro:
        constants.append(("table", sample_pairs()))
    scratch = [
        Parameter("rows", operation.inputs[0].dtype, "scratch", elements=(before + layer.row(size.units)) // item),
        Parameter("gates", "int16", "scratch", elements=layer.elements),
    ]
    return call_of(
        operation,
        "lstm",
        body,
        ("data", "last", "cell"),
        constants,
        states=("last", "cell"),
        scratch=scratch,
        headers=("string.h",),
        definitions=(NAKED, COPY, *definitions, text),
    )


def _numbers(layer: _Layer) -> Any:
    """Return multiplier, left, right of the data and of the last results, by gate."""
    found = []
    for gate in layer.places:
        for part in layer.gates.parts:
            scales = part.scales
            found += [scales.multipliers[gate], scales.lefts[gate], -scales.rights[gate]]
    return np.asarray(found, np.int32)


def _stream(layer: _Layer) -> Any:
    """Return for each gate and each 4 cells: weights [operand][vector][cell], the first sums of both operands."""
    starts, weights = [], []
    for part in layer.gates.parts:
        missing = layer.cells - layer.size.cells
        chosen = np.pad(part.weights, ((0, missing), (0, 0), (0, 0)))[:, layer.places].transpose(1, 0, 2)
        weights.append(packed(chosen, layer.item).reshape(len(layer.places), layer.cells // CELLS, -1))
        first = np.pad(part.starts, ((0, missing), (0, 0)))[:, layer.places].T.astype(np.int32)
        starts.append(first.reshape(len(layer.places), -1, CELLS))
    return np.concatenate([*weights, *starts], axis=2).reshape(-1)


def packed(weights: Any, item: int) -> Any:
    """Return the words of each four channels, [vector][channel]: weights [..., length], whose last vector is padded."""
    lanes = VECTOR // item
    length = weights.shape[-1]
    wide = np.pad(weights.reshape(-1, length), ((0, 0), (0, -length % lanes))).astype(np.int8)
    groups = wide.reshape(-1, CELLS, wide.shape[1] // lanes, lanes).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(groups).reshape(len(groups), -1).view(np.int32)
