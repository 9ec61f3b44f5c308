# SPDX-License-Identifier: Apache-2.0
"""Tables of the results of 8-bit elements: one load for each. Thumb-2 without the DSP extension."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.compiler.emission.function import Call, c_type, call_for, emits
from opwest.compiler.ir import elements
from opwest.compiler.ir.operations import Elementwise, Lookup
from opwest.compiler.kernels.assembly import NAKED, naked

UNROLLED = 4


@emits(Elementwise, "mla-lookup")
def render_lookup(operation: Elementwise) -> Call | None:
    """Return the call; None for other functions and results of 32 bits."""
    function, [result] = operation.function, operation.results
    data = operation.inputs[0]
    is_signed = data.dtype == "int8"
    if isinstance(function, Lookup):
        table = np.asarray(function.table, result.dtype)
        table = np.roll(table, 128) if is_signed else table
    elif isinstance(function, elements.Lookup):
        table = np.asarray(function.table)
    else:
        return None
    name, definition = look_up(data.dtype, result.dtype)
    if definition is None or len(table) != 256 or table.dtype != result.dtype:
        return None
    size = result.size
    middle = "table + 128" if is_signed else "table"
    body = f"\t{name}(data, {middle}, result, {size // UNROLLED}, {size % UNROLLED});\n"
    arguments: dict[str, Any] = {"data": data, "table": table}
    in_place = ("data",) if result.dtype in ("int8", "uint8") else ()
    return call_for(operation, "look_up", body, arguments, in_place, definitions=(NAKED, definition))


_BYTES, _HALVES = ("int8", "uint8"), ("int16", "uint16")


def look_up(data: str, result: str) -> tuple[str, str | None]:
    """Return the name and the definition of the function of 8-bit data; None for results of 32 bits.

    It has the parameters (data, result of the element 0, results, groups of four elements, other elements).
    """
    name = f"look_up_{data}_{result}"
    if result not in (*_BYTES, *_HALVES):
        return name, None
    load = "ldrsb" if data == "int8" else "ldrb"
    item, scale, step = ("b", "", 1) if result in _BYTES else ("h", ", lsl #1", 2)

    def turn(count: int) -> list[str]:
        registers = [f"r{4 + number}" for number in range(count)]
        lines = [f"{load} {register}, [r0], #1" for register in registers]
        lines += [f"ldr{item} {register}, [r1, {register}{scale}]" for register in registers]
        return [*lines, *(f"str{item} {register}, [r2], #{step}" for register in registers)]

    # The second count is in memory, behind the saved registers.
    lines = ["push {r4-r7, lr}", "cmp r3, #0", "beq 2f", "1:", *turn(UNROLLED), "subs r3, r3, #1", "bne 1b"]
    lines += ["2: ldr r3, [sp, #20]", "cmp r3, #0", "beq 4f", "3:", *turn(1), "subs r3, r3, #1", "bne 3b"]
    kind = c_type(result)
    parameters = (f"const {c_type(data)} *data", f"const {kind} *table", f"{kind} *result")
    return name, naked(name, (*parameters, "int32_t groups", "int32_t rest"), [*lines, "4: pop {r4-r7, pc}"])
