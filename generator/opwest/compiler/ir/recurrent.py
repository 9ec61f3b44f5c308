# SPDX-License-Identifier: Apache-2.0
"""Operations that change a state in place."""

from __future__ import annotations

from typing import Any

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.ir.operations import Finish
from opwest.compiler.ir.program import Operation
from opwest.compiler.semantics.fixed_point import Requantisation
from opwest.compiler.semantics.lstm import LstmNumbers


@dataclass(frozen=True)
class HybridFeature:
    """int8 weights of the features with float32 data."""

    scale: float
    is_asymmetric: bool


@dataclass(frozen=True, eq=False)
class Filter(Operation):
    """SVDF: inputs [data [n,length], state [n,filters,memory]], results [[n,filters / rank]]."""

    rank: int
    feature: Any
    """[filters,length]."""
    time: Any
    """[filters,memory], float32 if the state is."""
    bias: Any
    zeros: tuple[int, int]
    """Of the data and the state."""
    hybrid: HybridFeature | None
    inner: Requantisation | None
    finish: Finish


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
