# SPDX-License-Identifier: Apache-2.0
"""Layers whose weights have 4 bits, which stay packed in flash.

A word has eight weights plus 8. Shifted by a multiple of 4 and masked by 0x000f000f, it is a word of two weights for
SMLAD. The sums have 8 times the sum of the data too much, which is subtracted at their end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.function import Call, Lines, Parameter, call_for, emits
from opwest.compiler.emission.nibbles import are_nibbles, words_of
from opwest.compiler.ir.operations import Convolution, ConvolutionSum
from opwest.compiler.kernels.assembly import NAKED, naked
from opwest.compiler.kernels.dsp.convolution import ByteLayer, call_of_layer, sum_of_layer
from opwest.compiler.kernels.dsp.dense import TAPS, WORDS, add_widened, row_numbers
from opwest.compiler.kernels.dsp.layers import Numbers, add_calls, numbers_of, parts_of
from opwest.compiler.kernels.dsp.streamed import Stream
from opwest.compiler.kernels.dsp.tiles import Tile, stored_results
from opwest.compiler.kernels.dsp.widening import widen_window
from opwest.compiler.kernels.scaling import Epilogue

ORDER = (0, 1, 4, 5, 2, 3, 6, 7)
"""The taps of a word: the low halves of the four words of widened data, then the high halves."""
CHANNELS = 4
"""Of a group of a single row."""
_MASK = ("movw lr, #15", "movt lr, #15")
_SUMS = ("r2", "r3", "r4", "r5")
_DATA = ("r6", "r7", "r8", "r9")


def _masked(to: str, word: str, place: int) -> str:
    return f"and {to}, lr, {word}" + (f", lsr #{4 * place}" if place else "")


def _ended(sums: str, correction: str, ending: Epilogue) -> str:
    """Return the addition of the correction; the high multiplication of Rounding.TWICE takes twice the sum."""
    return f"add {sums}, {correction}, {sums}, lsl #1" if ending.is_doubled else f"add {sums}, {sums}, {correction}"


def stream_of(numbers: Numbers, part: slice, channels: int, has_ends: bool = True) -> Any:
    """Return the int32 words of all groups of `channels`: first sums, weights [step][channel], ends."""
    weights = numbers.weights[part]
    count, length = weights.shape
    missing = -count % channels
    words = words_of(np.pad(weights, ((0, missing), (0, -length % TAPS))), ORDER)
    groups = len(words) // channels
    words = words.reshape(groups, channels, -1).transpose(0, 2, 1).reshape(groups, -1)
    first = np.pad(numbers.sums[part], (0, missing)).astype(np.int32).reshape(groups, channels)
    ends = np.pad(numbers.ends[part], ((0, missing), (0, 0))).reshape(groups, -1)
    return np.concatenate([first, words, *([ends] if has_ends else [])], axis=1).astype(np.int32).reshape(-1)


def corrections(pixels: int, ending: Epilogue) -> tuple[str, str]:
    """Return the name and the definition of the function (data, steps of eight taps): what is added to the sums.

    The corrections of the pixels are stored after the data.
    """
    places = 4 if ending.is_doubled else 3
    name = f"nibble_corrections_{pixels}_{places}"
    data, sums = ("r4", "r5")[:pixels], ("r2", "r3")[:pixels]
    load = "ldrd r4, r5, [r0], #8" if pixels == 2 else "ldr r4, [r0], #4"
    step = [load, *(f"smlad {one}, {word}, r12, {one}" for one, word in zip(sums, data, strict=True))]
    lines = ["push {r4, r5}", "movs r2, #0", "movs r3, #0", "movw r12, #1", "movt r12, #1", "1:", *step * WORDS]
    lines += ["subs r1, r1, #1", "bne 1b"]
    for one in sums:
        lines += [f"lsl {one}, {one}, #{places}", f"rsb {one}, {one}, #0"]
    lines += ["strd r2, r3, [r0]" if pixels == 2 else "str r2, [r0]", "pop {r4, r5}", "bx lr"]
    return name, naked(name, ("uint32_t *data", "int32_t steps"), lines)


@dataclass(frozen=True)
class NibbleTile(Tile):
    """A tile of 2 pixels by 2 channels; a step has eight taps, and the corrections follow the data."""

    @property
    def name(self) -> str:
        """The name of the C function."""
        part = "" if self.stored == self.channels else f"_of_{self.stored}"
        loop = f"_by{TAPS * self.turn}" if self.steps // self.turn > 1 else ""
        return f"tile_2x2{part}_nibbles_{TAPS * self.steps}{loop}_{self.ending.name}"

    def _stream(self) -> Stream:
        load = ["ldm r1, {r2, r3}", "ldm r1!, {r4, r5}", *_MASK]
        return Stream(load, list(self._step()), self.steps, 8 * WORDS, list(self._end()), self.loop_bytes)

    def _step(self) -> Iterator[str]:
        yield "ldrd r8, r9, [r1], #8"
        for place in range(WORDS):
            yield "ldrd r6, r7, [r0], #8"
            for channel, (word, free) in enumerate((("r8", "r10"), ("r9", "r11"))):
                yield _masked(free, word, place)
                for pixel, data in enumerate(_DATA[:2]):
                    yield f"smlad {self._sum(pixel, channel)}, {data}, {free}, {self._sum(pixel, channel)}"

    def _end(self) -> Iterator[str]:
        yield "ldrd r6, r7, [r0]"
        for number, one in enumerate(_SUMS):
            yield _ended(one, _DATA[number // 2], self.ending)
        yield from super()._end()


@dataclass(frozen=True)
class NibbleProducts:
    """A function for all groups of four channels of a single row of widened data, after which the correction is."""

    stored: int
    """The channels of a group that are results; the others pad the stream."""
    steps: int
    """Of eight taps."""
    has_each: bool
    """Whether the stream has multiplier, addend and shift of each channel; otherwise `numbers` has those of all."""
    ending: Epilogue
    loop_bytes: int | None

    @property
    def name(self) -> str:
        """The name of the C function."""
        part = "" if self.stored == CHANNELS else f"_of_{self.stored}"
        return f"products_nibbles{part}_{TAPS * self.steps}{'_each' if self.has_each else ''}_{self.ending.name}"

    def definition(self) -> str:
        """Return the C function (data, stream, result, numbers of the ending, end of the stream)."""
        parameters = ["const uint32_t *data", "const int32_t *stream", f"{self.ending.kind} *result"]
        parameters += ["const int32_t *numbers", "const int32_t *end"]
        load = [f"ldm r1!, {{{', '.join(_SUMS)}}}", *_MASK]
        end = ["ldr r6, [r0]", *(_ended(one, "r6", self.ending) for one in _SUMS)]
        end += stored_results(_SUMS, self.stored, self.ending, self.has_each)
        stream = Stream(load, list(self._step()), self.steps, 4 * WORDS, end, self.loop_bytes)
        return naked(self.name, parameters, stream.lines(), paired=stream.paired())

    def _step(self) -> Iterator[str]:
        yield f"ldm r0!, {{{', '.join(_DATA)}}}"
        for channel, one in enumerate(_SUMS):
            word = ("r10", "r11")[channel % 2]
            if channel % 2 == 0:
                yield "ldrd r10, r11, [r1], #8"
            for place, data in enumerate(_DATA):
                yield _masked("r12", word, place)
                yield f"smlad {one}, {data}, r12, {one}"


class _NibbleLayer(ByteLayer):
    """A convolution whose tiles take weights of 4 bits apart."""

    unit = TAPS
    form = (2, 2)

    def tile(self, size: int, stored: int, loop_bytes: int | None) -> Tile:
        """Return the function for a part of the channels."""
        return NibbleTile(2, size, stored, self.padded // TAPS, True, self.numbers.ending, loop_bytes)

    def stream(self, part: slice, size: int) -> Any:
        """Return the constants of a part of the channels."""
        return stream_of(self.numbers, part, size)

    def multiply(self, lines: Lines, count: int) -> None:
        """Append the corrections, and the results of `count` pixels of the block, at y."""
        name, _ = corrections(2, self.numbers.ending)
        with lines.repeat("g", self.groups):
            lines.add(f"{name}({self.at('block', self.block)}, {self.padded // TAPS});")
        super().multiply(lines, count)


@emits(ConvolutionSum, "dsp-nibbles")
@emits(Convolution, "dsp-nibbles", has_pitch=True)
def render(operation: Convolution, shared: bool = False, loop_bytes: int | None = None) -> Call | None:
    """Return the call with weights of 4 bits in flash: 2 pixels by 2 channels; None for other weights."""
    numbers = numbers_of(operation, accepts_groups=True)
    if numbers is None or operation.results[0].size < 2 * len(operation.weights) or not are_nibbles(numbers.weights):
        return None
    total = sum_of_layer(operation)
    if total is None and isinstance(operation, ConvolutionSum):
        return None
    layer = _NibbleLayer(operation, numbers, True, total, loop_bytes)
    _, definition = corrections(2, numbers.ending)
    return call_of_layer(layer, shared, definitions=(definition,))


@emits(Convolution, "dsp-nibbles")
def render_row(operation: Convolution, loop_bytes: int | None = None) -> Call | None:
    """Return the call for a single row; None for other weights."""
    numbers = row_numbers(operation)
    if numbers is None or not are_nibbles(numbers.weights):
        return None
    results, length = numbers.weights.shape
    steps = -(-length // TAPS)
    has_each = bool((numbers.ends != numbers.ends[0]).any())
    parts = parts_of(results, CHANNELS)
    products = [NibbleProducts(stored, steps, has_each, numbers.ending, loop_bytes) for _, stored in parts]
    streams = [stream_of(numbers, some, CHANNELS, has_each) for some, _ in parts]
    name, definition = corrections(1, numbers.ending)
    lines = Lines()
    add_widened(lines, length)
    lines.add(f"{name}(x, {steps});")
    add_calls(
        lines, parts, [one.name for one in products], streams, ("x", "result", "stream" if has_each else "numbers")
    )
    arguments: dict[str, Any] = {"data": operation.inputs[0], "stream": np.concatenate(streams)}
    if not has_each:
        arguments["numbers"] = numbers.ends[0]
    scratch = [Parameter("x", "uint32", "scratch", elements=steps * WORDS + 1)]
    definitions = (NAKED, widen_window(1, 1), definition, *(one.definition() for one in products))
    return call_for(operation, "dense", lines, arguments, scratch=scratch, definitions=definitions)
