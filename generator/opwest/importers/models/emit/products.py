# SPDX-License-Identifier: Apache-2.0
"""Products of two values: loops without tables of weights that are prepared at import."""

from __future__ import annotations

import contextlib
from math import prod

from opwest.importers.models.emit.elementwise import joined
from opwest.importers.models.emit.expressions import plus
from opwest.importers.models.emit.finish import Ending, ending
from opwest.importers.models.emit.function import Call, Function, Parameter, c_type
from opwest.importers.models.emit.matrix import accumulator
from opwest.importers.models.emit.registry import emits
from opwest.importers.models.emit.text import Lines
from opwest.importers.models.ir.products import DirectConvolution, MatrixProduct
from opwest.importers.models.ir.program import Operation

Products = MatrixProduct | DirectConvolution


@emits(MatrixProduct)
def matrix(operation: MatrixProduct) -> Call:
    """Return the call."""
    one, other, result = *operation.inputs[:2], operation.results[0]
    columns = result.shape[-1]
    rows = one.shape[-1 if operation.swaps[0] else -2]
    depth = one.size // (prod(one.shape[:-2]) * rows)
    row, step = (1, rows) if operation.swaps[0] else (depth, 1)
    column, down = (depth, 1) if operation.swaps[1] else (1, columns)
    end, lines = ending(operation.finish, columns, is_wide=one.dtype == "int16", result=result.dtype), Lines()
    # The dimensions of batches, with those of a matrix as one element.
    batches = result.shape[:-2] if len(result.shape) == max(len(one.shape), len(other.shape)) else ()
    counts, strides = joined([one.shape[:-2], other.shape[:-2]], batches)
    lines.add(f"{c_type(result.dtype)} *y = result;", "")
    with contextlib.ExitStack() as stack:
        for level, count in enumerate(counts):
            if count > 1:
                stack.enter_context(lines.loop(f"n{level}", count))
        starts = []
        for name, size, each in (("a", rows * depth, strides[0]), ("b", depth * columns, strides[1])):
            terms = [f"n{i} * {s * size}" for i, (s, n) in enumerate(zip(each, counts, strict=True)) if s and n > 1]
            starts.append(" + ".join([name, *terms]))
        stack.enter_context(lines.loop("i", rows))
        stack.enter_context(lines.loop("j", columns))
        lines.add(f"const {c_type(one.dtype)} *p = {starts[0]} + i * {row};")
        lines.add(f"const {c_type(other.dtype)} *q = {starts[1]} + j * {column};", *_start(operation, "j"), "")
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
    end, lines = ending(operation.finish, results, is_wide=data.dtype == "int16", result=result.dtype), Lines()
    lines.add(f"{c_type(result.dtype)} *y = result;", "")
    with contextlib.ExitStack() as stack:
        if n > 1:
            stack.enter_context(lines.loop("n", n))
        stack.enter_context(lines.loop("oy", window.result[0]))
        stack.enter_context(lines.loop("ox", window.result[1]))
        stack.enter_context(lines.loop("o", results))
        lines.add(*_start(operation, "o"), "")
        with contextlib.ExitStack() as taps:
            for axis, size, limit in (("y", kh, height), ("x", kw, width)):
                which = 0 if axis == "y" else 1
                stride, dilation, before = (window.stride[which], window.dilation[which], window.before[which])
                if operation.is_transposed:
                    place = f"(o{axis} + {before})"
                    start = f"int k{axis} = {place} % {stride}, i{axis} = {place} / {stride}"
                    taps.enter_context(lines.block(f"for ({start}; k{axis} < {size}; k{axis} += {stride}, i{axis}--)"))
                else:
                    taps.enter_context(lines.loop(f"k{axis}", size))
                    lines.add(f"const int i{axis} = o{axis} * {stride} + k{axis} * {dilation} - {before};", "")
                with lines.block(f"if (i{axis} < 0 || i{axis} >= {limit})"):
                    lines.add("continue;")
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


def _call(operation: Operation, base: str, names: tuple[str, str], lines: Lines, end: Ending) -> Call:
    result = operation.results[0]
    parameters = [
        *(Parameter(n, v.dtype) for n, v in zip((*names, "bias"), operation.inputs, strict=False)),
        *(Parameter(name, kind) for name, kind, _ in end.arrays),
        Parameter("result", result.dtype, "out"),
    ]
    function = Function(base, tuple(parameters), str(lines), end.helpers, end.headers)
    return Call(function, (*operation.inputs, *(array for _, _, array in end.arrays), result), operation.label)
