# SPDX-License-Identifier: Apache-2.0
"""Functions of elements, for Elementwise: arithmetic, tables, conversions, comparisons."""

from __future__ import annotations

from typing import Any

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.semantics.arithmetic import (
    AddNumbers,
    HighProductNumbers,
    PreluNumbers,
    ProductNumbers,
    ShiftNumbers,
)
from opwest.compiler.semantics.elementwise import CompareNumbers, QuantizeNumbers
from opwest.compiler.semantics.tables import Rescale, SigmoidNumbers


@dataclass(frozen=True)
class AddQuantised:
    """The sum of two quantised values."""

    numbers: AddNumbers
    subtract: bool = False


@dataclass(frozen=True)
class Arithmetic:
    """A C operator on two values of a plain dtype, then a clamp."""

    operator: str
    """+, -, *, /."""
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Float:
    """A function of float32 values: its kind in FLOAT_FUNCTIONS."""

    kind: str


@dataclass(frozen=True)
class Plain:
    """A function of one or two plain numbers: TFLite's name of the operator."""

    kind: str
    alpha: float = 0.0
    """The slope of LEAKY_RELU."""
    approximate: bool = False
    """The variant of GELU with tanh."""


@dataclass(frozen=True)
class AddShifted:
    """The sum of two int16 values whose scales are powers of two."""

    numbers: ShiftNumbers
    subtract: bool


@dataclass(frozen=True)
class Product:
    """The product of two quantised values."""

    numbers: ProductNumbers


@dataclass(frozen=True)
class HighProduct:
    """The high bits of the product of two int16 values."""

    numbers: HighProductNumbers


@dataclass(frozen=True)
class Quotient:
    """The quotient of two quantised values."""

    numbers: ProductNumbers


@dataclass(frozen=True)
class SquaredDifference:
    """The square of the difference of two int8 values."""

    numbers: AddNumbers


@dataclass(frozen=True)
class Prelu:
    """A quantised value, times a slope below 0."""

    numbers: PreluNumbers


@dataclass(frozen=True, eq=False)
class Lookup:
    """An 8-bit value as index of a table: the results from the least value to the greatest."""

    kind: str
    table: Any


@dataclass(frozen=True, eq=False)
class Interpolated:
    """An int16 value between samples of a table."""

    kind: str
    table: Any


@dataclass(frozen=True)
class Sigmoid:
    """int16 LOGISTIC or TANH."""

    kind: str
    numbers: SigmoidNumbers


@dataclass(frozen=True)
class Root:
    """int16 SQRT."""

    source: float
    target: float


@dataclass(frozen=True)
class Rescaled:
    """A quantised value with another scale."""

    kind: str
    numbers: Rescale


@dataclass(frozen=True)
class Clamped:
    """An integer between two limits."""

    low: int
    high: int


@dataclass(frozen=True)
class Quantised:
    """A float32 number as quantised value."""

    numbers: QuantizeNumbers


@dataclass(frozen=True)
class QuantisedEach:
    """A quantised number; the second and third operand are its scale and zero point."""

    low: int
    high: int


@dataclass(frozen=True)
class Dequantised:
    """A quantised value as float32 number."""

    scale: float
    zero: int


@dataclass(frozen=True)
class DequantisedEach:
    """The first operand minus the third, times the second: a scale and a zero point for each slice."""


@dataclass(frozen=True)
class Cast:
    """A number of another dtype. Integers wrap; float numbers are truncated and clamped, NaN is the greatest."""


@dataclass(frozen=True)
class Compared:
    """Whether two values are in a relation."""

    operator: str
    """Of C."""
    numbers: CompareNumbers | None
    """None: the stored values are compared."""


@dataclass(frozen=True)
class Logic:
    """A logical function."""

    kind: str


@dataclass(frozen=True)
class Selected:
    """The second operand where the first is true, else the third."""
