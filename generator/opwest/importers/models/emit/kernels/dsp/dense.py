# SPDX-License-Identifier: Apache-2.0
"""int8 fully connected layers with one row of data."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.importers.models.emit.function import Call, Function, Parameter
from opwest.importers.models.emit.kernels.dsp.layer import numbers_of
from opwest.importers.models.emit.kernels.dsp.products import CHANNELS, TAPS, Products
from opwest.importers.models.emit.kernels.dsp.stream import can_pack, shifts_of, stream_of
from opwest.importers.models.emit.kernels.dsp.tile import ending_of
from opwest.importers.models.emit.kernels.dsp.widen import widen_window
from opwest.importers.models.emit.registry import emits
from opwest.importers.models.emit.text import Lines
from opwest.importers.models.ir.operations import Convolution


@emits(Convolution, "dsp-bytes")
def with_bytes(operation: Convolution) -> Call | None:
    """Return the call with int8 weights in flash; None if a sum could be too large."""
    return _render(operation, is_wide=False)


@emits(Convolution, "dsp-halves")
def with_halves(operation: Convolution) -> Call | None:
    """Return the call with int16 weights in flash."""
    return _render(operation, is_wide=True)


def _render(operation: Convolution, *, is_wide: bool) -> Call | None:
    data, result = operation.inputs[0], operation.results[0]
    results, kh, kw, length = operation.weights.shape
    if result.size != results or (kh, kw) != (1, 1) or data.size != length or operation.window.is_padded((1, 1)):
        return None
    numbers = numbers_of(operation)
    if numbers is None or not (is_wide or can_pack(numbers.weights, numbers.bounds)):
        return None
    steps = -(-length // TAPS)
    scaling = numbers.scaling
    ends = np.stack([scaling.multipliers, scaling.addends, shifts_of(scaling)], axis=1)
    has_each = bool((ends != ends[0]).any())
    whole = results // CHANNELS * CHANNELS
    lines = Lines()
    data_name, after = ("x", "") if is_wide else ("data", ", NULL" if length % TAPS == 0 else ", last")
    definitions = _add_widened(lines, length) if is_wide else _add_last(lines, length)
    streams, offset = [], 0
    last = "numbers" if not has_each else "stream"
    padded = np.zeros((results, steps * TAPS), np.int8)
    padded[:, :length] = numbers.weights
    for first, count in ((0, whole), (whole, results - whole)):
        if not count:
            continue
        products = Products(CHANNELS if first < whole else count, length, is_wide, has_each, ending_of(scaling))
        some = slice(first, first + count)
        stream = stream_of(padded[some], numbers.sums[some], scaling.part(some), CHANNELS, is_wide, has_each)
        start = "stream" if offset == 0 else f"stream + {offset}"
        to = "result" if first == 0 else f"result + {first}"
        offset += len(stream)
        lines.add(f"{products.name}({data_name}, {start}, {to}, {last}, stream + {offset}{after});")
        streams.append(stream)
        definitions.append(products.definition())
    parameters = [
        Parameter("data", "int8"),
        Parameter("stream", "int32"),
        *([] if has_each else [Parameter("numbers", "int32")]),
        Parameter("result", "int8", "out"),
        *([Parameter("x", "uint32", "scratch", elements=steps * TAPS // 2)] if is_wide else []),
    ]
    arrays: list[Any] = [np.concatenate(streams)]
    if not has_each:
        arrays.append((ends[0] & 0xFFFFFFFF).astype(np.uint32).view(np.int32))
    headers = () if is_wide else ("stddef.h",)
    function = Function("dense", tuple(parameters), str(lines), headers=headers, definitions=tuple(definitions))
    return Call(function, (data, *arrays, result), operation.label)


def _add_widened(lines: Lines, length: int) -> list[str]:
    """Append the copy of the data as int16 words to x; return the definitions."""
    words, rest = divmod(length, 4)
    if words:
        lines.add(f"widen_window_1(x, data, {words}, 1, 0);")
    if rest:
        lines.add(
            "int8_t last[4] = {0};",
            "",
            f"__builtin_memcpy(last, data + {4 * words}, {rest});",
            f"widen_window_1(x + {2 * words}, last, 1, 1, 0);",
        )
    return [widen_window(1)]


def _add_last(lines: Lines, length: int) -> list[str]:
    """Append the copy of the last taps: a whole step is read."""
    rest = length % TAPS
    if rest:
        lines.add(f"int8_t last[{TAPS}] = {{0}};", "", f"__builtin_memcpy(last, data + {length - rest}, {rest});")
    return []
