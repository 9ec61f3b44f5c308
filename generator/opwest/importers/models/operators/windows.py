# SPDX-License-Identifier: Apache-2.0
"""Windows of convolutions and pools: sizes of results, padding. Source: TFLite's kernels/padding.h."""

from __future__ import annotations

from opwest.importers.models.graph.faults import Unsupported
from opwest.importers.models.graph.types import Node
from opwest.records import dataclass


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
