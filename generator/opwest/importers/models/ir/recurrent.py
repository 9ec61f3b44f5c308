# SPDX-License-Identifier: Apache-2.0
"""Operations that change a state in place."""

from __future__ import annotations

from typing import Any

from opwest.importers.models.ir.operations import Finish
from opwest.importers.models.ir.program import Operation
from opwest.importers.models.operators.fixed_point import Requantisation
from opwest.records import dataclass


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
