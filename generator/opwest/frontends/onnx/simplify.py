# SPDX-License-Identifier: Apache-2.0
"""Rewrite an ONNX model: batch normalisation, biases, functions that exporters take apart, unused operators."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from opwest.compiler.graph.types import Unsupported
from opwest.frontends.onnx.reductions import batch_numbers
from opwest.frontends.onnx.values import Item, Model, Op, check_operands

_OPTIONAL_RESULTS = frozenset(("BatchNormalization", "Dropout", "LayerNormalization", "MaxPool"))
"""Operators whose results after the first one are left out if nothing reads them."""


def simplify(model: Model) -> Model:
    """Return an equal model."""
    rewriting = _Rewriting(model)
    rewriting.normalisations()
    rewriting.biases()
    rewriting.gelu()
    return Model(model.inputs, model.outputs, rewriting.used(), model.remarks, model.names, model.states)


class _Rewriting:
    def __init__(self, model: Model) -> None:
        self.kept = frozenset(model.kept)
        self.model = model
        self.ops: list[Op | None] = list(model.ops)
        self.makers: dict[Item, int] = {}
        self.readers: dict[Item, list[int]] = {}
        for number, op in enumerate(model.ops):
            self.makers.update(dict.fromkeys(op.results, number))
            for item in op.given:
                self.readers.setdefault(item, []).append(number)

    def used(self) -> tuple[Op, ...]:
        """Return the operators that the outputs depend on, in order."""
        wanted = set(self.model.kept)
        kept = []
        for op in reversed(self.ops):
            is_reported = op is not None and op.origin is not None and op.origin.is_reported
            if op is not None and (is_reported or any(item in wanted for item in op.outputs)):
                if op.kind in _OPTIONAL_RESULTS and not wanted.intersection(op.outputs[1:]):
                    op.outputs = op.outputs[:1]
                kept.append(op)
                wanted.update(op.given)
        return tuple(reversed(kept))

    def maker(self, item: Item | None) -> Op | None:
        """Return the operator that computes an item which only one operator reads."""
        number = self.makers.get(item) if item is not None else None
        if item is None or number is None or len(self.readers.get(item, [])) != 1 or item in self.kept:
            return None
        return self.ops[number]

    def _of(self, kind: str) -> Iterator[tuple[int, Op]]:
        """Yield the operators of a kind with their numbers."""
        for number, op in enumerate(self.ops):
            if op is not None and op.kind == kind:
                yield number, op

    def normalisations(self) -> None:
        """Put factors and offsets of BatchNormalization into the constants of the layer before it."""
        for number, op in self._of("BatchNormalization"):
            layer = self.maker(op.input(0))
            if op.is_training or layer is None or layer.kind not in ("Conv", "ConvTranspose", "Gemm"):
                continue
            try:
                check_operands(layer)
                check_operands(op)
                constants = [op.input(i).content for i in range(1, 5)]
                is_known = all(content is not None for content in constants)
                inputs = _normalised(layer, *batch_numbers(op, constants)) if is_known else None
            except Unsupported:
                continue
            if inputs is not None and len(op.results) == 1:
                self._join(layer, number, op, inputs)

    def _join(self, layer: Op, number: int, after: Op, inputs: tuple[Item | None, ...]) -> None:
        """Replace a layer and the operator after it by one operator, at the place of the second."""
        self.ops[self.makers[layer.output]] = None
        self.ops[number] = dataclasses.replace(layer, inputs=inputs, outputs=after.outputs)
        self.makers[after.output] = number

    def biases(self) -> None:
        """Let the addition of a constant vector after a product be its bias."""
        for number, op in self._of("Add"):
            for place in (0, 1):
                layer, bias = self.maker(op.input(place)), op.input(1 - place)
                if layer is None or layer.kind != "MatMul" or len(layer.inputs) != 2:
                    continue
                weights = layer.input(1)
                fits = weights.rank == 2 and layer.input(0).rank >= 2 and self._is_constant(weights)
                # A vector varies along the last dimension only.
                is_vector = bias.rank >= 1 and bias.size == bias.known[-1] == weights.known[-1]
                if fits and bias.content is not None and is_vector:
                    self._join(layer, number, op, (*layer.inputs, bias))
                    break

    def _is_constant(self, item: Item) -> bool:
        maker = self.makers.get(item)
        op = None if maker is None else self.ops[maker]
        return item.content is not None or (
            op is not None and op.kind == "DequantizeLinear" and op.input(0).content is not None
        )

    def gelu(self) -> None:
        """x * 0.5 * (1 + erf(x / sqrt(2))) in the order of any exporter."""
        for _, erf in self._of("Erf"):
            match = self._gelu(erf)
            if match is not None:
                number, last, source = match
                self.ops[number] = Op("Gelu", 20, (source,), last.outputs, {}, last.label, origin=last.origin)

    def _gelu(self, erf: Op) -> tuple[int, Op, Item] | None:
        """Return the last operator with its number, and the item x."""
        scale = self.maker(erf.input(0))
        source = None
        if scale is not None and scale.kind in ("Div", "Mul"):
            wanted = np.sqrt(2) if scale.kind == "Div" else np.sqrt(0.5)
            source = next((scale.input(i) for i in (0, 1) if _is_number(scale.input(1 - i), wanted)), None)
        at, op = self._reader(erf.output)
        if source is None or op is None or op.kind != "Add" or not _with_number(op, 1.0):
            return None
        # Then a product with x and one with 0.5, in any order; the 0.5 may multiply x first.
        halved = with_source = False
        for _ in range(2):
            at, follower = self._reader(op.output)
            if follower is None or follower.kind != "Mul":
                break
            other = follower.input(1) if follower.input(0) is op.output else follower.input(0)
            op = follower
            if _is_number(other, 0.5) and not halved:
                halved = True
            elif other is source and not with_source:
                with_source = True
            else:
                half = self.maker(other)
                is_half = half is not None and half.kind == "Mul" and source in half.inputs and _with_number(half, 0.5)
                if not is_half or with_source or halved:
                    return None
                halved = with_source = True
            if halved and with_source:
                return at, op, source
        return None

    def _reader(self, item: Item) -> tuple[int, Op | None]:
        """Return the number of the only reader, and the reader if there is one."""
        number, *others = self.readers.get(item, [-1])
        return number, None if number < 0 or others or item in self.kept else self.ops[number]


def _is_number(item: Item, value: float) -> bool:
    return item.content is not None and item.size == 1 and bool(np.isclose(float(item.content.reshape(-1)[0]), value))


def _with_number(op: Op, value: float) -> bool:
    return any(_is_number(item, value) for item in op.given)


def _normalised(layer: Op, factor: Any, offset: Any) -> tuple[Item | None, ...] | None:
    """Return the inputs of a layer with a factor and an offset for each result; None if they are not constant."""
    weights, bias = layer.input(1), layer.optional(2)
    if weights.content is None or (bias is not None and bias.content is None):
        return None
    content = np.asarray(weights.content)
    shape = [1] * content.ndim
    if layer.kind == "Conv":
        shape[0] = -1
        scaled = content * factor.reshape(shape)
    elif layer.kind == "Gemm":
        if layer.get("alpha", 1.0) != 1.0 or layer.get("beta", 1.0) != 1.0:
            return None
        shape[0 if layer.get("transB", 0) else 1] = -1
        scaled = content * factor.reshape(shape)
    else:
        groups = int(layer.get("group", 1))
        each = content.reshape(groups, content.shape[0] // groups, *content.shape[1:])
        scaled = (each * factor.reshape(groups, 1, -1, *[1] * (content.ndim - 2))).reshape(content.shape)
    before = 0 if bias is None else np.asarray(bias.content).reshape(-1)
    total = np.broadcast_to(before * factor + offset, factor.shape).astype(np.float32)
    made = (
        Item(weights.name, "float32", weights.shape, scaled.astype(np.float32)),
        Item(f"{weights.name}/bias", "float32", total.shape, total),
    )
    return (layer.input(0), *made)
