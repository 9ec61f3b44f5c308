# SPDX-License-Identifier: Apache-2.0
"""The sizes of CMSIS-NN's buffers in bytes, by instruction set.

Sources in CMSIS-NN, at the revision of Zephyr 4.2:
Source/ConvolutionFunctions/arm_convolve_get_buffer_sizes_s8.c, _s16.c,
arm_depthwise_conv_get_buffer_sizes_s8.c, _s16.c, Source/PoolingFunctions/arm_avgpool_get_buffer_sizes_s8.c.
The firmware's revision can have other sizes; `open` compares them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.function import Call, Parameter, emits
from opwest.compiler.graph.types import Shape
from opwest.compiler.semantics.windows import Window

_BLOCK = 124
"""CH_IN_BLOCK_MVE: the channels that the MVE code copies at once."""
_MAX_TRANSPOSED = 1
"""CONVERT_DW_CONV_WITH_ONE_INPUT_CH_AND_OUTPUT_CH_ABOVE_THRESHOLD of GCC; 8 of other compilers."""
_FAST = 512
"""USE_FAST_DW_CONV_S16_FUNCTION: greater windows are not copied."""


def convolution(dtype: str, data: Shape, window: Window, extension: str) -> int:
    """Return the buffer of arm_convolve_wrapper_s8 or _s16 for data [n,h,w,c]."""
    columns = data[3] * window.size[0] * window.size[1]
    if dtype == "int16":
        return 4 * _multiple(columns, 8) * 2 if extension == "mve" else 2 * columns * 2
    if window.before == (0, 0) and window.size == window.dilation == (1, 1):
        return 0
    is_line = data[1] == window.size[0] == window.dilation[1] == 1 and window.stride[1] * data[3] % 4 == 0
    if extension != "mve":
        return 2 * _multiple(columns, 4) * 2
    return _line(data, window) if is_line else 4 * _multiple(columns, 16)


def _line(data: Shape, window: Window) -> int:
    """Return the MVE buffer of arm_convolve_1_x_n_s8."""
    width, depth = data[2], data[3]
    pad, size, count, stride = window.before[1], window.size[1], window.result[1], window.stride[1]
    total = (count - 1) * stride + size - width
    # As in C: the remainder of a negative total is negative.
    odd = abs(total) % 2 * (1 if total >= 0 else -1)
    right = max(1, int((pad + odd + stride - 1) / stride)) if pad + odd else 0
    left = max(1, (pad + stride - 1) // stride) if pad else 0
    if right + max(count - right - left, 0) + left != count:
        return 4 * _multiple(depth * size * window.size[0], 16)
    padded = right * depth if odd else pad * depth
    return max(size * depth + pad * depth, (size - 1) * depth + padded)


def depthwise(dtype: str, data: Shape, results: int, window: Window, extension: str) -> int:
    """Return the buffer of arm_depthwise_conv_wrapper_s8 or _s16 for data [n,h,w,c]."""
    places = window.size[0] * window.size[1]
    is_plain = data[3] == results and window.dilation == (1, 1)
    if dtype == "int16":
        if not is_plain or places >= _FAST:
            return 0
        return {"none": 0, "dsp": data[3] * places * 2, "mve": 4 * data[3] * places * 2 + 8}[extension]
    is_plain = is_plain and data[0] == 1
    if extension == "mve":
        size = 4 * _BLOCK * places if is_plain else 0
        if data[3] == 1 and results > _MAX_TRANSPOSED:
            size = max(size, convolution(dtype, data, window, extension) + results * places)
        return size
    is_small = window.size == (3, 3) and max(window.before) <= 1
    return data[3] * places * 2 if extension == "dsp" and is_plain and not is_small else 0


def average_pool(depth: int, extension: str) -> int:
    """Return the buffer of arm_avgpool_s8."""
    return depth * 4 if extension == "dsp" else 0


def _multiple(value: int, unit: int) -> int:
    return -(-value // unit) * unit


EXTENSIONS = ("none", "dsp", "mve")
"""Cortex-M0 to M3; M4, M7, M33; M52, M55, M85."""
VARIANTS = {"cmsis-nn": EXTENSIONS, **{f"cmsis-nn-{one}": (one,) for one in EXTENSIONS}}
"""The names of variants, and the instruction sets that their scratch memory is enough for."""
HEADERS = ("arm_nnfunctions.h", "errno.h")
ROUNDING = "cmsis_nn_rounding"
"""The helper that rejects a CMSIS-NN with another rounding."""


@dataclass(frozen=True)
class Buffer:
    """The scratch memory of a function of CMSIS-NN."""

    size: int
    """Bytes."""
    required: str
    """The call of CMSIS-NN that returns the size that the firmware requires."""

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The scratch argument: int32, for the alignment."""
        return (Parameter("buffer", "int32", "scratch", elements=-(-self.size // 4)),) if self.size else ()

    @property
    def context(self) -> str:
        """The declaration of the context."""
        return f"const cmsis_nn_context context = {{{'buffer' if self.size else 'NULL'}, {self.size}}};"

    def check(self, declarations: list[str]) -> str:
        """Return the body of the function that `open` calls: the size depends on CMSIS-NN's revision."""
        lines = [*declarations, "", f"return {self.required} <= {self.size} ? 0 : -ENOMEM;"]
        return "".join(f"\t{line}\n" if line else "\n" for line in lines)


def cmsis_nn(operation: type) -> Callable[[Callable[..., Call | None]], Callable[..., Call | None]]:
    """Register a function (operation, extensions) as the variants for every instruction set."""

    def register(render: Callable[..., Call | None]) -> Callable[..., Call | None]:
        for name, extensions in VARIANTS.items():
            emits(operation, name)(partial(render, extensions=extensions))
        return render

    return register
