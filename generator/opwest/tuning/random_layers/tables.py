# SPDX-License-Identifier: Apache-2.0
"""Random tables of the results of elements."""

from __future__ import annotations

import numpy as np

from opwest.compiler.ir.elements import Interpolated, Lookup
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


@makes("int16")
def samples(random: Random, size: int | None = None, dtype: str = "int16", spread: int | None = None) -> Program:
    """Values between 513 samples; steps of more than 16 bits wrap."""
    shape = (int(size or random.choice([1, 2, 3, 4, 5, 31, 64, 99])),)
    low, high = RANGES[dtype]
    spread = spread or int(random.choice([1, 100, 32767, 65535]))
    steps = random.integers(-spread // 2, spread // 2 + 1, 513)
    content = np.clip(np.cumsum(steps) if spread < 1000 else steps, low, high).astype(dtype)
    data, result = value("input", dtype, shape), value("output", dtype, shape)
    return program(Elementwise("layer", (data,), (result,), Interpolated("EXP", content)))
