# SPDX-License-Identifier: Apache-2.0
"""LSTM, GRU and RNN, unrolled. Source: onnx/docs/Operators.md."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opwest.compiler.graph.types import Quantization, Tensor, Unsupported
from opwest.frontends.onnx.elements import arithmetic
from opwest.frontends.onnx.movement import numbers, sliced
from opwest.frontends.onnx.quantised import centred_weights
from opwest.frontends.onnx.translation import Translation, translates
from opwest.frontends.onnx.values import Item, Op

MAX_STEPS = 1024
"""The most time steps that are unrolled."""
_KINDS = {"LSTM": (4, ("Sigmoid", "Tanh", "Tanh")), "GRU": (3, ("Sigmoid", "Tanh")), "RNN": (1, ("Tanh",))}
"""The number of gates, and the activation functions of one direction if the model has none."""
_ACTIVATIONS = {"Sigmoid": "LOGISTIC", "Tanh": "TANH", "Relu": "RELU"}


class _Integers:
    """The weights of a DynamicQuantizeLSTM [length, results] with scales; the data is quantised when the model runs."""

    def __init__(self, op: Op, t: Translation, number: int, weights: Any, place: int) -> None:
        scales, zeros = _content(op, t, place), _content(op, t, place + 1)
        if scales is None or zeros is None:
            raise Unsupported("weights without a scale")
        self.scales = np.asarray(scales, np.float32).reshape(len(scales), -1)[number]
        content, self.zero = centred_weights(weights, np.asarray(zeros).reshape(len(scales), -1)[number], 1)
        self.content = content.T

    def product(self, t: Translation, data: Tensor) -> Tensor:
        """Return data times weights."""
        centred, scale = Tensor("integers", "int16", data.shape), Tensor("scale", "float32", ())
        t.append("ONNX_DYNAMIC_QUANTIZE", [data], [centred, scale], {})
        weights = t.constant(self.content, "weights", Quantization((1.0,), (self.zero,)))
        shape = (data.shape[0], len(self.content))
        sums = t.emit("ONNX_DENSE_INTEGER", [centred, weights], shape, "int32")
        real = t.emit("CAST", [sums], shape)
        scales = t.constant(self.scales if len(self.scales) > 1 else self.scales.reshape(()), "scales")
        return arithmetic(t, "MUL", real, arithmetic(t, "MUL", scales, scale))


class _Direction:
    """One direction of a layer: constants, states, one step."""

    def __init__(self, op: Op, t: Translation, number: int, functions: list[str], batch: int, hidden: int) -> None:
        self.op, self.t, self.hidden = op, t, hidden
        self.kind = op.kind.removeprefix("DynamicQuantize")
        self.functions = [_ACTIVATIONS[name] for name in functions]
        self.input_weights = _content(op, t, 1)[number]
        self.weights = _content(op, t, 2)[number]
        if op.kind != self.kind:
            self.input_weights = _Integers(op, t, number, self.input_weights, 8)
            self.weights = _Integers(op, t, number, self.weights, 10)
        is_lstm = self.kind == "LSTM"
        gates = _KINDS[self.kind][0] * hidden
        bias = _content(op, t, 3)
        both: Any = np.zeros((2, gates), np.float32) if bias is None else bias[number].reshape(2, gates)
        self.input_bias: Any = both[0]
        self.bias: Any = both[1]
        self.states = [self._initial(place, number, (batch, hidden)) for place in ((5, 6) if is_lstm else (5,))]
        peepholes = _content(op, t, 7) if is_lstm else None
        self.peepholes = None if peepholes is None else peepholes[number].reshape(3, hidden)
        if self.kind != "GRU" or not op.get("linear_before_reset", 0):
            # The bias of the recurrent product can be part of the other one.
            self.input_bias, self.bias = self.input_bias + self.bias, np.zeros(gates, np.float32)

    def _initial(self, place: int, number: int, shape: tuple[int, int]) -> Tensor:
        item = self.op.optional(place)
        if item is None:
            return self.t.constant(np.zeros(shape, np.float32), "initial")
        values = self.t.values_of(item)
        if values is not None:
            return self.t.constant(values[number].reshape(shape), item.name)
        return self.t.reshape(_part(self.t, self.t.tensor(item), number, 1), shape)

    def product(self, data: Tensor, weights: Any, bias: Any) -> Tensor:
        """Return data times weights [results, length] plus bias."""
        if isinstance(weights, _Integers):
            sums = weights.product(self.t, data)
            return arithmetic(self.t, "ADD", sums, self.t.constant(bias, "bias")) if bias.any() else sums
        inputs = [data, self.t.constant(weights, "weights"), self.t.constant(bias, "bias") if bias.any() else None]
        shape = (data.shape[0], len(weights))
        return self.t.emit("FULLY_CONNECTED", inputs, shape)

    def gate(self, value: Tensor, function: int) -> Tensor:
        """Apply one of the activation functions."""
        return self.t.emit(self.functions[function], [value], value.shape)

    def parts(self, value: Tensor, count: int) -> list[Tensor]:
        """Return equal parts of the last dimension."""
        results = [Tensor(f"gate_{i}", "float32", (value.shape[0], self.hidden)) for i in range(count)]
        sizes = numbers(self.t, [self.hidden] * count, "sizes")
        self.t.append("SPLIT_V", [value, sizes, numbers(self.t, 1, "axis")], results, {"num_splits": count})
        return results

    def with_peephole(self, gate: Tensor, cell: Tensor, number: int) -> Tensor:
        """Return a gate plus the product of the cell and a peephole, if there are any."""
        if self.peepholes is None:
            return gate
        peephole = self.t.constant(self.peepholes[number], "peephole")
        return arithmetic(self.t, "ADD", gate, arithmetic(self.t, "MUL", cell, peephole))

    def lstm(self, x: Tensor) -> None:
        """One step of gates i, o, f, c; `x` is the product of the data."""
        t = self.t
        hidden, cell = self.states
        sums = arithmetic(t, "ADD", x, self.product(hidden, self.weights, self.bias))
        i, o, f, c = self.parts(sums, 4)
        i, f = self.with_peephole(i, cell, 0), self.with_peephole(f, cell, 2)
        kept = arithmetic(t, "MUL", self.gate(f, 0), cell)
        cell = arithmetic(t, "ADD", kept, arithmetic(t, "MUL", self.gate(i, 0), self.gate(c, 1)))
        o = self.with_peephole(o, cell, 1)
        self.states = [arithmetic(t, "MUL", self.gate(o, 0), self.gate(cell, 2)), cell]

    def gru(self, x: Tensor) -> None:
        """One step of gates z, r, h."""
        t, n = self.t, self.hidden
        [hidden] = self.states
        before = self.op.get("linear_before_reset", 0)
        xz, xr, xh = self.parts(x, 3)
        if before:
            hz, hr, hh = self.parts(self.product(hidden, self.weights, self.bias), 3)
            reset = self.gate(arithmetic(t, "ADD", xr, hr), 0)
            inner = arithmetic(t, "MUL", reset, hh)
        else:
            hz, hr = self.parts(self.product(hidden, self.weights[: 2 * n], self.bias[: 2 * n]), 2)
            reset = self.gate(arithmetic(t, "ADD", xr, hr), 0)
            inner = self.product(arithmetic(t, "MUL", reset, hidden), self.weights[2 * n :], self.bias[2 * n :])
        update = self.gate(arithmetic(t, "ADD", xz, hz), 0)
        new = self.gate(arithmetic(t, "ADD", xh, inner), 1)
        change = arithmetic(t, "MUL", update, arithmetic(t, "SUB", hidden, new))
        self.states = [arithmetic(t, "ADD", new, change)]

    def rnn(self, x: Tensor) -> None:
        """One step."""
        sums = arithmetic(self.t, "ADD", x, self.product(self.states[0], self.weights, self.bias))
        self.states = [self.gate(sums, 0)]


def _content(op: Op, t: Translation, place: int) -> Any:
    """Return a constant input, None if it is absent. Raises Unsupported."""
    item = op.optional(place)
    return None if item is None else t.constant_values(item, f"input {place}")


def _part(t: Translation, tensor: Tensor, start: int, count: int) -> Tensor:
    """Return a range of the first dimension."""
    shape = (count, *tensor.shape[1:])
    if shape == tensor.shape:
        return tensor
    return sliced(t, tensor, [start, *[0] * (len(shape) - 1)], shape)


def _join(t: Translation, parts: list[Tensor]) -> Tensor:
    """Return tensors as one along the first dimension."""
    if len(parts) == 1:
        return parts[0]
    shape = (sum(part.shape[0] for part in parts), *parts[0].shape[1:])
    return t.emit("CONCATENATION", parts, shape, axis=0)


@translates(*_KINDS, "DynamicQuantizeLSTM")
def recurrent(op: Op, t: Translation) -> None:
    """Unrolled over the time steps; the products with the data are one product for all steps."""
    data: Item = op.input(0)
    is_batch_first = bool(op.get("layout", 0))
    lengths = op.optional(4)
    known = None if lengths is None else t.values_of(lengths)
    is_full = known is not None and bool((known == data.known[1 if is_batch_first else 0]).all())
    if data.rank != 3 or not (lengths is None or is_full):
        raise Unsupported("sequence_lens that are shorter than the sequence", "full sequences")
    if is_batch_first:
        raise Unsupported(f"{op.kind} with layout=1", "0")
    steps, batch, width = data.known
    if steps > MAX_STEPS:
        raise Unsupported(f"{steps} time steps", f"at most {MAX_STEPS}")
    direction = op.get("direction", "forward")
    count = 2 if direction == "bidirectional" else 1
    hidden = int(op.get("hidden_size", 0)) or op.input(2).known[1 if op.kind == "DynamicQuantizeLSTM" else 2]
    _, defaults = _KINDS[op.kind.removeprefix("DynamicQuantize")]
    functions = list(op.get("activations", defaults * count))
    each = len(defaults)
    if len(functions) != each * count or any(function not in _ACTIVATIONS for function in functions):
        raise Unsupported(f"activations {', '.join(map(str, functions))}", ", ".join(_ACTIVATIONS))
    if op.get("clip", 0) or op.get("input_forget", 0):
        raise Unsupported("clip or input_forget")
    x = t.reshape(t.tensor(data), (steps * batch, width))
    outputs: list[list[Tensor]] = []
    lasts: list[list[Tensor]] = []
    for number in range(count):
        layer = _Direction(op, t, number, functions[number * each : (number + 1) * each], batch, hidden)
        products = layer.product(x, layer.input_weights, layer.input_bias)
        step: Callable[[Tensor], None] = {"GRU": layer.gru, "RNN": layer.rnn}.get(op.kind, layer.lstm)
        turns = range(steps) if direction == "forward" or (number == 0 and count == 2) else range(steps - 1, -1, -1)
        results: list[Tensor | None] = [None] * steps
        for turn in turns:
            step(_part(t, products, turn * batch, batch))
            results[turn] = layer.states[0]
        outputs.append([tensor for tensor in results if tensor is not None])
        lasts.append(layer.states)
    _store(op, t, outputs, lasts, (steps, batch, hidden))


def _store(
    op: Op, t: Translation, outputs: list[list[Tensor]], lasts: list[list[Tensor]], sizes: tuple[int, int, int]
) -> None:
    """Store the sequence [steps, directions, batch, hidden] and the last states [directions, batch, hidden]."""
    steps, batch, hidden = sizes
    sequence, *states = op.outputs
    if sequence is not None:
        rows = [t.reshape(part, (1, 1, batch, hidden)) for step in zip(*outputs, strict=True) for part in step]
        t.put(sequence, t.reshape(_join(t, rows), (steps, len(outputs), batch, hidden)))
    for place, item in enumerate(states):
        if item is not None:
            rows = [t.reshape(last[place], (1, batch, hidden)) for last in lasts]
            t.put(item, _join(t, rows))
