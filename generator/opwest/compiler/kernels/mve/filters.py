# SPDX-License-Identifier: Apache-2.0
"""SVDF layers with int8 data and an int16 state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from opwest.compiler.emission.function import Call, Parameter, emits
from opwest.compiler.ir.operations import Filter
from opwest.compiler.kernels.assembly import NAKED, naked, repeated
from opwest.compiler.kernels.filters import Filters, call_of_filters, filters_of
from opwest.compiler.kernels.mve.epilogue import COPY
from opwest.compiler.kernels.mve.lstm import MAX_ROWS, SUMS, VECTOR, packed, products

LANES = 8
"""The elements of the state in a vector."""


@emits(Filter, "mve-svdf")
def render(operation: Filter) -> Call | None:
    """Return the call; None for other dtypes, and numbers that do not fit."""
    filters = filters_of(operation)
    length = operation.inputs[0].shape[1]
    row = -(-length // VECTOR) * VECTOR
    if filters is None or row > MAX_ROWS:
        return None
    scales = filters.scales
    left, right = scales.lefts[0], scales.rights[0]
    first = f"mve_svdf_features_{row}_{f'{left}l' if left else right}"
    second = f"mve_svdf_times_{filters.rank}x{filters.memory}"
    parameters = ("const int8_t *row", "const int32_t *stream", "int32_t groups", "int16_t *fresh")
    definitions = (
        NAKED,
        COPY,
        naked(first, (*parameters, "int32_t multiplier"), _features(row, left, right)),
        naked(
            second,
            ("int16_t *state", "const int16_t *times", "const int16_t *fresh", "int32_t *sums", "int32_t units"),
            _times(filters),
        ),
    )
    lines = [f"mve_copy(row, x, {length});"]
    lines.append(f"{first}(row, stream, {filters.padded // 4}, fresh, {scales.multipliers[0]});")
    lines += [f"{second}(s, times, fresh, sums, {filters.units});"]
    weights = packed(filters.products.weights, 1)
    words = np.concatenate([weights, filters.products.starts.astype(np.int32)], axis=1).reshape(-1)
    constants = (("stream", words), ("times", _time_rows(filters)))
    scratch = (Parameter("row", "int8", "scratch", elements=row),)
    return call_of_filters(operation, filters, lines, constants, scratch, definitions)


def _features(row: int, left: int, right: int) -> Iterator[str]:
    """Yield the function: r1 stream, r3 results, r5 multiplier, r7 row, r11 groups of four filters that are left."""
    yield from ("push {r4-r11, lr}", "ldr r5, [sp, #36]", "mov r7, r0", "mov r11, r2", "1:")
    yield from products(row, SUMS[0], 1)
    first, second, third, fourth = SUMS[0]
    yield from (f"vmov q0[2], q0[0], {first}, {third}", f"vmov q0[3], q0[1], {second}, {fourth}")
    yield from (f"sub r7, r7, #{row}", "vldrw.32 q1, [r1], #16", "vadd.i32 q0, q0, q1")
    if left:
        yield f"vshl.i32 q0, q0, #{left}"
    yield "vqrdmulh.s32 q0, q0, r5"
    if right:
        yield from ("vshr.s32 q1, q0, #31", "vadd.i32 q0, q0, q1", f"vrshr.s32 q0, q0, #{right}")
    yield from ("vqmovnb.s32 q0, q0", "vstrh.32 q0, [r3], #8", "subs r11, #1", "bne 1b", "pop {r4-r11, pc}")


def _times(filters: Filters) -> Iterator[str]:
    """Yield the function for the sums of units: the state moves by an element while it is multiplied.

    The last vector of a filter is loaded without, and stored with its new last element.
    """
    last = (filters.memory - 1) % LANES
    yield from ("push {r4-r9, lr}", "ldr r5, [sp, #28]", f"movs r6, #{last}", f"movs r7, #{last + 1}", "1:")
    # The bias is in two halfwords.
    yield "ldr r4, [r1], #4"
    yield from repeated(filters.rank, list(_filter(filters.memory)))
    yield from ("str r4, [r3], #4", "subs r5, r5, #1", "bne 1b", "pop {r4-r9, pc}")


def _filter(memory: int) -> Iterator[str]:
    """Yield the products of a filter, which are added to r4."""
    count = -(-memory // LANES)
    yield "ldrsh r8, [r2], #2"
    whole = ["vldrh.u16 q1, [r1], #16", "vldrh.u16 q0, [r0, #2]", "vstrh.16 q0, [r0], #16", "vmladava.s16 r4, q0, q1"]
    yield from repeated(count - 1, whole)
    yield from ("vldrh.u16 q1, [r1], #16", "vctp.16 r6", "vpst", "vldrht.u16 q0, [r0, #2]")
    yield from (f"vmov.16 q0[{(memory - 1) % LANES}], r8", "vctp.16 r7", "vpst", "vstrht.16 q0, [r0]")
    yield from ("vmladava.s16 r4, q0, q1", f"add r0, r0, #{2 * (memory - (count - 1) * LANES)}")


def _time_rows(filters: Filters) -> Any:
    """Return for each unit the bias in two halfwords, and the weights of each filter in whole vectors, int16."""
    padded = np.pad(filters.times, ((0, 0), (0, 0), (0, -filters.memory % LANES))).reshape(filters.units, -1)
    bias = np.ascontiguousarray(filters.bias.astype("<i4")).view("<i2").reshape(filters.units, 2)
    return np.concatenate([bias, padded.astype(np.int16)], axis=1).astype(np.int16).reshape(-1)
