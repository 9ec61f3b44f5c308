# SPDX-License-Identifier: Apache-2.0
"""Convolutions and matrix products: vectors of output channels, times single elements of up to three rows of data."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.convolution import Gather
from opwest.compiler.emission.function import Call, Lines, Parameter, call_for, emits
from opwest.compiler.ir.operations import Convolution, ConvolutionSum
from opwest.compiler.kernels.mve.epilogue import Epilogue
from opwest.compiler.kernels.rvv.assembly import (
    BASE,
    COPY,
    FILL,
    HEADER,
    ending_of,
    function,
    numbers_of,
    saved,
    scaled,
)
from opwest.compiler.kernels.rvv.elements import Loop, loop_of
from opwest.compiler.kernels.scaling import int8_sums
from opwest.compiler.semantics.windows import Window

SUMS = ("v8", "v16", "v24")
ROWS = len(SUMS)
"""The rows of a tile."""
HELD = 768
"""The bytes of scratch memory for rows, unless a tile needs more."""
UNROLLED = 4
"""The products of a channel in a turn."""


@emits(ConvolutionSum, "rvv-channels")
@emits(Convolution, "rvv-channels", has_pitch=True)
def render(operation: Convolution) -> Call | None:
    """Return the call; None for other dtypes, groups, and ends that differ."""
    data, result = operation.inputs[0], operation.results[0]
    given = int8_sums(operation)
    if given is None or result.dtype != "int8":
        return None
    weights, bias, bounds = given
    results, length = weights.shape
    ending = ending_of(operation.finish, results, bounds)
    if ending is None:
        return None
    count = result.size // results
    depth = operation.weights.shape[3]
    shape = data.shape if len(data.shape) == 4 else (1, 1, 1, data.size)
    is_plain = operation.window.is_pointwise and count * depth == data.size
    total = loop_of(operation.function) if isinstance(operation, ConvolutionSum) else None
    rows = min(ROWS, count)
    name, text = function_of(rows, ending)
    write = _Write(name, results, result.pitch or results, total, getattr(operation, "place", 0))
    # The rows of a tile are copied before its results are written.
    can_replace = is_plain and results <= depth and count > ROWS and not result.pitch
    held = min(max(1, HELD // (rows * length)) * rows, count)
    lines = Lines()
    if is_plain and not can_replace and total is None:
        held = 0
        lines.add(f"{name}(data, weights, numbers, result, {count});")
    elif is_plain:
        _plain(lines, write, length, count, held)
    else:
        _windows(lines, operation.window, shape, write, held)
    pitch = results if total is not None else write.pitch
    numbers = numbers_of(ending, bias, operation.zero, (results, length, length, pitch))
    arguments = {"data": data, "weights": np.ascontiguousarray(weights.T), "numbers": numbers}
    scratch = [Parameter("rows", "int8", "scratch", elements=held * length)] if held else []
    definitions = (*BASE, *((COPY,) if held else ()), *((FILL,) if "fill_bytes" in str(lines) else ()), text)
    if total is not None:
        arguments |= {"total": total.numbers, "other": operation.inputs[1]}
        scratch.append(Parameter("part", "int8", "scratch", elements=held * results))
        definitions = (*definitions, total.text)
    in_place = (*(["data"] * can_replace), *(["other"] * (total is not None)))
    base = "dense" if is_plain and count == 1 else "convolution"
    return call_for(operation, base, lines, arguments, in_place, scratch, definitions=definitions)


def function_of(rows: int, ending: Epilogue) -> tuple[str, str]:
    """Return the name and the definition of void f(x, weights, numbers, y, count): `count` rows, `rows` in a tile.

    weights: [length][channels]; numbers: those of `numbers_of`. The rows that the last tile lacks are the last one of
    the data, and their results have the same place.
    """
    kept, restored = saved([f"s{number}" for number in range(10)])
    sums, x, y, loaded = SUMS[:rows], ("a0", "a5", "a6")[:rows], ("a3", "a7", "t6")[:rows], ("s7", "s8", "s9")[:rows]
    lines = [*kept, "csrwi vxrm, 0"]
    words = {"zero": "s4", "low": "s5", "high": "s6", "channels": "s0", "length": "s1", "row": "s2", "pitch": "s3"}
    lines += [f"lw {register}, {4 * HEADER.index(name)}(a2)" for name, register in words.items()]
    lines += [f"addi a2, a2, {4 * len(HEADER)}", "1:"]
    for row in range(1, rows):
        lines += [f"mv {x[row]}, {x[row - 1]}", f"mv {y[row]}, {y[row - 1]}", f"li t0, {row}", "ble a4, t0, 2f"]
        lines += [f"add {x[row]}, {x[row]}, s2", f"add {y[row]}, {y[row]}, s3", "2:"]
    # t1: channels left, t2: weights, t3: biases.
    lines += [
        "mv t1, s0",
        "mv t2, a1",
        "mv t3, a2",
        "3:",
        "vsetvli t0, t1, e32, m8, ta, mu",
        f"vle32.v {sums[0]}, (t3)",
    ]
    lines += [f"vmv.v.v {group}, {sums[0]}" for group in sums[1:]]
    lines += ["vsetvli zero, zero, e16, m4, ta, ma", "mv t4, t2"]

    def step(place: int) -> list[str]:
        loads = [f"lb {register}, {place}({pointer})" for register, pointer in zip(loaded, x, strict=True)]
        products = [f"vwmacc.vx {group}, {register}, v4" for group, register in zip(sums, loaded, strict=True)]
        return ["vle8.v v2, (t4)", "add t4, t4, s0", *loads, "vsext.vf2 v4, v2", *products]

    def moved(size: int | str) -> list[str]:
        name = "addi" if isinstance(size, int) else "add" if size[0] != "-" else "sub"
        return [f"{name} {pointer}, {pointer}, {str(size).removeprefix('-')}" for pointer in x]

    lines += [f"andi t5, s1, -{UNROLLED}", f"add t5, {x[0]}, t5", f"beq {x[0]}, t5, 5f", "4:"]
    lines += [line for place in range(UNROLLED) for line in step(place)]
    lines += [*moved(UNROLLED), f"bne {x[0]}, t5, 4b", "5:", f"andi t5, s1, {UNROLLED - 1}", "beqz t5, 7f", "6:"]
    lines += [*step(0), *moved(1), "addi t5, t5, -1", "bnez t5, 6b", "7:", *moved("-s1")]
    lines += ["slli t4, s0, 2", "add t4, t3, t4"]
    # The shifts are behind all arrays of words; those of this block are half as far from their start.
    lines += ["sub t5, s0, t1", "slli t5, t5, 1", "add t5, t5, a2", f"slli s7, s0, {3 if not ending.has_left else 2}"]
    lines += ["slli s8, s0, 3", "add s7, s7, s8"] if ending.has_left else []
    lines += ["add t5, t5, s7", "slli s7, s0, 2"]
    lines += scaled(sums, ending, "t4", "s7", "t5", "s8", ("s4", "s5", "s6"))
    for row in range(rows):
        lines += [f"vse8.v {sums[row]}, ({y[row]})", f"add {y[row]}, {y[row]}, t0"]
    lines += ["add t2, t2, t0", "slli t4, t0, 2", "add t3, t3, t4", "sub t1, t1, t0", "bnez t1, 3b"]
    lines += [f"mv a0, {x[-1]}", "add a0, a0, s2", f"sub a3, {y[-1]}, s0", "add a3, a3, s3"]
    lines += [f"addi a4, a4, -{rows}", "bgtz a4, 1b", *restored]
    name = f"rvv_channels_{rows}_{ending.name}"
    parameters = ["const int8_t *x", "const int8_t *weights", "const int32_t *numbers", "int8_t *y", "int32_t count"]
    return name, function(name, parameters, lines, "Rows of data times the weights of all channels.")


@dataclass(frozen=True, eq=False)
class _Write:
    """Writes the results of rows, or their sums with another tensor."""

    name: str
    channels: int
    pitch: int
    """The elements from one row of the result to the next."""
    total: Loop | None
    place: int
    """The operand of the sum that the results are."""

    def add(self, lines: Lines, count: int | str) -> None:
        """Append the calls for `count` rows with results from y on."""
        if self.total is None:
            lines.add(f"{self.name}(rows, weights, numbers, y, {count});")
            return
        operands = ("other + (y - result)", "part") if self.place else ("part", "other + (y - result)")
        elements = count * self.channels if isinstance(count, int) else f"{count} * {self.channels}"
        lines.add(
            f"{self.name}(rows, weights, numbers, part, {count});",
            f"{self.total.name}({', '.join(operands)}, total, y, {elements});",
        )


def _plain(lines: Lines, write: _Write, length: int, count: int, held: int) -> None:
    """Append a loop over blocks of rows of the data."""
    with lines.loop("row", count, held):
        some = f"const int32_t some = row < {count - held} ? {held} : {count} - row;"
        lines.add(some, f"int8_t *y = result + row * {write.pitch};", "")
        lines.add(f"copy_bytes(rows, data + row * {length}, some * {length});")
        write.add(lines, "some")


def _windows(lines: Lines, window: Window, shape: Any, write: _Write, held: int) -> None:
    """Append loops that copy windows, and multiply them when the rows are full."""
    n, height, width, depth = shape
    gather = Gather(window, shape, depth, "int8", "fill", ("copy_bytes", "fill_bytes"))
    if window.is_padded((height, width)):
        lines.add(f"const int32_t fill = numbers[{HEADER.index('fill')}];")
    lines.add("int8_t *y = result;", "int filled = 0;", "")
    image = "data" if n == 1 else f"data + n * {height * width * depth}"
    with lines.repeat("n", n), lines.loop("oy", window.result[0]), lines.loop("ox", window.result[1]):
        with lines.block(""):
            gather.add(lines, f"rows + filled * {gather.length}", image)
        with lines.block(f"if (++filled < {held})"):
            lines.add("continue;")
        write.add(lines, held)
        lines.add(f"y += {held * write.pitch};", "filled = 0;")
    rest = n * window.result[0] * window.result[1] % held
    if rest:
        write.add(lines, rest)
