# SPDX-License-Identifier: Apache-2.0
"""Matrix products blocked in registers: several rows of data times two or four channels of weights."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.elementwise import joined
from opwest.compiler.emission.epilogue import LayerEpilogue, ending
from opwest.compiler.emission.expressions import plus
from opwest.compiler.emission.function import Call, Lines, c_type, call_for, emits
from opwest.compiler.graph.types import Shape
from opwest.compiler.ir.operations import DirectConvolution, MatrixProduct
from opwest.compiler.ir.program import Operation
from opwest.compiler.semantics.windows import Window

UNROLLED = 4
"""Products of a row that follow each other without a branch."""


@dataclass(frozen=True, eq=False)
class Product:
    """results[row, channel] = end(bias[channel] + sum over k of data[row, k] * weights[channel, k])."""

    length: int
    """The number of products of a sum."""
    channels: int
    row: int
    """The distance between rows of data, in elements."""
    result_row: int
    """The distance between rows of results, in elements."""
    accumulator: str
    """The C type of the sums."""
    ending: LayerEpilogue
    has_bias: bool
    bias_first: bool = True
    """Whether sums start with the bias: the order matters for float."""
    is_counted: bool = False
    """Whether the number of channels is a variable of the function."""
    is_packed: bool = False
    """Whether a byte has two weights of 4 bits, that of an even k in its low half."""
    joined: Callable[[str], tuple[tuple[str, ...], str]] | None = None
    """From a result to the declarations and the expression that replace it; {at} is its index from y."""

    @property
    def weight_row(self) -> int:
        """The distance between the weights of channels, in elements of the array."""
        return (self.length + 1) // 2 if self.is_packed else self.length

    def weight(self, channel: int, step: int) -> str:
        """Return a weight at the pointer q."""
        if not self.is_packed:
            return f"q[{channel * self.length + step}]"
        byte = f"q[{channel * self.weight_row + step // 2}]"
        return f"{byte} >> 4" if step % 2 else f"(int8_t)((uint8_t){byte} << 4) >> 4"


def tile(lines: Lines, product: Product, rows: int, channels: int, types: tuple[str, str], channel: str) -> None:
    """Append a tile of `rows` by `channels` sums; x, w and y are pointers, `channel` the first channel's index.

    The tile leaves x and y unchanged; w is the first weight of the channel.
    """
    data_type, weight_type = types
    sums = [[f"a{r}{c}" for c in range(channels)] for r in range(rows)]
    starts = _starts(product, channels, channel)
    for c in range(channels):
        names = ", ".join(f"{sums[r][c]} = {starts[c]}" for r in range(rows))
        lines.add(f"{product.accumulator} {names};")
    lines.add(f"const {data_type} *p = x;", f"const {weight_type} *q = w;", "")
    turns, rest = divmod(product.length, UNROLLED)
    if turns == 1:
        turns, rest = 0, product.length
    if turns:
        with lines.loop("k", turns):
            for step in range(UNROLLED):
                _products(lines, product, sums, step)
            lines.add(f"p += {UNROLLED};", f"q += {UNROLLED // 2 if product.is_packed else UNROLLED};")
    for step in range(rest):
        _products(lines, product, sums, step)
    for c in range(channels):
        with lines.block(""):
            lines.add(*product.ending.loads(_plus(channel, c)))
            for r in range(rows):
                value = sums[r][c]
                if product.has_bias and not product.bias_first:
                    value = f"{value} + bias[{_plus(channel, c)}]"
                at = _plus(channel, r * product.result_row + c)
                if product.joined is None:
                    lines.add(f"y[{at}] = {product.ending.result(value)};")
                    continue
                with lines.block(""):
                    lines.add(f"const int8_t part = (int8_t){product.ending.result(value)};")
                    declared, text = product.joined("part")
                    lines.add(*(line.format(at=at) for line in declared), f"y[{at}] = (int8_t){text.format(at=at)};")


def _starts(product: Product, channels: int, channel: str) -> list[str]:
    if product.has_bias and product.bias_first:
        return [f"bias[{_plus(channel, c)}]" for c in range(channels)]
    return ["0"] * channels


def _products(lines: Lines, product: Product, sums: list[list[str]], step: int) -> None:
    """Append the products of one k: every operand is loaded once."""
    rows, channels = len(sums), len(sums[0])
    with lines.block(""):
        operand = "float" if product.accumulator == "float" else "int32_t"
        wide = "(int64_t)" if product.accumulator == "int64_t" else ""
        for c in range(channels):
            lines.add(f"const {operand} w{c} = {product.weight(c, step)};")
        for r in range(rows):
            lines.add(f"const {operand} x{r} = p[{r * product.row + step}];")
        for r in range(rows):
            lines.add(*(f"{sums[r][c]} += {wide}x{r} * w{c};" for c in range(channels)))


def _plus(text: str, more: int) -> str:
    return str(int(text) + more) if text.isdigit() else f"{text}{plus(more)}"


def blocks(count: int, greatest: int) -> list[tuple[int, int, int]]:
    """Return the parts of `count` as (first, turns, size): whole blocks, then smaller ones."""
    parts, first, size = [], 0, greatest
    while first < count:
        turns = (count - first) // size
        if turns:
            parts.append((first, turns, size))
            first += turns * size
        size = max(1, size // 2)
    return parts


def accumulator(dtype: str) -> str:
    """Return the C type of sums for the dtype of the data."""
    return {"float32": "float", "int16": "int64_t"}.get(dtype, "int32_t")


def bound_of(weights: Any, bias: Any, dtype: str) -> Any:
    """Return the greatest magnitude of the sums of each channel: weights [o, ...], data of an 8-bit dtype."""
    import numpy as np

    least, greatest = (0, 255) if dtype == "uint8" else (-128, 127)
    each = np.abs(weights.reshape(len(weights), -1).astype(np.int64)).sum(axis=1) * max(-least, greatest)
    return each + (0 if bias is None else np.abs(bias))


Products = MatrixProduct | DirectConvolution


@emits(MatrixProduct)
def matrix(operation: MatrixProduct) -> Call:
    """Return the call."""
    value, other, result = *operation.inputs[:2], operation.results[0]
    columns = result.shape[-1]
    rows = value.shape[-1 if operation.swaps[0] else -2]
    depth = value.size // (prod(value.shape[:-2]) * rows)
    row, step = (1, rows) if operation.swaps[0] else (depth, 1)
    column, down = (depth, 1) if operation.swaps[1] else (1, columns)
    end, lines = ending(operation.finish, is_wide=value.dtype == "int16", result=result.dtype), Lines()
    # The dimensions of batches, with those of a matrix as one element.
    outer = result.shape[:-2] if len(result.shape) == max(len(value.shape), len(other.shape)) else ()
    shapes, sizes = [value.shape[:-2], other.shape[:-2]], (rows * depth, depth * columns)
    lines.add(f"{c_type(result.dtype)} *y = result;", "")
    with batches(lines, shapes, outer, sizes) as starts, lines.loop("i", rows), lines.loop("j", columns):
        a, b = (" + ".join(filter(None, (name, start))) for name, start in zip("ab", starts, strict=True))
        lines.add(f"const {c_type(value.dtype)} *p = {a} + i * {row};")
        lines.add(f"const {c_type(other.dtype)} *q = {b} + j * {column};", *_start(operation, "j"), "")
        with lines.loop("k", depth):
            lines.add(_step(operation, _at("p", "k", step), _at("q", "k", down)))
        lines.add(*end.loads("j"), f"*y++ = {end.result('sum')};")
    return _call(operation, "matrix_product", ("a", "b"), lines, end)


@emits(DirectConvolution)
def convolution(operation: DirectConvolution) -> Call:
    """Return the call."""
    data, weights, result = *operation.inputs[:2], operation.results[0]
    window, (n, height, width, depth) = operation.window, data.shape
    _, kh, kw, inner = weights.shape
    results = result.shape[3]
    end, lines = ending(operation.finish, is_wide=data.dtype == "int16", result=result.dtype), Lines()
    lines.add(f"{c_type(result.dtype)} *y = result;", "")
    with contextlib.ExitStack() as stack:
        if n > 1:
            stack.enter_context(lines.loop("n", n))
        stack.enter_context(lines.loop("oy", window.result[0]))
        stack.enter_context(lines.loop("ox", window.result[1]))
        stack.enter_context(lines.loop("o", results))
        lines.add(*_start(operation, "o"), "")
        with taps(lines, window, (height, width), operation.is_transposed):
            image = f"(n * {height} + iy)" if n > 1 else "iy"
            if operation.groups == 0:
                channel = "o" if results == depth else f"o / {results // depth}"
                place = f"data[({image} * {width} + ix) * {depth} + {channel}]"
                lines.add("", _step(operation, place, f"weights[(ky * {kw} + kx) * {results} + o]"))
            else:
                group = f" + o / {results // operation.groups} * {inner}" if operation.groups > 1 else ""
                lines.add(f"const {c_type(data.dtype)} *p = data + ({image} * {width} + ix) * {depth}{group};")
                lines.add(f"const {c_type(weights.dtype)} *q = weights + ((o * {kh} + ky) * {kw} + kx) * {inner};", "")
                with lines.loop("k", inner):
                    lines.add(_step(operation, "p[k]", "q[k]"))
        lines.add(*end.loads("o"), f"*y++ = {end.result('sum')};")
    base = "transposed_convolution" if operation.is_transposed else "direct_convolution"
    base = base if operation.groups else "direct_depthwise"
    return _call(operation, base, ("data", "weights"), lines, end)


@contextlib.contextmanager
def taps(lines: Lines, window: Window, image: tuple[int, int], is_transposed: bool) -> Iterator[None]:
    """Append loops over the elements of the window at oy, ox that are inside of the image: ky, kx at iy, ix."""
    with contextlib.ExitStack() as stack:
        for axis, which in (("y", 0), ("x", 1)):
            size, stride, dilation, before = (
                part[which] for part in (window.size, window.stride, window.dilation, window.before)
            )
            if is_transposed:
                place = f"(o{axis} + {before})"
                start = f"int k{axis} = {place} % {stride}, i{axis} = {place} / {stride}"
                stack.enter_context(lines.block(f"for ({start}; k{axis} < {size}; k{axis} += {stride}, i{axis}--)"))
            else:
                stack.enter_context(lines.loop(f"k{axis}", size))
                lines.add(f"const int i{axis} = o{axis} * {stride} + k{axis} * {dilation} - {before};", "")
            with lines.block(f"if (i{axis} < 0 || i{axis} >= {image[which]})"):
                lines.add("continue;")
        yield


@contextlib.contextmanager
def batches(lines: Lines, shapes: list[Shape], result: Shape, sizes: Sequence[int]) -> Iterator[list[str]]:
    """Append loops over batches; yield the first element of each operand's matrix, which has so many: a sum or ''."""
    counts, strides = joined(shapes, result)
    with contextlib.ExitStack() as stack:
        for level, count in enumerate(counts):
            if count > 1:
                stack.enter_context(lines.loop(f"n{level}", count))
        yield [
            " + ".join(f"n{i} * {s * size}" for i, (s, n) in enumerate(zip(each, counts, strict=True)) if s and n > 1)
            for each, size in zip(strides, sizes, strict=True)
        ]


def _at(pointer: str, index: str, stride: int) -> str:
    return f"{pointer}[{index}]" if stride == 1 else f"{pointer}[{index} * {stride}]"


def _start(operation: Products, channel: str) -> list[str]:
    """Return the declaration of a sum; float sums start with 0 and end with the bias, as in TFLite."""
    kind = accumulator(operation.inputs[0].dtype)
    first = f"bias[{channel}]" if len(operation.inputs) > 2 else "0"
    return [f"{kind} sum = {first};"]


def _step(operation: Products, one: str, other: str) -> str:
    """Return the addition of a product."""
    wide = "(int64_t)" if accumulator(operation.inputs[0].dtype) == "int64_t" else ""
    left, right = (
        f"({text}{plus(-zero)})" if zero else text for text, zero in zip((one, other), operation.zeros, strict=True)
    )
    return f"sum += {wide}{left} * {right};"


def _call(operation: Operation, base: str, names: tuple[str, str], lines: Lines, end: LayerEpilogue) -> Call:
    arguments = {**dict(zip((*names, "bias"), operation.inputs, strict=False)), **end.constants}
    return call_for(operation, base, lines, arguments, helpers=end.helpers, headers=end.headers)
