# SPDX-License-Identifier: Apache-2.0
"""Layers with a state: SVDF and LSTM.

Sources in TFLite: kernels/svdf.cc, internal/reference/svdf.h, kernels/unidirectional_sequence_lstm.cc,
kernels/lstm_eval.cc; tflite-micro's kernels/svdf_common.cc, kernels/lstm_eval.cc.
The int8 SVDF demands RELU and does not apply it, in LiteRT and in tflite-micro.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.compiler.graph.spec import Operator, Result, specify
from opwest.compiler.graph.types import Node, Quantization, Shape, Tensor, Unsupported
from opwest.compiler.semantics.fixed_point import (
    RANGES,
    Multiplier,
    Requantisation,
    Rounding,
    exponent_of,
    float32,
    limits_of,
    one_quantization,
    quantize_multiplier,
)
from opwest.compiler.semantics.tables import SigmoidNumbers


def check_state(tensor: Tensor, size: int) -> None:
    """Raise Unsupported unless a tensor is a variable of this size."""
    if not tensor.is_state:
        raise Unsupported(f"the state '{tensor.name}' is not a variable tensor", "a variable tensor")
    if tensor.size != size:
        raise Unsupported(f"the state '{tensor.name}' has {counted(tensor.size, 'element')}", str(size))


def check_constants(*tensors: Tensor | None) -> None:
    """Raise Unsupported if weights are computed when the model runs."""
    for tensor in tensors:
        if tensor is not None and not tensor.is_constant:
            raise Unsupported(f"weights '{tensor.name}' are computed when the model runs", "constants")


def _svdf(node: Node) -> Sequence[Result]:
    data, feature, time, bias, state = (*node.inputs[:4], node.input(4))
    assert data is not None and feature is not None and time is not None and state is not None
    check_constants(feature, time, bias)
    rank = int(node.options["rank"])
    if len(data.shape) != 2 or len(feature.shape) != 2 or len(time.shape) != 2:
        raise Unsupported("data or weights that are not matrices", "2 dimensions each")
    filters, memory = time.shape
    if rank < 1 or feature.shape != (filters, data.shape[1]) or filters % rank:
        raise Unsupported(f"weights {list(feature.shape)} and {list(time.shape)} of rank {rank}")
    if bias is not None and bias.size != filters // rank:
        raise Unsupported(f"bias {list(bias.shape)} for {filters // rank} results")
    check_state(state, data.shape[0] * filters * memory)
    activation = node.options["fused_activation_function"]
    if data.dtype == "int8":
        if activation not in ("NONE", "RELU"):
            raise Unsupported(f"fused activation {activation} of int8", "RELU")
        if time.dtype != state.dtype:
            raise Unsupported(f"weights of {time.dtype} and a state of {state.dtype}", "equal dtypes")
        svdf_numbers(node)
    else:
        limits_of(activation)
        hybrid_scales(node)
    return [(data.dtype, (data.shape[0], filters // rank))]


def hybrid_scales(node: Node) -> tuple[float, float] | None:
    """Return the scales of int8 weights of the features and the times, None for float32. Raises Unsupported."""
    if node.input(0).dtype != "float32" or node.input(1).dtype == "float32":
        return None
    feature, time = (one_quantization(node.input(i)) for i in (1, 2))
    if feature.zero or time.zero:
        raise Unsupported("int8 weights with a zero point, with float32 data", "the zero point 0")
    return feature.scale, time.scale


def time_weights(array: Any, scale: float) -> Any:
    """Return the weights of the times as float32. Source: kernels/svdf.cc, Eval."""
    return array.astype(np.float32) * np.float32(scale)


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


specify(
    Operator(
        "SVDF",
        _svdf,
        (
            "float32 float32 float32 [float32] float32",
            "float32 int8 int8 [float32] float32",
            "int8 int8 int16 [int32] int16",
            "int8 int8 int8 [int32] int8",
        ),
        {"rank": 1, "fused_activation_function": "NONE", "asymmetric_quantize_inputs": False},
    )
)


_GATES = range(4)
_GATE_SCALE = 2.0**-12
_MIN_POWER, _MAX_POWER = -15, -9
"""The scales of cells whose tanh TFLite computes, as powers of 2."""


@dataclass(frozen=True)
class Normalisation:
    """The integer layer normalisation of a gate."""

    by: Multiplier
    guard: int
    """The variance in place of 0."""


@dataclass(frozen=True)
class Projection:
    """From int8 products of cells and output gate to int8 results."""

    by: Multiplier
    zero: int
    clip: int
    """0: none."""


@dataclass(frozen=True)
class LstmNumbers:
    """The numbers of a layer. Without a gate's input, its entry is None."""

    is_micro: bool
    """tflite-micro's rule: tables of functions, and products that round twice."""
    rounding: Rounding
    """Of the sums of gates."""
    data: tuple[Multiplier | None, ...]
    last: tuple[Multiplier | None, ...]
    zeros: tuple[int, int]
    """Of the data and the last result."""
    power: int
    """The scale of the cells is 2**power."""
    clip: int | None
    products: tuple[Multiplier, Multiplier] | None
    """tflite-micro: forget gate times cells, input gate times new cells."""
    hidden: Multiplier
    hidden_zero: int
    low: int
    high: int
    """The limits of the products of cells and output gate."""
    peepholes: tuple[Multiplier | None, ...] = (None,) * 3
    norms: tuple[Normalisation | None, ...] = (None,) * 4
    projection: Projection | None = None

    @property
    def tanh(self) -> SigmoidNumbers:
        """The numbers of tflite-micro's tanh of the cells. Source: lstm_eval.cc, Tanh."""
        shift = 12 + self.power
        return SigmoidNumbers(3, -shift) if shift < 0 else SigmoidNumbers(3 << shift, 0)


GATE_TANH = SigmoidNumbers(3, 0)
"""The numbers of tflite-micro's functions of gates."""


def lstm_numbers(node: Node) -> LstmNumbers:
    """Return the numbers of a layer with int8 or int16 data. Raises Unsupported."""
    cells = one_quantization(node.input(19))
    power = exponent_of(cells.scale)
    if power is None or not _MIN_POWER <= power <= _MAX_POWER:
        limits = f"a power of 2 between 2**{_MIN_POWER} and 2**{_MAX_POWER}"
        raise Unsupported(f"the cells '{node.input(19).name}' have the scale {cells.scale:g}", limits)
    inner = node.options["intermediates"]
    if node.input(0).dtype == "int8" and len(inner) == 5:
        return _litert(node, cells, power, inner)
    return _micro(node, cells, power)


def _scale(node: Node, number: int) -> np.float32:
    """Return the scale of symmetric weights as float32."""
    quantization = one_quantization(node.input(number))
    if quantization.zero != 0:
        raise Unsupported(f"weights '{node.input(number).name}' with the zero point {quantization.zero}", "0")
    return np.float32(quantization.scale)


def _litert(node: Node, cells: Quantization, power: int, inner: tuple[Quantization | None, ...]) -> LstmNumbers:
    has_norms = len(node.inputs) == 24 and node.optional(21) is not None
    hidden = inner[4]
    gates = inner[:4] if has_norms else [Quantization((_GATE_SCALE,), (0,))] * 4
    if hidden is None or None in gates:
        raise Unsupported("an intermediate tensor without a scale", "scales of the intermediate tensors")
    sums = [np.float32(gate.scale) for gate in gates if gate is not None]
    data, last = one_quantization(node.input(0)), one_quantization(node.input(18))

    def multipliers(first: int, scale: float) -> tuple[Multiplier | None, ...]:
        return tuple(
            None
            if node.optional(first + g) is None
            else quantize_multiplier(float(_scale(node, first + g) * np.float32(scale) / sums[g]))
            for g in _GATES
        )

    peepholes = tuple(
        None
        if node.optional(i) is None
        else quantize_multiplier(float32(2.0**power * float(_scale(node, i)) / float(sums[g])))
        for i, g in ((9, 0), (10, 1), (11, 3))
    )
    clip = int(min(float(np.float32(node.options["cell_clip"]) / np.float32(cells.scale)), 32767.0))
    projection = _projection(node, hidden.scale, last)
    if projection is not None and any(peepholes) and node.input(6).shape[1] != node.input(6).shape[0]:
        # LiteRT's kernel takes the number of results for that of cells.
        raise Unsupported("int8 peepholes with a projection to another number of results", "one of both")
    return LstmNumbers(
        is_micro=False,
        rounding=Rounding.TWICE,
        data=multipliers(1, data.scale),
        last=multipliers(5, last.scale),
        zeros=(data.zero, last.zero),
        power=power,
        clip=clip or None,
        products=None,
        hidden=quantize_multiplier(float32(2.0**-15 / hidden.scale * 2.0**-15)),
        hidden_zero=hidden.zero if projection is None else -hidden.zero,
        low=-128,
        high=127,
        peepholes=peepholes,
        norms=tuple(_normalisation(node, i) for i in range(20, 24)) if has_norms else (None,) * 4,
        projection=projection,
    )


def _normalisation(node: Node, number: int) -> Normalisation | None:
    if node.optional(number) is None:
        return None
    scale = _scale(node, number)
    by = quantize_multiplier(float(scale))
    return Normalisation(Multiplier(by.fixed, by.shift + 12), max(1, int(np.float32(10000) * scale)))


def _projection(node: Node, hidden: float, last: Quantization) -> Projection | None:
    if node.optional(16) is None:
        return None
    result = one_quantization(node.output)
    by = quantize_multiplier(float(_scale(node, 16) * np.float32(hidden) / np.float32(last.scale)))
    clip = min(float(np.float32(node.options["proj_clip"]) / np.float32(result.scale)), 127.0)
    return Projection(by, last.zero, int(clip))


def _micro(node: Node, cells: Quantization, power: int) -> LstmNumbers:
    dtype = node.input(0).dtype
    if any(node.optional(i) is not None for i in (*range(9, 12), 16, 17, *range(20, 24))) or node.optional(1) is None:
        raise Unsupported(
            "peepholes, a projection, layer normalisation or coupled gates without intermediate tensors",
            "5 intermediate tensors, as the converter writes them",
        )
    data, last = one_quantization(node.input(0)), one_quantization(node.input(18))

    def multipliers(first: int, scale: float) -> tuple[Multiplier, ...]:
        return tuple(
            quantize_multiplier(float(np.float32(scale) * _scale(node, first + g)) / _GATE_SCALE) for g in _GATES
        )

    clip = node.options["cell_clip"]
    low, high = RANGES[dtype]
    return LstmNumbers(
        is_micro=True,
        rounding=Rounding.TWICE if dtype == "int8" else Rounding.SIXTEEN,
        data=multipliers(1, data.scale),
        last=multipliers(5, last.scale),
        zeros=(data.zero, last.zero),
        power=power,
        clip=int(min(float32(clip) / cells.scale, 32767.0)) if clip > 0 else None,
        products=(quantize_multiplier(2.0**-15), quantize_multiplier(2.0**-30 / cells.scale)),
        hidden=quantize_multiplier(2.0**-30 / last.scale),
        hidden_zero=last.zero,
        low=low,
        high=high,
    )


DATA_WEIGHTS, LAST_WEIGHTS = (1, 2, 3, 4), (5, 6, 7, 8)
"""The inputs of an LSTM with weights of the data and of the last result: input, forget, cell, output gate."""
PEEPHOLES = (9, 10, 11)
"""The inputs with weights of the cells: input, forget, output gate."""
BIASES, NORMS = (12, 13, 14, 15), (20, 21, 22, 23)
PROJECTION, PROJECTION_BIAS, LAST, CELLS = 16, 17, 18, 19
ACTIVATIONS = ("TANH", "RELU", "RELU6", "RELU_N1_TO_1")
"""The functions of the cells; only the first one for integers. LiteRT has no result for NONE."""


def present(node: Node, numbers: Sequence[int]) -> list[int]:
    """Return the inputs of a group that are not absent."""
    return [i for i in numbers if node.optional(i) is not None]


def is_coupled(node: Node) -> bool:
    """Whether the input gate is 1 - the forget gate (CIFG)."""
    return node.optional(1) is None


def _gates(node: Node, numbers: Sequence[int], what: str) -> None:
    """Raise Unsupported unless all gates or none have a weight; the input gate only if it exists."""
    existing, wanted = present(node, numbers), list(numbers[1:] if is_coupled(node) else numbers)
    if existing and existing != wanted:
        raise Unsupported(f"{what} for {counted(len(existing), 'gate')}", f"{len(wanted)}")


def _lstm(node: Node) -> Sequence[Result]:
    data, coupled = node.input(0), is_coupled(node)
    if len(data.shape) != 3:
        raise Unsupported(f"data {list(data.shape)}", "3 dimensions")
    if len(node.inputs) not in (20, 24):
        raise Unsupported(f"{counted(len(node.inputs), 'input')}", "20 or 24")
    if coupled != (node.optional(5) is None) or coupled != (node.optional(12) is None):
        raise Unsupported("an input gate without weights or bias", "both, or neither")
    activations = ACTIVATIONS if data.dtype == "float32" else ACTIVATIONS[:1]
    if node.options["fused_activation_function"] not in activations:
        raise Unsupported(f"fused activation {node.options['fused_activation_function']}", ", ".join(activations))
    if min(node.options["cell_clip"], node.options["proj_clip"]) < 0:
        raise Unsupported("a negative limit", "cell_clip and proj_clip of at least 0")
    _gates(node, PEEPHOLES, "peepholes")
    _gates(node, NORMS, "layer normalisation")
    if len(node.input(6).shape) == 1:
        raise Unsupported("diagonal weights of the last result", "matrices")
    return _shapes(node)


def _shapes(node: Node) -> Sequence[Result]:
    """Return the result of a node whose operands exist."""
    data, (cells, units) = node.input(0), (node.input(2).shape[0], node.input(6).shape[1])
    wanted: dict[int, Shape] = dict.fromkeys((*PEEPHOLES, *BIASES, *NORMS), (cells,))
    wanted |= dict.fromkeys(DATA_WEIGHTS, (cells, data.shape[2])) | dict.fromkeys(LAST_WEIGHTS, (cells, units))
    wanted |= {PROJECTION: (units, cells), PROJECTION_BIAS: (units,)}
    for number, shape in wanted.items():
        tensor = node.optional(number)
        if tensor is not None and tensor.shape != shape:
            raise Unsupported(f"weights '{tensor.name}' {list(tensor.shape)}", f"{list(shape)}")
    if node.optional(PROJECTION) is None and (units != cells or node.optional(PROJECTION_BIAS) is not None):
        raise Unsupported(
            f"{counted(cells, 'cell')} and {counted(units, 'result')} without a projection", "weights of a projection"
        )
    check_constants(*(node.optional(i) for i in wanted))
    batch = data.shape[1] if node.options["time_major"] else data.shape[0]
    check_state(node.input(LAST), batch * units)
    check_state(node.input(CELLS), batch * cells)
    if data.dtype != "float32":
        lstm_numbers(node)
    elif node.input(2).dtype == "int8":
        for number in (*DATA_WEIGHTS, *LAST_WEIGHTS, *PEEPHOLES, PROJECTION):
            scale_of_weights(node, number)
    return [(data.dtype, (*data.shape[:2], units))]


def scale_of_weights(node: Node, number: int) -> float:
    """Return the scale of symmetric int8 or int16 weights; 1 if they are absent. Raises Unsupported."""
    tensor = node.optional(number)
    if tensor is None:
        return 1.0
    quantization = tensor.quantization
    if quantization is None or len(quantization.scales) != 1 or quantization.zero != 0:
        raise Unsupported(f"weights '{tensor.name}' without one scale and the zero point 0", "symmetric weights")
    return quantization.scale


_FLOAT = "float32 [float32]..."
_HYBRID = (
    "float32 [int8] int8 int8 int8 [int8] int8 int8 int8 [int8] [int8] [int8] [float32] float32 float32 float32 "
    "[int8] [float32] float32 float32 [float32]..."
)
_BYTES = (
    "int8 [int8] int8 int8 int8 [int8] int8 int8 int8 [int16] [int16] [int16] [int32] int32 int32 int32 "
    "[int8] [int32] int8 int16 [int16]..."
)
_WORDS = (
    "int16 int8 int8 int8 int8 int8 int8 int8 int8 [none] [none] [none] int64 int64 int64 int64 "
    "[none] [none] int16 int16 [none]..."
)
specify(
    Operator(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        _lstm,
        (_FLOAT, _HYBRID, _BYTES, _WORDS),
        {
            "fused_activation_function": "NONE",
            "cell_clip": 0.0,
            "proj_clip": 0.0,
            "time_major": False,
            "asymmetric_quantize_inputs": False,
            "intermediates": (),
        },
    )
)
