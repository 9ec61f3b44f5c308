# SPDX-License-Identifier: Apache-2.0
"""Windows of convolutions and pools: strides, dilations, padding. Source: onnx/docs/Operators.md, Conv, MaxPool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opwest.importers.models.graph.faults import Unsupported
from opwest.importers.models.graph.types import Tensor
from opwest.importers.models.onnx.translation import Translation
from opwest.importers.models.onnx.values import Op


def image_padding(op: Op, image: Sequence[int], kernel: Sequence[int]) -> dict[str, Any]:
    """Return TFLite's options of strides, dilations and padding, and the padding that ceil_mode adds as `ceil`.

    One spatial dimension becomes the columns of an image with one row.
    """
    rank = len(image)
    strides = list(op.get("strides", [1] * rank))
    dilations = list(op.get("dilations", [1] * rank))
    given = list(op.get("kernel_shape", kernel))
    if given != list(kernel) or len(strides) != rank or len(dilations) != rank:
        raise Unsupported(f"kernel_shape {given}, strides {strides}, dilations {dilations} for {rank} dimensions")
    if min(*strides, *dilations, *kernel) < 1:
        raise Unsupported(f"kernel_shape {given}, strides {strides}, dilations {dilations}", "at least 1 each")
    before, after, extra = [], [], []
    pads = list(op.get("pads", [0] * (2 * rank)))
    if len(pads) != 2 * rank or min(pads, default=0) < 0:
        raise Unsupported(f"pads {pads}", f"{2 * rank} numbers of at least 0")
    automatic = op.get("auto_pad", "NOTSET")
    for axis in range(rank):
        reach = (kernel[axis] - 1) * dilations[axis] + 1
        first, last = pads[axis], pads[axis + rank]
        if automatic in ("SAME_UPPER", "SAME_LOWER"):
            count = -(-image[axis] // strides[axis])
            total = max(0, (count - 1) * strides[axis] + reach - image[axis])
            first = total // 2 if automatic == "SAME_UPPER" else total - total // 2
            last = total - first
        elif automatic == "VALID":
            first = last = 0
        elif automatic != "NOTSET":
            raise Unsupported(f"auto_pad {automatic}", "NOTSET, SAME_UPPER, SAME_LOWER or VALID")
        before.append(first)
        after.append(last)
        extra.append(
            _ceiling(image[axis] + first + last, reach, strides[axis], image[axis] + first)
            if op.get("ceil_mode", 0)
            else 0
        )
    wide = rank == 1
    one = [1] if wide else []
    none = [0] if wide else []
    strides, dilations = [*one, *strides], [*one, *dilations]
    top_left, bottom_right, extra = [*none, *before], [*none, *after], [*none, *extra]
    return {
        "stride_h": strides[0],
        "stride_w": strides[1],
        "dilation_h_factor": dilations[0],
        "dilation_w_factor": dilations[1],
        "padding": (*top_left, *bottom_right),
        "ceil": tuple(extra),
    }


def _ceiling(padded: int, reach: int, stride: int, start: int) -> int:
    """Return the elements after the padding that the last window of ceil_mode covers."""
    count = -(-(padded - reach) // stride) + 1
    if (count - 1) * stride >= start:  # a window must start in the data or in the padding before it
        count -= 1
    return max(0, (count - 1) * stride + reach - padded)


def stretched(t: Translation, tensor: Tensor) -> Tensor:
    """Return [n,w,c] as [n,1,w,c]."""
    if len(tensor.shape) == 4:
        return tensor
    n, width, depth = tensor.shape
    return t.reshape(tensor, (n, 1, width, depth))
