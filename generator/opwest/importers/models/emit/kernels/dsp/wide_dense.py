# SPDX-License-Identifier: Apache-2.0
"""int16 fully connected layers with one row of data; also convolutions with one window, whose elements are adjacent."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.importers.models.emit.function import Call, Function, Parameter
from opwest.importers.models.emit.kernels.dsp.stream import stream_of
from opwest.importers.models.emit.kernels.dsp.wide_layer import WideNumbers, wide_numbers_of
from opwest.importers.models.emit.kernels.dsp.wide_products import CHANNELS, WideProducts
from opwest.importers.models.emit.kernels.dsp.wide_tile import ends_of_sums, wide_stream
from opwest.importers.models.emit.registry import emits
from opwest.importers.models.emit.text import Lines
from opwest.importers.models.ir.operations import Convolution


def is_dense(operation: Convolution) -> bool:
    """Whether the weights of each channel are in the order of all elements of the data."""
    data, result, weights = operation.inputs[0], operation.results[0], operation.weights
    if operation.groups != 1 or result.size != len(weights) or data.size != weights[0].size:
        return False
    if operation.window.is_padded(operation.window.size):
        return False
    return weights.shape[1:3] == (1, 1) or operation.window.size == data.shape[1:3]


@emits(Convolution, "dsp-wide")
def render(operation: Convolution) -> Call | None:
    """Return the call; None for more rows."""
    numbers = wide_numbers_of(operation, operation.weights) if is_dense(operation) else None
    if numbers is None:
        return None
    return _long(operation, numbers) if numbers.scaling.is_long else _short(operation, numbers)


def _long(operation: Convolution, numbers: WideNumbers) -> Call:
    """Return the call with sums of 64 bits."""
    results, length = numbers.weights.shape
    padded = np.zeros((results, length + length % 2), np.int64)
    padded[:, :length] = numbers.weights
    stream = wide_stream(padded, numbers.sums, CHANNELS)
    products = WideProducts(CHANNELS, length, has_each=False, ending=numbers.ending)
    name, definitions = ends_of_sums(numbers.ending)
    lines = Lines()
    lines.add(
        f"{products.name}(data, stream, sums, ends, stream + {len(stream)});",
        f"{name}(sums, ends, result, {results});",
    )
    parameters = (
        Parameter("data", "int16"),
        Parameter("stream", "int32"),
        Parameter("ends", "int32"),
        Parameter("result", "int16", "out"),
        Parameter("sums", "uint32", "scratch", elements=-(-results // CHANNELS) * CHANNELS * 2),
    )
    function = Function("dense", parameters, str(lines), definitions=(products.definition(), *definitions))
    arguments = (operation.inputs[0], stream, numbers.ends.reshape(-1), operation.results[0])
    return Call(function, arguments, operation.label)


def _short(operation: Convolution, numbers: WideNumbers) -> Call:
    """Return the call with sums of 32 bits."""
    results, length = numbers.weights.shape
    has_each = bool((numbers.ends != numbers.ends[0]).any())
    whole = results // CHANNELS * CHANNELS
    last = "stream" if has_each else "numbers"
    streams, texts, offset = [], [], 0
    lines = Lines()
    for first, count in ((0, whole), (whole, results - whole)):
        if not count:
            continue
        products = WideProducts(CHANNELS if first < whole else count, length, has_each, numbers.ending)
        some = slice(first, first + count)
        part = numbers.scaling.part(some)
        stream = stream_of(
            numbers.weights[some], numbers.sums[some], part, CHANNELS, is_wide=True, has_ends=has_each, order=(0, 1)
        )
        start = "stream" if offset == 0 else f"stream + {offset}"
        to = "result" if first == 0 else f"result + {first}"
        offset += len(stream)
        lines.add(f"{products.name}(data, {start}, {to}, {last}, stream + {offset});")
        streams.append(stream)
        texts.append(products.definition())
    parameters = (
        Parameter("data", "int16"),
        Parameter("stream", "int32"),
        *([] if has_each else [Parameter("numbers", "int32")]),
        Parameter("result", "int16", "out"),
    )
    function = Function("dense", parameters, str(lines), definitions=tuple(texts))
    arrays: list[Any] = [np.concatenate(streams), *([] if has_each else [numbers.ends[0]])]
    return Call(function, (operation.inputs[0], *arrays, operation.results[0]), operation.label)
