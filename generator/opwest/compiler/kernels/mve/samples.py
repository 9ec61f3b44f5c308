# SPDX-License-Identifier: Apache-2.0
"""int16 functions between samples of a table, 4 at a time: both samples are gathered."""

from __future__ import annotations

import numpy as np

from opwest.compiler.emission.function import Call, Lines, call_for, emits
from opwest.compiler.ir.elements import Interpolated
from opwest.compiler.ir.operations import Elementwise
from opwest.compiler.kernels.assembly import NAKED
from opwest.compiler.kernels.mve.epilogue import Assembly

NAME = "mve_interpolate"


@emits(Elementwise, "mve-gather")
def render(operation: Elementwise) -> Call | None:
    """Return the call; None for other functions."""
    function, data = operation.function, operation.inputs[0]
    if not isinstance(function, Interpolated):
        return None
    lines = Lines()
    lines.add(f"{NAME}(data, result, table, {data.size});")
    arguments = {"data": data, "table": np.asarray(function.table, np.int16)}
    base = function.kind.lower()
    return call_for(operation, base, lines, arguments, ("data",), definitions=(NAKED, _function()))


def _function() -> str:
    """Return the definition of void f(data, result, table, count)."""
    code = Assembly()
    code.add("push {r4, lr}", "vpush {d8-d9}", "add r4, r2, #2", "mov r12, #256", "vmov.i32 q3, #127")
    code.add("dlstp.32 lr, r3", "1: vldrh.s32 q0, [r0], #8", "vshr.s32 q1, q0, #7", "vadd.i32 q1, q1, r12")
    code.add("vand q0, q0, q3", "vldrh.s32 q2, [r2, q1, uxtw #1]", "vldrh.s32 q4, [r4, q1, uxtw #1]")
    # Slopes wrap to 16 bits.
    code.add("vsub.i32 q4, q4, q2", "vmovlb.s16 q4, q4", "vmul.i32 q0, q0, q4", "vrshr.s32 q0, q0, #7")
    code.add("vadd.i32 q0, q0, q2", "vstrh.32 q0, [r1], #8", "letp lr, 1b", "vpop {d8-d9}", "pop {r4, pc}")
    parameters = ["const int16_t *data", "int16_t *result", "const int16_t *table", "int count"]
    return code.function(NAME, parameters, "Values between 513 samples of a function.")
