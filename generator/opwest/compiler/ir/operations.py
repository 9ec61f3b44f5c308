# SPDX-License-Identifier: Apache-2.0
"""Operations with loops of their own. Elementwise functions are in `functions.py`."""

from __future__ import annotations

from typing import Any

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.ir.elements import AddQuantised
from opwest.compiler.ir.program import Operation
from opwest.compiler.semantics.fixed_point import Requantisation
from opwest.compiler.semantics.windows import Window


@dataclass(frozen=True)
class Clamp:
    """The end of a float layer: limits, None for none."""

    low: float | None
    high: float | None


@dataclass(frozen=True)
class Sums:
    """The end of an integer layer whose int32 results are its sums."""


Finish = Requantisation | Clamp | Sums
"""What a layer does with its sums."""


@dataclass(frozen=True, eq=False)
class Convolution(Operation):
    """inputs [data [n,h,w,c]], results [[n,rows,columns,o]]; a 1x1 window over [rows,1,1,c] is a matrix product.

    sum = bias + sum((data - zero) * (weights - weight_zero)); elements of the padding are `zero`.
    """

    window: Window
    groups: int
    weights: Any
    """[o,kh,kw,c / groups]."""
    bias: Any
    """[o] int64 or float32; None: zeros."""
    zero: int
    weight_zero: int
    finish: Finish


@dataclass(frozen=True, eq=False)
class ConvolutionSum(Convolution):
    """A convolution whose int8 results are an operand of a sum: inputs [data, other], results [the sum].

    The tensor between them has no memory; the sum can replace the other operand.
    """

    function: AddQuantised
    place: int
    """The operand of the function that the convolution computes: 0 or 1."""


@dataclass(frozen=True, eq=False)
class Depthwise(Operation):
    """inputs [data [n,h,w,c]], results [[n,rows,columns,o]]: result o reads channel o // (o_total / c)."""

    window: Window
    weights: Any
    """[kh,kw,o]."""
    bias: Any
    zero: int
    weight_zero: int
    finish: Finish


@dataclass(frozen=True, eq=False)
class Pool(Operation):
    """inputs [data [n,h,w,c]], results [[n,rows,columns,c]]; elements of the padding do not count."""

    kind: str
    """average, maximum, l2: the root of the mean of squares."""
    window: Window
    low: int | float | None
    high: int | float | None


@dataclass(frozen=True, eq=False)
class Copy(Operation):
    """inputs [data], results [the same elements]."""


@dataclass(frozen=True, eq=False)
class Elementwise(Operation):
    """One result, whose elements are a function of those of the inputs, under numpy's rule of broadcasting."""

    function: Any
    """A record of `functions.py`."""
    forbidden: tuple[int, int] | None = None
    """An operand, and the value that ends the operation with -EINVAL if one of its elements has it: 0 as a divisor."""


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
