# SPDX-License-Identifier: Apache-2.0
"""Convolutions as matrix products: windows become rows, unless the rows of the data are the windows already."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.epilogue import ending
from opwest.compiler.emission.expressions import Expression, expression_of, plus, times
from opwest.compiler.emission.function import Call, Lines, Parameter, c_type, call_for, emits
from opwest.compiler.emission.matrix import Product, accumulator, blocks, bound_of, tile
from opwest.compiler.emission.nibbles import are_nibbles, packed_nibbles
from opwest.compiler.graph.types import Shape
from opwest.compiler.ir.operations import Convolution, ConvolutionSum
from opwest.compiler.semantics.windows import Window

BYTES = {"int8": 1, "uint8": 1, "int16": 2, "float32": 4}


@dataclass(frozen=True)
class Gather:
    """Windows [kh,kw,channels] of data [n,h,w,c]."""

    window: Window
    data: Shape
    channels: int
    """The channels of a window: those of a group."""
    dtype: str
    fill: str
    """The value of padding. For dtypes of several bytes it is 0."""
    functions: tuple[str, str] = ("memcpy", "memset")
    """The functions that copy and fill bytes, with their arguments in the order of these."""

    @property
    def length(self) -> int:
        """The elements of a window."""
        return self.window.size[0] * self.window.size[1] * self.channels

    def add(self, lines: Lines, to: str, source: str) -> None:
        """Append the copy of the window at oy, ox to the pointer `to`; `source` is the image's first element."""
        (_, height, width, _), (kh, kw) = self.data, self.window.size
        (sy, sx), (dy, dx), (top, left) = self.window.stride, self.window.dilation, self.window.before
        item, channels = BYTES[self.dtype], self.channels
        pads_y, pads_x = self.window.pads((height, width))
        is_joined = dx == 1 and channels == self.data[3]
        row = kw * channels
        lines.add(f"const int x0 = {times('ox', sx)}{plus(-left)};", f"{c_type(self.dtype)} *t = {to};", "")
        with lines.loop("ky", kh):
            lines.add(f"const int iy = {times('oy', sy)} + {times('ky', dy)}{plus(-top)};", "")
            if pads_y:
                with lines.block(f"if (iy < 0 || iy >= {height})"):
                    lines.add(self._fill(row * item), f"t += {row};", "continue;")
            if is_joined and pads_x:
                with lines.block(f"if (x0 >= 0 && x0 <= {width - kw})"):
                    self._copy_row(lines, source, row * item, row)
                    lines.add("continue;")
            elif is_joined:
                self._copy_row(lines, source, row * item, row)
                return
            with lines.loop("kx", kw):
                lines.add(f"const int ix = x0 + {times('kx', dx)};", "")
                at = times(f"(iy * {width} + ix)", self.data[3])
                copy = f"{self.functions[0]}(t, {source} + {at}, {channels * item});"
                if pads_x:
                    with lines.block(f"if (ix < 0 || ix >= {width})"):
                        lines.add(self._fill(channels * item))
                    with lines.block("else"):
                        lines.add(copy)
                else:
                    lines.add(copy)
                lines.add(f"t += {channels};")

    def _fill(self, size: int) -> str:
        """Return the statement that fills bytes."""
        return f"{self.functions[1]}(t, {self.fill}, {size if size > 1 else 'sizeof(*t)'});"

    def _copy_row(self, lines: Lines, source: str, size: int, row: int) -> None:
        first = times(f"(iy * {self.data[2]} + x0)", self.data[3])
        lines.add(f"{self.functions[0]}(t, {source} + {first}, {size});", f"t += {row};")


def folded(weights: Any, bias: Any, zero: int, dtype: str) -> Any:
    """Return the bias that includes the data's zero point: weights [o, ...]. None: zeros."""
    if dtype == "float32":
        return bias
    sums = weights.reshape(len(weights), -1).astype(np.int64).sum(axis=1) * -zero
    total = sums + (0 if bias is None else bias.astype(np.int64))
    if dtype == "int16":
        return None if not total.any() else total
    return total.astype(np.int32)


def plain_weights(weights: Any, zero: int) -> Any:
    """Return weights without their zero point, as int8 where they fit, else int16."""
    if weights.dtype == np.float32:
        return weights
    whole = weights.astype(np.int16) - np.int16(zero)
    return whole.astype(np.int8) if whole.min() >= -128 and whole.max() <= 127 else whole


@emits(Convolution, has_pitch=True)
def render(operation: Convolution, shared: bool = False) -> Call:
    """Return the call."""
    return _render(operation, shared, None)


@emits(ConvolutionSum)
def with_sum(operation: ConvolutionSum, shared: bool = False) -> Call:
    """Return the call: each result is added to the other operand before it is stored."""
    return _render(operation, shared, expression_of(operation.function, ("int8", "int8"), "int8"))


@emits(Convolution, "portable-nibbles", has_pitch=True)
def with_nibbles(operation: Convolution, shared: bool = False) -> Call | None:
    """Return the call with weights of 4 bits in flash; None for other weights."""
    return _render(operation, shared, None, is_packed=True) if has_nibbles(operation) else None


@emits(ConvolutionSum, "portable-nibbles")
def with_nibbles_and_sum(operation: ConvolutionSum, shared: bool = False) -> Call | None:
    """Return the call with weights of 4 bits in flash; None for other weights."""
    total = expression_of(operation.function, ("int8", "int8"), "int8")
    return _render(operation, shared, total, is_packed=True) if has_nibbles(operation) else None


def has_nibbles(operation: Convolution) -> bool:
    """Whether the weights of an integer layer have 4 bits."""
    return operation.weights.dtype.kind in "iu" and are_nibbles(plain_weights(operation.weights, operation.weight_zero))


def _render(operation: Convolution, shared: bool, total: Expression | None, *, is_packed: bool = False) -> Call:
    data, result = operation.inputs[0], operation.results[0]
    dtype = data.dtype
    weights = plain_weights(operation.weights, operation.weight_zero)
    results, kh, kw, inner = weights.shape
    bias = folded(weights, operation.bias, operation.zero, dtype)
    bound = bound_of(weights, bias, dtype) if dtype in ("int8", "uint8") else None
    window = operation.window
    is_plain = window.is_pointwise and operation.groups == 1 and data.size // inner == result.size // results
    rows = result.size // results
    # Rows that are copied before they are multiplied can be replaced by their results.
    can_replace = is_plain and rows >= 8 and results <= inner and data.dtype == result.dtype and not result.pitch
    # The number of channels of a single row is only a bound of a loop.
    is_counted = shared and is_plain and rows == 1 and dtype != "float32"
    is_counted = is_counted and results % 4 == 0 and results * inner >= SMALL
    counts = {"channels": results} if is_counted else {}
    end = ending(operation.finish, bound, operation.zero, shared, dtype == "int16", counts, result.dtype)
    is_padded = not is_plain and window.is_padded((data.shape[1], data.shape[2]))
    length = kh * kw * inner
    joined = None if total is None else _joined(operation, total)
    sizes = length, results // operation.groups, length, result.pitch or results
    is_first = dtype != "float32"
    product = Product(*sizes, accumulator(dtype), end, bias is not None, is_first, is_counted, is_packed, joined)
    high, wide = _blocking(rows, results * length, dtype)
    lines = Lines()
    lines.add(*(line for line in end.prologue if is_padded or " fill " not in line))
    types = (c_type(dtype), c_type(str(weights.dtype)))
    if is_plain:
        _rows(lines, product, (rows, high, wide), types, c_type(result.dtype), can_replace)
        scratch = high * length if can_replace else 0
    else:
        gather = Gather(window, data.shape if len(data.shape) == 4 else (1, 1, 1, data.size), inner, dtype, end.fill)
        scratch = min(high, rows) * length
        _windows(lines, operation, gather, product, (rows, high, wide), types, result.dtype)
    constants = packed_nibbles(weights.reshape(results, length)) if is_packed else weights
    arguments = {"data": data, "weights": constants, **({} if bias is None else {"bias": bias}), **end.constants}
    if total is not None:
        arguments["other"] = operation.inputs[1]
    headers = (*end.headers, *(("string.h",) if scratch else ()))
    base = "dense" if is_plain and rows == data.size // length and data.size == length else "convolution"
    helpers = end.helpers if total is None else (*end.helpers, *total.helpers)
    in_place = (*(["data"] * can_replace), *(["other"] * (total is not None)))
    buffers = [Parameter("windows", dtype, "scratch", elements=scratch)] if scratch else []
    return call_for(operation, base, lines, arguments, in_place, buffers, helpers=helpers, headers=headers)


def _joined(operation: Convolution, total: Expression) -> Callable[[str], tuple[tuple[str, ...], str]]:
    """Return the function from a result of a convolution to its sum with the other operand at the same place."""
    assert isinstance(operation, ConvolutionSum)

    def joined(part: str) -> tuple[tuple[str, ...], str]:
        other = "other[y - result + {at}]"
        operands = (part, other) if operation.place == 0 else (other, part)
        return tuple(line.format(*operands) for line in total.lines), total.value.format(*operands)

    return joined


SMALL = 1024
"""The products of a row below which the size of the code matters more than its speed."""


def _blocking(rows: int, products: int, dtype: str) -> tuple[int, int]:
    """Return the rows and channels of a tile: as many sums as fit into the registers of a Cortex-M."""
    if rows == 1:
        return 1, 2 if products < SMALL else 4
    if dtype == "int16":
        return 2, 2
    return 4, 2


def _rows(
    lines: Lines, product: Product, blocking: tuple[int, int, int], types: tuple[str, str], result: str, copied: bool
) -> None:
    """Append the products of all rows of the data."""
    rows, high, wide = blocking
    source = "from" if copied else "x"
    lines.add(f"const {types[0]} *{source} = data;", f"{result} *y = result;")
    lines.add(*([f"const {types[0]} *x = windows;"] if copied else []), "")
    for first, turns, some in blocks(rows, high):
        is_last = first + turns * some == rows and turns == 1
        with lines.repeat("row", turns):
            if copied:
                lines.add(f"memcpy(windows, from, {some * product.length} * sizeof(*from));")
            _channels(lines, product, some, wide, types)
            if not is_last:
                lines.add(f"{source} += {some * product.length};", f"y += {some * product.result_row};")


def _channels(
    lines: Lines, product: Product, rows: int, wide: int, types: tuple[str, str], group: str | None = None
) -> None:
    """Append the tiles of some rows: pointers x and y, weights and the arrays of channels; `group` is a variable."""
    for start, turns, some in blocks(product.channels, wide):
        begin = str(start) if group is None else f"{group} * {product.channels} + {start}"
        if turns > 1:
            end = start + turns * some
            last = str(end) if group is None else f"{group} * {product.channels} + {end}"
            last = "channels" if product.is_counted else last
            with lines.block(f"for (int c = {begin}; c < {last}; c += {some})"):
                lines.add(f"const {types[1]} *w = weights + c * {product.weight_row};")
                tile(lines, product, rows, some, types, "c")
        else:
            with lines.block(""):
                if group is None:
                    lines.add(f"const {types[1]} *w = weights + {start * product.weight_row};")
                    tile(lines, product, rows, some, types, begin)
                else:
                    lines.add(f"const int c = {begin};", f"const {types[1]} *w = weights + c * {product.weight_row};")
                    tile(lines, product, rows, some, types, "c")


def _windows(
    lines: Lines,
    operation: Convolution,
    gather: Gather,
    product: Product,
    blocking: tuple[int, int, int],
    types: tuple[str, str],
    result: str,
) -> None:
    """Append loops that copy windows, and multiply them when a block of rows is complete."""
    rows, high, wide = blocking
    high = min(high, rows)
    n, height, width, depth = gather.data
    group = "g" if operation.groups > 1 else None
    source = "data" if n == 1 else f"data + n * {height * width * depth}"
    source += f" + g * {gather.channels}" if group else ""
    with lines.repeat("g", operation.groups):
        lines.add(f"{c_type(result)} *y = result;", f"const {types[0]} *x = windows;", "int filled = 0;", "")
        with (
            lines.repeat("n", n),
            lines.loop("oy", gather.window.result[0]),
            lines.loop("ox", gather.window.result[1]),
        ):
            with lines.block(""):
                gather.add(lines, f"windows + filled * {gather.length}", source)
            with lines.block(f"if (++filled < {high})"):
                lines.add("continue;")
            _channels(lines, product, high, wide, types, group)
            lines.add(f"y += {high * product.result_row};", "filled = 0;")
        for _, turns, some in blocks(rows % high, max(1, high // 2)):
            for _ in range(turns):
                _channels(lines, product, some, wide, types, group)
                lines.add(f"x += {some * gather.length};", f"y += {some * product.result_row};")
