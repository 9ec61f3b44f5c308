# SPDX-License-Identifier: Apache-2.0
"""The steps of an LSTM with int8 or int16 data, on int64 arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.importers.models.interpret.registry import Arrays
from opwest.importers.models.operators import gemmlowp_16
from opwest.importers.models.operators.fixed_point import Multiplier, Rounding, round_shift, scaled
from opwest.importers.models.operators.gemmlowp import inverse_root
from opwest.importers.models.operators.lstm_numbers import GATE_TANH, LstmNumbers, Normalisation
from opwest.importers.models.operators.tables import interpolated_sigmoid


def _times(value: Any, by: Multiplier | None, rounding: Rounding = Rounding.TWICE) -> Any:
    assert by is not None
    return scaled(value, by.fixed, by.shift, rounding)


def _clamped(value: Any) -> Any:
    return np.clip(value, -32768, 32767)


def _wrapped(value: Any) -> Any:
    return value.astype(np.int32).astype(np.int64)


class IntegerCell:
    """A layer; its functions return int64 arrays [batch, cells or results]."""

    def __init__(self, arrays: Arrays, numbers: LstmNumbers, starts: Any = None) -> None:
        """`starts`: what the sums of the gates start with, [2][gates]: of the data, of the last result."""
        self._arrays: list[Any] = [None if one is None else one.astype(np.int64) for one in arrays]
        self._numbers = numbers
        self._starts = self._made_starts() if starts is None else starts

    def _made_starts(self) -> list[list[Any]]:
        """Return the biases, without the products of the zero points."""
        found: list[list[Any]] = []
        for first, zero in zip((1, 5), self._numbers.zeros, strict=True):
            weights = self._arrays[first : first + 4]
            found.append([None if one is None else -zero * one.sum(axis=1) for one in weights])
        for gate, norm in enumerate(self._numbers.norms):
            if norm is None and found[0][gate] is not None:
                found[0][gate] = found[0][gate] + self._arrays[12 + gate]
        return found

    def step(self, data: Any, last: Any, cells: Any) -> Any:
        """Return the next results; the cells are changed."""
        numbers = self._numbers
        x, h = data.astype(np.int64), last.astype(np.int64)
        c = cells.astype(np.int64)
        forget = self._gate(1, x, h, c, 1)
        enter = None if self._arrays[1] is None else self._gate(0, x, h, c, 0)
        new = self._gate(2, x, h, c)
        if numbers.products is not None:
            kept, added = (
                _clamped(_times(value, by))
                for value, by in zip((forget * c, enter * new), numbers.products, strict=True)
            )
        else:
            kept = round_shift(forget * c, 15)
            added = round_shift((32767 - forget if enter is None else enter) * new, 30 + numbers.power)
        c = _clamped(kept + added)
        if numbers.clip is not None:
            c = np.clip(c, -numbers.clip, numbers.clip)
        cells[:] = c
        product = self._gate(3, x, h, c, 2) * self._tanh(c)
        hidden = np.clip(_times(product, numbers.hidden) + numbers.hidden_zero, numbers.low, numbers.high)
        return hidden if numbers.projection is None else self._projected(hidden)

    def _gate(self, g: int, x: Any, h: Any, c: Any, peephole: int | None = None) -> Any:
        numbers, norm = self._numbers, self._numbers.norms[g]
        total = x @ self._arrays[1 + g].T + self._starts[0][g]
        first = _clamped(_times(total, numbers.data[g], numbers.rounding))
        second = _times(h @ self._arrays[5 + g].T + self._starts[1][g], numbers.last[g], numbers.rounding)
        found = _clamped(first + (_clamped(second) if numbers.is_micro else second))
        if peephole is not None and numbers.peepholes[peephole] is not None:
            found = _clamped(found + _times(self._arrays[9 + peephole] * c, numbers.peepholes[peephole]))
        if norm is not None:
            found = self._normalised(found, norm, self._arrays[20 + g], self._arrays[12 + g])
        if numbers.is_micro:
            return interpolated_sigmoid(found, GATE_TANH, g == 2)
        return gemmlowp_16.tanh(found, 3) if g == 2 else gemmlowp_16.logistic(found)

    def _tanh(self, cells: Any) -> Any:
        if self._numbers.is_micro:
            return interpolated_sigmoid(cells, self._numbers.tanh, True)
        return gemmlowp_16.tanh(cells, 15 + self._numbers.power)

    def _normalised(self, values: Any, by: Normalisation, weights: Any, bias: Any) -> Any:
        """Return the layer normalisation. Source: portable_tensor_utils.cc, PortableApplyLayerNorm."""
        length = values.shape[1]
        mean = _quotient(values.sum(axis=1) * 1024, length)
        variance = _quotient((values * values).sum(axis=1) * ((1 << 20) // length) - mean * mean, 1 << 20)
        variance = np.where(variance < 1, by.guard, variance)
        fixed, places = (one[:, None] for one in inverse_root(variance))
        centred = scaled(1024 * values - mean[:, None], fixed, -places, Rounding.TWICE)
        product = _wrapped(centred * weights + bias)
        rounded = _quotient(np.where(product > 0, product + 512, product - 512), 1024)
        return _clamped(_times(rounded, by.by))

    def _projected(self, hidden: Any) -> Any:
        """Return the int8 results of a projection; its data have the zero point of the negated `hidden_zero`."""
        projection = self._numbers.projection
        assert projection is not None
        bias = 0 if self._arrays[17] is None else self._arrays[17]
        total = (hidden - self._numbers.hidden_zero) @ self._arrays[16].T + bias
        found = np.clip(_times(total, projection.by) + projection.zero, -128, 127)
        return np.clip(found, -projection.clip, projection.clip) if projection.clip > 0 else found


def _quotient(value: Any, by: int) -> Any:
    """Return a quotient that is rounded to zero, as in C."""
    return np.abs(value) // by * np.sign(value)
