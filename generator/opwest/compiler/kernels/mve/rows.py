# SPDX-License-Identifier: Apache-2.0
"""Loops over rows of elements in assembly: void f(a, b, numbers, result), or f(a, result, numbers).

The last two dimensions of a result are the rows and the elements of a row, several of which are a turn. The text of a
function depends on the form of a layer only: counts, steps from row to row and the numbers of the arithmetic are in
`numbers`. An operand can have one element for each row ("scalar").
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.elementwise import NAMES, joined
from opwest.compiler.emission.function import Call, Lines, c_type, call_for
from opwest.compiler.ir.operations import Elementwise
from opwest.compiler.ir.program import Value
from opwest.compiler.kernels.assembly import NAKED
from opwest.compiler.kernels.mve.epilogue import Assembly
from opwest.compiler.semantics.fixed_point import RANGES

REGISTERS = ("r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11")
"""For numbers. r12 counts rows, lr elements."""
HEAD = 5
"""The numbers before those of a turn: elements of a row, rows, the bytes from the end of a row to the next one of each
pointer, in the order of the parameters. A single row has its elements after them."""


@dataclass(frozen=True)
class Rows:
    """Elements of a result in rows, and where their operands are."""

    count: int
    """The elements of a row."""
    rows: int
    pitch: int
    """The elements from a row of the result to the next one."""
    operands: tuple[int, ...]
    """The number of each operand; one that has a value for each row is the last one."""
    is_scalar: bool
    """Whether the last operand has one value for each row."""
    steps: tuple[int, ...]
    """The elements from a row to the next one, of each operand."""
    outer: tuple[int, ...]
    """The counts of the loops around the rows."""
    offsets: tuple[tuple[int, ...], ...]
    """The elements from one turn of these loops to the next one, of each operand."""


def rows_of(operation: Elementwise) -> Rows:
    """Return the rows of an elementwise operation with one or two operands."""
    shapes, [result] = [value.shape for value in operation.inputs], operation.results
    dimensions, strides = joined(shapes, result.shape, has_rows=bool(result.pitch))
    operands = sorted(range(len(shapes)), key=lambda place: strides[place][-1] == 0)
    rows = dimensions[-2] if len(dimensions) > 1 else 1
    chosen = [strides[place] for place in operands]
    is_scalar = chosen[-1][-1] == 0 and len(operands) > 1
    steps = tuple(some[-2] if len(some) > 1 else 0 for some in chosen)
    offsets = tuple(tuple(some[:-2]) for some in chosen)
    pitch = result.pitch or dimensions[-1]
    return Rows(dimensions[-1], rows, pitch, tuple(operands), is_scalar, steps, tuple(dimensions[:-2]), offsets)


class Turn:
    """The instructions for some elements of a row, and the numbers in their order.

    `lanes`: the elements. `group`: those that share a 32-bit lane after they were widened. The predicate of a loop
    applies to bytes: the last elements of a row are in the predicate of the loop only if their groups are whole.
    """

    def __init__(self, rows: Rows, source: str, target: str, lanes: int, group: int = 1) -> None:
        self.rows, self.source, self.target, self.lanes = rows, source, target, lanes
        self.base, self.comment = "", ""
        self.pointers = (
            {"a": "r0", "b": "r1", "result": "r3"} if len(rows.operands) > 1 else {"a": "r0", "result": "r1"}
        )
        self.is_whole = rows.count % group == 0
        self.code, self.start = Assembly(), Assembly()
        self.is_single = rows.rows == 1
        self.words = ["rows"] * (not self.is_single) + ["scalar"] * rows.is_scalar + ["part"] * (not self.is_whole)
        """The parts of the name that the text depends on."""
        self._registers: list[int] = []
        self._vectors: list[tuple[int, int]] = []

    def named(self, base: str, *words: str, comment: str) -> Turn:
        """Set the name of the C function of an operator and more words of that of the turn; return the turn."""
        self.base, self.comment = base, comment
        self.words += words
        return self

    def number(self, value: int) -> str:
        """Return the register of a new number."""
        self._registers.append(value)
        return REGISTERS[len(self._registers) - 1]

    def vector(self, value: int, bits: int) -> str:
        """Return the register of a new vector of equal numbers."""
        self._vectors.append((value, bits))
        return f"q{8 - len(self._vectors)}"

    def add(self, *lines: str) -> None:
        """Append instructions to the turn."""
        self.code.add(*lines)

    def load(self, *pairs: tuple[str, str]) -> None:
        """Append loads of a turn's elements: registers, and a or b. Lanes can be wider than elements."""
        self._moves([(f"vldr{_letter(self.source)}", f".{self._kind()}", q, name) for q, name in pairs], self.source)

    def store(self, q: str) -> None:
        """Append the store of a turn's results."""
        kind = str(128 // self.lanes)
        self._moves([(f"vstr{_letter(self.target)}", f".{kind}", q, "result")], self.target)

    def _kind(self) -> str:
        return f"{self.source[0].replace('i', 's')}{128 // self.lanes}"

    def _moves(self, moves: Sequence[tuple[str, str, str, str]], dtype: str) -> None:
        then = "" if self.is_whole else "t"
        if then:
            self.add("vps" + "t" * len(moves))
        for name, kind, q, pointer in moves:
            self.add(f"{name}{then}{kind} {q}, [{self.pointers[pointer]}], #{self.lanes * _item(dtype)}")

    def clamp(self, q: str, low: int, high: int, bits: int = 0) -> None:
        """Append the limits of results in lanes of `bits` (0: of the dtype), if they are not those of the dtype."""
        if (low, high) != RANGES[self.target]:
            bits = bits or 8 * _item(self.target)
            kind = f"{self.target[0].replace('i', 's')}{bits}"
            self.words.append("clamp")
            self.add(f"vmax.{kind} {q}, {q}, {self.vector(low, bits)}")
            self.add(f"vmin.{kind} {q}, {q}, {self.vector(high, bits)}")

    def numbers(self) -> Any:
        """Return the numbers, int32."""
        values = [*(value for value, _ in self._vectors), *self._registers]
        if self.is_single:
            return np.asarray([*values, self.rows.count], np.int32)
        rows, turns = self.rows, -(-self.rows.count // self.lanes)
        steps = [step * _item(self.source) for step in rows.steps]
        moved = [turns * self.lanes * _item(self.source)] * len(steps)
        if rows.is_scalar:
            moved[-1] = 0
        ends = [step - size for step, size in zip(steps, moved, strict=True)]
        result = (rows.pitch - turns * self.lanes) * _item(self.target)
        head = [rows.count, rows.rows, *ends, result, *[0] * (2 - len(ends))]
        return np.asarray([*head, *values], np.int32)

    def function(self, has_count: bool = False) -> tuple[str, str]:
        """Return the name and the definition. `has_count`: a last parameter is the number of elements of one row."""
        name = "_".join([f"mve_{self.base}", *self.words, *["count"] * has_count])
        code = Assembly()
        used = max(int(word[1]) for line in (*self.code.lines, *self.start.lines) for word in _vectors_in(line))
        assert len(self._registers) <= len(REGISTERS) and len(self._vectors) <= 4
        code.add("push {r4-r11, lr}", *([f"vpush {{d8-d{2 * used + 1}}}"] if used > 3 else []))
        source = "r2" if self.is_single else "lr"
        code.add(*([] if self.is_single else [f"add lr, r2, #{4 * HEAD}"]))
        if self._vectors:
            code.add(_loads(source, len(self._vectors)))
            code.add(*(f"vdup.{bits} q{7 - n}, r{4 + n}" for n, (_, bits) in enumerate(self._vectors)))
        if self._registers:
            code.add(_loads(source, len(self._registers)))
        ends = self._ends(code, list(self.pointers.values()))
        code.add("1:", *self.start.lines)
        saved = 36 + (16 * (used - 3) if used > 3 else 0)
        code.add(f"ldr lr, [sp, #{saved}]" if has_count else "ldr lr, [r2]")
        width = 128 // self.lanes
        if self.is_whole:
            code.add(f"dlstp.{width} lr, lr", "2:", *self.code.lines, "letp lr, 2b")
        else:
            code.add(f"2: vctp.{width} lr", *self.code.lines, f"subs lr, #{self.lanes}", "bgt 2b")
        code.add(*ends, *([f"vpop {{d8-d{2 * used + 1}}}"] if used > 3 else []), "pop {r4-r11, pc}")
        parameters = [f"const {c_type(self.source)} *{name}" for name in self.pointers if name != "result"]
        parameters.insert(2, "const int32_t *numbers")
        parameters.insert(3 if len(self.pointers) > 2 else 1, f"{c_type(self.target)} *result")
        parameters += ["int count"] * has_count
        return name, code.function(name, parameters, self.comment)

    def _ends(self, code: Assembly, pointers: Sequence[str]) -> list[str]:
        """Append the start of a loop over rows; return the end of a row."""
        if self.is_single:
            return []
        code.add("ldr r12, [r2, #4]")
        if len(self._registers) > 5:
            moves = [(f"ldr lr, [r2, #{8 + 4 * n}]", f"add {pointer}, lr") for n, pointer in enumerate(pointers)]
            return [*(line for pair in moves for line in pair), "subs r12, #1", "bne 1b"]
        code.add("ldrd r9, r10, [r2, #8]", "ldr r11, [r2, #16]")
        steps = zip(pointers, ("r9", "r10", "r11"), strict=False)
        return [*(f"add {pointer}, {step}" for pointer, step in steps), "subs r12, #1", "bne 1b"]


def _vectors_in(line: str) -> list[str]:
    return [word.strip("[],")[:2] for word in line.split()[1:] if word.startswith("q")]


def _loads(source: str, count: int) -> str:
    """Return the load of the next numbers to r4 and on."""
    return f"ldr r4, [{source}], #4" if count == 1 else f"ldm {source}!, {{r4-r{3 + count}}}"


def _letter(dtype: str) -> str:
    return {1: "b", 2: "h", 4: "w"}[_item(dtype)]


def _item(dtype: str) -> int:
    return int(np.dtype(dtype).itemsize)


def call_of_turn(operation: Elementwise, turn: Turn) -> Call:
    """Return the call of the function of a turn for an operation, in loops over its other dimensions."""
    rows, lines, [result] = turn.rows, Lines(), operation.results
    name, text = turn.function()
    with contextlib.ExitStack() as stack:
        if rows.outer:
            lines.add(f"{c_type(result.dtype)} *y = result;", "")
        for level, count in enumerate(rows.outer):
            stack.enter_context(lines.loop(f"i{level}", count))
        pointers = []
        for place, offsets in zip(rows.operands, rows.offsets, strict=True):
            steps = [f"i{level} * {step}" for level, step in enumerate(offsets) if step]
            pointers.append(" + ".join([NAMES[place], *steps]))
        arguments = [*pointers, "numbers"]
        arguments.insert(3 if len(pointers) > 1 else 1, "y" if rows.outer else "result")
        lines.add(f"{name}({', '.join(arguments)});")
        if rows.outer:
            lines.add(f"y += {rows.pitch * rows.rows};")
    given: dict[str, Value | Any] = dict(zip(NAMES, operation.inputs, strict=False))
    in_place = tuple(name for name, value in given.items() if value.dtype == result.dtype and value.size == result.size)
    given["numbers"] = turn.numbers()
    return call_for(operation, turn.base.partition("_")[0], lines, given, in_place, definitions=(NAKED, text))
