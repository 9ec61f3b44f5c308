# SPDX-License-Identifier: Apache-2.0
"""Integer LSTMs without peepholes, projection and normalisation: a function for all cells of a step.

It reads a block of data and last results as int16 words, and a stream of constants: for each cell the first sums and
the weights of its four gates, first those of the data. int8 weights are in pairs, as in `tiles.py`; where they do not
fit, and with int16 data, they are int16.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.expressions import plus
from opwest.compiler.emission.function import Call, Lines, Parameter, call_of, emits
from opwest.compiler.emission.lstm import Sizes, sizes_of
from opwest.compiler.ir.operations import IntegerMemory
from opwest.compiler.kernels.assembly import NAKED, constant, limited, naked, repeated
from opwest.compiler.kernels.dsp.gate_functions import Functions
from opwest.compiler.kernels.dsp.layers import ORDER, Numbers, can_pack, stream_of
from opwest.compiler.kernels.gates import GATES, Gates, Part, gates_of
from opwest.compiler.kernels.scaling import Scaling
from opwest.compiler.semantics.recurrent import LstmNumbers

TAPS = 4
"""The taps of a step: two words of data, four of packed weights."""
MAX_STEPS = 16
"""The most steps without a branch."""
TURN = 4
"""The steps of a turn of a loop."""
_SUMS = ("r2", "r3", "r4", "r5")
_WEIGHTS = "{r10-r12, lr}"
_DATA = ("r6", "r7", "r8", "r9")
_SCALED = ("r6", "r7", "r8", "r9")
_ADDENDS = ("r10", "r11", "r12", "lr")
LOCALS = 28
"""Bytes of the stack: values, the stream at 16, numbers of the last results at 20, of the functions at 24."""
_ROWS, _CELLS, _RESULT = (f"[sp, #{LOCALS + place}]" for place in (0, 4, 8))
_ARGUMENTS = LOCALS + 48
_NUMBERS, _END, _TABLE = (f"[sp, #{_ARGUMENTS + place}]" for place in (0, 4, 8))
MAX_PACKED_LEFT = 7
"""The most places to the left for packed weights: 256 times a sum is shifted by one place less than 8."""


@dataclass(frozen=True, eq=False)
class _Step:
    """The function for the cells of a step."""

    size: Sizes
    gates: Gates
    is_packed: bool
    functions: Functions
    numbers: LstmNumbers
    bits: int
    """Of data and results."""

    @property
    def name(self) -> str:
        """The name of the C function, with all that its instructions depend on."""
        kind = "packed" if self.is_packed else f"halves{self.bits}"
        places = "_".join(
            f"{left}l" if left else f"{right}"
            for part in self.gates.parts
            for left, right in zip(part.scales.lefts, part.scales.rights, strict=True)
        )
        clip = "" if self.numbers.clip is None else f"_clip{self.numbers.clip}"
        hidden = f"{self.gates.hidden.shifts[0]}{'s' * self.gates.hidden.is_signed}"
        coupled = "_coupled" * self.gates.is_coupled
        words = [f"{self.size.length}x{self.size.units}", self.functions.name, places, hidden]
        return f"lstm_{kind}_{'_'.join(words)}{coupled}{clip}"

    def definition(self) -> str:
        """Return the C function (rows, stream, cells, results, numbers, end of the stream, table)."""
        kind, table = f"int{self.bits}_t", f"{self.functions.table.dtype}_t"
        parameters = ["const uint32_t *rows", "const int32_t *stream", "int16_t *cell", f"{kind} *result"]
        parameters += ["const int32_t *numbers", "const int32_t *end", f"const {table} *table"]
        return naked(self.name, parameters, self._lines())

    def _lines(self) -> Iterator[str]:
        yield "push {r0, r2-r11, lr}"
        yield f"sub sp, sp, #{LOCALS}"
        yield f"ldr r4, {_NUMBERS}"
        yield from ("adds r4, r4, #32", "str r4, [sp, #20]", "adds r4, r4, #32", "str r4, [sp, #24]")
        yield "1:"
        yield f"ldr r0, {_ROWS}"
        first, second = self.gates.parts
        yield from self._sums(first)
        yield f"ldr r6, {_NUMBERS}"
        yield from self._scaled(first)
        for place, value in enumerate(_SCALED):
            yield _saturated(value, value, first.scales.rights[place])
        yield from ("strd r6, r7, [sp]", "strd r8, r9, [sp, #8]")
        yield from self._sums(second)
        yield "ldr r6, [sp, #20]"
        yield from self._scaled(second)
        yield from self._values(second)
        yield "str r1, [sp, #16]"
        yield from self.functions.gates(self.gates.is_coupled)
        yield from self._cell()
        yield from self.functions.cell()
        yield from self._result()
        yield from ("ldr r1, [sp, #16]", f"ldr r0, {_END}", "cmp r1, r0", "bne 1b")
        yield from (f"add sp, sp, #{LOCALS}", "pop {r0, r2-r11, pc}")

    def _sums(self, part: Part) -> Iterator[str]:
        """Yield the sums of the gates: r0 and r1 move past the data and the weights."""
        yield f"ldm r1!, {{{', '.join(_SUMS)}}}"
        steps = -(-part.weights.shape[2] // TAPS)
        if steps <= MAX_STEPS:
            double = [f"ldm r0!, {{{', '.join(_DATA)}}}", *self._step(_DATA[:2]), *self._step(_DATA[2:])]
            yield from repeated(steps // 2, double)
            if steps % 2:
                yield from (f"ldm r0!, {{{', '.join(_DATA[:2])}}}", *self._step(_DATA[:2]))
        else:
            one = [f"ldm r0!, {{{', '.join(_DATA[:2])}}}", *self._step(_DATA[:2])]
            turns, rest = divmod(steps, TURN)
            yield from repeated(rest, one)
            yield from constant("r8", turns * TURN * TAPS * 2)
            yield from ("add r8, r0, r8", "2:", *repeated(TURN, one), "cmp r0, r8", "bne 2b")
        if self.is_packed:
            lefts = part.scales.lefts
            for place in (0, 2):
                low, high = _SUMS[place : place + 2]
                # 256 * second sum + first sum - first sum, shifted by 8, is the second sum; both are doubled.
                yield f"sub {high}, {high}, {low}"
                yield f"lsl {low}, {low}, #{1 + lefts[place]}"
                if lefts[place + 1] < MAX_PACKED_LEFT:
                    yield f"asr {high}, {high}, #{MAX_PACKED_LEFT - lefts[place + 1]}"

    def _step(self, data: tuple[str, ...]) -> Iterator[str]:
        """Yield the products of four taps."""
        weights = _ADDENDS
        if not self.is_packed:
            for word in data:
                yield f"ldm r1!, {_WEIGHTS}"
                yield from (f"smlad {s}, {word}, {w}, {s}" for s, w in zip(_SUMS, weights, strict=True))
            return
        yield f"ldm r1!, {_WEIGHTS}"
        for offset in (1, 0):
            if offset == 0:
                yield from (f"sxtb16 {weight}, {weight}" for weight in weights)
            for place, weight in enumerate(weights):
                register = _SUMS[2 * (place % 2) + offset]
                yield f"smlad {register}, {data[place // 2]}, {weight}, {register}"

    def _scaled(self, part: Part) -> Iterator[str]:
        """Yield the values of sums without their shift; r6 points to the multipliers and the addends."""
        is_doubled = part.scales.is_doubled
        yield "ldm r6, {r6-r12, lr}"
        for value, total, addend in zip(_SCALED, _SUMS, _ADDENDS, strict=True):
            yield f"smmla{'r' * is_doubled} {value}, {total}, {value}, {addend}"
        for value, total, right in zip(_SCALED, _SUMS, part.scales.rights, strict=True):
            if is_doubled and right:
                yield f"add {value}, {value}, {total}, asr #31"

    def _values(self, part: Part) -> Iterator[str]:
        """Yield the values of the gates in r2 to r5."""
        for place, value in enumerate(_SCALED if self.numbers.is_micro else ()):
            yield _saturated(value, value, part.scales.rights[place])
        yield from ("ldrd r2, r3, [sp]", "ldrd r4, r5, [sp, #8]")
        for place, (value, other) in enumerate(zip(_SUMS, _SCALED, strict=True)):
            right = 0 if self.numbers.is_micro else part.scales.rights[place]
            yield f"add {value}, {value}, {other}" + (f", asr #{right}" if right else "")
        yield from (f"ssat {value}, #16, {value}" for value in _SUMS)

    def _cell(self) -> Iterator[str]:
        """Yield the new cell in r2; r2 to r5 are the values of the input, forget, cell and output gate."""
        numbers = self.numbers
        yield from (f"ldr r0, {_CELLS}", "ldrsh r1, [r0]")
        if self.gates.is_coupled:
            yield from ("movw r2, #32767", "subs r2, r2, r3")
        if numbers.products is None:
            places = (15, 30 + numbers.power)
            halves = [1 << (some - 1) for some in places]
        else:
            # The product times 2**30, doubled: (product + 1) >> 1, then a shift that rounds.
            places = (-numbers.products[0].shift, -numbers.products[1].shift)
            halves = [(1 << some) + 1 for some in places]
        for to, gate, other, half in zip(("r6", "r7"), ("r3", "r2"), ("r1", "r4"), halves, strict=True):
            yield from constant(to, half)
            yield f"smlabb {to}, {gate}, {other}, {to}"
            if numbers.products is not None:
                yield f"asr {to}, {to}, #1"
            # Gates are not negative: the product has the sign of the other factor.
            yield f"add {to}, {to}, {other}, asr #31"
        if numbers.products is None:
            yield from (f"asr r6, r6, #{places[0]}", f"add r2, r6, r7, asr #{places[1]}")
        else:
            yield from (_saturated("r6", "r6", places[0]), _saturated("r7", "r7", places[1]), "add r2, r6, r7")
        yield "ssat r2, #16, r2"
        if numbers.clip == 32767:
            yield from ("cmn r2, #32768", "it eq", "addeq r2, r2, #1")
        elif numbers.clip is not None:
            yield from (*constant("r1", numbers.clip), *limited("r2", "gt", "r1"))
            yield from ("rsbs r1, r1, #0", *limited("r2", "lt", "r1"))
        yield from ("strh r2, [r0], #2", f"str r0, {_CELLS}")

    def _result(self) -> Iterator[str]:
        """Yield the result of the output gate in r5 and the function of the cell in r3; gates are not negative."""
        hidden, store = self.gates.hidden, "strb" if self.bits == 8 else "strh"
        yield from ("smulbb r4, r3, r5", "ldr r0, [sp, #24]", "ldrd r6, r7, [r0, #32]", "lsl r3, r4, #1")
        yield "smmlar r3, r3, r6, r7"
        if hidden.is_signed:
            yield "add r3, r3, r4, asr #31"
        yield f"ldr r0, {_RESULT}"
        yield f"ssat r3, #{self.bits}, r3, asr #{hidden.shifts[0]}"
        yield from (f"{store} r3, [r0], #{self.bits // 8}", f"str r0, {_RESULT}")


def _saturated(to: str, value: str, right: int) -> str:
    return f"ssat {to}, #16, {value}" + (f", asr #{right}" if right else "")


@emits(IntegerMemory, "dsp-lstm")
def render(operation: IntegerMemory) -> Call | None:
    """Return the call; None with peepholes, projections, normalisation, and numbers that do not fit."""
    numbers, size = operation.numbers, sizes_of(operation)
    gates = gates_of(operation)
    if gates is None:
        return None
    is_word = operation.inputs[0].dtype == "int16"
    is_packed = not is_word and all(
        max(part.scales.lefts) <= MAX_PACKED_LEFT and can_pack(_flat(part.weights), part.bounds) for part in gates.parts
    )
    if not is_packed and any(max(part.scales.lefts) > MAX_PACKED_LEFT - 1 for part in gates.parts):
        return None
    functions = Functions(numbers, "[sp, #24]", _TABLE)
    step = _Step(size, gates, is_packed, functions, numbers, 16 if is_word else 8)
    stream = np.concatenate([_stream(part, is_packed, is_word) for part in gates.parts], axis=1).reshape(-1)
    ends = [[*part.scales.multipliers, *part.scales.addends] for part in gates.parts]
    hidden = [int(gates.hidden.multipliers[0]), int(gates.hidden.addends[0])]
    ending = np.asarray([*ends[0], *ends[1], *functions.words, *hidden], np.int32)
    lines = Lines()
    _add_steps(lines, size, is_word, f"{step.name}(rows, stream, c, y, numbers, stream + {len(stream)}, table);")
    constants = (("stream", stream), ("numbers", ending), ("table", functions.table))
    words = sum(_row_words(length) for length in (size.length, size.units))
    return call_of(
        operation,
        "lstm",
        lines,
        ("data", "last", "cell"),
        constants,
        states=("last", "cell"),
        scratch=[Parameter("rows", "uint32", "scratch", elements=words)],
        headers=("string.h",),
        definitions=(NAKED, *([] if is_word else [WIDEN]), step.definition()),
    )


def _row_words(length: int) -> int:
    return -(-length // TAPS) * 2


WIDEN = naked(
    "widen_row",
    ("uint32_t *to", "const int8_t *from", "int32_t words"),
    (
        "1: ldr r3, [r1], #4",
        "sxtb16 r12, r3, ror #8",
        "sxtb16 r3, r3",
        "subs r2, r2, #1",
        "strd r3, r12, [r0], #8",
        "bne 1b",
        "bx lr",
    ),
)
"""widen_row(to, from, words): each word becomes two, of bytes 0 and 2, then 1 and 3."""


def _add_steps(lines: Lines, size: Sizes, is_word: bool, call: str) -> None:
    """Append the loops over sequences and steps. The last results are those of the step before, without a copy."""
    kind = "int16_t" if is_word else "int8_t"
    before = _row_words(size.length)
    if is_word:
        for length, end in ((size.length, before), (size.units, before + _row_words(size.units))):
            # The taps that pad a row are not written again.
            if length % TAPS:
                lines.add(f"rows[{end - 1}] = 0;", f"rows[{end - 2}] = 0;")
    with lines.repeat("n", size.batch):
        state, cells = (f"last + n * {size.units}", f"cell + n * {size.cells}") if size.batch > 1 else ("last", "cell")
        lines.add(f"const {kind} *h = {state};", "")
        with lines.loop("t", size.steps):
            lines.add(f"const {kind} *x = data + {size.step(size.length)};", f"int16_t *c = {cells};")
            lines.add(f"{kind} *y = result + {size.step(size.units)};", "")
            for name, length, start in (("x", size.length, 0), ("h", size.units, before)):
                _add_row(lines, name, length, start, is_word)
            lines.add(call, "h = y;")
        lines.add(f"memcpy({state}, h, {size.units} * sizeof(*h));")


def _add_row(lines: Lines, name: str, length: int, start: int, is_word: bool) -> None:
    """Append the copy of a row as int16 words to `rows`, from a word on."""
    if is_word:
        lines.add(f"memcpy(rows{plus(start)}, {name}, {2 * length});")
        return
    words, rest = divmod(length, 4)
    if words:
        lines.add(f"widen_row(rows{plus(start)}, {name}, {words});")
    if rest:
        with lines.block(""):
            lines.add("int8_t tail[4] = {0};", "", f"memcpy(tail, {name}{plus(4 * words)}, {rest});")
            lines.add(f"widen_row(rows{plus(start + 2 * words)}, tail, 1);")


def _flat(weights: Any) -> Any:
    return weights.reshape(-1, weights.shape[2])


def _stream(part: Part, is_packed: bool, is_word: bool) -> Any:
    """Return the first sums and the weights of each cell, int32 [cells,words]."""
    cells, _, length = part.weights.shape
    weights, starts = _flat(part.weights).astype(np.int64), part.starts.reshape(-1)
    if not is_packed:
        factors = np.tile([1 << left for left in part.scales.lefts], cells)
        weights, starts = weights * factors[:, None], starts * factors
    padded = np.pad(weights, ((0, 0), (0, -length % TAPS)))
    order = (0, 1) if is_word else ORDER
    # Of the scaling, only `is_doubled` is used: the gates have their own.
    zeros = np.zeros(cells * GATES, np.int32)
    none = Scaling(zeros, zeros, zeros, part.scales.is_doubled, False, 0, 0)
    numbers = Numbers(padded, starts, part.bounds, none, 8)
    return stream_of(numbers, slice(None), GATES, not is_packed, False, order).reshape(cells, -1)
