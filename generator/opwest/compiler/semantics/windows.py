# SPDX-License-Identifier: Apache-2.0
"""Windows of convolutions and pools: sizes of results, padding. Source: TFLite's kernels/padding.h."""

from __future__ import annotations

from collections.abc import Sequence

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.graph.spec import Operator, Result, specify
from opwest.compiler.graph.types import Node, Unsupported
from opwest.compiler.semantics.fixed_point import one_quantization


@dataclass(frozen=True)
class Window:
    """Windows over rows and columns."""

    size: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    before: tuple[int, int]
    """Padded rows above and columns to the left."""
    result: tuple[int, int]
    """Rows and columns of the result."""

    def is_padded(self, image: tuple[int, int]) -> bool:
        """Whether a window reaches outside of an image."""
        return any(
            before > 0 or (count - 1) * stride + (size - 1) * dilation - before >= length
            for before, count, stride, size, dilation, length in zip(
                self.before, self.result, self.stride, self.size, self.dilation, image, strict=True
            )
        )

    def has_data(self, image: tuple[int, int]) -> bool:
        """Whether each window reaches the rows and columns of an image; otherwise one is completely in the padding.

        The gaps of a dilated window count as parts of it.
        """
        return all(
            before < (size - 1) * dilation + 1 and (count - 1) * stride - before < length
            for before, count, stride, size, dilation, length in zip(
                self.before, self.result, self.stride, self.size, self.dilation, image, strict=True
            )
        )


def row_of(before: int, length: int, total: int) -> tuple[int, int, int]:
    """Return the elements of a padded row of `total` elements: padding, data of at most `length`, padding.

    Windows can be in the padding only: then there is no data, whatever `before` is.
    """
    first = min(before, total)
    inside = min(length, total - first)
    return first, inside, total - first - inside


def window_of(node: Node, size: tuple[int, int], image: tuple[int, int]) -> Window:
    """Return the windows of an operator over an image of rows and columns. Raises Unsupported.

    The option `padding` is SAME, VALID, or the numbers of rows above, columns to the left, rows below and columns to
    the right.
    """
    stride = (int(node.options["stride_h"]), int(node.options["stride_w"]))
    dilation = (int(node.options.get("dilation_h_factor", 1)), int(node.options.get("dilation_w_factor", 1)))
    if min(*stride, *dilation, *size) < 1:
        raise Unsupported(f"window {list(size)}, stride {list(stride)}, dilation {list(dilation)}", "at least 1 each")
    padding = node.options["padding"]
    reach = [(one - 1) * d + 1 for one, d in zip(size, dilation, strict=True)]
    before, result = [], []
    for axis in range(2):
        if padding == "SAME":
            count = -(-image[axis] // stride[axis])
            before.append(max(0, (count - 1) * stride[axis] + reach[axis] - image[axis]) // 2)
        elif padding == "VALID":
            count = -(-(image[axis] - reach[axis] + 1) // stride[axis])
            before.append(0)
        else:
            first, last = padding[axis], padding[axis + 2]
            count = (image[axis] + first + last - reach[axis]) // stride[axis] + 1
            before.append(first)
        if count < 1:
            raise Unsupported(f"window {list(size)} over {list(image)} has no result")
        result.append(count)
    return Window(size, stride, dilation, (before[0], before[1]), (result[0], result[1]))


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
