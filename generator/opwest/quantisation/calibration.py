# SPDX-License-Identifier: Apache-2.0
"""Ranges of tensors from samples: all values, most of them, or those with the least squared error."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.graph.types import Graph, Quantization, Tensor
from opwest.compiler.reference.run import run_graph
from opwest.quantisation.rules import BITS

OUTSIDE = 1e-4
"""percentile: the part of the values that can be outside of the range, half of it at each end."""
_SHRUNK = np.linspace(0.2, 1.0, 33)
"""mse: the ranges that are tried, as parts of the whole one."""
_VALUES = 1 << 15
"""The most values of a tensor that are kept."""
_BEYOND = np.float32(1e30)
"""Numbers from here on are no values but limits, such as the padding of a maximum."""
Range = tuple[float, float]
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Statistics:
    """The values of a float32 tensor over all samples."""

    low: float
    high: float
    values: Any
    """Some of them, float32 [n]."""

    def range(self, method: str) -> Range:
        """Return the least and the greatest value to represent, with zero between them."""
        low, high = min(self.low, 0.0), max(self.high, 0.0)
        if method == "minmax" or not len(self.values):
            return low, high
        if method == "percentile":
            ends = np.quantile(self.values, (OUTSIDE / 2, 1 - OUTSIDE / 2))
            return min(float(ends[0]), 0.0), max(float(ends[1]), 0.0)
        errors = [_squared_error(self.values, low * part, high * part) for part in _SHRUNK]
        # The widest of equal ones.
        best = len(errors) - 1 - int(np.argmin(errors[::-1]))
        return float(low * _SHRUNK[best]), float(high * _SHRUNK[best])


def _squared_error(values: Any, low: float, high: float) -> float:
    """Return the sum of squared errors of values in 255 steps from low to high."""
    step = (high - low) / 255
    if step <= 0:
        return 0.0
    least = np.rint(low / step)
    rounded = np.clip(np.rint(values / np.float32(step)), least, least + 255) * np.float32(step)
    return float(np.square(rounded - values, dtype=np.float64).sum())


class Collector(Generic[Key]):
    """Collects statistics of tensors from arrays."""

    def __init__(self, cases: int) -> None:
        self._limits: dict[Key, Range] = {}
        self._parts: dict[Key, list[Any]] = {}
        self._quota = max(1, _VALUES // max(cases, 1))
        self._random = np.random.default_rng(0)

    def add(self, key: Key, array: Any) -> None:
        """Add float32 values [n] of a tensor."""
        array = array[np.isfinite(array) & (np.abs(array) < _BEYOND)]
        if not len(array):
            return
        low, high = self._limits.get(key, (0.0, 0.0))
        self._limits[key] = (min(low, float(array.min())), max(high, float(array.max())))
        if len(array) > self._quota:
            array = array[self._random.integers(0, len(array), self._quota)]
        self._parts.setdefault(key, []).append(array)

    def statistics(self) -> dict[Key, Statistics]:
        """Return the statistics of all tensors; those without finite values have none."""
        return {
            key: Statistics(low, high, np.concatenate(self._parts[key])) for key, (low, high) in self._limits.items()
        }


class Recorder:
    """Collects statistics of the computed float32 tensors of a graph, and its outputs, case by case."""

    def __init__(self, graph: Graph, cases: int) -> None:
        self.graph = graph
        self.outputs: list[list[Any]] = []
        self._sums: dict[Tensor, Any] = {}
        self._collector: Collector[Tensor] = Collector(cases)
        tensors = (*graph.inputs, *(tensor for node in graph.nodes for tensor in node.outputs))
        self._tensors = [tensor for tensor in tensors if tensor.dtype == "float32" and not tensor.is_constant]

    def add(self, case: Sequence[Any]) -> None:
        """Run one case."""
        values = run_graph(self.graph, case)
        self.outputs.append([np.asarray(values[tensor]) for tensor in self.graph.outputs])
        for tensor in self._tensors:
            array = np.asarray(values[tensor])
            self._sums[tensor] = self._sums.get(tensor, 0.0) + array.astype(np.float64)
            self._collector.add(tensor, array.reshape(-1))

    def means(self) -> dict[Tensor, Any]:
        """Return the mean of each element of each tensor over all samples, float64 in its shape."""
        return {tensor: total / len(self.outputs) for tensor, total in self._sums.items()}

    def statistics(self) -> dict[Tensor, Statistics]:
        """Return the statistics of all tensors."""
        return self._collector.statistics()


def ranges_of(statistics: Mapping[Key, Statistics], method: str) -> dict[Key, Range]:
    """Return the range of each tensor by one method."""
    return {tensor: one.range(method) for tensor, one in statistics.items()}


def range_of_constant(content: Any) -> Range:
    """Return the range of a constant with zero in it; numbers that are limits do not count."""
    array = np.asarray(content, np.float32).reshape(-1)
    array = array[np.isfinite(array) & (np.abs(array) < _BEYOND)]
    return (min(0.0, float(array.min())), max(0.0, float(array.max()))) if len(array) else (0.0, 0.0)


def union(ranges: Iterable[Range]) -> Range:
    """Return the least range that contains all."""
    lows, highs = zip(*ranges, strict=True)
    return min(lows), max(highs)


def quantization_of(limits: Range, dtype: str) -> Quantization:
    """Return the scale and the zero point of a range that contains zero: int16 without a zero point.

    Source: TFLite's tools/optimize/quantization_utils.cc (GetAsymmetricQuantizationParams); zero is exact.
    """
    low, high = limits
    if BITS[dtype] == 16:
        return Quantization((_scale(max(-low, high) / 32767),), (0,))
    scale = _scale((high - low) / 255)
    zero = int(np.clip(np.rint(-128 - low / scale), -128, 127))
    return Quantization((scale,), (zero,))


def _scale(value: float) -> float:
    """Return a scale as a float32 number that is not zero: tensors of zeros have the scale 1."""
    scale = float(np.float32(value))
    return scale if scale > 1e-30 else 1.0
