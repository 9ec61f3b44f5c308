# SPDX-License-Identifier: Apache-2.0
"""Depthwise convolutions from a ring of padded rows: each row is copied once, so the result can replace the data."""

from __future__ import annotations

from contextlib import nullcontext

from opwest.importers.models.emit.convolution import folded, plain_weights
from opwest.importers.models.emit.finish import Ending, ending
from opwest.importers.models.emit.function import Call, Function, Parameter, c_type
from opwest.importers.models.emit.matrix import accumulator, bound_of
from opwest.importers.models.emit.patches import BYTES
from opwest.importers.models.emit.registry import emits
from opwest.importers.models.emit.text import Lines
from opwest.importers.models.graph.types import Shape
from opwest.importers.models.ir.operations import Depthwise
from opwest.importers.models.operators.windows import Window, row_of
from opwest.records import dataclass

MOST_UNROLLED = 32
"""Windows with more elements are loops."""


@dataclass(frozen=True, eq=False)
class _Layer:
    """The numbers of a layer."""

    data: Shape
    window: Window
    results: int
    dtype: str
    end: Ending
    has_bias: bool
    skipped: int
    """The elements between two pixels of the result."""

    @property
    def rows(self) -> int:
        """The rows of the ring."""
        return (self.window.size[0] - 1) * self.window.dilation[0] + 1

    @property
    def width(self) -> int:
        """The columns of a row of the ring, with its padding."""
        columns, stride = self.window.result[1], self.window.stride[1]
        return (columns - 1) * stride + (self.window.size[1] - 1) * self.window.dilation[1] + 1

    @property
    def row(self) -> int:
        """The elements of a row of the ring."""
        return self.width * self.data[3]


def can_replace(data: Shape, window: Window, results: int, strip: int = 1) -> bool:
    """Whether each result is written after the last read of data [n,h,w,c] at its place.

    `strip`: the rows of results that are written after the rows of data of all of them were read.
    """
    _, height, width, depth = data
    rows, columns = window.result
    if results != depth or rows * columns > height * width:
        return False
    reach = (window.size[0] - 1) * window.dilation[0] + 1
    firsts = range(0, rows, strip)
    return all(
        min(y + strip, rows) * columns
        <= min(height, (min(y + strip, rows) - 1) * window.stride[0] - window.before[0] + reach) * width
        for y in firsts
    )


@emits(Depthwise, has_pitch=True)
def render(operation: Depthwise, shared: bool = False) -> Call:
    """Return the call."""
    data, result = operation.inputs[0], operation.results[0]
    dtype = data.dtype
    weights = plain_weights(operation.weights, operation.weight_zero)
    kh, kw, results = weights.shape
    channels_first = weights.reshape(kh * kw, results).T
    bias = folded(channels_first, operation.bias, operation.zero, dtype)
    bound = bound_of(channels_first, bias, dtype) if dtype in ("int8", "uint8") else None
    end = ending(operation.finish, results, bound, operation.zero, shared, dtype == "int16", result=result.dtype)
    layer = _Layer(data.shape, operation.window, results, dtype, end, bias is not None, result.row - results)
    lines = Lines()
    is_padded = operation.window.is_padded((data.shape[1], data.shape[2]))
    lines.add(*(line for line in end.prologue if is_padded or " fill " not in line))
    is_in_place = not result.pitch and can_replace(data.shape, operation.window, results)
    _body(lines, layer, c_type(result.dtype))
    parameters = [
        Parameter("data", dtype),
        Parameter("weights", str(weights.dtype)),
        *([] if bias is None else [Parameter("bias", str(bias.dtype))]),
        *(Parameter(name, kind) for name, kind, _ in end.arrays),
        Parameter("result", result.dtype, "out", ("data",) if is_in_place else ()),
        Parameter("ring", dtype, "scratch", elements=layer.rows * layer.row),
    ]
    function = Function("depthwise", tuple(parameters), str(lines), end.helpers, (*end.headers, "string.h"))
    arrays = [weights, *([] if bias is None else [bias]), *(array for _, _, array in end.arrays)]
    return Call(function, (data, *arrays, result), operation.label)


def _body(lines: Lines, layer: _Layer, result: str) -> None:
    """Append the loops over images, rows and columns."""
    n, height, width, depth = layer.data
    rows, columns = layer.window.result
    stride, dilation, kind = layer.window.stride, layer.window.dilation, c_type(layer.dtype)
    lines.add(f"{result} *y = result;", "")
    with lines.loop("n", n) if n > 1 else nullcontext():
        image = "data" if n == 1 else f"data + n * {height * width * depth}"
        lines.add("int next = 0;", "")
        with lines.loop("oy", rows):
            with lines.block(f"for (; next < {_times('oy', stride[0])} + {layer.rows}; next++)"):
                _load(lines, layer, kind, image)
            for ky in range(layer.window.size[0]):
                at = f"({_times('oy', stride[0])} + {ky * dilation[0]}) % {layer.rows}"
                lines.add(f"const {kind} *r{ky} = ring + {at} * {layer.row};")
            lines.add("")
            with lines.loop("ox", columns):
                multiplier = layer.results // depth
                if multiplier == 1:
                    with lines.loop("c", depth):
                        _channel(lines, layer, "c")
                else:
                    lines.add("int o = 0;", "")
                    with lines.loop("c", depth), lines.block(f"for (int m = 0; m < {multiplier}; m++, o++)"):
                        _channel(lines, layer, "o")
                for ky in range(layer.window.size[0]):
                    lines.add(f"r{ky} += {stride[1] * depth};")
                if layer.skipped:
                    lines.add(f"y += {layer.skipped};")


def _load(lines: Lines, layer: _Layer, kind: str, image: str) -> None:
    """Append the copy of the row `next`, counted from the first row of the padding, to the ring."""
    _, height, width, depth = layer.data
    top, item = layer.window.before[0], BYTES[layer.dtype]
    last = (layer.window.result[0] - 1) * layer.window.stride[0] + layer.rows
    left, columns, right = row_of(layer.window.before[1], width, layer.width)
    lines.add(f"{kind} *to = ring + next % {layer.rows} * {layer.row};", "")
    copy = (
        f"memcpy(to{_plus(left * depth)}, {image} + (next{_plus(-top)}) * {width * depth}, {columns * depth * item});"
    )
    if top > 0 or last - top > height:
        with lines.block(f"if (next < {top} || next >= {top + height})"):
            lines.add(f"memset(to, {layer.end.fill}, {layer.row * item});", "continue;")
    if left:
        lines.add(f"memset(to, {layer.end.fill}, {left * depth * item});")
    # A row without data has a copy of 0 bytes, so that no compiler reports an unused parameter.
    lines.add(copy)
    if right:
        lines.add(f"memset(to + {(left + columns) * depth}, {layer.end.fill}, {right * depth * item});")


def _channel(lines: Lines, layer: _Layer, result: str) -> None:
    """Append one result of the channel c; `result` is the variable with its number."""
    depth, (kh, kw), dilation = layer.data[3], layer.window.size, layer.window.dilation[1]
    kind = accumulator(layer.dtype)
    bias_first = layer.has_bias and kind != "float"
    lines.add(f"{kind} sum = {f'bias[{result}]' if bias_first else '0'};", "")
    wide = "(int64_t)" if kind == "int64_t" else ""
    for ky in range(kh):
        if kh * kw <= MOST_UNROLLED:
            for kx in range(kw):
                weight = f"weights[{result}{_plus((ky * kw + kx) * layer.results)}]"
                lines.add(f"sum += {wide}r{ky}[c{_plus(kx * dilation * depth)}] * {weight};")
        else:
            with lines.loop("kx", kw):
                weight = f"weights[({ky * kw} + kx) * {layer.results} + {result}]"
                lines.add(f"sum += {wide}r{ky}[kx * {dilation * depth} + c] * {weight};")
    if layer.has_bias and not bias_first:
        lines.add(f"sum += bias[{result}];")
    lines.add(*layer.end.loads(result), f"*y++ = {layer.end.result('sum')};")


def _times(name: str, factor: int) -> str:
    return name if factor == 1 else f"{name} * {factor}"


def _plus(offset: int) -> str:
    return f" + {offset}" if offset > 0 else f" - {-offset}" if offset else ""
