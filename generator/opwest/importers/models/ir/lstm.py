# SPDX-License-Identifier: Apache-2.0
"""Operations of LSTMs: inputs [data [n,t,length], last result [n,units], cells [n,cells]], results [[n,t,units]].

The last result and the cells change in place. Gates are in the order input, forget, cell, output; without the first
one it is 1 - the forget gate. Peepholes are those of the input, the forget and the output gate.
"""

from __future__ import annotations

from typing import Any

from opwest.importers.models.ir.program import Operation
from opwest.importers.models.operators.lstm_numbers import LstmNumbers
from opwest.records import dataclass


@dataclass(frozen=True, eq=False)
class Memory(Operation):
    """The arrays of an LSTM. None: it has no such part."""

    is_time_major: bool
    weights: Any
    """[gates,cells,length + units]."""
    bias: Any
    """[gates,cells]."""
    peepholes: Any
    """[gates - 1,cells]."""
    norms: Any
    """[gates,cells]: the bias is added after the normalisation."""
    projection: Any
    """[units,cells]."""
    projection_bias: Any
    """[units]."""


@dataclass(frozen=True)
class HybridWeights:
    """The scales of int8 weights with float32 data."""

    is_asymmetric: bool
    """Whether data are quantised with zero points."""
    scales: Any
    """[gates,2] float32: of the data, of the last result."""
    projection: float


@dataclass(frozen=True, eq=False)
class FloatMemory(Memory):
    """An LSTM with float32 data. Weights are int8 if it is hybrid; peepholes are float32."""

    activation: str
    clip: float
    projection_clip: float
    hybrid: HybridWeights | None


@dataclass(frozen=True, eq=False)
class IntegerMemory(Memory):
    """An LSTM with int8 or int16 data. The bias is that after the normalisation."""

    starts: Any
    """[2,gates,cells]: the sums of data and last results start with them; they contain biases and zero points."""
    numbers: LstmNumbers
