# SPDX-License-Identifier: Apache-2.0
"""Random tables of 8-bit elements."""

from __future__ import annotations

from opwest.compiler.ir.elements import Lookup
from opwest.compiler.ir.operations import Elementwise
from opwest.compiler.ir.program import Program
from opwest.compiler.semantics.fixed_point import RANGES
from opwest.tuning.random_layers.numbers import Random, makes, program, value


@makes("int8", "uint8")
def table(random: Random, size: int | None = None, dtype: str = "int8", target: str | None = None) -> Program:
    """A table of the results of 8-bit elements."""
    shape = (int(size or random.choice([1, 2, 3, 4, 5, 31, 64, 99])),)
    target = target or str(random.choice([dtype, dtype, "int16", "int8", "uint8"]))
    low, high = RANGES[target]
    content = random.integers(low, high + 1, 256).astype(target)
    data, result = value("input", dtype, shape), value("output", target, shape)
    return program(Elementwise("layer", (data,), (result,), Lookup("LOGISTIC", content)))
