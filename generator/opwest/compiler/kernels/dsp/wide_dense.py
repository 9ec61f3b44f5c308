# SPDX-License-Identifier: Apache-2.0
"""int16 fully connected layers with one row of data; also convolutions with one window, whose elements are adjacent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.function import Call, Function, Lines, Parameter, emits
from opwest.compiler.ir.operations import Convolution
from opwest.compiler.kernels.assembly import naked
from opwest.compiler.kernels.dsp.layers import WideNumbers, stream_of, wide_numbers_of
from opwest.compiler.kernels.dsp.streamed import NEXT_GROUP, streamed
from opwest.compiler.kernels.dsp.tiles import Epilogue, stored_results
from opwest.compiler.kernels.dsp.wide_tiles import ends_of_sums, wide_stream

CHANNELS = 4
WORDS = 4
"""The words of two taps of a step."""
UNROLLED = 4
"""The most steps without a branch."""
_SUMS = ("r2", "r3", "r4", "r5")
_DATA = ("r6", "r7", "r8", "r9")
_WEIGHTS = ("r10", "r11", "r12", "lr")
_PAIRS = tuple((f"r{low}", f"r{low + 1}") for low in range(2, 10, 2))


@dataclass(frozen=True)
class WideProducts:
    """A function for all groups of four channels."""

    stored: int
    """The channels of a group that are results; the others pad the stream."""
    length: int
    """The taps."""
    has_each: bool
    """Whether the stream has multiplier, addend and shift of each channel; otherwise `numbers` has those of all."""
    ending: Epilogue
    """In the long form sums of 64 bits are stored instead of results."""

    @property
    def name(self) -> str:
        """The name of the C function."""
        if self.ending.is_long:
            return f"sums_wide_{self.length}"
        part = "" if self.stored == CHANNELS else f"_of_{self.stored}"
        each = "_each" if self.has_each else ""
        return f"products_wide{part}_{self.length}{each}_{self.ending.name}"

    def definition(self) -> str:
        """Return the C function (data, stream, result or sums, numbers of the ending, end of the stream)."""
        kind = "uint32_t" if self.ending.is_long else self.ending.kind
        parameters = ("const int16_t *data", "const int32_t *stream", f"{kind} *result", "const int32_t *numbers")
        return naked("void", self.name, (*parameters, "const int32_t *end"), self._lines())

    def _lines(self) -> Iterator[str]:
        is_long = self.ending.is_long
        load = [f"ldm r1!, {{{'r2-r9' if is_long else 'r2-r5'}}}"]
        step = self._long if is_long else self._short
        return streamed(load, list(step(WORDS)), self.length // 2 // WORDS, UNROLLED, WORDS * 4, self._end(step))

    def _end(self, step: Callable[..., Iterator[str]]) -> Iterator[str]:
        """Yield the last words, the results or sums of a group, and the branch to the next one."""
        yield from step(self.length // 2 % WORDS)
        if self.length % 2:
            yield from step(1, "ldrh")
        if not self.ending.is_long:
            yield from stored_results(_SUMS, self.stored, self.ending, self.has_each)
            return
        yield "ldr r10, [sp, #4]"
        yield "stm r10!, {r2-r9}"
        yield "str r10, [sp, #4]"
        yield from NEXT_GROUP

    def _short(self, words: int, load: str = "ldr") -> Iterator[str]:
        """Yield the products of some words, with sums of 32 bits."""
        for data in _DATA[:words]:
            yield f"{load} {data}, [r0], #4"
        for data in _DATA[:words]:
            yield f"ldm r1!, {{{', '.join(_WEIGHTS)}}}"
            for one, weight in zip(_SUMS, _WEIGHTS, strict=True):
                yield f"smlad {one}, {data}, {weight}, {one}"

    def _long(self, words: int, load: str = "ldr") -> Iterator[str]:
        """Yield the products of some words, with sums of 64 bits."""
        count = words * CHANNELS
        for number in range(count):
            if number % CHANNELS == 0:
                yield f"{load} lr, [r0], #4"
            if number % 3 == 0:
                few = min(3, count - number)
                yield "ldr r10, [r1], #4" if few == 1 else f"ldm r1!, {{{', '.join(_WEIGHTS[:few])}}}"
            low, high = _PAIRS[number % CHANNELS]
            yield f"smlald {low}, {high}, lr, {_WEIGHTS[number % 3]}"


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
