# SPDX-License-Identifier: Apache-2.0
"""Layers with float32 data and int8 weights: sums of int8 data as in other layers, and their end as float numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.epilogue import LayerEpilogue, ending
from opwest.compiler.emission.function import Call, Lines, Parameter, call_of, emits, number
from opwest.compiler.emission.matrix import batches
from opwest.compiler.ir.operations import Clamp, HybridConvolution, HybridProduct
from opwest.compiler.kernels.mve import pairs
from opwest.compiler.kernels.mve.convolution import Output, general, held_rows, plain
from opwest.compiler.kernels.mve.epilogue import sums_of
from opwest.compiler.kernels.mve.transposed import PHASES, PhaseOutput, Phases, stream_of
from opwest.compiler.kernels.mve.windows import Windows
from opwest.compiler.semantics.windows import Window

INPUTS = ("data", "scales", "zeros")
SUM = """\
/* The sum that is in the memory of a result. */
static inline int32_t mve_sum(const float *from)
{
	int32_t sum;

	__asm__("ldr %0, %1" : "=r"(sum) : "m"(*from));
	return sum;
}
"""


@dataclass(frozen=True, eq=False)
class Floats:
    """The end of sums that are in the memory of the results."""

    channels: int
    end: LayerEpilogue
    has_zeros: bool
    has_bias: bool = False
    scale: str = ""
    """The scale of all weights; empty: one for each channel."""
    first: str = ""
    """The index of the first channel, with a +."""
    totals: str = ""
    """The index of the first sum of weights, with a +."""

    def add(self, lines: Lines, target: str, counts: tuple[int | str, int], row: str) -> None:
        """Append the end of rows: `counts` are the rows and their distance, `row` is the row i of the scales."""
        count, pitch = counts
        with lines.block(f"for (int i = 0; i < {count}; i++)"):
            lines.add(f"float *out = {target} + i * {pitch};", f"const float scale = scales[{row}];")
            lines.add(*([f"const int32_t zero = zeros[{row}];"] if self.has_zeros else []), "")
            with lines.loop("o", self.channels):
                less = f" - zero * totals[{self.totals}o]" if self.has_zeros else ""
                lines.add(f"const int32_t sum = mve_sum(out + o){less};")
                by, bias = self.scale or f"weight_scales[{self.first}o]", f" + bias[{self.first}o]" * self.has_bias
                lines.add(f"const float value = (float)sum * (scale * {by}){bias};", "")
                lines.add(f"out[o] = {self.end.result('value')};")


@dataclass(frozen=True)
class _Rows(Output):
    """Writes the float results of rows."""

    floats: Floats | None = None
    is_dense: bool = False
    """Whether each row has a scale of its own."""
    image: str = "0"
    """The index of the scale of all rows."""
    base: str = ""
    """The index of the scale of the first row, with a +."""

    def add(self, lines: Lines, result: str, count: int | str) -> None:
        """Append the calls for `count` rows."""
        assert self.floats is not None
        row = f"{self.base}{'row + i' if count == 'count' else 'i'}" if self.is_dense else self.image
        lines.add(f"{self.name}(held, {self.numbers}, (int32_t *){result}, {count});")
        self.floats.add(lines, result, (count, self.pitch), row)


@dataclass(frozen=True)
class _Phases(PhaseOutput):
    """Writes the float results of the phases of a transposed convolution."""

    floats: Floats | None = None
    image: str = "0"

    def call(self, lines: Lines, which: int, arguments: tuple[str, str, str, str]) -> None:
        """Append the call of the function of a phase: rows, numbers, results, number of rows."""
        assert self.floats is not None and self.axes is not None
        rows, numbers, target, count = arguments
        floats = replace(self.floats, totals=f"{which * self.channels} + " if which else "")
        with lines.block(""):
            lines.add(f"float *first = {target};", f"const int count = {count};", "")
            lines.add(f"{self.calls[which][1]}({rows}, {numbers}, (int32_t *)first, count);")
            floats.add(lines, "first", ("count", self.axes[1].stride * self.channels), self.image)


@dataclass(frozen=True, eq=False)
class _Layer:
    """The parts of a call."""

    windows: Windows
    held: int
    """The rows of scratch memory."""
    numbers: Any
    totals: Any
    """The sums of weights."""
    texts: list[str]


@emits(HybridConvolution, "mve-hybrid")
def convolution(operation: HybridConvolution) -> Call | None:
    """Return the call; None for depthwise ones, and transposed ones with groups, dilation or many phases."""
    window, is_transposed = operation.window, operation.is_transposed
    if operation.is_depthwise or str(operation.weights.dtype) != "int8":
        return None
    if is_transposed and (operation.groups != 1 or window.dilation != (1, 1) or np.prod(window.stride) > PHASES):
        return None
    channels, has_zeros = len(operation.weights) // operation.groups, len(operation.inputs) == 3
    end, lines = ending(operation.finish), Lines()
    floats = Floats(channels, end, has_zeros, operation.bias is not None)
    layer = (_transposed if is_transposed else _windows)(lines, operation, floats)
    constants = [("numbers", layer.numbers), ("weight_scales", np.asarray(operation.scales, np.float32))]
    constants += [("totals", layer.totals if has_zeros else None), ("bias", operation.bias)]
    return call_of(
        operation,
        "hybrid_transposed" if is_transposed else "hybrid_convolution",
        lines,
        INPUTS,
        constants,
        scratch=[_scratch(layer.held, layer.windows)],
        helpers=end.helpers,
        headers=end.headers,
        definitions=(SUM, *layer.windows.definitions(), *layer.texts),
    )


def _scratch(held: int, windows: Windows) -> Parameter:
    return Parameter("rows", "int32", "scratch", elements=(held * pairs.padded(windows.length) + 16) // 4)


def _image(operation: HybridConvolution) -> str:
    """Return the index of an image."""
    return "n" if operation.inputs[0].shape[0] > 1 else "0"


def _transposed(lines: Lines, operation: HybridConvolution, floats: Floats) -> _Layer:
    """Append the loops of a transposed convolution."""
    channels, window, image = floats.channels, operation.window, _image(operation)
    phases = Phases(window, operation.inputs[0].shape, 1)
    parts, none = phases.of(operation.weights), np.zeros(channels, np.int64)
    numbers, calls, texts = stream_of(phases, parts, [none] * len(parts), sums_of(channels), 0)
    # The padding is part of the sums: its weights are part of those of each phase.
    totals = np.stack([part.weights.astype(np.int64).sum(axis=1) for part in parts]).astype(np.int32)
    output = _Phases(
        "",
        channels,
        window.result[0] * window.result[1] * channels,
        fill=f"zeros[{image}]" if floats.has_zeros else "0",
        is_by_image=True,
        is_by_row=True,
        axes=phases.axes,
        calls=calls,
        row=phases.row,
        held=phases.held,
        floats=floats,
        image=image,
    )
    lines.add("const int8_t *from = data;")
    general(lines, phases.windows, output, phases.held, "float")
    return _Layer(phases.windows, phases.held, numbers, totals.reshape(-1), texts)


def _windows(lines: Lines, operation: HybridConvolution, floats: Floats) -> _Layer:
    """Append the loops of a convolution, or of rows with a scale each."""
    (images, height, width, depth), window, image = operation.inputs[0].shape, operation.window, _image(operation)
    channels, groups = floats.channels, operation.groups
    weights = operation.weights.reshape(groups, channels, -1)
    none, ends = np.zeros(channels, np.int64), sums_of(channels)
    numbers = np.concatenate([pairs.packed(group, none, ends, 0, 1) for group in weights])
    results = groups * channels
    name, text = pairs.function_of(weights.shape[2], channels, ends, 1, results if groups > 1 else 0)
    count, is_dense = window.result[0] * window.result[1], (height, width) == (1, 1)
    is_plain = window.is_pointwise and height * width == count and (images == 1 or is_dense)
    windows = Windows(window, (images, height, width, depth), depth // groups)
    if is_plain:
        window = Window((1, 1), (1, 1), (1, 1), (0, 0), (1, images * count))
        windows = Windows(window, (1, 1, images * count, depth), depth // groups)
    held = held_rows(pairs.padded(windows.length), images * count)
    fill = f"zeros[{image}]" if floats.has_zeros else "0"
    output = _Rows(name, results, results, fill=fill, is_by_image=True, is_dense=is_dense and is_plain, image=image)
    with lines.repeat("g", groups):
        group = f" + g * {windows.channels}" if groups > 1 else ""
        lines.add(f"const int8_t *from = data{group};")
        if groups > 1:
            lines.add(f"const int32_t *own = numbers + g * {numbers.size // groups};")
            lines.add(f"float *first = result + g * {channels};")
            output = replace(output, numbers="own", result="first")
            floats = replace(floats, first=f"g * {channels} + ", totals=f"g * {channels} + ")
        output = replace(output, floats=floats)
        if is_plain:
            plain(lines, windows, output, (images * count, held), "float")
        else:
            general(lines, windows, output, held, "float")
    return _Layer(windows, held, numbers, weights.astype(np.int64).sum(axis=2).astype(np.int32).reshape(-1), [text])


@emits(HybridProduct, "mve-hybrid")
def product(operation: HybridProduct) -> Call | None:
    """Return the call; None for weights of other dtypes."""
    result, (rows, depth), weights = operation.results[0], operation.data[-2:], operation.weights
    if str(weights.dtype) != "int8":
        return None
    columns, has_zeros = result.shape[-1], len(operation.inputs) == 3
    matrices = weights.reshape(-1, columns, depth)
    none = np.zeros(columns, np.int64)
    numbers = np.concatenate([pairs.packed(matrix, none, sums_of(columns), 0, 1) for matrix in matrices])
    totals = matrices.astype(np.int64).sum(axis=2).astype(np.int32).reshape(-1)
    name, text = pairs.function_of(depth, columns, sums_of(columns), 1)
    windows = Windows(Window((1, 1), (1, 1), (1, 1), (0, 0), (1, rows)), (1, 1, rows, depth), depth)
    held = held_rows(pairs.padded(depth), rows)
    scale = number(operation.scale, "float32")
    lines, outer = Lines(), [operation.data[:-2], weights.shape[:-2], weights.shape[:-2]]
    lines.add("float *first = result;", "")
    sizes = (rows, numbers.size // len(matrices), columns)
    with batches(lines, outer, result.shape[:-2], sizes) as (one, two, three):
        base = f"{one} + " if one else ""
        lines.add(f"const int8_t *from = data{f' + ({one}) * {depth}' if one else ''};")
        lines.add(f"const int32_t *own = numbers{f' + {two}' if two else ''};")
        totals_at = f"{three} + " if three else ""
        floats = Floats(columns, ending(Clamp(None, None)), has_zeros, scale=scale, totals=totals_at)
        output = _Rows(name, columns, columns, "own", "first", floats=floats, is_dense=True, base=base)
        plain(lines, windows, output, (rows, held), "float")
        lines.add(f"first += {rows * columns};")
    constants: list[tuple[str, Any]] = [("numbers", numbers), ("totals", totals if has_zeros else None)]
    return call_of(
        operation,
        "hybrid_product",
        lines,
        INPUTS,
        constants,
        scratch=[_scratch(held, windows)],
        definitions=(SUM, *windows.definitions(), text),
    )
