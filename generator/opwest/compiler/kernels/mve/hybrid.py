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
    scale: str
    """The scale of the weights; {o} is the channel."""
    has_zeros: bool
    has_bias: bool
    totals: str = "totals[{o}]"
    """The sum of the weights of a channel."""

    def add(self, lines: Lines, target: str, counts: tuple[int | str, int], row: str) -> None:
        """Append the end of rows: `counts` are the rows and their distance, `row` is the row i of the scales."""
        count, pitch = counts
        with lines.block(f"for (int i = 0; i < {count}; i++)"):
            lines.add(f"float *out = {target} + i * {pitch};", f"const float scale = scales[{row}];")
            lines.add(*([f"const int32_t zero = zeros[{row}];"] if self.has_zeros else []), "")
            with lines.loop("o", self.channels):
                less = f" - zero * {self.totals.format(o='o')}" if self.has_zeros else ""
                lines.add(f"const int32_t sum = mve_sum(out + o){less};")
                bias = " + bias[o]" if self.has_bias else ""
                lines.add(f"const float value = (float)sum * (scale * {self.scale.format(o='o')}){bias};", "")
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
        floats = replace(self.floats, totals=f"totals[{which * self.channels} + {{o}}]") if which else self.floats
        with lines.block(""):
            lines.add(f"float *first = {target};", f"const int count = {count};", "")
            lines.add(f"{self.calls[which][1]}({rows}, {numbers}, (int32_t *)first, count);")
            floats.add(lines, "first", ("count", self.axes[1].stride * self.channels), self.image)


@emits(HybridConvolution, "mve-hybrid")
def convolution(operation: HybridConvolution) -> Call | None:
    """Return the call; None for depthwise ones and groups, and transposed ones with dilation or many phases."""
    data, window, weights = operation.inputs[0], operation.window, operation.weights
    if operation.is_depthwise or operation.groups != 1 or str(weights.dtype) != "int8":
        return None
    channels, (images, height, width, depth) = len(weights), data.shape
    has_zeros = len(operation.inputs) == 3
    end, lines = ending(operation.finish), Lines()
    floats = Floats(channels, end, "weight_scales[{o}]", has_zeros, operation.bias is not None)
    image = "n" if images > 1 else "0"
    fill = f"zeros[{image}]" if has_zeros else "0"
    lines.add("const int8_t *from = data;")
    if operation.is_transposed:
        if window.dilation != (1, 1) or np.prod(window.stride) > PHASES:
            return None
        phases = Phases(window, data.shape, 1)
        parts, none = phases.of(weights), np.zeros(channels, np.int64)
        numbers, calls, texts = stream_of(phases, parts, [none] * len(parts), sums_of(channels), 0)
        # The padding is part of the sums: its weights are part of those of each phase.
        totals = np.stack([part.weights.astype(np.int64).sum(axis=1) for part in parts]).astype(np.int32)
        output: Output = _Phases(
            "",
            channels,
            window.result[0] * window.result[1] * channels,
            fill=fill,
            is_by_image=True,
            is_by_row=True,
            axes=phases.axes,
            calls=calls,
            row=phases.row,
            held=phases.held,
            floats=floats,
            image=image,
        )
        windows, row, held = phases.windows, phases.row, phases.held
        general(lines, windows, output, held, "float")
    else:
        totals = weights.reshape(channels, -1).astype(np.int64).sum(axis=1).astype(np.int32)
        numbers = pairs.packed(weights.reshape(channels, -1), totals * 0, sums_of(channels), 0, 1)
        name, text = pairs.function_of(weights[0].size, channels, sums_of(channels), 1)
        texts, is_dense = [text], (height, width) == (1, 1)
        count = window.result[0] * window.result[1]
        is_plain = window.is_pointwise and height * width == count and (images == 1 or is_dense)
        windows = Windows(window, data.shape, depth)
        if is_plain:
            window = Window((1, 1), (1, 1), (1, 1), (0, 0), (1, images * count))
            windows = Windows(window, (1, 1, images * count, depth), depth)
        row = pairs.padded(windows.length)
        held = held_rows(row, images * count)
        output = _Rows(
            name,
            channels,
            channels,
            fill=fill,
            is_by_image=True,
            floats=floats,
            is_dense=is_dense and is_plain,
            image=image,
        )
        if is_plain:
            plain(lines, windows, output, (images * count, held), "float")
        else:
            general(lines, windows, output, held, "float")
    constants = [("numbers", numbers), ("weight_scales", np.asarray(operation.scales, np.float32))]
    constants += [("totals", totals if has_zeros else None), ("bias", operation.bias)]
    scratch = [Parameter("rows", "int32", "scratch", elements=(held * row + 16) // 4)]
    return call_of(
        operation,
        "hybrid_transposed" if operation.is_transposed else "hybrid_convolution",
        lines,
        INPUTS,
        constants,
        scratch=scratch,
        helpers=end.helpers,
        headers=end.headers,
        definitions=(SUM, *windows.definitions(), *texts),
    )


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
    row = pairs.padded(depth)
    held = held_rows(row, rows)
    scale = number(operation.scale, "float32")
    lines, outer = Lines(), [operation.data[:-2], weights.shape[:-2], weights.shape[:-2]]
    lines.add("float *first = result;", "")
    sizes = (rows, numbers.size // len(matrices), columns)
    with batches(lines, outer, result.shape[:-2], sizes) as (one, two, three):
        base = f"{one} + " if one else ""
        lines.add(f"const int8_t *from = data{f' + ({one}) * {depth}' if one else ''};")
        lines.add(f"const int32_t *own = numbers{f' + {two}' if two else ''};")
        at = f"totals[{three} + {{o}}]" if three else "totals[{o}]"
        floats = Floats(columns, ending(Clamp(None, None)), scale, has_zeros, False, at)
        output = _Rows(name, columns, columns, "own", "first", floats=floats, is_dense=True, base=base)
        plain(lines, windows, output, (rows, held), "float")
        lines.add(f"first += {rows * columns};")
    scratch = [Parameter("rows", "int32", "scratch", elements=(held * row + 16) // 4)]
    constants: list[tuple[str, Any]] = [("numbers", numbers), ("totals", totals if has_zeros else None)]
    return call_of(
        operation,
        "hybrid_product",
        lines,
        INPUTS,
        constants,
        scratch=scratch,
        definitions=(SUM, *windows.definitions(), text),
    )
