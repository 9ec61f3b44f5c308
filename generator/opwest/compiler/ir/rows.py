# SPDX-License-Identifier: Apache-2.0
"""Operations that normalise rows: the last dimension."""

from __future__ import annotations

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.graph.user import Argument, UserOperator
from opwest.compiler.ir.program import Operation, Value
from opwest.compiler.semantics.fixed_point import Requantisation
from opwest.compiler.semantics.normalisation import LogSoftmaxNumbers, Softmax16Numbers


@dataclass(frozen=True, eq=False)
class SoftmaxFloat(Operation):
    """Softmax of float32 data."""

    beta: float


@dataclass(frozen=True, eq=False)
class SoftmaxTable(Operation):
    """Softmax of 8-bit data in fixed-point numbers; results are the least value of their dtype plus 2**8 or 2**16 times
    the probability."""

    powers: tuple[int, ...]
    """exp by the difference from the greatest element, with 0 integer bits."""


@dataclass(frozen=True, eq=False)
class Softmax16(Operation):
    """Softmax of int16 data with tables that are interpolated."""

    numbers: Softmax16Numbers


@dataclass(frozen=True, eq=False)
class LogSoftmaxTable(Operation):
    """The logarithm of softmax of 8-bit data."""

    numbers: LogSoftmaxNumbers


@dataclass(frozen=True, eq=False)
class LogSoftmaxFloat(Operation):
    """The logarithm of softmax of float32 data."""


@dataclass(frozen=True, eq=False)
class UnitLength(Operation):
    """Rows divided by their length; 8-bit results have the scale 1/128."""

    zero: int
    """The zero point of the data."""


@dataclass(frozen=True, eq=False)
class Reduce(Operation):
    """inputs [data], results [one element for each position in the other dimensions]."""

    kind: str
    """sum, mean, product, maximum, minimum, any, all."""
    axes: tuple[int, ...]
    zero: int
    """The zero point of the data."""
    finish: Requantisation | None
    """None: the result has the dtype of the data and no scale."""


@dataclass(frozen=True, eq=False)
class Position(Operation):
    """The position of the first extreme along a dimension."""

    axis: int
    is_greatest: bool


@dataclass(frozen=True, eq=False)
class Greatest(Operation):
    """results [values, positions]: the greatest elements of each row in descending order."""

    count: int


@dataclass(frozen=True, eq=False)
class RunningSum(Operation):
    """Sums along a dimension up to each element."""

    axis: int
    is_exclusive: bool
    is_reverse: bool
    zero: int
    """Of int8 elements."""
    finish: Requantisation | None
    """Of int8 sums."""


@dataclass(frozen=True)
class Lookup:
    """A function of one 8-bit element: the table has the results by the byte of the element."""

    table: tuple[int, ...]


@dataclass(frozen=True)
class QuantizeEven:
    """float32 to integers: divided by the scale, clamped, rounded half to even."""

    scale: float
    zero: int
    low: int
    high: int


@dataclass(frozen=True, eq=False)
class DynamicQuantize(Operation):
    """inputs [data float32], results [int16 without the zero point, the scale]."""


@dataclass(frozen=True, eq=False)
class UserCall(Operation):
    """inputs and results in the order of the arguments."""

    operator: UserOperator
    tensors: tuple[tuple[Argument, Value], ...]
    """The arguments that are tensors, in order, without scratch memory."""
    scalars: tuple[int | float | bool, ...]
