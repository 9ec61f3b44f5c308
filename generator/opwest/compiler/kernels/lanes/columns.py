# SPDX-License-Identifier: Apache-2.0
"""Depthwise convolutions, a channel of a row after the other: its weights and numbers stay in registers."""

from __future__ import annotations

from opwest.compiler.emission.depthwise import RingLayer, can_replace
from opwest.compiler.emission.expressions import plus
from opwest.compiler.emission.function import Call, Lines, call_for, emits
from opwest.compiler.ir.operations import Depthwise
from opwest.compiler.kernels.lanes.ends import end_of
from opwest.compiler.kernels.scaling import int8_sums
from opwest.compiler.semantics.fixed_point import Requantisation

MAX_TAPS = 12
"""The weights that fit into the registers of RV32."""
MAX_KEPT = 3
"""The columns of windows whose elements stay in registers for the next window."""


@emits(Depthwise, "portable-columns", has_pitch=True)
def render(operation: Depthwise, shared: bool = False) -> Call | None:
    """Return the call; None for other dtypes and large windows."""
    data, result, finish = operation.inputs[0], operation.results[0], operation.finish
    given = int8_sums(operation)
    kh, kw, results = operation.weights.shape
    if given is None or not isinstance(finish, Requantisation) or result.dtype != "int8" or kh * kw > MAX_TAPS:
        return None
    weights, bias, bounds = given
    end = end_of(finish, weights, bias, bounds, operation.zero, shared)
    window = operation.window
    layer = RingLayer(data.shape, window, results, "int8", end, has_bias=True, skipped=result.row - results)
    lines = Lines()
    is_padded = window.is_padded((data.shape[1], data.shape[2]))
    lines.add(*(line for line in end.prologue if is_padded or " fill " not in line), "int8_t *y = result;", "")
    multiplier = results // data.shape[3]
    with layer.rows_of(lines):
        with lines.loop("o", results):
            channel = "o" if multiplier == 1 else f"o / {multiplier}"
            _channel(lines, layer, channel, result.row)
        lines.add(f"y += {window.result[1] * result.row};")
    arguments = {"data": data, "weights": weights.T.reshape(kh, kw, results).copy(), "bias": bias, **end.constants}
    in_place = ("data",) if not result.pitch and can_replace(data.shape, window, results) else ()
    return call_for(
        operation,
        "depthwise",
        lines,
        arguments,
        in_place,
        [layer.scratch],
        helpers=end.helpers,
        headers=(*end.headers, "string.h"),
    )


def _channel(lines: Lines, layer: RingLayer, channel: str, pitch: int) -> None:
    """Append the results of a row of the channel `o`."""
    (kh, kw), dilation, depth = layer.window.size, layer.window.dilation[1], layer.data[3]
    stride = layer.window.stride[1] * depth
    for ky in range(kh):
        lines.add(f"const int8_t *p{ky} = r{ky} + {channel};")
    lines.add("int8_t *z = y + o;", "const int32_t first = bias[o];", *layer.end.loads("o"))
    for tap in range(kh * kw):
        lines.add(f"const int32_t w{tap} = weights[o{plus(tap * layer.results)}];")
    lines.add("")
    columns, is_sliding = layer.window.result[1], (stride, dilation) == (depth, 1) and 1 < kw <= MAX_KEPT
    if not is_sliding:
        with lines.loop("ox", columns):
            taps = [[f"p{ky}[{kx * dilation * depth}]" for kx in range(kw)] for ky in range(kh)]
            _result(lines, layer, taps, (stride, pitch))
        return
    # Each column is loaded once: the names of the columns rotate.
    for ky in range(kh):
        names = ", ".join([*(f"x{ky}{kx} = p{ky}[{kx * depth}]" for kx in range(kw - 1)), f"x{ky}{kw - 1}"])
        lines.add(f"int32_t {names};")
    lines.add("int ox = 0;", "")
    with lines.block("while (1)"):
        for turn in range(min(kw, columns)):
            lines.add(*(f"x{ky}{(turn + kw - 1) % kw} = p{ky}[{(kw - 1) * depth}];" for ky in range(kh)))
            with lines.block(""):
                taps = [[f"x{ky}{(turn + kx) % kw}" for kx in range(kw)] for ky in range(kh)]
                _result(lines, layer, taps, (stride, pitch))
            with lines.block(f"if (++ox == {columns})"):
                lines.add("break;")


def _result(lines: Lines, layer: RingLayer, taps: list[list[str]], steps: tuple[int, int]) -> None:
    """Append a result, and the steps to the next one of the data and of the results."""
    lines.add("int32_t sum = first;", "")
    for ky, row in enumerate(taps):
        lines.add(*(f"sum += {tap} * w{ky * len(row) + kx};" for kx, tap in enumerate(row)))
    lines.add(*(f"p{ky} += {steps[0]};" for ky in range(len(taps))))
    lines.add(f"*z = {layer.end.result('sum')};", f"z += {steps[1]};")
