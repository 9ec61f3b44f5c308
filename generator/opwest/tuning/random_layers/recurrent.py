# SPDX-License-Identifier: Apache-2.0
"""Random layers with a state. Their programs have the states as outputs, too."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.compiler.ir.operations import Filter, FloatMemory, HybridWeights, IntegerMemory
from opwest.compiler.ir.program import Program, Value
from opwest.compiler.semantics.fixed_point import RANGES, Multiplier, Requantisation, Rounding, quantize_multiplier
from opwest.compiler.semantics.recurrent import LstmNumbers
from opwest.tuning.random_layers.numbers import Random, makes, program, random_limits, value, weights_of, zero_point

SIZES = (1, 2, 3, 4, 5, 7, 8, 12, 17, 20, 33)
LONG = 70
"""A size with loops over the weights."""


@makes("int8", "int16")
def integer_lstm(
    random: Random,
    dtype: str = "int8",
    is_micro: bool | None = None,
    power: int | None = None,
    sizes: tuple[int, int] | None = None,
) -> Program:
    """An LSTM without peepholes, projection and normalisation. `sizes`: of the data and of the cells."""
    is_word = dtype == "int16"
    is_micro = is_word or (bool(random.random() < 0.5) if is_micro is None else is_micro)
    length, cells = sizes or (int(n) for n in random.choice(SIZES, 2))
    if sizes is None and random.random() < 0.1:
        length, cells = (LONG, cells) if random.random() < 0.7 else (length, LONG)
    batch, steps = int(random.choice([1, 1, 2, 3])), int(random.integers(1, 4))
    gates = 4 if is_micro or random.random() < 0.7 else 3
    is_time_major = bool(random.integers(0, 2))
    weights = weights_of(random, (gates, cells, length + cells))
    zeros: Any = (zero_point(random, dtype), zero_point(random, dtype))
    power = int(random.choice([-15, -14, -13, -12, -12, -12, -11, -10, -9])) if power is None else power
    parts = weights[:, :, :length], weights[:, :, length:]
    starts = np.stack([-zero * part.sum(axis=2, dtype=np.int64) for zero, part in zip(zeros, parts, strict=True)])
    starts[0] += random.integers(-30000, 30001, (gates, cells)) * (256 if is_word else 1)
    numbers = LstmNumbers(
        is_micro=is_micro,
        rounding=Rounding.SIXTEEN if is_word else Rounding.TWICE,
        data=_multipliers(random, parts[0], gates, is_word),
        last=_multipliers(random, parts[1], gates, is_word),
        zeros=zeros,
        power=power,
        clip=None if random.random() < 0.3 else int(random.choice([32767, 32767, 1, random.integers(1, 32768)])),
        products=(quantize_multiplier(2.0**-15), quantize_multiplier(2.0 ** (-30 - power))) if is_micro else None,
        hidden=quantize_multiplier(float(2.0**-30 / random.uniform(0.002, 0.02) * random.choice([1, 1, 1, 256, 1e-4]))),
        hidden_zero=zeros[1],
        low=RANGES[dtype][0],
        high=RANGES[dtype][1],
    )
    shape = (steps, batch) if is_time_major else (batch, steps)
    inputs = (
        Value("data", "input", dtype, (*shape, length)),
        Value("last", "input", dtype, (batch, cells)),
        Value("cell", "input", "int16", (batch, cells)),
    )
    result = value("output", dtype, (*shape, cells))
    arrays = (weights, None, None, None, None, None, starts.astype(np.int32))
    made = program(IntegerMemory("layer", inputs, (result,), is_time_major, *arrays, numbers))
    made.outputs = [result, *inputs[1:]]
    return made


@makes("int8")
def svdf(random: Random, dtype: str = "int8", sizes: tuple[int, int, int, int] | None = None) -> Program:
    """An SVDF layer with an int16 state. `sizes`: of the data, of units, rank, memory."""
    length, units, rank, memory = sizes or (
        int(random.choice([1, 3, 4, 8, 15, 16, 33, 40, 70])),
        int(random.integers(1, 20)),
        int(random.choice([1, 1, 2, 3])),
        int(random.choice([1, 2, 3, 7, 8, 9, 10, 16, 17, 64])),
    )
    batch, filters = int(random.choice([1, 1, 2])), units * rank
    feature, zero = weights_of(random, (filters, length)), zero_point(random, dtype)
    time = random.choice([-32768, 32767], (filters, memory))
    if random.random() < 0.7:
        time = random.integers(-32768, 32768, (filters, memory)) >> int(random.integers(0, 10))
    [inner] = _multipliers(random, feature[None], 1, False)[-1:]
    assert inner is not None
    bias = None if random.random() < 0.2 else random.integers(-(1 << 20), 1 << 20, units).astype(np.int32)
    real = float(np.exp(random.uniform(-18, -8)) * random.choice([1, 1, 1, 1e-4]))
    target = zero_point(random, dtype)
    finish = Requantisation((quantize_multiplier(real),), Rounding.TWICE, target, *random_limits(random, dtype, target))
    state = Value("state", "input", "int16", (batch, filters, memory))
    inputs = (Value("data", "input", dtype, (batch, length)), state)
    result = value("output", dtype, (batch, units))
    arrays = feature, time.astype(np.int16), bias
    first = Requantisation((inner,), Rounding.TWICE, 0, *RANGES["int16"])
    made = program(Filter("layer", inputs, (result,), rank, *arrays, (zero, 0), None, first, finish))
    made.outputs = [result, state]
    return made


@makes("float32")
def hybrid_lstm(random: Random, dtype: str = "float32", sizes: tuple[int, int] | None = None) -> Program:
    """An LSTM with int8 weights and float32 data; some with coupled gates, and a projection."""
    length, cells = sizes or (int(n) for n in random.choice(SIZES, 2))
    units = cells if random.random() < 0.7 else int(random.integers(1, 9))
    batch, steps, gates = int(random.choice([1, 1, 2])), int(random.integers(1, 4)), int(random.choice([3, 4, 4]))
    weights = weights_of(random, (gates, cells, length + units))
    projection = None if units == cells else weights_of(random, (units, cells))
    bias = random.standard_normal((gates, cells)).astype(np.float32)
    scales = random.uniform(0.002, 0.01, (gates, 2)).astype(np.float32)
    hybrid = HybridWeights(bool(random.integers(0, 2)), scales, float(np.float32(0.004)))
    inputs = (
        Value("data", "input", dtype, (batch, steps, length)),
        Value("last", "input", dtype, (batch, units)),
        Value("cell", "input", dtype, (batch, cells)),
    )
    result = value("output", dtype, (batch, steps, units))
    arrays = (weights, bias, None, None, projection, None)
    clip = float(random.choice([0, 0.5]))
    made = program(FloatMemory("layer", inputs, (result,), False, *arrays, "TANH", clip, 0.0, hybrid))
    made.outputs = [result, *inputs[1:]]
    return made


def _multipliers(random: Random, weights: Any, gates: int, is_word: bool) -> tuple[Multiplier | None, ...]:
    """Return the multipliers of the gates: usual ones, and those of sums that saturate, that are small, that are 0."""
    spread = np.sqrt((weights.astype(np.int64) ** 2).sum(axis=2).mean() + 1) * (18000 if is_word else 74)
    found: list[Multiplier | None] = [None] * (4 - gates)
    kinds = random.choice(["usual", "usual", "left", "exponents", "half"], gates)
    for kind in kinds:
        by = quantize_multiplier(float(random.uniform(1000, 30000) / spread))
        if kind == "left":
            by = Multiplier(by.fixed, int(random.integers(0, 5)))
        elif kind == "exponents":
            by = Multiplier(by.fixed, int(random.integers(-31, 1)))
        elif kind == "half":
            by = Multiplier(int(random.choice([1 << 30, (1 << 31) - 1, 0])), by.shift)
        found.append(by)
    return tuple(found)
