# SPDX-License-Identifier: Apache-2.0
"""Integer LSTMs without peepholes, projection and normalisation: a function for all cells of a step.

It reads a block of data and last results as int16 words, and a stream of constants: for each cell the first sums and
the weights of its four gates, first those of the data.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.function import Call, Lines, Parameter, call_of, emits
from opwest.compiler.emission.lstm import Sizes, sizes_of
from opwest.compiler.ir.operations import IntegerMemory
from opwest.compiler.kernels.assembly import NAKED, constant, limited, naked
from opwest.compiler.kernels.dsp.gate_functions import INVERSE, WORDS, Functions
from opwest.compiler.kernels.dsp.gate_sums import (
    MAX_PACKED_LEFT,
    OTHERS,
    SUMS,
    TAPS,
    WIDEN,
    add_row,
    packs,
    row_words,
    stream,
    sums,
)
from opwest.compiler.kernels.gates import Gates, Part, gates_of
from opwest.compiler.semantics.recurrent import LstmNumbers

_SCALED = ("r6", "r7", "r8", "r9")
LOCALS = 32
"""Bytes of the stack: values, the stream at 16, numbers of the last results at 20, of the functions at 24 and 28."""
_ROWS, _CELLS, _RESULT = (f"[sp, #{LOCALS + place}]" for place in (0, 4, 8))
_ARGUMENTS = LOCALS + 48
_NUMBERS, _END, _TABLE = (f"[sp, #{_ARGUMENTS + place}]" for place in (0, 4, 8))


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
        yield from (f"adds r4, r4, #{INVERSE}", "str r4, [sp, #28]")
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
        return sums(part.weights.shape[2], self.is_packed, part.scales.lefts)

    def _scaled(self, part: Part) -> Iterator[str]:
        """Yield the values of sums without their shift; r6 points to the multipliers and the addends."""
        is_doubled = part.scales.is_doubled
        yield "ldm r6, {r6-r12, lr}"
        for value, total, addend in zip(_SCALED, SUMS, OTHERS, strict=True):
            yield f"smmla{'r' * is_doubled} {value}, {total}, {value}, {addend}"
        for value, total, right in zip(_SCALED, SUMS, part.scales.rights, strict=True):
            if is_doubled and right:
                yield f"add {value}, {value}, {total}, asr #31"

    def _values(self, part: Part) -> Iterator[str]:
        """Yield the values of the gates in r2 to r5."""
        for place, value in enumerate(_SCALED if self.numbers.is_micro else ()):
            yield _saturated(value, value, part.scales.rights[place])
        yield from ("ldrd r2, r3, [sp]", "ldrd r4, r5, [sp, #8]")
        for place, (value, other) in enumerate(zip(SUMS, _SCALED, strict=True)):
            right = 0 if self.numbers.is_micro else part.scales.rights[place]
            yield f"add {value}, {value}, {other}" + (f", asr #{right}" if right else "")
        yield from (f"ssat {value}, #16, {value}" for value in SUMS)

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
        yield from ("smulbb r4, r3, r5", "ldr r0, [sp, #24]", f"ldrd r6, r7, [r0, #{4 * WORDS}]", "lsl r3, r4, #1")
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
    is_packed = not is_word and all(max(part.scales.lefts) <= MAX_PACKED_LEFT and packs(part) for part in gates.parts)
    if not is_packed and any(max(part.scales.lefts) >= MAX_PACKED_LEFT for part in gates.parts):
        return None
    functions = Functions(numbers, "[sp, #24]", "[sp, #28]", _TABLE)
    step = _Step(size, gates, is_packed, functions, numbers, 16 if is_word else 8)
    streams = [stream(part, is_packed, part.scales.lefts, part.scales.is_doubled, is_word) for part in gates.parts]
    words = np.concatenate(streams, axis=1).reshape(-1)
    ends = [[*part.scales.multipliers, *part.scales.addends] for part in gates.parts]
    hidden = [int(gates.hidden.multipliers[0]), int(gates.hidden.addends[0])]
    ending = np.asarray([*ends[0], *ends[1], *functions.words, *hidden], np.int32)
    lines, end = Lines(), f"stream + {len(words)}"
    _add_steps(lines, size, is_word, f"{step.name}(rows, stream, c, y, numbers, {end}, {functions.first});")
    constants = (("stream", words), ("numbers", ending), ("table", functions.table))
    rows = sum(row_words(length) for length in (size.length, size.units))
    return call_of(
        operation,
        "lstm",
        lines,
        ("data", "last", "cell"),
        constants,
        states=("last", "cell"),
        scratch=[Parameter("rows", "uint32", "scratch", elements=rows)],
        headers=("string.h",),
        definitions=(NAKED, *([] if is_word else [WIDEN]), step.definition()),
    )


def _add_steps(lines: Lines, size: Sizes, is_word: bool, call: str) -> None:
    """Append the loops over sequences and steps. The last results are those of the step before, without a copy."""
    kind = "int16_t" if is_word else "int8_t"
    before = row_words(size.length)
    if is_word:
        for length, end in ((size.length, before), (size.units, before + row_words(size.units))):
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
                add_row(lines, name, length, start, is_word)
            lines.add(call, "h = y;")
        lines.add(f"memcpy({state}, h, {size.units} * sizeof(*h));")
