# SPDX-License-Identifier: Apache-2.0
"""Averages and maxima of float32 windows, some channels at a time.

A function is void f(from, y, numbers, rows, columns): `rows` by `columns` pixels from the first one in the image.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.depthwise import pool_windows
from opwest.compiler.emission.function import Call, Lines, call_for
from opwest.compiler.ir.operations import Clamp, Pool
from opwest.compiler.kernels.assembly import NAKED
from opwest.compiler.kernels.floats.layers import ITEM
from opwest.compiler.kernels.floats.tiles import limits_of, read_limits, store_limited
from opwest.compiler.semantics.windows import Window

NUMBERS = ("channels", "column", "row", "low", "high")
"""The int32 numbers: the channels; the bytes from a column and from a row of the window to the next one; the limits."""
PARAMETERS = ("const float *from", "float *y", "const int32_t *numbers", "int32_t rows", "int32_t columns")
LEAST = 0xFF7FFFFF
"""The bits of -FLT_MAX, with which maxima start."""


@dataclass(frozen=True)
class PoolFunction(ABC):
    """A function for one window."""

    is_average: bool

    @property
    def kind(self) -> str:
        """The part of names that stands for the function."""
        return "average" if self.is_average else "maximum"

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the function."""

    @abstractmethod
    def definition(self) -> str:
        """Return the C text of the function."""

    def fallback(self) -> str:
        """Return the C of the function."""
        lines = Lines()
        lines.add("const int32_t channels = numbers[0];", *read_limits(NUMBERS), "")
        with lines.block("for (int32_t c = 0; c < channels; c++)"):
            lines.add("const int8_t *line = (const int8_t *)(from + c);")
            lines.add(f"float value = {'0.0f' if self.is_average else '-FLT_MAX'};", "")
            with lines.block("for (int32_t row = 0; row < rows; row++, line += numbers[2])"):
                lines.add("const int8_t *p = line;", "")
                with lines.block("for (int32_t column = 0; column < columns; column++, p += numbers[1])"):
                    lines.add("const float one = *(const float *)p;", "")
                    lines.add("value += one;" if self.is_average else "value = one > value ? one : value;")
            if self.is_average:
                lines.add("value /= (float)(rows * columns);")
            lines.add(*store_limited("y[c]", "value"))
        return f"static void {self.name}({', '.join(PARAMETERS)})\n{{\n{lines}}}\n"


def offset_of(number: str) -> int:
    """Return the byte of a number."""
    return 4 * NUMBERS.index(number)


def pool_call(operation: Pool, kind: Callable[[bool], PoolFunction]) -> Call | None:
    """Return the call; None for other dtypes and functions, windows outside of the image, and dilated averages."""
    [data], window = operation.inputs, operation.window
    _, height, width, depth = data.shape
    is_average = operation.kind == "average"
    if data.dtype != "float32" or operation.kind not in ("average", "maximum"):
        return None
    if not all(_is_inside(window, axis, extent) for axis, extent in enumerate((height, width))):
        return None
    (down, over), function = window.dilation, kind(is_average)
    if is_average and (down, over) != (1, 1):
        return None
    lines = Lines()
    with pool_windows(lines, operation):
        counts = [
            f"({axis}1 - {axis}0 + {step - 1}) / {step}" if step > 1 else f"{axis}1 - {axis}0"
            for axis, step in (("y", down), ("x", over))
        ]
        lines.add("", f"{function.name}(from, y, numbers, {', '.join(counts)});", f"y += {depth};")
    numbers = [depth, ITEM * over * depth, ITEM * down * width * depth]
    numbers += limits_of(Clamp(operation.low, operation.high))
    arguments = {"data": data, "numbers": np.asarray(numbers, np.int32)}
    base, headers = f"{operation.kind}_pool", ("float.h",)
    return call_for(operation, base, lines, arguments, headers=headers, definitions=(NAKED, function.definition()))


def _is_inside(window: Window, axis: int, extent: int) -> bool:
    """Whether every window has an element inside of the image along an axis."""
    starts = np.arange(window.result[axis]) * window.stride[axis] - window.before[axis]
    places = starts[:, None] + np.arange(window.size[axis]) * window.dilation[axis]
    return bool(((places >= 0) & (places < extent)).any(axis=1).all())
