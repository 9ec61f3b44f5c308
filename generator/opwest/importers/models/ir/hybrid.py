# SPDX-License-Identifier: Apache-2.0
"""Operations of layers with float32 data and int8 weights."""

from __future__ import annotations

from typing import Any

from opwest.importers.models.ir.operations import Clamp
from opwest.importers.models.ir.program import Operation
from opwest.importers.models.operators.windows import Window
from opwest.records import dataclass


@dataclass(frozen=True, eq=False)
class QuantiseRows(Operation):
    """inputs [data [rows, ...] float32], results [int8 data, scales [rows]] and perhaps [zero points [rows]].

    With zero points the rows are quantised asymmetrically.
    """


@dataclass(frozen=True, eq=False)
class HybridProduct(Operation):
    """inputs [int8 data [rows,1,1,k], scales [rows]] and perhaps [zero points [rows]], results [float32 [...,m,n]].

    The first dimensions are those of batches, under numpy's rule of broadcasting.
    """

    data: tuple[int, ...]
    """The shape [...,m,k] of the data."""
    weights: Any
    """[...,n,k]."""
    scale: float


@dataclass(frozen=True, eq=False)
class HybridConvolution(Operation):
    """inputs [int8 data [n,h,w,c], scales [n]] and perhaps [zero points [n]], results [float32 [n,rows,columns,o]].

    Elements of the padding do not count.
    """

    window: Window
    groups: int
    is_depthwise: bool
    weights: Any
    """[o,kh,kw,c / groups]; depthwise [kh,kw,o]."""
    scales: Any
    """[o] float32."""
    bias: Any
    finish: Clamp
    is_transposed: bool
    """The window is that of the convolution from the result to the data."""
