# SPDX-License-Identifier: Apache-2.0
"""Products of two values, of which any can be computed when the model runs."""

from __future__ import annotations

from opwest.importers.models.ir.operations import Finish
from opwest.importers.models.ir.program import Operation
from opwest.importers.models.operators.windows import Window
from opwest.records import dataclass


@dataclass(frozen=True, eq=False)
class MatrixProduct(Operation):
    """inputs [one [...,m,k], other [...,k,n]] and perhaps [bias [n]], results [[...,m,n]]: the first dimensions are
    those of batches, under numpy's rule of broadcasting."""

    swaps: tuple[bool, bool]
    """Whether the last two dimensions of an operand are swapped."""
    zeros: tuple[int, int]
    finish: Finish


@dataclass(frozen=True, eq=False)
class DirectConvolution(Operation):
    """inputs [data [n,h,w,c], weights [o,kh,kw,c / groups]] and perhaps [bias [o]], results [[n,rows,columns,o]].

    Elements of the padding do not count. Depthwise: weights [1,kh,kw,o], result o reads channel o // (o_total / c).
    """

    window: Window
    is_transposed: bool
    """The window is that of the convolution from the result to the data."""
    groups: int
    """0: depthwise."""
    zeros: tuple[int, int]
    finish: Finish
