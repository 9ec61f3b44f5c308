# SPDX-License-Identifier: Apache-2.0
"""Integer SVDF layers in parts: the products with the features, the filters of times, the end of the results.

A kernel has a function for each of the first two. The state of a step is that of the step before without its first
element, and a new last one, for each filter. The sums of 16-bit products wrap to 32 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.epilogue import ending
from opwest.compiler.emission.function import Call, Lines, Parameter, c_type, call_of
from opwest.compiler.ir.operations import Filter
from opwest.compiler.kernels.gates import GATES, GateScales, Products, gate_scales, products_of
from opwest.compiler.semantics.fixed_point import RANGES, Rounding

MAX_MEMORY = 64
"""The most times of a filter: their products are code without a loop."""
MAX_RANK = 8


@dataclass(frozen=True, eq=False)
class Filters:
    """The numbers of a layer with an int16 state."""

    products: Products
    """Of four filters in the place of four gates; filters that pad the last group have weights of 0."""
    scales: GateScales
    rank: int
    units: int
    memory: int
    times: Any
    """int16 [units,rank,memory]."""
    bias: Any
    """int32 [units]."""

    @property
    def padded(self) -> int:
        """The filters with those that pad the last group."""
        return len(self.products.weights) * GATES


def filters_of(operation: Filter) -> Filters | None:
    """Return the numbers of a layer; None for other dtypes, zero points of the state, and numbers that do not fit."""
    data, state = operation.inputs
    inner, rank, (filters, memory) = operation.inner, operation.rank, operation.time.shape
    if (data.dtype, state.dtype, str(operation.time.dtype)) != ("int8", "int16", "int16") or inner is None:
        return None
    if inner.rounding is not Rounding.TWICE or (inner.low, inner.high) != RANGES["int16"] or operation.zeros[1] != 0:
        return None
    if memory > MAX_MEMORY or rank > MAX_RANK:
        return None
    features = np.pad(operation.feature, ((0, -filters % GATES), (0, 0)))
    starts = -operation.zeros[0] * features.sum(axis=1, dtype=np.int64)
    # Filter 4 * i + g has the place of gate g of cell i.
    moved = features.reshape(-1, GATES, features.shape[1]).transpose(1, 0, 2)
    products = products_of(moved, starts.reshape(-1, GATES).T, "int8")
    scales = gate_scales([inner.multipliers[0]] * GATES, products.bounds.max(axis=0), inner.rounding)
    if scales is None or np.abs(products.starts).max() >= 1 << 31:
        return None
    units = filters // rank
    bias = np.zeros(units, np.int32) if operation.bias is None else operation.bias.astype(np.int32)
    return Filters(products, scales, rank, units, memory, operation.time.reshape(units, rank, memory), bias)


def call_of_filters(
    operation: Filter,
    filters: Filters,
    row: Sequence[str],
    constants: Sequence[tuple[str, Any]],
    scratch: Sequence[Parameter],
    definitions: tuple[str, ...],
) -> Call:
    """Return the call. `row`: statements from the row `x` and the state `s` of a sequence to `sums` of the units."""
    batch, length = operation.inputs[0].shape
    end = ending(operation.finish, result=operation.results[0].dtype)
    lines = Lines()
    lines.add(f"{c_type(operation.results[0].dtype)} *y = result;", "")
    with lines.repeat("n", batch):
        place = [f" + n * {n}" if batch > 1 else "" for n in (length, operation.time.size)]
        lines.add(f"const int8_t *x = data{place[0]};", f"int16_t *s = state{place[1]};", "", *row)
        with lines.loop("u", filters.units):
            lines.add(f"*y++ = {end.result('sums[u]')};")
    return call_of(
        operation,
        "svdf",
        lines,
        ("data", "state"),
        constants,
        states=("state",),
        scratch=[
            *scratch,
            Parameter("fresh", "int16", "scratch", elements=filters.padded),
            Parameter("sums", "int32", "scratch", elements=filters.units),
        ],
        helpers=sorted(end.helpers),
        headers=("string.h", *end.headers),
        definitions=definitions,
    )
