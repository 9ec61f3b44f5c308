# SPDX-License-Identifier: Apache-2.0
"""A layer with a state: SVDF.

Sources in TFLite: kernels/svdf.cc, internal/reference/svdf.h; tflite-micro's kernels/svdf_common.cc.
The int8 SVDF demands RELU and does not apply it, in LiteRT and in tflite-micro.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.graph.spec import Operator, Result, specify
from opwest.compiler.graph.types import Node, Tensor, Unsupported
from opwest.compiler.semantics.fixed_point import (
    RANGES,
    Requantisation,
    Rounding,
    float32,
    limits_of,
    one_quantization,
    quantize_multiplier,
)


def check_state(tensor: Tensor, size: int) -> None:
    """Raise Unsupported unless a tensor is a variable of this size."""
    if not tensor.is_state:
        raise Unsupported(f"the state '{tensor.name}' is not a variable tensor", "a variable tensor")
    if tensor.size != size:
        raise Unsupported(f"the state '{tensor.name}' has {tensor.size} elements", str(size))


def check_constants(*tensors: Tensor | None) -> None:
    """Raise Unsupported if weights are computed when the model runs."""
    for one in tensors:
        if one is not None and not one.is_constant:
            raise Unsupported(f"weights '{one.name}' are computed when the model runs", "constants")


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


@dataclass(frozen=True)
class HybridScales:
    """The scales of int8 weights with float32 data."""

    feature: float
    time: float


def hybrid_scales(node: Node) -> HybridScales | None:
    """Return the scales of the weights, None for float32. Raises Unsupported unless they are symmetric."""
    if node.input(0).dtype != "float32" or node.input(1).dtype == "float32":
        return None
    found = [one_quantization(node.input(i)) for i in (1, 2)]
    if any(one.zero for one in found):
        raise Unsupported("int8 weights with a zero point, with float32 data", "the zero point 0")
    return HybridScales(*(one.scale for one in found))


def time_weights(array: Any, scales: HybridScales) -> Any:
    """Return the weights of the times as float32. Source: kernels/svdf.cc, Eval."""
    return array.astype(np.float32) * np.float32(scales.time)


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
    ),
)
