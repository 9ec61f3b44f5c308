# SPDX-License-Identifier: Apache-2.0
"""Random functions of int16 elements between samples."""

from __future__ import annotations

import numpy as np

from opwest.compiler.ir.elements import Interpolated, Sigmoid
from opwest.compiler.ir.operations import Elementwise
from opwest.compiler.ir.program import Program
from opwest.compiler.semantics.tables import SigmoidNumbers
from opwest.tuning.random_layers.numbers import Random, makes, program, value


@makes("int16")
def curve(random: Random, size: int | None = None, kind: str | None = None, dtype: str = "int16") -> Program:
    """LOGISTIC or TANH of inputs with any scale, or a table of any samples."""
    shape = (int(size or random.choice([1, 2, 3, 4, 5, 31, 64, 99])),)
    kind = kind or str(random.choice(["LOGISTIC", "TANH", "EXP"]))
    data, result = value("input", dtype, shape), value("output", dtype, shape)
    if kind == "EXP":
        ends = np.asarray([-32768, 32767])
        samples = random.choice(ends, 513) if random.random() < 0.3 else random.integers(-32768, 32768, 513)
        function: Interpolated | Sigmoid = Interpolated(kind, samples.astype(np.int16))
    else:
        places = int(random.integers(0, 20))
        multiplier = int(random.choice([3, 3, 6, 12, random.integers(8192, 32768)]))
        function = Sigmoid(kind, SigmoidNumbers(multiplier, places if multiplier > 100 else places % 4))
    return program(Elementwise("layer", (data,), (result,), function))
