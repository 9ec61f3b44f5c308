# SPDX-License-Identifier: Apache-2.0
"""Layers with float32 data and int8 weights: exact sums by the tiles of int8 layers, which C code scales.

A row without its zero point is that row, minus the zero point times the sums of the weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.compiler.emission.epilogue import ending
from opwest.compiler.emission.function import Call, Lines, Parameter, call_for, emits
from opwest.compiler.ir.operations import Convolution, HybridConvolution, Sums
from opwest.compiler.kernels.assembly import NAKED
from opwest.compiler.kernels.dsp.convolution import ByteLayer
from opwest.compiler.kernels.dsp.dense import add_products, kind_of_bytes
from opwest.compiler.kernels.dsp.layers import Numbers, can_pack_groups
from opwest.compiler.kernels.windows import used_copies

GREATEST = 1 << 7
"""The greatest magnitude of data."""


@emits(HybridConvolution, "dsp-bytes")
def with_bytes(operation: HybridConvolution, loop_bytes: int | None = None) -> Call | None:
    """Return the call with int8 weights in flash; None if a sum could be too large."""
    return _render(operation, loop_bytes, is_wide=False)


@emits(HybridConvolution, "dsp-halves")
def with_halves(operation: HybridConvolution, loop_bytes: int | None = None) -> Call | None:
    """Return the call with int16 weights in flash."""
    return _render(operation, loop_bytes, is_wide=True)


def _render(operation: HybridConvolution, loop_bytes: int | None, *, is_wide: bool) -> Call | None:
    """Return the call; None for depthwise and transposed layers, and sums that need more than 32 bits."""
    data, weights = operation.inputs[0], operation.weights
    if operation.is_depthwise or operation.is_transposed or data.dtype != "int8" or weights.dtype != np.int8:
        return None
    flat = weights.reshape(len(weights), -1)
    bounds = np.abs(flat.astype(np.int64)).sum(axis=1) * GREATEST
    if bounds.max() >= 1 << 30 or not (is_wide or can_pack_groups(flat, bounds, operation.groups)):
        return None
    numbers = Numbers(flat, np.zeros(len(flat), np.int64), bounds, None, 32)
    if operation.results[0].size > len(weights):
        return _rows(operation, numbers, loop_bytes, is_wide)
    is_row = data.size == flat.shape[1] and weights.shape[1:3] == (1, 1) and not operation.window.is_padded((1, 1))
    return _row(operation, numbers, loop_bytes, is_wide) if is_row else None


def _rows(operation: HybridConvolution, numbers: Numbers, loop_bytes: int | None, is_wide: bool) -> Call:
    """Return the call for several pixels."""
    layer = _Layer(operation, numbers, loop_bytes, is_wide)
    lines = Lines()
    image = "0" if layer.data[0] == 1 else "n"
    layer.add(lines, f"zeros[{image}]" if layer.has_zeros else "0")
    definitions = [NAKED, *used_copies(lines), layer.copied, *(tile.definition() for tile in layer.tiles)]
    arguments = {"stream": np.concatenate(layer.streams), **_constants(operation, numbers)}
    if layer.shape is not None:
        arguments["shape"] = layer.shape
    scratch = [Parameter("block", "uint32", "scratch", elements=layer.scratch)]
    return _call(operation, lines, arguments, scratch=scratch, definitions=tuple(dict.fromkeys(definitions)))


def _row(operation: HybridConvolution, numbers: Numbers, loop_bytes: int | None, is_wide: bool) -> Call:
    """Return the call for one pixel."""
    results, length = numbers.weights.shape
    lines = Lines()
    kind = "halves" if is_wide else kind_of_bytes(results, length)
    arguments, options = add_products(lines, numbers, kind, loop_bytes, "sums")
    lines.add("")
    _add_results(lines, operation, "sums", "result", "0")
    options["scratch"] = [*options["scratch"], Parameter("sums", "int32", "scratch", elements=results)]
    return _call(operation, lines, {**arguments, **_constants(operation, numbers)}, **options)


def _call(operation: HybridConvolution, lines: Lines, arguments: dict[str, Any], **options: Any) -> Call:
    inputs = dict(zip(("data", "scales", "zeros"), operation.inputs, strict=False))
    end = ending(operation.finish)
    headers = (*options.pop("headers", ()), *end.headers)
    given = {**inputs, **arguments}
    return call_for(operation, "hybrid_convolution", lines, given, helpers=end.helpers, headers=headers, **options)


def _constants(operation: HybridConvolution, numbers: Numbers) -> dict[str, Any]:
    """Return the constants of the end by name."""
    constants: dict[str, Any] = {"weight_scales": operation.scales}
    if operation.bias is not None:
        constants["bias"] = operation.bias
    if len(operation.inputs) == 3:
        constants["weight_sums"] = numbers.weights.sum(axis=1, dtype=np.int64).astype(np.int32)
    return constants


def _add_results(lines: Lines, operation: HybridConvolution, sums: str, result: str, row: str) -> None:
    """Append the results of the sums of a pixel; `row`: that of the scale. The expression is that of the portable C."""
    has_zeros = len(operation.inputs) == 3
    with lines.loop("o", len(operation.scales)):
        less = f" - zeros[{row}] * weight_sums[o]" if has_zeros else ""
        bias = "" if operation.bias is None else " + bias[o]"
        lines.add(
            f"const int32_t sum = {sums}[o]{less};",
            f"const float value = (float)sum * (scales[{row}] * weight_scales[o]){bias};",
            "",
            f"{result}[o] = {ending(operation.finish).result('value')};",
        )


class _Layer(ByteLayer):
    """A layer of several pixels, whose tiles store sums."""

    def __init__(self, operation: HybridConvolution, numbers: Numbers, loop_bytes: int | None, is_wide: bool) -> None:
        places = operation.window, operation.groups, operation.weights
        sums = Convolution("", operation.inputs[:1], operation.results, *places, None, 0, 0, Sums())
        super().__init__(sums, numbers, is_wide, None, loop_bytes)
        self.hybrid, self.has_zeros = operation, len(operation.inputs) == 3
        self.buffers["results"] = 4 * self.pixels * self.results

    def multiply(self, lines: Lines, count: int) -> None:
        """Append the results of `count` pixels of the block, at y."""
        with lines.block(""):
            lines.add("int32_t *sums = (int32_t *)results;", "")
            self.add_products(lines, self.tiles, self.block, "sums", 4 * self.results if count > 1 else 0)
            with lines.repeat("pixel", count):
                lines.add(f"const int32_t *from = sums{f' + pixel * {self.results}' if count > 1 else ''};")
                lines.add(f"float *to = y{f' + pixel * {self.results}' if count > 1 else ''};")
                if self.data[0] > 1:
                    per_image = self.count // self.data[0]
                    lines.add(f"const int row = (int)(to - result) / {self.results * per_image};")
                lines.add("")
                _add_results(lines, self.hybrid, "from", "to", "row" if self.data[0] > 1 else "0")
