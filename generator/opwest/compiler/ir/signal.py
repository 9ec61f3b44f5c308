# SPDX-License-Identifier: Apache-2.0
"""tflite-micro's signal operators as operations. States follow the other inputs; empty ones are absent."""

from __future__ import annotations

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.ir.program import Operation
from opwest.compiler.semantics.signal import NoiseNumbers
from opwest.compiler.semantics.signal_streams import FramerNumbers, StackerNumbers


@dataclass(frozen=True, eq=False)
class ApplyWindow(Operation):
    """inputs [data [...], window [length]], results [products >> shift, saturated]: the window repeats."""

    shift: int


@dataclass(frozen=True, eq=False)
class AutoScale(Operation):
    """inputs [data], results [data << bits, bits]: as many bits as the largest element permits."""


@dataclass(frozen=True, eq=False)
class RealFft(Operation):
    """inputs [data [...,n]], results [[...,length + 2]]: pairs of real and imaginary parts; rows are padded with 0."""

    length: int


@dataclass(frozen=True, eq=False)
class InverseRealFft(Operation):
    """inputs [data [...,length + 2]], results [[...,length]]."""

    length: int


@dataclass(frozen=True, eq=False)
class Energy(Operation):
    """inputs [data [2n]], results [[n]]: squares of the magnitudes of pairs; 0 outside of the range."""

    start: int
    end: int


@dataclass(frozen=True, eq=False)
class FilterBank(Operation):
    """inputs [data [n], weights, unweights, and for each channel and one before: frequency, first weight, width].

    results [[channels]]: weighted sums; each band adds to two channels.
    """


@dataclass(frozen=True, eq=False)
class SquareRoots(Operation):
    """inputs [data uint64, bits], results [roots >> bits]."""


@dataclass(frozen=True, eq=False)
class Logarithms(Operation):
    """inputs [data uint32], results [scale * log(data << bits), int16]."""

    scale: int
    bits: int


@dataclass(frozen=True, eq=False)
class SubtractNoise(Operation):
    """inputs [data [channels], noise], results [data less the estimate of the noise, the estimate]."""

    numbers: NoiseNumbers


@dataclass(frozen=True, eq=False)
class Pcan(Operation):
    """inputs [data [channels], noise [channels], gains], results [data with automatic gain control]."""

    shift: int


@dataclass(frozen=True, eq=False)
class Frames(Operation):
    """inputs [samples [...,n]] and perhaps [kept samples] and [count], results [frames, whether all are valid]."""

    numbers: FramerNumbers


@dataclass(frozen=True, eq=False)
class OverlapAdd(Operation):
    """inputs [frames [...,frames,size]] and perhaps [sums [rows,size - step]], results [[...,frames * step]]."""

    step: int


@dataclass(frozen=True, eq=False)
class Stack(Operation):
    """inputs [frame [channels], frames [frames - 1,channels], count], results [frames, whether they are valid]."""

    numbers: StackerNumbers


@dataclass(frozen=True, eq=False)
class Delay(Operation):
    """inputs [samples [...,n], samples before [rows,delay]], results [samples of the same shape]."""
