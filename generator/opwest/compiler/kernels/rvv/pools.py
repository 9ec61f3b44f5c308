# SPDX-License-Identifier: Apache-2.0
"""Pools of int8 values: vectors of channels."""

from __future__ import annotations

from opwest.compiler.emission.depthwise import pool_windows
from opwest.compiler.emission.function import Call, Lines, call_for, emits
from opwest.compiler.ir.operations import Pool
from opwest.compiler.kernels.rvv.assembly import BASE, function


@emits(Pool, "rvv-channels", has_pitch=True)
def render(operation: Pool) -> Call | None:
    """Return the call; None for other dtypes and kinds, windows without data, and dilation."""
    data, window = operation.inputs[0], operation.window
    if data.dtype != "int8" or operation.kind not in ("average", "maximum") or window.dilation != (1, 1):
        return None
    _, height, width, depth = data.shape
    if not window.has_data((height, width)):
        return None
    low, high = (-128 if operation.low is None else operation.low, 127 if operation.high is None else operation.high)
    name, text = _function(operation.kind == "average", int(low), int(high))
    lines = Lines()
    with pool_windows(lines, operation):
        lines.add(
            f"{name}(from, y, y1 - y0, x1 - x0, {width * depth}, {depth}, {depth});",
            f"y += {operation.results[0].shape[3]};",
        )
    return call_for(operation, f"{operation.kind}_pool", lines, {"data": data}, definitions=(*BASE, text))


def _function(is_average: bool, low: int, high: int) -> tuple[str, str]:
    """Return the name and the definition of void f(x, y, rows, columns, down, step, channels).

    `down`: bytes from a row of the window to the next, `step`: from a column to the next.
    """
    # Maxima have groups of 8 registers of bytes; sums have 32 bits.
    whole = "e16, m4" if is_average else "e8, m8"
    lines = ["csrwi vxrm, 0", "mul t5, a2, a3", "srai t6, t5, 1"] if is_average else []
    lines += ["1:", f"vsetvli t0, a6, {'e32, m8' if is_average else whole}, ta, ma"]
    lines += [f"vmv.v.i v8, {0}" if is_average else "li t1, -128", *([] if is_average else ["vmv.v.x v8, t1"])]
    lines += [f"vsetvli zero, zero, {whole}, ta, ma"] if is_average else []
    lines += ["mv t1, a0", "mv t2, a2", "2:", "mv t3, t1", "mv t4, a3", "3:"]
    if is_average:
        lines += ["vle8.v v2, (t3)", "add t3, t3, a5", "addi t4, t4, -1", "vsext.vf2 v4, v2", "vwadd.wv v8, v8, v4"]
    else:
        lines += ["vle8.v v16, (t3)", "add t3, t3, a5", "addi t4, t4, -1", "vmax.vv v8, v8, v16"]
    lines += ["bnez t4, 3b", "add t1, t1, a4", "addi t2, t2, -1", "bnez t2, 2b"]
    if is_average:
        # Divisions truncate: halves are away from zero.
        lines += ["vsetvli zero, zero, e32, m8, ta, mu", "vmsgt.vi v0, v8, 0", "vsub.vx v16, v8, t6"]
        lines += ["vadd.vx v16, v8, t6, v0.t", "vdiv.vx v8, v16, t5", "vsetvli zero, zero, e16, m4, ta, ma"]
        lines += ["vnclip.wi v8, v8, 0", "vsetvli zero, zero, e8, m2, ta, ma", "vnclip.wi v8, v8, 0"]
    if (low, high) != (-128, 127):
        lines += [f"li t1, {low}", "vmax.vx v8, v8, t1", f"li t1, {high}", "vmin.vx v8, v8, t1"]
    lines += ["vse8.v v8, (a1)", "add a0, a0, t0", "add a1, a1, t0", "sub a6, a6, t0", "bnez a6, 1b"]
    name = f"rvv_{'average' if is_average else 'maximum'}_{low}_{high}".replace("-", "m")
    parameters = ["const int8_t *x", "int8_t *y", "int32_t rows", "int32_t columns", "int32_t down", "int32_t step"]
    return name, function(name, [*parameters, "int32_t channels"], lines, "A window, with the channels in vectors.")
