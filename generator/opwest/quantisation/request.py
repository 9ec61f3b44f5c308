# SPDX-License-Identifier: Apache-2.0
"""The request and the result of a quantisation. Requests and results are JSON values for the child process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from opwest.base.frozen_dataclass import dataclass

Dtype = Literal["int8", "int16x8"]
Keep = Literal["int16x8", "float"]
Calibration = Literal["minmax", "percentile", "mse"]
DTYPES: tuple[Dtype, ...] = ("int8", "int16x8")
KEEPS: tuple[Keep, ...] = ("int16x8", "float")
CALIBRATIONS: tuple[Calibration, ...] = ("minmax", "percentile", "mse")
FEW_SAMPLES = 10
"""Fewer samples do not show the ranges of tensors: a warning."""
REPORT_SUFFIX = ".quantise.json"


@dataclass(frozen=True)
class Options:
    """The request for a quantisation."""

    samples: str
    """The path of an .npz or .npy file: the first dimension of each array counts the cases."""
    labels: str | None = None
    """The path of a .npy file with the class of each case."""
    output: str | None = None
    """The output that the labels are of; None: the only one."""
    dtype: str = DTYPES[0]
    calibration: str | None = None
    """None: the one with the least loss."""
    keep_accuracy: float | None = None
    """The greatest loss: percentage points of accuracy, without labels percent of error. None: no limit."""
    keep: str | None = None
    """The arithmetic of layers that hurt; None: that of the format."""
    float_io: bool = False


@dataclass(frozen=True)
class Quality:
    """How close the outputs of a model are to those of the float model."""

    error: float
    """The root of the mean squared difference of all outputs, in percent of the root of their mean square."""
    agreement: float | None = None
    """The part of the cases with the same class; None without classes."""
    accuracy: float | None = None
    """The part of the cases with the class of the label; None without labels."""


@dataclass(frozen=True)
class Layer:
    """What the quantisation of a layer costs. Ratios are in dB: 10 log10(squared values / squared differences)."""

    layer: str
    """The number and the kind of the operator in the file, or its name."""
    tensor: str
    """Its first result."""
    precision: str
    """int8, int16x8 or float."""
    own_db: float | None
    """Of its results, if only this layer is quantised; None for a layer without quantised results, or without loss."""
    total_db: float | None
    """Of its results in the quantised model."""
    output_error: float | None
    """The error of the outputs in percent, if only this layer is quantised; None if it is not measured."""
    scale: float | None
    """Of its first result; None for float32."""
    zero_point: int | None
    kept: bool = False
    """Whether it is kept in another arithmetic to hold the bound."""


@dataclass(frozen=True)
class Quantised:
    """The result of a quantisation; `content` is apart from it."""

    format: str
    dtype: str
    calibration: str
    keep: str
    cases: int
    before: Quality
    after: Quality
    layers: tuple[Layer, ...]
    losses: Mapping[str, float]
    """The loss with each method of calibration that was tried."""
    bytes_before: int
    bytes_after: int
    bound: float | None
    unit: str
    """Of losses and the bound."""
    evaluations: int
    """How many choices of kept layers were measured."""
    remarks: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def loss(self) -> float:
        """The loss of the written model, in `unit`."""
        return loss_of(self.before, self.after)


POINTS, PERCENT = "percentage points of accuracy", "percent of error"


def loss_of(before: Quality, after: Quality) -> float:
    """Return the loss of accuracy in percentage points; without labels the error in percent."""
    if before.accuracy is None or after.accuracy is None:
        return after.error
    return 100 * (before.accuracy - after.accuracy)


def result_of(fields: Mapping[str, Any]) -> Quantised:
    """Return the result of JSON values."""
    values = dict(fields)
    values.update({name: Quality(**values[name]) for name in ("before", "after")})
    values["layers"] = tuple(Layer(**layer) for layer in values["layers"])
    values.update({name: tuple(values[name]) for name in ("remarks", "warnings")})
    return Quantised(**values)


@dataclass(frozen=True)
class Made:
    """What the flow of a format returns."""

    content: bytes = field(repr=False)
    result: Quantised
