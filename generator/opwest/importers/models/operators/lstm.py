# SPDX-License-Identifier: Apache-2.0
"""UNIDIRECTIONAL_SEQUENCE_LSTM with float32, hybrid, int8 and int16 data.

Sources in TFLite: kernels/unidirectional_sequence_lstm.cc (CheckInputTensorDimensions), lstm_eval.cc. tflite-micro's
kernels/unidirectional_sequence_lstm.cc for int16, and for int8 without intermediate tensors, which LiteRT refuses.
"""

from __future__ import annotations

from collections.abc import Sequence

from opwest.importers.models.graph.faults import Unsupported
from opwest.importers.models.graph.spec import Operator, Result, specify
from opwest.importers.models.graph.types import Node, Shape
from opwest.importers.models.operators.lstm_numbers import lstm_numbers
from opwest.importers.models.operators.recurrent import check_constants, check_state

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
    found, wanted = present(node, numbers), list(numbers[1:] if is_coupled(node) else numbers)
    if found and found != wanted:
        raise Unsupported(f"{what} for {len(found)} gates", f"{len(wanted)}")


def _lstm(node: Node) -> Sequence[Result]:
    data, coupled = node.input(0), is_coupled(node)
    if len(data.shape) != 3:
        raise Unsupported(f"data {list(data.shape)}", "3 dimensions")
    if len(node.inputs) not in (20, 24):
        raise Unsupported(f"{len(node.inputs)} inputs", "20 or 24")
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
        one = node.optional(number)
        if one is not None and one.shape != shape:
            raise Unsupported(f"weights '{one.name}' {list(one.shape)}", f"{list(shape)}")
    if node.optional(PROJECTION) is None and (units != cells or node.optional(PROJECTION_BIAS) is not None):
        raise Unsupported(f"{cells} cells and {units} results without a projection", "weights of a projection")
    check_constants(*(node.optional(i) for i in wanted))
    batch = data.shape[1] if node.options["time_major"] else data.shape[0]
    check_state(node.input(LAST), batch * units)
    check_state(node.input(CELLS), batch * cells)
    if data.dtype != "float32":
        lstm_numbers(node)
    elif node.input(2).dtype == "int8":
        _check_hybrid(node)
    return [(data.dtype, (*data.shape[:2], units))]


def _check_hybrid(node: Node) -> None:
    """Raise Unsupported unless int8 weights have one scale and no zero point."""
    for number in (*DATA_WEIGHTS, *LAST_WEIGHTS, *PEEPHOLES, PROJECTION):
        scale_of_weights(node, number)


def scale_of_weights(node: Node, number: int) -> float:
    """Return the scale of symmetric int8 or int16 weights; 1 if they are absent. Raises Unsupported."""
    tensor = node.optional(number)
    if tensor is None:
        return 1.0
    found = tensor.quantization
    if found is None or len(found.scales) != 1 or found.zero != 0:
        raise Unsupported(f"weights '{tensor.name}' without one scale and the zero point 0", "symmetric weights")
    return found.scale


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
    ),
)
