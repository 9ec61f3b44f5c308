# SPDX-License-Identifier: Apache-2.0
"""Transposed convolutions. Sources in TFLite: kernels/transpose_conv.cc, internal/reference/transpose_conv.h.

The sums and roundings are those of CONV_2D: two roundings for 8 bits, one with a 16-bit multiplier for int16.
"""

from __future__ import annotations

from collections.abc import Sequence

from opwest.importers.models.graph.faults import Unsupported
from opwest.importers.models.graph.spec import Operator, Result, specify
from opwest.importers.models.graph.types import Node
from opwest.importers.models.operators.hybrid import check_hybrid, is_hybrid, scales_of
from opwest.importers.models.operators.windows import Window, window_of


def transposed_window(node: Node) -> Window:
    """Return the windows of the convolution from the result to the data."""
    weights, shape = node.input(1).shape, node.input(0).content.reshape(-1)
    found = window_of(node, (weights[1], weights[2]), (int(shape[1]), int(shape[2])))
    return Window(found.size, found.stride, found.dilation, found.before, (int(shape[1]), int(shape[2])))


def _transposed(node: Node) -> Sequence[Result]:
    shape, weights, data, bias = node.input(0), node.input(1), node.input(2), node.optional(3)
    if len(data.shape) != 4 or len(weights.shape) != 4 or shape.size != 4:
        raise Unsupported(f"data {list(data.shape)}, weights {list(weights.shape)}", "4 dimensions each")
    wanted = tuple(int(n) for n in shape.content.reshape(-1))
    if weights.shape[3] != data.shape[3] or wanted[0] != data.shape[0] or wanted[3] != weights.shape[0]:
        raise Unsupported(f"weights {list(weights.shape)} for data {list(data.shape)} and the result {list(wanted)}")
    if min(wanted) < 1:
        raise Unsupported(f"the result {list(wanted)}", "at least one element")
    if bias is not None and bias.size != wanted[3]:
        raise Unsupported(f"bias {list(bias.shape)} for {wanted[3]} results")
    if data.dtype == "int16" and node.options["quantized_bias_type"] == "int32":
        raise Unsupported("int16 data with sums of 32 bits", "sums of 64 bits", "convert the model with an int64 bias")
    if is_hybrid(node):
        check_hybrid(node)
        scales_of(node, wanted[3])
    transposed_window(node)
    return [(data.dtype, wanted)]


specify(
    Operator(
        "TRANSPOSE_CONV",
        _transposed,
        (
            "int32 float32 float32 [float32]",
            "int32 int8 float32 [float32]",
            "int32 int8 int8 [int32]",
            "int32 int8 int16 [int32|int64]",
            "int32 uint8 uint8 [int32]",
        ),
        {
            "padding": "SAME",
            "stride_w": 1,
            "stride_h": 1,
            "fused_activation_function": "NONE",
            "quantized_bias_type": "float32",
        },
        (0,),
        shape_input=0,
    )
)
