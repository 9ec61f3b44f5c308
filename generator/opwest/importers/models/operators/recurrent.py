# SPDX-License-Identifier: Apache-2.0
"""Layers with a state: SVDF, UNIDIRECTIONAL_SEQUENCE_LSTM.

Sources in TFLite: kernels/svdf.cc, internal/reference/svdf.h, kernels/unidirectional_sequence_lstm.cc, lstm_eval.cc;
tflite-micro's kernels/svdf_common.cc. The int8 SVDF demands RELU and does not apply it, in LiteRT and in tflite-micro.
"""

from __future__ import annotations

from collections.abc import Sequence

from opwest.importers.models.graph.faults import Unsupported
from opwest.importers.models.graph.spec import Operator, Result, specify
from opwest.importers.models.graph.types import Node, Tensor
from opwest.importers.models.operators.fixed_point import (
    RANGES,
    Requantisation,
    Rounding,
    float32,
    limits_of,
    one_quantization,
    quantize_multiplier,
)


def _state(tensor: Tensor, size: int) -> None:
    if not tensor.is_state:
        raise Unsupported(f"the state '{tensor.name}' is not a variable tensor", "a variable tensor")
    if tensor.size != size:
        raise Unsupported(f"the state '{tensor.name}' has {tensor.size} elements", str(size))


def _constants(*tensors: Tensor | None) -> None:
    for one in tensors:
        if one is not None and not one.is_constant:
            raise Unsupported(f"weights '{one.name}' are computed when the model runs", "constants")


def _svdf(node: Node) -> Sequence[Result]:
    data, feature, time, bias, state = (*node.inputs[:4], node.input(4))
    assert data is not None and feature is not None and time is not None and state is not None
    _constants(feature, time, bias)
    rank = int(node.options["rank"])
    if len(data.shape) != 2 or len(feature.shape) != 2 or len(time.shape) != 2:
        raise Unsupported("data or weights that are not matrices", "2 dimensions each")
    filters, memory = time.shape
    if rank < 1 or feature.shape != (filters, data.shape[1]) or filters % rank:
        raise Unsupported(f"weights {list(feature.shape)} and {list(time.shape)} of rank {rank}")
    if bias is not None and bias.size != filters // rank:
        raise Unsupported(f"bias {list(bias.shape)} for {filters // rank} results")
    _state(state, data.shape[0] * filters * memory)
    activation = node.options["fused_activation_function"]
    if data.dtype == "int8":
        if activation not in ("NONE", "RELU"):
            raise Unsupported(f"fused activation {activation} of int8", "RELU")
        if time.dtype != state.dtype:
            raise Unsupported(f"weights of {time.dtype} and a state of {state.dtype}", "equal dtypes")
        svdf_numbers(node)
    else:
        limits_of(activation)
    return [(data.dtype, (data.shape[0], filters // rank))]


def svdf_numbers(node: Node) -> tuple[Requantisation, Requantisation]:
    """Return the requantisations of int8 SVDF: into the state, and of the result."""
    data, feature, time, state = (one_quantization(node.input(i)) for i in (0, 1, 2, 4))
    target = one_quantization(node.output)
    first = quantize_multiplier(float32(float32(data.scale * feature.scale) / state.scale))
    second = quantize_multiplier(float32(float32(state.scale * time.scale) / target.scale))
    kind = node.input(4).dtype
    return (
        Requantisation((first,), Rounding.TWICE, 0, *RANGES[kind]),
        Requantisation((second,), Rounding.TWICE, target.zero, *RANGES["int8"]),
    )


WEIGHTS = range(1, 9)
"""The inputs of an LSTM with weights: of the data, then of the last result; each input, forget, cell, output gate."""
BIASES = range(12, 16)


def _lstm(node: Node) -> Sequence[Result]:
    data = node.input(0)
    parts = ((range(9, 12), "peepholes"), ((16, 17), "a projection"), (range(20, 24), "layer normalisation"))
    for numbers, what in parts:
        if any(node.optional(i) is not None for i in numbers):
            raise Unsupported(f"{what}", "an LSTM without it")
    if node.optional(1) is None or node.optional(5) is None:
        raise Unsupported("coupled input and forget gates", "four gates")
    if len(data.shape) != 3:
        raise Unsupported(f"data {list(data.shape)}", "3 dimensions")
    if node.options["fused_activation_function"] != "TANH":
        raise Unsupported(f"fused activation {node.options['fused_activation_function']}", "TANH")
    cells = node.input(2).shape[0]
    for number in WEIGHTS:
        one = node.input(number)
        wanted = (cells, data.shape[2] if number < 5 else cells)
        if one.dtype != "float32" or one.shape != wanted:
            raise Unsupported(f"weights '{one.name}' {one.dtype} {list(one.shape)}", f"float32 {list(wanted)}")
    for number in BIASES:
        if node.input(number).size != cells:
            raise Unsupported(f"bias {list(node.input(number).shape)} for {cells} cells")
    _constants(*(node.input(i) for i in (*WEIGHTS, *BIASES)))
    batch = data.shape[1] if node.options["time_major"] else data.shape[0]
    for number in (18, 19):
        _state(node.input(number), batch * cells)
    return [("float32", (*data.shape[:2], cells))]


specify(
    Operator(
        "SVDF",
        _svdf,
        (
            "float32 float32 float32 [float32] float32",
            "int8 int8 int16 [int32] int16",
            "int8 int8 int8 [int32] int8",
        ),
        {"rank": 1, "fused_activation_function": "NONE", "asymmetric_quantize_inputs": False},
    ),
    Operator(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        _lstm,
        ("float32 [float32]...",),
        {
            "fused_activation_function": "NONE",
            "cell_clip": 0.0,
            "proj_clip": 0.0,
            "time_major": False,
            "asymmetric_quantize_inputs": False,
        },
    ),
)
