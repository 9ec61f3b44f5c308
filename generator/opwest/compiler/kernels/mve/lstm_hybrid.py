# SPDX-License-Identifier: Apache-2.0
"""LSTMs with float32 data and int8 weights: the products of quantised rows for all cells, then the portable code."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from opwest.compiler.emission import lstm
from opwest.compiler.emission.function import Call, Parameter, emits
from opwest.compiler.ir.operations import FloatMemory
from opwest.compiler.kernels.assembly import NAKED, naked
from opwest.compiler.kernels.gates import hybrid_products
from opwest.compiler.kernels.mve.lstm import MAX_ROWS, SUMS, VECTOR, packed, products


@emits(FloatMemory, "mve-lstm")
def render(operation: FloatMemory) -> Call | None:
    """Return the call; None for float32 weights and very long rows."""
    size = lstm.sizes_of(operation)
    rows = [-(-length // VECTOR) * VECTOR for length in (size.length, size.units)]
    if operation.hybrid is None or sum(rows) > MAX_ROWS:
        return None
    parts = hybrid_products(operation)
    stream = np.concatenate([packed(part.weights, 1) for part in parts], axis=1).reshape(-1)
    name = f"mve_gate_sums_{rows[0]}_{rows[1]}"
    parameters = ("const int8_t *rows", "const int32_t *stream", "int32_t cells", "int32_t *sums")
    scratch = (Parameter("dots", "int32", "scratch", elements=size.cells * lstm.DOTS),)
    definitions = (NAKED, naked(name, parameters, _lines(rows)))
    call = f"{name}(quantised, stream, {size.cells}, dots);"
    return lstm.lstm(operation, lstm.Dots((call,), (("stream", stream),), scratch, definitions, rows[0], sum(rows)))


def _lines(rows: list[int]) -> Iterator[str]:
    """Yield the function: r1 stream, r3 sums, r7 rows, r11 cells that are left."""
    yield from ("push {r4-r11, lr}", "mov r7, r0", "mov r11, r2", "1:")
    for row, sums in zip(rows, SUMS, strict=True):
        yield from products(row, sums, 1)
    for sums in SUMS:
        yield from (f"strd {sums[0]}, {sums[1]}, [r3], #8", f"strd {sums[2]}, {sums[3]}, [r3], #8")
    yield from (f"sub r7, r7, #{sum(rows)}", "subs r11, #1", "bne 1b", "pop {r4-r11, pc}")
