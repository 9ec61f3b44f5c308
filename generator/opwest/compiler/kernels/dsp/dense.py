# SPDX-License-Identifier: Apache-2.0
"""int8 fully connected layers with one row of data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.function import Call, Function, Lines, Parameter, emits
from opwest.compiler.ir.operations import Convolution
from opwest.compiler.kernels.assembly import naked
from opwest.compiler.kernels.dsp.layers import can_pack, numbers_of, shifts_of, stream_of
from opwest.compiler.kernels.dsp.streamed import SAVED, streamed
from opwest.compiler.kernels.dsp.tiles import Epilogue, epilogue_of, stored_results
from opwest.compiler.kernels.dsp.widening import widen_window

CHANNELS = 4
TAPS = 8
"""The taps of a step."""
UNROLLED = 4
"""The most steps without a branch."""
_SUMS = ["r2", "r3", "r4", "r5"]
_DATA = ["r6", "r7", "r8", "r9"]
_WEIGHTS = ["r10", "r11", "r12", "lr"]


@dataclass(frozen=True)
class Products:
    """A function for all groups of four channels."""

    stored: int
    """The channels of a group that are results; the others pad the stream."""
    length: int
    """Taps."""
    is_wide: bool
    """Whether weights are int16."""
    has_each: bool
    """Whether the stream has multiplier, addend and shift of each channel; otherwise `numbers` has those of all."""
    ending: Epilogue

    @property
    def name(self) -> str:
        """The name of the C function."""
        kind = "halves" if self.is_wide else "bytes"
        part = "" if self.stored == CHANNELS else f"_of_{self.stored}"
        each = "_each" if self.has_each else ""
        return f"products_{kind}{part}_{self.length}{each}_{self.ending.name}"

    def definition(self) -> str:
        """Return the C function (data, stream, result, numbers of the ending, end of the stream, last data).

        The last data of int8 weights are eight taps, of which those of the row are used.
        """
        data = "const uint32_t *data" if self.is_wide else "const int8_t *data"
        parameters = (data, "const int32_t *stream", "int8_t *result", "const int32_t *numbers")
        more = ("const int32_t *end", *([] if self.is_wide else ["const int8_t *last"]))
        return naked("void", self.name, (*parameters, *more), self._lines())

    def _lines(self) -> Iterator[str]:
        # The last taps of int8 data that are no whole step are in other memory.
        steps = -(-self.length // TAPS) if self.is_wide else self.length // TAPS
        step = list(self._wide() if self.is_wide else self._narrow())
        load = [f"ldm r1!, {{{', '.join(_SUMS)}}}"]
        return streamed(load, step, steps, UNROLLED, TAPS * (2 if self.is_wide else 1), self._end(step))

    def _wide(self) -> Iterator[str]:
        yield f"ldm r0!, {{{', '.join(_DATA)}}}"
        for data in _DATA:
            yield f"ldm r1!, {{{', '.join(_WEIGHTS)}}}"
            for one, weight in zip(_SUMS, _WEIGHTS, strict=True):
                yield f"smlad {one}, {data}, {weight}, {one}"

    def _narrow(self) -> Iterator[str]:
        # Data need not be aligned: no LDM.
        first, second, third, fourth = _DATA
        yield f"ldr {first}, [r0], #4"
        yield f"ldr {third}, [r0], #4"
        for low, high in ((first, second), (third, fourth)):
            yield f"sxtb16 {high}, {low}, ror #8"
            yield f"sxtb16 {low}, {low}"
        for pair in (_DATA[:2], _DATA[2:]):
            yield f"ldm r1!, {{{', '.join(_WEIGHTS)}}}"
            for offset in (1, 0):
                if offset == 0:
                    yield from (f"sxtb16 {weight}, {weight}" for weight in _WEIGHTS)
                for place, weight in enumerate(_WEIGHTS):
                    one = _SUMS[2 * (place % 2) + offset]
                    yield f"smlad {one}, {pair[place // 2]}, {weight}, {one}"

    def _end(self, step: Sequence[str]) -> Iterator[str]:
        """Yield the last step, the results of a group and the branch to the next one."""
        if not self.is_wide:
            if self.length % TAPS:
                yield f"ldr r0, [sp, #{SAVED + 4}]"
                yield from step
            for first, second in (_SUMS[:2], _SUMS[2:]):
                yield f"sub {second}, {second}, {first}"
                if self.ending.is_doubled:
                    yield f"lsl {first}, {first}, #1"
                yield f"asr {second}, {second}, #{7 if self.ending.is_doubled else 8}"
        yield from stored_results(_SUMS, self.stored, self.ending, self.has_each)


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
        products = Products(CHANNELS if first < whole else count, length, is_wide, has_each, epilogue_of(scaling))
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
