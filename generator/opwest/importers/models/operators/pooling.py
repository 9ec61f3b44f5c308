# SPDX-License-Identifier: Apache-2.0
"""Pools. Sources in TFLite: kernels/pooling.cc, internal/reference/integer_ops/pooling.h, reference/pooling.h."""

from __future__ import annotations

from collections.abc import Sequence

from opwest.importers.models.graph.faults import Unsupported
from opwest.importers.models.graph.spec import Operator, Result, specify
from opwest.importers.models.graph.types import Node
from opwest.importers.models.operators.fixed_point import one_quantization
from opwest.importers.models.operators.windows import Window, window_of


def window(node: Node) -> Window:
    """Return the windows of a pool."""
    data = node.input(0).shape
    size = (int(node.options["filter_height"]), int(node.options["filter_width"]))
    return window_of(node, size, (data[1], data[2]))


def _pool(node: Node) -> Sequence[Result]:
    data = node.input(0)
    if len(data.shape) != 4:
        raise Unsupported(f"data {list(data.shape)}", "4 dimensions")
    found = window(node)
    if not found.has_data((data.shape[1], data.shape[2])):
        raise Unsupported(f"padding {list(node.options['padding'])}: a window has no element of the data")
    if data.dtype != "float32":
        source, target = one_quantization(data), one_quantization(node.output)
        if abs(source.scale - target.scale) > 1e-6 * max(source.scale, target.scale) or source.zero != target.zero:
            raise Unsupported(
                f"'{data.name}' and '{node.output.name}' have different scales or zero points", "equal ones"
            )
    return [(data.dtype, (data.shape[0], *found.result, data.shape[3]))]


_OPTIONS = {
    "padding": "SAME",
    "stride_w": 1,
    "stride_h": 1,
    "filter_width": 1,
    "filter_height": 1,
    "fused_activation_function": "NONE",
}
_DILATION = {"dilation_w_factor": 1, "dilation_h_factor": 1}
"""Of models from ONNX only."""
specify(
    Operator("AVERAGE_POOL_2D", _pool, ("float32", "int8", "uint8", "int16"), _OPTIONS),
    Operator("MAX_POOL_2D", _pool, ("float32", "int8", "uint8", "int16"), {**_OPTIONS, **_DILATION}),
    Operator("L2_POOL_2D", _pool, ("float32",), _OPTIONS),
)
