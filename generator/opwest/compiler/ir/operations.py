# SPDX-License-Identifier: Apache-2.0
"""Operations with loops of their own. Elementwise functions are in `elements.py`."""

from __future__ import annotations

from typing import Any

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.graph.user import Argument, UserOperator
from opwest.compiler.ir.elements import AddQuantised
from opwest.compiler.ir.program import Operation, Value
from opwest.compiler.semantics.elementwise import QuantizeNumbers
from opwest.compiler.semantics.fixed_point import Requantisation
from opwest.compiler.semantics.recurrent import LstmNumbers
from opwest.compiler.semantics.rows import LogSoftmaxNumbers, Softmax16Numbers
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
    """A class of `elements.py`, or one of those below."""
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
    is_wide: bool = False
    """Whether float32 elements are added as double: then no order of the additions has another result."""


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

    numbers: QuantizeNumbers


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
