# SPDX-License-Identifier: Apache-2.0
"""Depthwise convolutions from a ring of padded rows: each row is copied once, so the result can replace the data."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.convolution import BYTES, folded, plain_weights
from opwest.compiler.emission.epilogue import LayerEpilogue, ending
from opwest.compiler.emission.expressions import clamped_float, plus, times
from opwest.compiler.emission.function import Call, Lines, Parameter, c_type, call_for, emits
from opwest.compiler.emission.matrix import accumulator, bound_of
from opwest.compiler.graph.types import Shape
from opwest.compiler.ir.operations import Depthwise, Pool
from opwest.compiler.semantics.fixed_point import RANGES
from opwest.compiler.semantics.windows import Window, row_of

MAX_UNROLLED = 32
"""Windows with more elements are loops."""


@dataclass(frozen=True, eq=False)
class RingLayer:
    """The numbers of a layer."""

    data: Shape
    window: Window
    results: int
    dtype: str
    end: LayerEpilogue
    has_bias: bool
    skipped: int
    """The elements between two pixels of the result."""

    @property
    def rows(self) -> int:
        """The rows of the ring."""
        return self.window.reach(0)

    @property
    def width(self) -> int:
        """The columns of a row of the ring, with its padding."""
        return self.window.span(1)

    @property
    def row(self) -> int:
        """The elements of a row of the ring."""
        return self.width * self.data[3]

    @property
    def scratch(self) -> Parameter:
        """The ring."""
        return Parameter("ring", self.dtype, "scratch", elements=self.rows * self.row)

    @contextlib.contextmanager
    def rows_of(self, lines: Lines) -> Iterator[None]:
        """Append the loops over images and rows of results; r0, r1, ... are the rows under the windows."""
        n, height, width, depth = self.data
        (stride, _), (dilation, _), kind = self.window.stride, self.window.dilation, c_type(self.dtype)
        with lines.repeat("n", n):
            image = "data" if n == 1 else f"data + n * {height * width * depth}"
            lines.add("int next = 0;", "")
            with lines.loop("oy", self.window.result[0]):
                with lines.block(f"for (; next < {times('oy', stride)} + {self.rows}; next++)"):
                    _load(lines, self, kind, image)
                for ky in range(self.window.size[0]):
                    at = f"({times('oy', stride)} + {ky * dilation}) % {self.rows}"
                    lines.add(f"const {kind} *r{ky} = ring + {at} * {self.row};")
                lines.add("")
                yield


def can_replace(data: Shape, window: Window, results: int, strip: int = 1) -> bool:
    """Whether each result is written after the last read of data [n,h,w,c] at its place.

    `strip`: the rows of results that are written after the rows of data of all of them were read.
    """
    _, height, width, depth = data
    rows, columns = window.result
    if results != depth or rows * columns > height * width:
        return False
    ends = [min(y + strip, rows) for y in range(0, rows, strip)]
    reach = window.reach(0) - window.before[0]
    return all(end * columns <= min(height, (end - 1) * window.stride[0] + reach) * width for end in ends)


@emits(Depthwise, has_pitch=True)
def render_depthwise(operation: Depthwise, shared: bool = False) -> Call:
    """Return the call."""
    data, result = operation.inputs[0], operation.results[0]
    dtype = data.dtype
    weights = plain_weights(operation.weights, operation.weight_zero)
    kh, kw, results = weights.shape
    channels_first = weights.reshape(kh * kw, results).T
    bias = folded(channels_first, operation.bias, operation.zero, dtype)
    bound = bound_of(channels_first, bias, dtype) if dtype in ("int8", "uint8") else None
    end = ending(operation.finish, bound, operation.zero, shared, dtype == "int16", result=result.dtype)
    layer = RingLayer(data.shape, operation.window, results, dtype, end, bias is not None, result.row - results)
    lines = Lines()
    is_padded = operation.window.is_padded((data.shape[1], data.shape[2]))
    lines.add(*(line for line in end.prologue if is_padded or " fill " not in line))
    is_in_place = not result.pitch and can_replace(data.shape, operation.window, results)
    _body(lines, layer, c_type(result.dtype))
    arguments = {"data": data, "weights": weights, **({} if bias is None else {"bias": bias}), **end.constants}
    in_place = ("data",) if is_in_place else ()
    headers = (*end.headers, "string.h")
    return call_for(
        operation, "depthwise", lines, arguments, in_place, [layer.scratch], helpers=end.helpers, headers=headers
    )


def _body(lines: Lines, layer: RingLayer, result: str) -> None:
    """Append the loops over images, rows and columns."""
    depth, stride = layer.data[3], layer.window.stride[1]
    lines.add(f"{result} *y = result;", "")
    with layer.rows_of(lines), lines.loop("ox", layer.window.result[1]):
        multiplier = layer.results // depth
        if multiplier == 1:
            with lines.loop("c", depth):
                _channel(lines, layer, "c")
        else:
            lines.add("int o = 0;", "")
            with lines.loop("c", depth), lines.block(f"for (int m = 0; m < {multiplier}; m++, o++)"):
                _channel(lines, layer, "o")
        for ky in range(layer.window.size[0]):
            lines.add(f"r{ky} += {stride * depth};")
        if layer.skipped:
            lines.add(f"y += {layer.skipped};")


def _load(lines: Lines, layer: RingLayer, kind: str, image: str) -> None:
    """Append the copy of the row `next`, counted from the first row of the padding, to the ring."""
    _, height, width, depth = layer.data
    top, item = layer.window.before[0], BYTES[layer.dtype]
    left, columns, right = row_of(layer.window.before[1], width, layer.width)
    lines.add(f"{kind} *to = ring + next % {layer.rows} * {layer.row};", "")
    copy = f"memcpy(to{plus(left * depth)}, {image} + (next{plus(-top)}) * {width * depth}, {columns * depth * item});"
    if layer.window.pads((height, width))[0]:
        with lines.block(f"if (next < {top} || next >= {top + height})"):
            lines.add(f"memset(to, {layer.end.fill}, {layer.row * item});", "continue;")
    if left:
        lines.add(f"memset(to, {layer.end.fill}, {left * depth * item});")
    # A row without data has a copy of 0 bytes, so that no compiler reports an unused parameter.
    lines.add(copy)
    if right:
        lines.add(f"memset(to + {(left + columns) * depth}, {layer.end.fill}, {right * depth * item});")


def _channel(lines: Lines, layer: RingLayer, result: str) -> None:
    """Append one result of the channel c; `result` is the variable with its number."""
    depth, (kh, kw), dilation = layer.data[3], layer.window.size, layer.window.dilation[1]
    kind = accumulator(layer.dtype)
    bias_first = layer.has_bias and kind != "float"
    lines.add(f"{kind} sum = {f'bias[{result}]' if bias_first else '0'};", "")
    wide = "(int64_t)" if kind == "int64_t" else ""
    for ky in range(kh):
        if kh * kw <= MAX_UNROLLED:
            for kx in range(kw):
                weight = f"weights[{result}{plus((ky * kw + kx) * layer.results)}]"
                lines.add(f"sum += {wide}r{ky}[c{plus(kx * dilation * depth)}] * {weight};")
        else:
            with lines.loop("kx", kw):
                weight = f"weights[({ky * kw} + kx) * {layer.results} + {result}]"
                lines.add(f"sum += {wide}r{ky}[kx * {dilation * depth} + c] * {weight};")
    if layer.has_bias and not bias_first:
        lines.add(f"sum += bias[{result}];")
    lines.add(*layer.end.loads(result), f"*y++ = {layer.end.result('sum')};")


@emits(Pool, has_pitch=True)
def render_pool(operation: Pool) -> Call:
    """Return the call."""
    data = operation.inputs[0]
    _, _, width, depth = data.shape
    is_float = data.dtype == "float32"
    lines = Lines()
    counts = [] if operation.kind == "maximum" else ["const int count = (y1 - y0) * (x1 - x0);"]
    with pool_windows(lines, operation, counts):
        lines.add("")
        with lines.loop("c", depth):
            one_channel(lines, operation, width, depth)
    helpers = () if (operation.low, operation.high) == (None, None) or not is_float else ("clampf",)
    helpers = helpers if is_float else ("clamp",)
    headers = ("float.h", "math.h") if is_float else ()
    return call_for(operation, f"{operation.kind}_pool", lines, {"data": data}, helpers=helpers, headers=headers)


@contextlib.contextmanager
def pool_windows(lines: Lines, operation: Pool, counts: Sequence[str] = ()) -> Iterator[None]:
    """Append the loops over results: y is the next one, `from` the first element of the window inside of the image.

    `counts` are declarations after those of y0 to y1, x0 to x1.
    """
    [data], [result], window = operation.inputs, operation.results, operation.window
    n, height, width, depth = data.shape
    kind = c_type(data.dtype)
    lines.add(f"{kind} *y = result;", "")
    batches = lines.repeat("n", n)
    with batches, lines.loop("oy", window.result[0]), lines.loop("ox", window.result[1]):
        bounds(lines, operation)
        image = f"(n * {height} + y0) * {width} + x0" if n > 1 else f"y0 * {width} + x0"
        lines.add(*counts, f"const {kind} *from = data + ({image}) * {depth};")
        yield
        if result.pitch:
            # The elements between two pixels of a result with a pitch.
            lines.add(f"y += {result.pitch - result.shape[-1]};")


def bounds(lines: Lines, operation: Pool) -> None:
    """Append the part of the window at oy, ox inside of the image: y0 to y1, x0 to x1."""
    _, height, width, _ = operation.inputs[0].shape
    window = operation.window
    for axis, size in (("y", height), ("x", width)):
        which = 0 if axis == "y" else 1
        start = f"o{axis} * {window.stride[which]} - {window.before[which]}"
        step = window.dilation[which]
        end = f"{start} + {(window.size[which] - 1) * step + 1}"
        # The first position of a window that starts before the image.
        first = "0" if step == 1 else f"({start}) % {step} ? {step} + ({start}) % {step} : 0"
        lines.add(
            f"const int {axis}0 = {start} > 0 ? {start} : {first};",
            f"const int {axis}1 = {end} < {size} ? {end} : {size};",
        )


def one_channel(lines: Lines, operation: Pool, width: int, depth: int) -> None:
    """Append the result of channel c."""
    dtype, (down, over) = operation.inputs[0].dtype, operation.window.dilation
    is_float, is_average = dtype == "float32", operation.kind == "average"
    is_mean = operation.kind != "maximum"
    kind = "float" if is_float else "int32_t"
    start = "0" if is_mean else "-FLT_MAX" if is_float else str(RANGES[dtype][0])
    lines.add(f"const {c_type(dtype)} *row = from + c;", f"{kind} value = {start};", "")
    with lines.block(f"for (int iy = y0; iy < y1; {_stepped('iy', down)}, row += {down * width * depth})"):
        lines.add(f"const {c_type(dtype)} *p = row;", "")
        with lines.block(f"for (int ix = x0; ix < x1; {_stepped('ix', over)}, p += {over * depth})"):
            if is_mean:
                lines.add("value += *p;" if is_average else "value += *p * *p;")
            else:
                lines.add("value = *p > value ? *p : value;")
    if is_average and is_float:
        lines.add("value /= (float)count;")
    elif is_average:
        lines.add("value = (value + (value > 0 ? count / 2 : -(count / 2))) / count;")
    elif is_mean:
        lines.add("value = sqrtf(value / (float)count);")
    low, high = operation.low, operation.high
    if (low, high) == (None, None):
        lines.add("*y++ = value;" if is_float else f"*y++ = ({c_type(dtype)})value;")
    elif is_float:
        lines.add(f"*y++ = {clamped_float('value', low, high)};")
    else:
        lines.add(f"*y++ = ({c_type(dtype)})clamp(value, {low}, {high});")


def _stepped(name: str, step: int) -> str:
    return f"{name}++" if step == 1 else f"{name} += {step}"
