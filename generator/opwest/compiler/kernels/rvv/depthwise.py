# SPDX-License-Identifier: Apache-2.0
"""Depthwise convolutions: vectors of channels, for up to three windows of a row at a time."""

from __future__ import annotations

from opwest.compiler.emission.depthwise import can_replace
from opwest.compiler.emission.function import Call, Lines, Parameter, call_for, emits
from opwest.compiler.ir.operations import Depthwise
from opwest.compiler.kernels.mve.epilogue import Epilogue
from opwest.compiler.kernels.rvv.assembly import (
    BASE,
    COPY,
    FILL,
    HEADER,
    SPREAD,
    ending_of,
    function,
    numbers_of,
    saved,
    scaled,
)
from opwest.compiler.kernels.rvv.channels import SUMS
from opwest.compiler.kernels.rvv.channels import render as convolution
from opwest.compiler.kernels.scaling import int8_sums, without_channels
from opwest.compiler.kernels.windows import Rows

MAX_COLUMNS = 12
"""The columns of a window whose taps are not in a loop."""


@emits(Depthwise, "rvv-channels", has_pitch=True)
def render(operation: Depthwise) -> Call | None:
    """Return the call; None for other dtypes, wide windows, and ends that differ."""
    data, result, window = operation.inputs[0], operation.results[0], operation.window
    single = without_channels(operation)
    if single is not None:
        return convolution(single)
    given = int8_sums(operation)
    kh, kw, channels = operation.weights.shape
    if given is None or result.dtype != "int8" or kw > MAX_COLUMNS:
        return None
    weights, bias, bounds = given
    ending = ending_of(operation.finish, channels, bounds)
    if ending is None:
        return None
    is_in_place = not result.pitch and can_replace(data.shape, window, channels)
    repeats = channels // data.shape[3]
    rows = Rows(data.shape, window, is_copied=is_in_place or repeats > 1, repeats=repeats)
    columns = window.result[1]
    name, text = function_of(min(len(SUMS), columns), kw, ending)
    # From the last tap of a row of a window to the first one of the next row.
    step = window.dilation[1] * channels
    down = window.dilation[0] * rows.pitch - (kw - 1) * step
    sizes = (channels, kh, window.stride[1] * channels, result.row)
    numbers = numbers_of(ending, bias, operation.zero, sizes)
    lines = Lines()
    lines.add(*(f"const int32_t fill = numbers[{HEADER.index('fill')}];" for _ in range(rows.is_padded)))
    lines.add("int8_t *y = result;", "")
    with rows.loop(lines, "ring", "fill") as row:
        lines.add(f"{name}({row}, weights, numbers, y, {columns}, {step}, {down});", f"y += {columns * result.row};")
    arguments = {"data": data, "weights": weights.T.reshape(kh, kw, channels).copy(), "numbers": numbers}
    scratch = [Parameter("ring", "int8", "scratch", elements=rows.size)] if rows.is_kept else []
    called = {"copy_bytes": COPY, "fill_bytes": FILL, "spread_bytes": SPREAD}
    copies = [text for called_name, text in called.items() if called_name in str(lines)]
    in_place = ("data",) if is_in_place else ()
    return call_for(operation, "depthwise", lines, arguments, in_place, scratch, definitions=(*BASE, *copies, text))


def function_of(columns: int, taps: int, ending: Epilogue) -> tuple[str, str]:
    """Return the name and the definition of void f(x, weights, numbers, y, count, step, down).

    `count` windows of a row, `columns` in a tile, with `taps` in a row: `step` bytes from one to the next, `down` bytes
    from the last one to the first one of the next row. weights: [rows][taps][channels]. The length of the numbers is
    the rows of a window, their row the bytes from one window to the next.
    """
    kept, restored = saved([f"s{number}" for number in range(10)])
    sums, y, x = SUMS[:columns], ("a3", "a7", "t6")[:columns], ("s7", "s8", "s9")[:columns]
    lines = [*kept, "csrwi vxrm, 0"]
    words = {"zero": "s4", "low": "s5", "high": "s6", "channels": "s0", "row": "s2", "pitch": "s3"}
    lines += [f"lw {register}, {4 * HEADER.index(name)}(a2)" for name, register in words.items()]
    lines += ["1:"]
    for column in range(1, columns):
        lines += [f"mv {y[column]}, {y[column - 1]}", f"li t0, {column}", "ble a4, t0, 2f"]
        lines += [f"add {y[column]}, {y[column]}, s3", "2:"]
    # s1: channels left, t1: the first tap, t2: weights, t3: biases.
    lines += ["mv s1, s0", "mv t1, a0", "mv t2, a1", f"addi t3, a2, {4 * len(HEADER)}", "3:", f"mv {x[0]}, t1"]
    for column in range(1, columns):
        lines += [f"mv {x[column]}, {x[column - 1]}", f"li t0, {column}", "ble a4, t0, 2f"]
        lines += [f"add {x[column]}, {x[column]}, s2", "2:"]
    lines += ["vsetvli t0, s1, e32, m8, ta, mu", f"vle32.v {sums[0]}, (t3)"]
    lines += [f"vmv.v.v {group}, {sums[0]}" for group in sums[1:]]
    lines += ["vsetvli zero, zero, e16, m4, ta, ma", "mv t4, t2", f"lw t5, {4 * HEADER.index('length')}(a2)", "4:"]
    for tap in range(taps):
        lines += ["vle8.v v2, (t4)", "add t4, t4, s0", "vsext.vf2 v4, v2"]
        for group, pointer in zip(sums, x, strict=True):
            # The widened values replace the loaded ones in the upper half of v0 to v3.
            lines += [f"vle8.v v2, ({pointer})", f"add {pointer}, {pointer}, {'a5' if tap < taps - 1 else 'a6'}"]
            lines += ["vsext.vf2 v0, v2", f"vwmacc.vv {group}, v0, v4"]
    lines += ["addi t5, t5, -1", "bnez t5, 4b", "slli s7, s0, 2", "add t4, t3, s7"]
    # The shifts are behind all arrays of words; those of this block are half as far from their start.
    lines += ["sub t5, s0, s1", "slli t5, t5, 1", "add t5, t5, a2", "slli s8, s0, 3", "add t5, t5, s8"]
    lines += ["add t5, t5, s7"] if ending.has_left else []
    lines += [f"addi t5, t5, {4 * len(HEADER)}"]
    lines += scaled(sums, ending, "t4", "s7", "t5", "s8", ("s4", "s5", "s6"))
    for group, pointer in zip(sums, y, strict=True):
        lines += [f"vse8.v {group}, ({pointer})", f"add {pointer}, {pointer}, t0"]
    lines += ["add t1, t1, t0", "add t2, t2, t0", "slli t4, t0, 2", "add t3, t3, t4", "sub s1, s1, t0", "bnez s1, 3b"]
    lines += [f"sub a3, {y[-1]}, s0", "add a3, a3, s3", *(["add a0, a0, s2"] * columns)]
    lines += [f"addi a4, a4, -{columns}", "bgtz a4, 1b", *restored]
    name = f"rvv_depthwise_{columns}x{taps}_{ending.name}"
    parameters = ["const int8_t *x", "const int8_t *weights", "const int32_t *numbers", "int8_t *y", "int32_t count"]
    parameters += ["int32_t step", "int32_t down"]
    return name, function(name, parameters, lines, "Windows of a row, with the channels in vectors.")
