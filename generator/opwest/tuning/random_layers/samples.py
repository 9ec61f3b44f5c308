# SPDX-License-Identifier: Apache-2.0
"""Random functions of int16 elements between samples."""

from __future__ import annotations

import numpy as np

from opwest.compiler.ir.elements import Interpolated
from opwest.compiler.ir.operations import Elementwise
from opwest.compiler.ir.program import Program
from opwest.tuning.random_layers.numbers import Random, makes, program, value


@makes("int16")
def sampled(random: Random, size: int | None = None, dtype: str = "int16") -> Program:
    """A table of 513 samples: any numbers, whose differences wrap, or a curve."""
    table = random.integers(-32768, 32768, 513)
    if random.random() < 0.5:
        table = np.rint(32767 * np.tanh(np.linspace(-3, 3, 513) * random.uniform(0.1, 3)))
    shape = (int(size or random.choice([1, 2, 3, 4, 5, 17, 64, 99])),)
    data, result = value("input", dtype, shape), value("output", dtype, shape)
    return program(Elementwise("layer", (data,), (result,), Interpolated("EXP", table.astype(np.int16))))
