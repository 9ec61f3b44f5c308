# SPDX-License-Identifier: Apache-2.0
"""Functions of elements by tables, with loads of a vector of addresses: 8-bit elements, int16 between samples."""

from __future__ import annotations

import numpy as np

from opwest.compiler.emission.function import Call, Lines, c_type, call_for, emits
from opwest.compiler.ir import elements
from opwest.compiler.ir.operations import Elementwise, Lookup
from opwest.compiler.kernels.assembly import NAKED, naked
from opwest.compiler.kernels.gates import sample_pairs
from opwest.compiler.kernels.mve.gate_functions import sampled_function

_BYTES, _HALVES = ("int8", "uint8"), ("int16", "uint16")


@emits(Elementwise, "mve-curves")
def render(operation: Elementwise) -> Call | None:
    """Return the call; None for other functions and dtypes."""
    function, [result] = operation.function, operation.results
    data = operation.inputs[0]
    if isinstance(function, Lookup | elements.Lookup):
        table = np.asarray(function.table, result.dtype)
        if data.dtype not in _BYTES or result.dtype not in (*_BYTES, *_HALVES) or len(table) != 256:
            return None
        if isinstance(function, elements.Lookup) and data.dtype == "int8":
            table = np.roll(table, 128)  # by the byte of an element
        name, definition = _look_up(data.dtype, result.dtype)
        base, in_place = "look_up", ("data",) if result.dtype in _BYTES else ()
    elif data.dtype != "int16" or result.dtype != "int16":
        return None
    elif isinstance(function, elements.Sigmoid):
        name, definition = sampled_function(function.numbers, function.kind == "TANH")
        table, base, in_place = sample_pairs(function.kind == "LOGISTIC"), function.kind.lower(), ("data",)
    elif isinstance(function, elements.Interpolated):
        table, base, in_place = np.asarray(function.table), function.kind.lower(), ("data",)
        name, definition = "mve_interpolate", INTERPOLATE
    else:
        return None
    lines = Lines()
    lines.add(f"{name}(data, result, {result.size}, table);")
    arguments = {"data": data, "table": table}
    return call_for(operation, base, lines, arguments, in_place, definitions=(NAKED, definition))


def _look_up(data: str, result: str) -> tuple[str, str]:
    """Return the name and the definition of void f(data, result, count, table by bytes)."""
    name, kind = f"mve_look_up_{data}_{result}", c_type(result)
    parameters = (f"const {c_type(data)} *data", f"{kind} *result", "int32_t count", f"const {kind} *table")
    if result in _BYTES:
        lines = ["dlstp.8 lr, r2", "1:", "vldrb.8 q0, [r0], #16", "vldrb.u8 q1, [r3, q0]", "vstrb.8 q1, [r1], #16"]
    else:
        lines = ["dlstp.16 lr, r2", "1:", "vldrb.u16 q0, [r0], #8", "vldrh.u16 q1, [r3, q0, uxtw #1]"]
        lines.append("vstrh.16 q1, [r1], #16")
    return name, naked(name, parameters, ["push {r4, lr}", *lines, "letp lr, 1b", "pop {r4, pc}"])


INTERPOLATE = naked(
    "mve_interpolate",
    ("const int16_t *from", "int16_t *to", "int32_t count", "const int16_t *table"),
    (
        "push {r4, lr}",
        "mov r12, #256",
        "add r4, r3, #2",
        "dlstp.16 lr, r2",
        "1:",
        "vldrh.u16 q0, [r0], #16",
        "vshr.s16 q1, q0, #7",
        "vadd.i16 q1, q1, r12",
        "vldrh.u16 q2, [r3, q1, uxtw #1]",
        "vldrh.u16 q3, [r4, q1, uxtw #1]",
        # 256 times the place between two samples: the doubling product with the slope has 7 bits more than 16.
        "vshl.i16 q0, q0, #9",
        "vshr.u16 q0, q0, #1",
        "vsub.i16 q3, q3, q2",
        "vqrdmulh.s16 q0, q3, q0",
        "vadd.i16 q2, q2, q0",
        "vstrh.16 q2, [r1], #16",
        "letp lr, 1b",
        "pop {r4, pc}",
    ),
)
"""512 intervals of 128 values, from the least one on. Slopes and results wrap."""
