# SPDX-License-Identifier: Apache-2.0
"""The parts of random layers: values, windows, weights, biases, multipliers, with the numbers that break kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.ir.program import Operation, Program, Value
from opwest.compiler.semantics.fixed_point import RANGES, Multiplier, Requantisation, Rounding
from opwest.compiler.semantics.windows import Window

Random: TypeAlias = Any
"""numpy.random.Generator. Its stubs do not accept all lists that it chooses from."""
Make = Callable[..., Program]
"""From a random generator, and the keyword `dtype` of the data, to a program of one operation."""


@dataclass(frozen=True)
class Maker:
    """Random layers of one kind, for the check of variants."""

    make: Make
    dtypes: tuple[str, ...]


MAKERS: list[Maker] = []
"""In the order of their registration, on which the random numbers of `tuning/check.py` depend."""


def makes(*dtypes: str) -> Callable[[Make], Make]:
    """Register a maker for dtypes of the data."""

    def register(make: Make) -> Make:
        MAKERS.append(Maker(make, dtypes))
        return make

    return register


def value(role: str, dtype: str, shape: Sequence[int], name: str = "") -> Value:
    """Return a value of a program. Inputs with a name of `LIMITS` have these values."""
    return Value(name or role, role, dtype, tuple(int(extent) for extent in shape))


LIMITS = {"zeros": RANGES["int8"], "bias": (-30000, 30000)}
"""The least and greatest values of inputs by name: others would exceed 32 bits of sums."""


def program(operation: Operation) -> Program:
    """Return a program of one operation."""
    made = Program()
    made.inputs = [data for data in operation.inputs if data.role == "input"]
    made.outputs = list(operation.results)
    made.operations = [operation]
    return made


def window(
    random: Random,
    image: Sequence[int],
    size: Sequence[int],
    stride: Any = None,
    dilation: Any = None,
    same: bool | None = None,
) -> Window:
    """Return a window over an image: TFLite's SAME or VALID, or any padding below the size."""
    stride = stride or (int(random.integers(1, 4)), int(random.integers(1, 4)))
    dilation = dilation or (1, 1)
    same = bool(random.integers(0, 2)) if same is None else same
    before, result = [], []
    for axis in range(2):
        reach = (size[axis] - 1) * dilation[axis] + 1
        if same:
            count = -(-image[axis] // stride[axis])
            before.append(max(0, (count - 1) * stride[axis] + reach - image[axis]) // 2)
        else:
            count = -(-(image[axis] - reach + 1) // stride[axis])
            before.append(0)
        assert count > 0
        result.append(count)
    places: Any = (size, stride, dilation, before, result)
    return Window(*(tuple(place) for place in places))


def requantisation(
    random: Random, weights: Any, kind: str, rounding: Rounding = Rounding.TWICE, dtype: str = "int8"
) -> Requantisation:
    """Return the end of a layer. weights [o, ...] of int8; `kind`: ordinary, relu, or a kind of edge."""
    results = len(weights)
    low, high = (-128, 127) if dtype == "int8" else (-32768, 32767)
    flat = weights.reshape(results, -1).astype(np.int64)
    spread = np.sqrt((flat**2).sum(axis=1) + 1.0) * (74 if dtype == "int8" else 18000)
    target = 40 if dtype == "int8" else 9000
    reals = target / spread * random.uniform(0.3, 3, results)
    each = 1 if kind == "one" else results
    pairs = []
    for number in range(each):
        fraction, shift = np.frexp(reals[number])
        fixed = int(fraction * (1 << 31))
        if kind == "exponents":
            shift = int(random.choice([*range(-31, 1), int(shift), int(shift)]))
        elif kind == "left" and random.random() < 0.5:
            shift = int(random.integers(0, 31 if rounding is Rounding.TWICE else 4))
        if kind in ("exponents", "left") and random.random() < 0.2:
            fixed, shift = 0, 0
        if kind == "halves" and random.random() < 0.7:
            fixed = 1 << 30
        if kind == "greatest" and random.random() < 0.5:
            fixed = (1 << 31) - 1
        pairs.append(Multiplier(fixed, int(shift)))
    if dtype == "int16":
        if random.random() < 0.3:
            high = int(random.integers(1, 32767))
            low = -high
        return Requantisation(tuple(pairs), rounding, 0, 0 if kind == "relu" else low, high)
    offset = int(random.choice([-128, 127, 0, int(random.integers(-128, 128))]))
    if kind == "relu":
        return Requantisation(tuple(pairs), rounding, -128, -128, int(random.choice([127, 127, 50])))
    limits = (
        (max(low, offset), int(min(high, offset + random.integers(1, 250)))) if random.random() < 0.3 else (low, high)
    )
    if limits[0] >= limits[1]:
        limits = (low, high)
    return Requantisation(tuple(pairs), rounding, offset, *limits)


KINDS = ("ordinary", "ordinary", "relu", "relu", "one", "exponents", "left", "halves", "greatest")


def weights_of(random: Random, shape: Sequence[int]) -> Any:
    """Return int8 weights: usual ones, extreme ones, sparse ones."""
    kind = random.integers(0, 5)
    if kind == 0:
        return random.choice([-128, -127, 127], shape).astype(np.int8)
    if kind == 1:
        return np.clip(np.rint(random.normal(0, 25, shape)), -127, 127).astype(np.int8)
    weights = random.integers(-128, 128, shape).astype(np.int8)
    return weights * (random.random(shape) < 0.3) if kind == 2 else weights


def bias_of(random: Random, results: int) -> Any:
    """Return int32 biases, or None."""
    if random.random() < 0.15:
        return None
    return random.integers(-30000, 30000, results).astype(np.int64)


def numbers_of(random: Random, weights: Any, kind: str | None, dtype: str) -> tuple[Any, int, Requantisation]:
    """Return the bias, the zero point of the data and the end of a layer with weights [o, ...]."""
    bias, zero = bias_of(random, len(weights)), zero_point(random, dtype)
    kind = kind or str(random.choice(KINDS))
    rounding = Rounding.SIXTEEN if dtype == "int16" else Rounding.TWICE
    return bias, zero, requantisation(random, weights, kind, rounding, dtype)


def random_limits(random: Random, dtype: str, zero: int) -> tuple[int, int]:
    """Return the limits of results: those of the dtype, from the zero point, any."""
    low, high = RANGES[dtype]
    kind = random.integers(0, 4)
    if kind == 0 and zero < high:
        return zero, high
    if kind == 1:
        first, second = sorted(int(limit) for limit in random.choice(np.arange(low, high + 1), 2, replace=False))
        return first, second
    return low, high


def zero_point(random: Random, dtype: str) -> int:
    """Return the zero point of data: 0 for int16, else often one end of int8."""
    return 0 if dtype == "int16" else int(random.choice([-128, 127, 0, random.integers(-128, 128)]))


def inputs_of(random: Random, made: Program, case: int) -> list[Any]:
    """Return inputs: the least and the greatest values, random ones, usual ones."""
    return [_array(random, data, case) for data in made.inputs]


def _array(random: Random, data: Value, case: int) -> Any:
    if data.dtype == "float32":
        array = random.normal(0, float(random.choice([0.1, 1.0, 30.0])), data.shape)
        return (array * (random.random(data.shape) < 0.7 if case % 5 == 0 else 1)).astype(np.float32)
    low, high = LIMITS.get(data.name) or RANGES[data.dtype]
    if case % 5 == 0:
        array = np.full(data.shape, low)
    elif case % 5 == 1:
        array = random.choice([low, high], data.shape)
    elif case % 5 == 2:
        array = random.integers(low, high + 1, data.shape)
    else:
        array = np.clip(np.rint(random.normal((low + high + 1) // 2, (high - low) // 4, data.shape)), low, high)
    return array.astype(data.dtype)
