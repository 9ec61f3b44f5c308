# SPDX-License-Identifier: Apache-2.0
"""Random conversions between float32 numbers and quantised values."""

from __future__ import annotations

import numpy as np

from opwest.compiler.ir.elements import Dequantised, Quantised
from opwest.compiler.ir.operations import Elementwise
from opwest.compiler.ir.program import Program
from opwest.compiler.semantics.elementwise import QuantizeNumbers
from opwest.compiler.semantics.fixed_point import RANGES
from opwest.tuning.random_layers.numbers import Random, makes, program, value, zero_point

SIZES = (1, 2, 3, 4, 5, 17, 64, 99)


def _scale(random: Random) -> float:
    """Return a scale, sometimes a power of two."""
    if random.random() < 0.3:
        return float(2.0 ** random.integers(-12, 3))
    return float(np.float32(np.exp(random.uniform(-8, 2)) * random.choice([1, 1, 1, 1, 2.0**-50, 2.0**40])))


@makes("float32")
def quantised(
    random: Random, size: int | None = None, dtype: str = "float32", target: str | None = None, scale: float = 0.0
) -> Program:
    """float32 to int8, uint8 or int16."""
    shape = (int(size or random.choice(SIZES)),)
    target = target or str(random.choice(["int8", "uint8", "int16"]))
    low, high = RANGES[target]
    zero = zero_point(random, "int8") - (-128 if target == "uint8" else 0)
    numbers = QuantizeNumbers(scale or _scale(random), zero, low, high)
    data, result = value("input", dtype, shape), value("output", target, shape)
    return program(Elementwise("layer", (data,), (result,), Quantised(numbers)))


@makes("int8", "uint8", "int16")
def dequantised(random: Random, size: int | None = None, dtype: str = "int8") -> Program:
    """Quantised values to float32."""
    shape = (int(size or random.choice(SIZES)),)
    zero = zero_point(random, "int8") - (-128 if dtype == "uint8" else 0)
    data, result = value("input", dtype, shape), value("output", "float32", shape)
    return program(Elementwise("layer", (data,), (result,), Dequantised(_scale(random), zero)))
