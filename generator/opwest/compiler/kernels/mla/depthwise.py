# SPDX-License-Identifier: Apache-2.0
"""Depthwise convolutions of int8 values, channel by channel (`columns`), over strips of padded rows.

A strip contains the rows of the data for some rows of results, and the next strip begins with its last rows: each row
is copied once, before a result can replace it.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.depthwise import can_replace
from opwest.compiler.emission.epilogue import LayerEpilogue, ending
from opwest.compiler.emission.expressions import plus
from opwest.compiler.emission.function import Call, Lines, Parameter, call_for, emits
from opwest.compiler.graph.types import Shape
from opwest.compiler.ir.operations import Clamp, Depthwise, Sums
from opwest.compiler.kernels.assembly import NAKED, naked
from opwest.compiler.kernels.mla.assembly import COPY, REGISTERS, Epilogue, epilogue_of, numbers_of
from opwest.compiler.kernels.mla.convolution import NO_ENDING, scaling_with_constants
from opwest.compiler.kernels.scaling import int8_sums
from opwest.compiler.semantics.windows import Window, row_of

MAX_OFFSET = 4095
"""The greatest offset of a load or store."""
MAX_COLUMNS = 5
MAX_WEIGHTS = 4
"""Weights of a row in registers."""


@dataclass(frozen=True)
class Columns:
    """The function for some channels of a strip of rows."""

    window: Window
    row: int
    """The bytes of a padded row."""
    depth: int
    results: int
    """The channels of the results; those of a call are results / depth apart."""
    end: Epilogue

    @property
    def name(self) -> str:
        """The name of the function."""
        (kh, kw), (sy, sx), (dy, dx) = self.window.size, self.window.stride, self.window.dilation
        shape = f"{kh}x{kw}_stride{sy}x{sx}_dilation{dy}x{dx}_{self.columns}_{self.row}_{self.depth}_{self.results}"
        return f"mla_columns_{shape}_{self.end.name}"

    @property
    def columns(self) -> int:
        """The columns of the results."""
        return self.window.result[1]

    @property
    def block_words(self) -> int:
        """The words of a channel: its numbers, then its weights as bytes."""
        return self.end.numbers + -(-self.window.size[0] * self.window.size[1] // 4)

    def best(self) -> int:
        """Return the columns of a tile with the fewest cycles; 0: an offset is out of reach."""
        choices = [some for some in range(1, min(self.columns, MAX_COLUMNS) + 1) if self._reaches(some)]
        return min(choices, key=lambda some: (self._cost(some), some), default=0)

    def _reaches(self, some: int) -> bool:
        last = ((some - 1) * self.window.stride[1] + self.window.reach(1) - 1) * self.depth
        return max(last, (some - 1) * self.results * self.end.size) <= MAX_OFFSET and self.block_words * 4 <= MAX_OFFSET

    def _cost(self, some: int) -> int:
        turns, rest = divmod(self.columns, some)
        return turns * (cycles(self._tile(some)) + (7 if turns > 1 else 0)) + (cycles(self._tile(rest)) if rest else 0)

    def text(self) -> str:
        """Return the definition.

        Arguments: the first value of the strip, the first word of the channels, the first result, the rows of
        results, the end of the words.
        """
        parameters = ("const int8_t *x", "const int32_t *w", "void *y", "int32_t rows", "const int32_t *w_end")
        some = self.best()
        turns, rest = divmod(self.columns, some)
        lines = ["push {r4-r11, lr}", "push {r0, r2, r3}", "sub sp, sp, #8"]
        lines += ["1:", "ldr r3, [sp, #16]", "str r3, [sp, #4]", "2:"]
        if turns > 1:
            lines += [f"mov r3, #{turns}", "str r3, [sp]", "3:"]
        lines += self._tile(some)
        if turns > 1:
            lines += ["ldr r3, [sp]", "subs r3, r3, #1", "str r3, [sp]", "bne 3b"]
        if rest:
            lines += self._tile(rest)
        lines += add("r0", self.window.stride[0] * self.row - self.columns * self.window.stride[1] * self.depth)
        lines += ["ldr r3, [sp, #4]", "subs r3, r3, #1", "str r3, [sp, #4]", "bne 2b"]
        lines += [f"add r1, r1, #{4 * self.block_words}", "ldr r0, [sp, #8]", "add r0, r0, #1", "str r0, [sp, #8]"]
        lines += ["ldr r2, [sp, #12]", f"add r2, r2, #{self.results // self.depth * self.end.size}"]
        lines += ["str r2, [sp, #12]", "ldr r3, [sp, #56]", "cmp r1, r3", "bne 1b"]
        return naked(self.name, parameters, [*lines, "add sp, sp, #20", "pop {r4-r11, pc}"])

    def _tile(self, some: int) -> list[str]:
        """Return the code for some columns; it advances both pointers."""
        sums, free = list(REGISTERS[3 : 3 + some]), list(REGISTERS[3 + some :])
        started: set[str] = set()
        lines: list[str] = []
        (kh, kw), stride, (down, dilation) = self.window.size, self.window.stride[1], self.window.dilation
        reach = ((some - 1) * stride + (kw - 1) * dilation) * self.depth
        base = 0
        for ky in range(kh):
            offset = ky * down * self.row
            if offset - base + reach > MAX_OFFSET:
                lines += add("r0", offset - base)
                base = offset
            for first in range(0, kw, MAX_WEIGHTS):
                taps = range(first, min(first + MAX_WEIGHTS, kw))
                weights = dict(zip(taps, free, strict=False))
                pending = [
                    f"ldrsb {register}, [r1, #{4 * self.end.numbers + ky * kw + kx}]"
                    for kx, register in weights.items()
                ]
                places = sorted({p * stride + kx * dilation for p in range(some) for kx in taps})
                registers = free[len(weights) :]
                for start in range(0, len(places), len(registers)):
                    data = dict(zip(places[start:], registers, strict=False))
                    lines += pending
                    pending = []
                    lines += [
                        f"ldrsb {register}, [r0, #{offset - base + place * self.depth}]"
                        for place, register in data.items()
                    ]
                    for p, value in enumerate(sums):
                        for kx, weight in weights.items():
                            register = data.get(p * stride + kx * dilation, "")
                            if register and value in started:
                                lines.append(f"mla {value}, {register}, {weight}, {value}")
                            elif register:
                                lines.append(f"mul {value}, {register}, {weight}")
                                started.add(value)
        lines += add("r0", some * stride * self.depth - base)
        numbers, low = free[1 : 1 + self.end.numbers], free[0]
        lines.append(f"ldr {numbers[0]}, [r1]" if len(numbers) == 1 else f"ldmia r1, {{{', '.join(numbers)}}}")
        for p, value in enumerate(sums):
            lines += self.end.lines(value, numbers, low)
            at = p * self.results * self.end.size
            lines.append(f"{self.end.store} {value}, [r2, #{at}]")
        return lines + add("r2", some * self.results * self.end.size)


def add(register: str, value: int) -> list[str]:
    """Return the addition of a constant."""
    name, rest = ("add", value) if value >= 0 else ("sub", -value)
    lines = [f"{name}w {register}, {register}, #{rest & 4095}"] if rest & 4095 else []
    rest >>= 12
    place = 12
    while rest:
        if rest & 255:
            lines.append(f"{name} {register}, {register}, #{(rest & 255) << place}")
        rest >>= 8
        place += 8
    return lines


def cycles(lines: list[str]) -> int:
    """Return the cycles of code without branches: the model of tuning/qemu/count.c."""
    total, after = 0, False
    for line in lines:
        word = line.split()[0]
        is_load = word.startswith("ldr")
        total += {"mla": 2, "smull": 4, "ldmia": 5}.get(word, 1) + (is_load and not after)
        after = is_load
    return total


STRIP = 4096
"""The bytes of a strip, if that is more than one row of results needs."""
MAX_PRODUCTS = 100
"""Larger windows would be too much code."""


@dataclass(frozen=True, eq=False)
class _Layer:
    """The numbers of a layer."""

    data: Shape
    zero: int
    columns: Columns
    ending: LayerEpilogue

    @property
    def window(self) -> Window:
        """The windows."""
        return self.columns.window

    @property
    def height(self) -> int:
        """The rows of results of a strip: the strips of an image are about equal."""
        if self.columns.end.is_sum:
            return 1
        rows = self.window.result[0]
        fitting = (STRIP // self.columns.row - self.window.reach(0)) // self.window.stride[0] + 1
        return -(-rows // -(-rows // max(1, fitting)))

    @property
    def strip(self) -> int:
        """The rows of a strip."""
        return (self.height - 1) * self.window.stride[0] + self.window.reach(0)


@emits(Depthwise, "mla-columns")
def render(operation: Depthwise) -> Call | None:
    """Return the call; None: other dtypes, large windows, offsets out of reach."""
    data, result = operation.inputs[0], operation.results[0]
    window, end = operation.window, operation.finish
    given = int8_sums(operation)
    if given is None or result.dtype != "int8" or isinstance(end, (Clamp, Sums)):
        return None
    flat, bias, bound = given
    results, depth = len(flat), data.shape[3]
    if flat.shape[1] > MAX_PRODUCTS:
        return None
    scaling = scaling_with_constants(end, flat, bias, bound)
    last = NO_ENDING if scaling else ending(end, bound, operation.zero)
    columns = Columns(window, window.span(1) * depth, depth, results, epilogue_of(scaling))
    if not columns.best():
        return None
    layer = _Layer(data.shape, operation.zero, columns, last)
    lines = Lines()
    _body(lines, layer)
    words = _stream(flat, numbers_of(scaling, bias), results // depth)
    arguments = {"data": data, "weights": words, **last.constants}
    scratch = [Parameter("strip", "int8", "scratch", elements=layer.strip * columns.row)]
    if columns.end.is_sum:
        scratch.append(Parameter("sums", "int32", "scratch", elements=window.result[1] * results))
    return call_for(
        operation,
        "depthwise",
        lines,
        arguments,
        ("data",) if can_replace(data.shape, window, results, layer.height) else (),
        scratch,
        helpers=last.helpers,
        headers=(*last.headers, "string.h"),
        definitions=(NAKED, COPY, columns.text()),
    )


def _stream(weights: Any, numbers: Any, multiplier: int) -> Any:
    """Return the words of the channels: numbers, then weights; the first result of each channel of the data first."""
    padded = np.pad(weights, ((0, 0), (0, -weights.shape[1] % 4)))
    words = np.concatenate([numbers, np.ascontiguousarray(padded).view("<i4")], 1)
    return words.reshape(-1, multiplier, words.shape[1]).transpose(1, 0, 2).reshape(-1).astype(np.int32)


def _body(lines: Lines, layer: _Layer) -> None:
    """Append the loops over images and strips."""
    n, height, width, depth = layer.data
    rows, columns = layer.window.result
    stride, row, results = layer.window.stride[0], layer.columns.row, layer.columns.results
    left, copied, right = row_of(layer.window.before[1], width, row // depth)
    lines.add("int8_t *y = result;", "")
    if left or right:
        with lines.block(f"for (int8_t *to = strip; to < strip + {layer.strip * row}; to += {row})"):
            if left:
                lines.add(f"memset(to, {layer.zero}, {left * depth});")
            if right:
                lines.add(f"memset(to + {(left + copied) * depth}, {layer.zero}, {right * depth});")
    with lines.repeat("n", n):
        image = "data" if n == 1 else f"data + n * {height * width * depth}"
        lines.add("int next = 0;", "")
        with lines.loop("oy", rows, layer.height) if layer.height < rows else nullcontext():
            first, some = "0", str(layer.height)
            if layer.height < rows:
                first = "first"
                lines.add(f"const int first = oy * {stride};")
                if rows % layer.height:
                    lines.add(f"const int rows = oy + {some} < {rows} ? {some} : {rows} - oy;")
                    some = "rows"
                lines.add("")
                _keep(lines, layer)
            last = f"({some} - 1) * {stride}" if some == "rows" else str((int(some) - 1) * stride)
            start = f"{first} + " if first != "0" else ""
            with lines.block(f"for (; next < {start}{last} + {layer.window.reach(0)}; next++)"):
                _load(lines, layer, image, first, left, copied)
            _strip(lines, layer, some)
            if n > 1 or layer.height < rows:
                lines.add(f"y += {some} * {columns * results};")


def _keep(lines: Lines, layer: _Layer) -> None:
    """Append the move of the rows that the strip before shares with this one."""
    moved = layer.height * layer.window.stride[0]
    shared = layer.strip - moved
    with lines.block("if (oy > 0)"):
        if shared > 0:
            row = layer.columns.row
            lines.add(f"mla_copy(strip, strip + {moved * row}, {shared * row});")
        else:
            lines.add("next = first;")


def _load(lines: Lines, layer: _Layer, image: str, first: str, left: int, copied: int) -> None:
    """Append the copy of the row `next`, counted from the first row of the padding, to the strip."""
    _, height, width, depth = layer.data
    top, row = layer.window.before[0], layer.columns.row
    place = "next" if first == "0" else f"(next - {first})"
    lines.add(f"int8_t *to = strip + {place} * {row};", "")
    if layer.window.pads((height, width))[0]:
        with lines.block(f"if (next < {top} || next >= {top + height})"):
            lines.add(f"memset(to, {layer.zero}, {row});", "continue;")
    to = f"to + {left * depth}" if left else "to"
    source = f"(next - {top})" if top else "next"
    lines.add(f"mla_copy({to}, {image} + {source} * {width * depth}, {copied * depth});")


def _strip(lines: Lines, layer: _Layer, rows: str) -> None:
    """Append the results of a strip."""
    columns, end = layer.columns, layer.columns.end
    words = columns.block_words * columns.depth
    into = "sums" if end.is_sum else "y"
    for place in range(columns.results // columns.depth):
        stop = f"weights + {(place + 1) * words}"
        lines.add(f"{columns.name}(strip, weights{plus(place * words)}, {into}{plus(place)}, {rows}, {stop});")
    if end.is_sum:
        with lines.loop("ox", columns.columns), lines.loop("c", columns.results):
            lines.add(*layer.ending.loads("c"))
            value = layer.ending.result(f"sums[ox * {columns.results} + c]")
            lines.add(f"y[ox * {columns.results} + c] = (int8_t)({value});")
