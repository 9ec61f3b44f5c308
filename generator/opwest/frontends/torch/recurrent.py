# SPDX-License-Identifier: Apache-2.0
"""LSTM, GRU and RNN: layers of ONNX, with the gates in their order.

Source: torch.nn.LSTM, GRU, RNN (gates i f g o, and r z n); onnx/docs/Operators.md (i o f c, and z r h).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from opwest.compiler.graph.types import Unsupported
from opwest.frontends.onnx.gates import MAX_STEPS
from opwest.frontends.torch.build import Builder, Context, Value, translates

_GATES: Mapping[str, tuple[int, ...]] = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}
"""The places of ONNX's gates in torch's."""
_KINDS = {"lstm": "LSTM", "gru": "GRU", "rnn_tanh": "RNN", "rnn_relu": "RNN"}


@translates("lstm", "gru", "rnn_tanh", "rnn_relu")
def recurrent(x: Context, b: Builder) -> list[Value | None]:
    """All layers and directions."""
    name = x.call.operator.removeprefix("aten.")
    if x.overload != "input":
        raise Unsupported("packed sequences", "a tensor")
    if x.flag("train") and x.number("dropout", 0):
        raise Unsupported("dropout of a training", "a program for inference", "export model.eval()")
    data, parameters = x.tensor("input"), x.tensors("params")
    layers, has_bias = x.integer("num_layers"), x.flag("has_biases", True)
    directions = 2 if x.flag("bidirectional") else 1
    batch_first = x.flag("batch_first")
    states = x.get("hx")
    states = states if isinstance(states, list) else [states]
    is_flat = data.rank == 2
    if is_flat:
        data = b.reshape(data, (data.shape[0], 1, data.shape[1]))
        states = [b.reshape(state, (state.shape[0], 1, state.shape[1])) for state in states]
    elif batch_first:
        data = b.transpose(data, (1, 0, 2))
    each, rest = divmod(len(parameters), layers * directions)
    if rest or each < (4 if has_bias else 2):
        raise Unsupported(f"{len(parameters)} parameters of {layers} layers")
    if each > (4 if has_bias else 2) + (name == "lstm"):
        raise Unsupported(f"{len(parameters)} parameters of {layers} layers")
    lasts: list[list[Value]] = [[] for _ in states]
    for layer in range(layers):
        first = layer * directions * each
        own = [parameters[first + i * each : first + (i + 1) * each] for i in range(directions)]
        rows = [b.slice(state, 0, layer * directions, (layer + 1) * directions) for state in states]
        data, ends = _layer(b, _KINDS[name], data, own, rows, relu=name == "rnn_relu")
        for last, end in zip(lasts, ends, strict=True):
            last.append(end)
    if is_flat:
        data = b.reshape(data, (data.shape[0], data.shape[2]))
    elif batch_first:
        data = b.transpose(data, (1, 0, 2))
    ends = [b.concat(last, 0) for last in lasts]
    if is_flat:
        ends = [b.reshape(end, (end.shape[0], end.shape[2])) for end in ends]
    return [data, *ends]


def _layer(
    b: Builder, kind: str, data: Value, own: Sequence[Sequence[Value]], rows: Sequence[Value], *, relu: bool
) -> tuple[Value, list[Value]]:
    """Return the sequence [steps, batch, directions * hidden] and the last states [directions, batch, hidden]."""
    steps, batch, _ = data.shape
    count = len(own)
    if len(own[0]) in (3, 5):
        return _projected(b, data, own, rows)
    hidden = own[0][1].shape[1]
    weights = [_stacked(b, kind, [parameters[place] for parameters in own]) for place in (0, 1)]
    bias = None
    if len(own[0]) == 4:
        both = [_gates(kind, _content(parameters[place])) for parameters in own for place in (2, 3)]
        bias = b.constant(np.concatenate(both).reshape(count, -1).astype(np.float32))
    options: dict[str, Any] = {"hidden_size": hidden, "direction": "bidirectional" if count == 2 else "forward"}
    if kind == "GRU":
        options["linear_before_reset"] = 1
    if kind == "RNN":
        options["activations"] = ["Relu" if relu else "Tanh"] * count
    inputs = [data, *weights, bias, None, *rows]
    ends: list[tuple[str, tuple[int, ...]]] = [("float32", (count, batch, hidden))] * len(rows)
    sequence, *last = b.nodes_of(kind, inputs, [("float32", (steps, count, batch, hidden)), *ends], **options)
    assert sequence is not None
    joined = b.reshape(b.transpose(sequence, (0, 2, 1, 3)), (steps, batch, count * hidden))
    return joined, [end for end in last if end is not None]


def _projected(
    b: Builder, data: Value, own: Sequence[Sequence[Value]], rows: Sequence[Value]
) -> tuple[Value, list[Value]]:
    """Return what _layer() does for an LSTM whose hidden state is a product with weights (proj_size), unrolled."""
    steps, batch, width = data.shape
    if steps > MAX_STEPS:
        raise Unsupported(f"{steps} time steps", f"at most {MAX_STEPS}")
    flat = b.reshape(data, (steps * batch, width))
    sequences, ends = [], []
    for direction, parameters in enumerate(own):
        hidden, cell = (b.reshape(b.slice(row, 0, direction, direction + 1), row.shape[1:]) for row in rows)
        size = parameters[0].shape[0] // 4
        bias = None
        if len(parameters) == 5:
            bias = b.constant((_content(parameters[2]) + _content(parameters[3])).astype(np.float32))
        products = b.op("Gemm", [flat, parameters[0], bias], (steps * batch, 4 * size), transB=1)
        turns = range(steps) if direction == 0 else range(steps - 1, -1, -1)
        results: dict[int, Value] = {}
        for turn in turns:
            part = b.slice(products, 0, turn * batch, (turn + 1) * batch)
            sums = b.binary("Add", part, b.op("Gemm", [hidden, parameters[1]], (batch, 4 * size), transB=1))
            i, f, g, o = (b.slice(sums, 1, gate * size, (gate + 1) * size) for gate in range(4))
            kept = b.binary("Mul", b.unary("Sigmoid", f), cell)
            cell = b.binary("Add", kept, b.binary("Mul", b.unary("Sigmoid", i), b.unary("Tanh", g)))
            wide = b.binary("Mul", b.unary("Sigmoid", o), b.unary("Tanh", cell))
            hidden = b.op("Gemm", [wide, parameters[-1]], (batch, parameters[-1].shape[0]), transB=1)
            results[turn] = b.reshape(hidden, (1, *hidden.shape))
        sequences.append(b.concat([results[turn] for turn in range(steps)], 0))
        ends.append([b.reshape(end, (1, *end.shape)) for end in (hidden, cell)])
    return b.concat(sequences, 2), [b.concat(list(last), 0) for last in zip(*ends, strict=True)]


def _content(value: Value) -> Any:
    if value.content is None:
        raise Unsupported(f"the weights '{value.name}' are computed when the model runs", "constants")
    return value.content


def _gates(kind: str, content: Any) -> Any:
    """Return the rows of the gates in ONNX's order."""
    order = _GATES[kind]
    parts = np.split(content, len(order))
    return np.concatenate([parts[place] for place in order])


def _stacked(b: Builder, kind: str, values: Sequence[Value]) -> Value:
    return b.constant(np.stack([_gates(kind, _content(value)) for value in values]).astype(np.float32))


@translates("lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell")
def cell(x: Context, b: Builder) -> list[Value | None]:
    """One step of a layer."""
    name = x.call.operator.removeprefix("aten.").removesuffix("_cell")
    data = x.tensor("input")
    states = x.get("hx")
    states = states if isinstance(states, list) else [states]
    parameters = [x.tensor(place) for place in ("w_ih", "w_hh")]
    if x.has("b_ih"):
        parameters += [x.tensor(place) for place in ("b_ih", "b_hh")]
    rows = data.shape if data.rank == 2 else (1, *data.shape)
    wide = b.reshape(data, (1, *rows))
    before = [b.reshape(state, (1, rows[0], state.shape[-1])) for state in states]
    _, ends = _layer(b, _KINDS[name], wide, [parameters], before, relu=name == "rnn_relu")
    return [b.reshape(end, state.shape) for end, state in zip(ends, states, strict=True)]
