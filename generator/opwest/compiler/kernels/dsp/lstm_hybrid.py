# SPDX-License-Identifier: Apache-2.0
"""LSTMs with float32 data and int8 weights: the products of quantised rows for all cells, then the portable code."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from opwest.compiler.emission import lstm
from opwest.compiler.emission.function import Call, Lines, Parameter, emits
from opwest.compiler.ir.operations import FloatMemory
from opwest.compiler.kernels.assembly import NAKED, naked
from opwest.compiler.kernels.dsp.gate_sums import WIDEN, add_row, packs, row_words, stream, sums
from opwest.compiler.kernels.gates import hybrid_products


@emits(FloatMemory, "dsp-lstm")
def render(operation: FloatMemory) -> Call | None:
    """Return the call; None for float32 weights."""
    if operation.hybrid is None:
        return None
    size, parts = lstm.sizes_of(operation), hybrid_products(operation)
    is_packed = all(packs(part) for part in parts)
    words = np.concatenate([stream(part, is_packed, None, False, False) for part in parts], axis=1).reshape(-1)
    lengths = (size.length, size.units)
    name = f"gate_sums_{'packed' if is_packed else 'halves'}_{size.length}x{size.units}"
    parameters = ("const uint32_t *rows", "const int32_t *stream", "int32_t *sums", "const int32_t *end")
    lines, start = Lines(0), 0
    for place, length in zip(("quantised", f"quantised + {size.length}"), lengths, strict=True):
        add_row(lines, place, length, start, False)
        start += row_words(length)
    lines.add(f"{name}(rows, stream, dots, stream + {len(words)});")
    scratch = (
        Parameter("rows", "uint32", "scratch", elements=start),
        Parameter("dots", "int32", "scratch", elements=size.cells * lstm.DOTS),
    )
    definitions = (NAKED, WIDEN, naked(name, parameters, _lines(lengths, is_packed)))
    constants = (("stream", words),)
    dots = lstm.Dots(tuple(str(lines).splitlines()), constants, scratch, definitions, size.length, sum(lengths))
    return lstm.lstm(operation, dots)


def _lines(lengths: tuple[int, int], is_packed: bool) -> Iterator[str]:
    """Yield the function: on the stack are the rows, the sums and the end of the stream."""
    yield from ("push {r0, r2-r11, lr}", "1:", "ldr r0, [sp]")
    for length in lengths:
        yield from sums(length, is_packed, None)
        yield from ("ldr r6, [sp, #4]", "stm r6!, {r2-r5}", "str r6, [sp, #4]")
    yield from ("ldr r6, [sp, #8]", "cmp r1, r6", "bne 1b", "pop {r0, r2-r11, pc}")
