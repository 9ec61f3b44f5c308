# SPDX-License-Identifier: Apache-2.0
"""Tiles of sums in registers: 2 pixels by 4 channels of int8 weights, or 4 pixels by 2 channels of int16 weights.

The tile reads a block of widened data, [step][pixel] words of two taps, and a stream of constants: for each group of
channels the first sums, the weights [step][word], and multiplier, addend and shift of each channel.

With int8 weights, a halfword contains two channels: 256 * second + first. SMLAD with the word gives 256 * second sum +
first sum, and with its low bytes (SXTB16) the first sum. The difference, shifted by 8, is the second sum: exact if its
magnitude is below 2**23, because all other bits wrap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.kernels.assembly import limited, naked
from opwest.compiler.kernels.dsp.streamed import ENDS, NEXT_GROUP, SAVED, Stream, turn_of
from opwest.compiler.kernels.scaling import Epilogue

_DATA, _STREAM = "r0", "r1"
_SUMS = [f"r{number}" for number in range(2, 10)]
_A, _B, _X, _Y = "r10", "r11", "r12", "lr"


@dataclass(frozen=True)
class Tile:
    """A function for all groups of channels of a block of pixels."""

    pixels: int
    """2 or 4."""
    channels: int
    """The channels of a group: 2 or 4; at most 8 sums."""
    stored: int
    """The channels of a group that are results; the others pad the stream."""
    steps: int
    """Pairs of taps."""
    is_wide: bool
    """Whether weights are int16."""
    ending: Epilogue
    loop_bytes: int | None
    """The bytes that its code should have; None: no limit."""
    marked: str = ""
    """What MARK follows: data, weights; empty: neither."""
    is_any: bool = False
    """Whether MARK, after data or weights, ends any number of turns of `steps` steps."""
    has_each: bool = True
    """Whether the stream has multiplier, addend and shift of each channel; otherwise `numbers` has those of all."""

    @property
    def name(self) -> str:
        """The name of the C function."""
        kind = "halves" if self.is_wide else "bytes"
        part = "" if self.stored == self.channels else f"_of_{self.stored}"
        if self.is_any:
            turns = f"{self.marked}_turns_of_{2 * self.steps}{'' if self.has_each else '_equal'}"
            return f"tile_{self.pixels}x{self.channels}{part}_{kind}_{turns}_{self.ending.name}"
        loop = f"_by{2 * self.turn}{'' if self.marked else '_unmarked'}" if self.steps // self.turn > 1 else ""
        return f"tile_{self.pixels}x{self.channels}{part}_{kind}_{2 * self.steps}{loop}_{self.ending.name}"

    @property
    def turn(self) -> int:
        """The steps that follow each other without a branch."""
        return turn_of(self.steps, len(list(self._step())), self.pixels + len(list(self._end())), self.loop_bytes)

    def definition(self) -> str:
        """Return the C function (data, stream, result, step from pixel to pixel in bytes, end of the stream, numbers).

        Only a tile without numbers of each channel has the parameter `numbers`.
        """
        parameters = ["const uint32_t *data", "const int32_t *stream", f"{self.ending.kind} *result", "int32_t step"]
        parameters += ["const int32_t *end", *([] if self.has_each else ["const int32_t *numbers"])]
        stream = self._stream()
        return naked(self.name, parameters, stream.lines(), paired=stream.paired())

    def _sum(self, pixel: int, channel: int) -> str:
        return _SUMS[pixel * self.channels + channel]

    def _stream(self) -> Stream:
        rows = [[self._sum(pixel, channel) for channel in range(self.channels)] for pixel in range(self.pixels)]
        load = [f"ldm r1{'!' if row is rows[-1] else ''}, {{{', '.join(row)}}}" for row in rows]
        data, weights, *rest = self._step()
        end, size = list(self._end()), self.pixels * 4
        if self.marked == "weights":
            passed = [f"add {_STREAM}, {_STREAM}, #8"]
            step, fetch = [data, *rest], (weights, _A)
            return Stream(load, step, self.steps, size, end, self.loop_bytes, fetch, is_any=self.is_any, marks=passed)
        if self.marked == "data":
            step, fetch = [weights, *rest], (data, _X)
            return Stream(load, step, self.steps, size, end, self.loop_bytes, fetch, is_any=self.is_any)
        return Stream(load, [data, weights, *rest], self.steps, size, end, self.loop_bytes)

    def _step(self) -> Iterator[str]:
        """Yield the products of one pair of taps, first the load of data."""
        yield f"ldrd {_X}, {_Y}, [{_DATA}], #{self.pixels * 4}"
        if self.is_wide:
            yield f"ldrd {_A}, {_B}, [{_STREAM}], #8"
            for pixel in range(0, self.pixels, 2):
                if pixel:
                    yield f"ldrd {_X}, {_Y}, [{_DATA}, #{pixel * 4 - self.pixels * 4}]"
                for data, number in ((_X, pixel), (_Y, pixel + 1)):
                    for weight, channel in ((_A, 0), (_B, 1)):
                        yield _product(self._sum(number, channel), data, weight)
            return
        words = (_A, _B)[: self.channels // 2]
        yield f"ldrd {_A}, {_B}, [{_STREAM}], #8" if len(words) == 2 else f"ldr {_A}, [{_STREAM}], #4"
        for offset in (1, 0):
            if offset == 0:
                yield from (f"sxtb16 {word}, {word}" for word in words)
            for place, word in enumerate(words):
                for data, pixel in ((_X, 0), (_Y, 1)):
                    yield _product(self._sum(pixel, 2 * place + offset), data, word)

    def _end(self) -> Iterator[str]:
        """Yield the results of a group and the branch to the next one."""
        yield f"ldrd {_DATA}, {_Y}, [sp, #4]"
        if not self.has_each:
            yield f"ldr {_X}, [sp, #{SAVED + 4}]"
            yield f"ldm {_X}, {{{_A}, {_B}, {_X}}}"
            channels = [[self._sum(pixel, channel) for pixel in range(self.pixels)] for channel in range(self.stored)]
            for channel, sums in enumerate(channels):
                yield from self._separated(channel, sums)
            yield from results([register for sums in channels for register in sums], self.ending, (_A, _B, _X))
            yield from (line for sums in channels for line in self._stores(sums))
        for channel in range(self.channels if self.has_each else 0):
            has_numbers = self.ending.bits < 32
            if channel >= self.stored:
                yield from [f"adds {_STREAM}, {_STREAM}, #12"] * has_numbers
                continue
            yield from [f"ldm {_STREAM}!, {{{_A}, {_B}, {_X}}}"] * has_numbers
            sums = [self._sum(pixel, channel) for pixel in range(self.pixels)]
            yield from self._separated(channel, sums)
            yield from results(sums, self.ending, (_A, _B, _X))
            yield from self._stores(sums)
        yield f"str {_DATA}, [sp, #4]"
        yield f"ldr {_A}, [sp, #{SAVED}]"
        yield f"ldr {_DATA}, [sp]"
        yield from NEXT_GROUP[2:]

    def _separated(self, channel: int, sums: list[str]) -> Iterator[str]:
        """Yield the sums of a channel, doubled if the ending needs it."""
        if self.is_wide:
            return  # The stream has doubled weights and sums.
        # 256 * second sum + first sum, less the first sum, shifted by 8 is the second sum; by 7 it is doubled.
        places = 7 if self.ending.is_doubled else 8
        if channel % 2 == 0:
            for pixel, register in enumerate(sums):
                other = self._sum(pixel, channel + 1)
                yield f"sub {other}, {other}, {register}"
                if self.ending.is_doubled:
                    yield f"lsl {register}, {register}, #1"
        else:
            yield from (f"asr {register}, {register}, #{places}" for register in sums)

    def _stores(self, sums: list[str]) -> Iterator[str]:
        store = self.ending.store
        if self.pixels == 4:
            yield f"add {_A}, {_DATA}, {_Y}"
            yield f"{store} {sums[3]}, [{_A}, {_Y}, lsl #1]"
            yield f"{store} {sums[2]}, [{_A}, {_Y}]"
            yield f"{store} {sums[1]}, [{_A}]"
        else:
            yield f"{store} {sums[1]}, [{_DATA}, {_Y}]"
        yield f"{store} {sums[0]}, [{_DATA}], #{self.ending.bits // 8}"


def results(sums: list[str], ending: Epilogue, numbers: tuple[str, str, str]) -> Iterator[str]:
    """Yield the instructions from sums to clamped results; `numbers`: registers of multiplier, addend, shift."""
    if ending.bits == 32:
        return
    multiplier, addend, shift = numbers
    # SMMULR adds 2**31 to the product of 64 bits: `high` rounded half up. SMMLA adds the addend to `high` itself.
    rounded = "r" if ending.is_doubled else ""
    for register in sums:
        if ending.is_signed:
            yield f"smmul{rounded} {register}, {register}, {multiplier}"
        else:
            yield f"smmla{rounded} {register}, {register}, {multiplier}, {addend}"
    for register in sums:
        if ending.is_signed:
            yield f"add {register}, {register}, {register}, asr #31"
            yield f"add {register}, {register}, {addend}"
        yield f"asr {register}, {register}, {shift}"
    yield from clamped(sums, ending, multiplier)


def stored_results(sums: Sequence[str], stored: int, ending: Epilogue, has_each: bool) -> Iterator[str]:
    """Yield the results of the first sums of a group of one pixel, and the branch to the next group.

    Multiplier, addend and shift are in the stream for each channel, or those of all at the fourth argument.
    """
    yield "ldrd r6, r7, [sp, #4]"  # the result, and the numbers of all channels
    used = list(sums[:stored])
    if ending.bits == 32:
        pass
    elif has_each:
        for register in used:
            yield "ldm r1!, {r10-r12}"
            yield from results([register], ending, ENDS)
        if stored < len(sums):
            yield f"add r1, r1, #{12 * (len(sums) - stored)}"
    else:
        yield "ldm r7, {r10-r12}"
        yield from results(used, ending, ENDS)
    yield from (f"{ending.store} {register}, [r6], #{ending.bits // 8}" for register in used)
    yield "str r6, [sp, #4]"
    yield from NEXT_GROUP


def clamped(sums: list[str], ending: Epilogue, free: str) -> Iterator[str]:
    """Yield the clamps of results; `free` is a register for limits of 16 bits. Only the low bits are results."""
    low, high = ending.low, ending.high
    for register in sums:
        if ending.is_full:
            yield f"ssat {register}, #{ending.bits}, {register}"
        elif low == 0 and high & (high + 1) == 0:
            yield f"usat {register}, #{high.bit_length()}, {register}"
        elif ending.bits == 8:
            yield from limited(register, "lt", f"#{low}")
            yield from limited(register, "gt", f"#{high}")
        else:
            yield f"usat {register}, #15, {register}" if low == 0 else f"ssat {register}, #16, {register}"
    if ending.bits == 8 or ending.is_full or (low == 0 and high & (high + 1) == 0):
        return
    if low not in (0, -32768):
        yield f"movw {free}, #{low & 0xFFFF}"
        yield f"sxth {free}, {free}"
        for register in sums:
            yield from limited(register, "lt", free)
    if high < 0:
        yield f"movw {free}, #{high & 0xFFFF}"
        yield f"sxth {free}, {free}"
        for register in sums:
            yield from limited(register, "gt", free)
    elif high < 32767:
        # The addition saturates where the limit is exceeded: min(x, high) is min(x + d, 32767) - d, d = 32767 - high.
        yield f"movw {free}, #{32767 - high}"
        yield from (f"qadd16 {register}, {register}, {free}" for register in sums)
        yield from (f"sub {register}, {register}, {free}" for register in sums)


def _product(sums: str, data: str, weights: str) -> str:
    return f"smlad {sums}, {data}, {weights}, {sums}"
