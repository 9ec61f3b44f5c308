# SPDX-License-Identifier: Apache-2.0
"""Fully connected layers with one row of data; of int16 also convolutions with one window of adjacent elements."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.function import Call, Lines, Parameter, call_for, emits
from opwest.compiler.ir.operations import Convolution
from opwest.compiler.kernels.assembly import NAKED, naked
from opwest.compiler.kernels.dsp.layers import (
    ORDER,
    Numbers,
    add_calls,
    can_pack,
    numbers_of,
    parts_of,
    stream_of,
    wide_numbers_of,
)
from opwest.compiler.kernels.dsp.streamed import MARK, NEXT_GROUP, SAVED, Stream
from opwest.compiler.kernels.dsp.tiles import stored_results
from opwest.compiler.kernels.dsp.wide_tiles import ends_of_sums, wide_stream
from opwest.compiler.kernels.dsp.widening import widen_window
from opwest.compiler.kernels.scaling import Epilogue

CHANNELS = 4
TAPS = 8
"""The taps of a step."""
WORDS = TAPS // 2
_SUMS = ["r2", "r3", "r4", "r5"]
_DATA = ["r6", "r7", "r8", "r9"]
_WEIGHTS = ["r10", "r11", "r12", "lr"]
_PAIRS = [(f"r{low}", f"r{low + 1}") for low in range(2, 10, 2)]
_KINDS = {"bytes": "int8_t", "widened": "uint32_t", "halves": "uint32_t", "wide": "int16_t"}
"""The C type of the data: int8 with int8 weights, int8 widened to words with int8 or int16 weights, int16.

MARK follows widened data, in words up to the end of a step.
"""
MAX_WIDENED, MIN_RESULTS = 256, 48
"""The most taps that are widened for int8 weights, which takes memory, and the fewest results that it is worth."""


@dataclass(frozen=True)
class Products:
    """A function for all groups of four channels."""

    kind: str
    """Of _KINDS."""
    stored: int
    """The channels of a group that are results; the others pad the stream."""
    length: int
    """Taps."""
    has_each: bool
    """Whether the stream has multiplier, addend and shift of each channel; otherwise `numbers` has those of all."""
    ending: Epilogue
    """In the long form sums of 64 bits are stored instead of results."""
    loop_bytes: int | None
    """The bytes that its code should have; None: no limit."""

    @property
    def name(self) -> str:
        """The name of the C function."""
        if self.ending.is_long:
            return f"sums_wide_{self.length}"
        part = "" if self.stored == CHANNELS else f"_of_{self.stored}"
        each = "_each" if self.has_each else ""
        return f"products_{self.kind}{part}_{self.length}{each}_{self.ending.name}"

    def definition(self) -> str:
        """Return the C function (data, stream, result or sums, numbers of the ending, end of the stream, last data).

        The last data are eight taps of int8, of which those of the row are used.
        """
        result = "uint32_t" if self.ending.is_long else self.ending.kind
        parameters = [f"const {_KINDS[self.kind]} *data", "const int32_t *stream", f"{result} *result"]
        parameters += ["const int32_t *numbers", "const int32_t *end"]
        parameters += ["const int8_t *last"] if self.kind == "bytes" else []
        stream = self._stream()
        return naked(self.name, parameters, stream.lines(), paired=stream.paired())

    def _stream(self) -> Stream:
        steps, size, load, first = self.length // TAPS, 2 * TAPS, "{r2-r5}", None
        fetch = None
        if self.kind == "bytes":
            step, size, first = self._narrow(), TAPS, 2
        elif self.kind in ("widened", "halves"):
            fetch, steps = (f"ldm r0!, {{{', '.join(_DATA)}}}", _DATA[0]), -(-self.length // TAPS)
            step = self._packed() if self.kind == "widened" else self._short(WORDS, "")
        elif self.ending.is_long:
            step, load = self._long(WORDS), "{r2-r9}"
        else:
            step, first = self._short(WORDS), WORDS
        end = list(self._end())
        return Stream([f"ldm r1!, {load}"], list(step), steps, size, end, self.loop_bytes, fetch, first)

    def _narrow(self) -> Iterator[str]:
        """Yield the products of a step of bytes."""
        # Data need not be aligned: no LDM.
        first, second, third, fourth = _DATA
        yield f"ldr {first}, [r0], #4"
        yield f"ldr {third}, [r0], #4"
        for low, high in ((first, second), (third, fourth)):
            yield f"sxtb16 {high}, {low}, ror #8"
            yield f"sxtb16 {low}, {low}"
        yield from self._packed()

    def _packed(self) -> Iterator[str]:
        """Yield the products of a step of int8 weights with loaded data."""
        for pair in (_DATA[:2], _DATA[2:]):
            yield f"ldm r1!, {{{', '.join(_WEIGHTS)}}}"
            for offset in (1, 0):
                if offset == 0:
                    yield from (f"sxtb16 {weight}, {weight}" for weight in _WEIGHTS)
                for place, weight in enumerate(_WEIGHTS):
                    register = _SUMS[2 * (place % 2) + offset]
                    yield f"smlad {register}, {pair[place // 2]}, {weight}, {register}"

    def _short(self, words: int, load: str = "ldr") -> Iterator[str]:
        """Yield the products of some words, with sums of 32 bits. `load`: of each word; empty: they are loaded."""
        if load:
            yield from (f"{load} {data}, [r0], #4" for data in _DATA[:words])
        for data in _DATA[:words]:
            yield f"ldm r1!, {{{', '.join(_WEIGHTS)}}}"
            for register, weight in zip(_SUMS, _WEIGHTS, strict=True):
                yield f"smlad {register}, {data}, {weight}, {register}"

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

    def _end(self) -> Iterator[str]:
        """Yield the last taps, the results or sums of a group, and the branch to the next one."""
        if self.kind in ("bytes", "widened"):
            if self.kind == "bytes" and self.length % TAPS:
                # The last taps that are no whole step are in other memory.
                yield f"ldr r0, [sp, #{SAVED + 4}]"
                yield from self._narrow()
            for first, second in (_SUMS[:2], _SUMS[2:]):
                # 256 * second sum + first sum - first sum, shifted by 8, is the second sum; doubled if shifted by 7.
                yield f"sub {second}, {second}, {first}"
                if self.ending.is_doubled:
                    yield f"lsl {first}, {first}, #1"
                yield f"asr {second}, {second}, #{7 if self.ending.is_doubled else 8}"
        elif self.kind == "wide":
            step = self._long if self.ending.is_long else self._short
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


@emits(Convolution, "dsp-bytes")
def with_bytes(operation: Convolution, loop_bytes: int | None = None) -> Call | None:
    """Return the call with int8 weights in flash; None if a sum could be too large."""
    numbers = row_numbers(operation)
    can_use = numbers is not None and can_pack(numbers.weights, numbers.bounds)
    if numbers is None or not can_use:
        return None
    results, length = numbers.weights.shape
    return _call(operation, numbers, kind_of_bytes(results, length), loop_bytes)


def kind_of_bytes(results: int, length: int) -> str:
    """Return the form of the data for int8 weights."""
    return "widened" if length <= MAX_WIDENED and results >= MIN_RESULTS else "bytes"


@emits(Convolution, "dsp-halves")
def with_halves(operation: Convolution, loop_bytes: int | None = None) -> Call | None:
    """Return the call with int16 weights in flash."""
    numbers = row_numbers(operation)
    return None if numbers is None else _call(operation, numbers, "halves", loop_bytes)


def row_numbers(operation: Convolution) -> Numbers | None:
    """Return the constants of an int8 layer; None for more rows."""
    data, (results, kh, kw, length) = operation.inputs[0], operation.weights.shape
    if operation.results[0].size != results or (kh, kw) != (1, 1) or data.size != length:
        return None
    return None if operation.window.is_padded((1, 1)) else numbers_of(operation)


def is_dense(operation: Convolution) -> bool:
    """Whether the weights of each channel are in the order of all elements of the data."""
    data, result, weights = operation.inputs[0], operation.results[0], operation.weights
    if operation.groups != 1 or result.size != len(weights) or data.size != weights[0].size:
        return False
    if operation.window.is_padded(operation.window.size):
        return False
    return weights.shape[1:3] == (1, 1) or operation.window.size == data.shape[1:3]


@emits(Convolution, "dsp-wide")
def render_wide(operation: Convolution, loop_bytes: int | None = None) -> Call | None:
    """Return the call for int16; None for more rows."""
    numbers = wide_numbers_of(operation) if is_dense(operation) else None
    if numbers is None:
        return None
    if numbers.ending.is_long:
        return _long_call(operation, numbers, loop_bytes)
    return _call(operation, numbers, "wide", loop_bytes)


def _call(operation: Convolution, numbers: Numbers, kind: str, loop_bytes: int | None) -> Call:
    """Return the call with sums of 32 bits."""
    lines = Lines()
    arguments, options = add_products(lines, numbers, kind, loop_bytes, "result")
    arguments = {"data": operation.inputs[0], **arguments}
    return call_for(operation, "dense", lines, arguments, **options)


def add_products(
    lines: Lines, numbers: Numbers, kind: str, loop_bytes: int | None, result: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Append the products of a row at `data`; return the constants by name, and the options of the call."""
    results, length = numbers.weights.shape
    ends = numbers.ends
    has_each = bool((ends != ends[0]).any())
    parts = parts_of(results, CHANNELS)
    products = [Products(kind, stored, length, has_each, numbers.ending, loop_bytes) for _, stored in parts]
    missing = 0 if kind == "wide" else -length % TAPS
    padded = dataclasses.replace(numbers, weights=np.pad(numbers.weights, ((0, 0), (0, missing))))
    order = (0, 1) if kind == "wide" else ORDER
    is_wide, is_widened = kind in ("halves", "wide"), kind in ("widened", "halves")
    streams = [stream_of(padded, some, CHANNELS, is_wide, has_each, order) for some, _ in parts]
    if is_widened:
        add_widened(lines, length)
    elif missing:
        _add_last(lines, length)
    has_numbers = not has_each and numbers.scaling is not None
    given = ("x" if is_widened else "data", result, "numbers" if has_numbers else "stream")
    after = "" if kind != "bytes" else ", last" if missing else ", NULL"
    add_calls(lines, parts, [product.name for product in products], streams, given, after)
    arguments: dict[str, Any] = {"stream": np.concatenate(streams)}
    if has_numbers:
        arguments["numbers"] = ends[0]
    words = (length + missing) // 2 + WORDS
    scratch = [Parameter("x", "uint32", "scratch", elements=words)] if is_widened else []
    headers = ("stddef.h",) if kind == "bytes" else ()
    copies = [widen_window(1, 1)] if is_widened else []
    definitions = (NAKED, *copies, *(product.definition() for product in products))
    return arguments, {"scratch": scratch, "headers": headers, "definitions": definitions}


def _long_call(operation: Convolution, numbers: Numbers, loop_bytes: int | None) -> Call:
    """Return the call with sums of 64 bits."""
    results, length = numbers.weights.shape
    padded = np.pad(numbers.weights, ((0, 0), (0, length % 2)))
    stream = wide_stream(padded, numbers.sums, CHANNELS)
    products = Products("wide", CHANNELS, length, False, numbers.ending, loop_bytes)
    name, definitions = ends_of_sums(numbers.ending)
    lines = Lines()
    lines.add(
        f"{products.name}(data, stream, sums, ends, stream + {len(stream)});",
        f"{name}(sums, ends, result, {results});",
    )
    arguments = {"data": operation.inputs[0], "stream": stream, "ends": numbers.ends.reshape(-1)}
    scratch = [Parameter("sums", "uint32", "scratch", elements=-(-results // CHANNELS) * CHANNELS * 2)]
    definitions = (NAKED, products.definition(), *definitions)
    return call_for(operation, "dense", lines, arguments, scratch=scratch, definitions=definitions)


def add_widened(lines: Lines, length: int) -> None:
    """Append the copy of the data as int16 words to x, and the mark."""
    words, rest = divmod(length, 4)
    if words:
        lines.add(f"widen_window_1_by_1(x, data, {words}, 1, 0);")
    if rest:
        lines.add(
            "int8_t last[4] = {0};",
            "",
            f"__builtin_memcpy(last, data + {4 * words}, {rest});",
            f"widen_window_1_by_1(x + {2 * words}, last, 1, 1, 0);",
        )
    lines.add(f"x[{-(-length // TAPS) * WORDS}] = UINT32_C({MARK:#x});")


def _add_last(lines: Lines, length: int) -> None:
    """Append the copy of the last taps, which are no whole step: a whole step is read."""
    rest = length % TAPS
    lines.add(f"int8_t last[{TAPS}] = {{0}};", "", f"__builtin_memcpy(last, data + {length - rest}, {rest});")
