# SPDX-License-Identifier: Apache-2.0
"""Random functions of elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.compiler.ir.elements import AddQuantised, Product
from opwest.compiler.ir.operations import Elementwise
from opwest.compiler.ir.program import Program, Value
from opwest.compiler.semantics.arithmetic import AddNumbers, ProductNumbers
from opwest.compiler.semantics.fixed_point import quantize_multiplier
from opwest.tuning.random_layers.numbers import Random, makes, program, random_limits, value, zero_point


@makes("int8")
def elements(random: Random, shape: Any = None, kind: str | None = None, dtype: str = "int8") -> Program:
    """The sum, difference or product of two tensors."""
    shape = shape or (1, int(random.integers(1, 200)))
    operands = [value("input", dtype, shape) for _ in range(2)]
    low, high = (-128, 127) if random.random() < 0.6 else (int(random.integers(-128, 0)), int(random.integers(1, 128)))
    zeros: Any = tuple(zero_point(random, "int8") for _ in range(3))
    if random.random() < 0.4:
        zeros, low = (*zeros[:2], -128), -128
    first, second, target = (float(np.float32(random.uniform(0.01, 0.2))) for _ in range(3))
    function: Any
    kind = kind or str(random.choice(["add", "add", "subtract", "multiply"]))
    if kind == "multiply":
        real = first * second / target * float(random.choice([1.0, 1.0, 0.01, 4.0]))
        function = Product(ProductNumbers(zeros[:2], quantize_multiplier(real), zeros[2], low, high))
    else:
        target = max(first, second) * float(random.uniform(0.6, 3))
        twice = 2 * max(first, second)
        multipliers = (quantize_multiplier(first / twice), quantize_multiplier(second / twice))
        numbers = AddNumbers(
            20, zeros[:2], multipliers, quantize_multiplier(twice / ((1 << 20) * target)), zeros[2], low, high
        )
        function = AddQuantised(numbers, kind == "subtract")
    return program(Elementwise("layer", tuple(operands), (value("output", dtype, shape),), function))


def _pair(random: Random, size: int | None, dtype: str) -> tuple[tuple[Value, Value], Value]:
    """Return two operands and a result of one dimension."""
    shape = (int(size or random.choice([1, 3, 4, 17, 64, 99])),)
    return (Value("one", "input", dtype, shape), Value("other", "input", dtype, shape)), value("output", dtype, shape)


def add(random: Random, size: int | None = None, dtype: str = "int8") -> Program:
    """A sum or difference of two quantised values, with scales of any ratio."""
    inputs, result = _pair(random, size, dtype)
    left, zero = 15 if dtype == "int16" else 20, zero_point(random, dtype)
    scales = np.exp(random.uniform(-6, 1, 2))
    scales[1] = scales[0] * random.choice([1, 1, scales[1], 0.5])
    twice = 2 * scales.max()
    target = scales.max() * np.exp(random.uniform(-3, 3)) * random.choice([1, 1, 1, 2.0**-20])
    numbers = AddNumbers(
        left,
        (zero_point(random, dtype), zero_point(random, dtype)),
        (quantize_multiplier(float(scales[0] / twice)), quantize_multiplier(float(scales[1] / twice))),
        quantize_multiplier(float(twice / ((1 << left) * target))),
        zero,
        *random_limits(random, dtype, zero),
    )
    return program(Elementwise("layer", inputs, (result,), AddQuantised(numbers, bool(random.random() < 0.3))))


def multiply(random: Random, size: int | None = None, dtype: str = "int8") -> Program:
    """A product of two quantised values, with a multiplier of any size."""
    inputs, result = _pair(random, size, dtype)
    zero = zero_point(random, dtype)
    real = np.exp(random.uniform(-12, 2)) * random.choice([1, 1, 1, 2.0**-25, 0])
    zeros = (zero_point(random, dtype), zero_point(random, dtype))
    limits = random_limits(random, dtype, zero)
    numbers = ProductNumbers(zeros, quantize_multiplier(float(real)), zero, *limits)
    return program(Elementwise("layer", inputs, (result,), Product(numbers)))
