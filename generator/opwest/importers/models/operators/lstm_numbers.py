# SPDX-License-Identifier: Apache-2.0
"""The numbers of LSTMs with int8 or int16 data, int8 weights and int16 cells.

Sources: TFLite's kernels/unidirectional_sequence_lstm.cc (PopulateQuantizedLstmParams8x8_16,
PopulatePrecomputedZPTimesWeightsWithBias); tflite-micro's kernels/lstm_eval_common.cc (PrepareGateParametersInteger).
"""

from __future__ import annotations

import math

import numpy as np

from opwest.importers.models.graph.faults import Unsupported
from opwest.importers.models.graph.types import Node, Quantization
from opwest.importers.models.operators.fixed_point import (
    RANGES,
    Multiplier,
    Rounding,
    float32,
    one_quantization,
    quantize_multiplier,
)
from opwest.importers.models.operators.tables import SigmoidNumbers
from opwest.records import dataclass

_GATES = range(4)
_GATE_SCALE = 2.0**-12
_LEAST_POWER, _GREATEST_POWER = -15, -9
"""The scales of cells whose tanh TFLite computes, as powers of 2."""


@dataclass(frozen=True)
class Normalisation:
    """The integer layer normalisation of a gate."""

    by: Multiplier
    guard: int
    """The variance in place of 0."""


@dataclass(frozen=True)
class Projection:
    """From int8 products of cells and output gate to int8 results."""

    by: Multiplier
    zero: int
    clip: int
    """0: none."""


@dataclass(frozen=True)
class LstmNumbers:
    """The numbers of a layer. Without a gate's input, its entry is None."""

    is_micro: bool
    """tflite-micro's rule: tables of functions, and products that round twice."""
    rounding: Rounding
    """Of the sums of gates."""
    data: tuple[Multiplier | None, ...]
    last: tuple[Multiplier | None, ...]
    zeros: tuple[int, int]
    """Of the data and the last result."""
    power: int
    """The scale of the cells is 2**power."""
    clip: int | None
    products: tuple[Multiplier, Multiplier] | None
    """tflite-micro: forget gate times cells, input gate times new cells."""
    hidden: Multiplier
    hidden_zero: int
    low: int
    high: int
    """The limits of the products of cells and output gate."""
    peepholes: tuple[Multiplier | None, ...]
    norms: tuple[Normalisation | None, ...]
    projection: Projection | None

    @property
    def tanh(self) -> SigmoidNumbers:
        """The numbers of tflite-micro's tanh of the cells. Source: lstm_eval.cc, Tanh."""
        shift = 12 + self.power
        return SigmoidNumbers(3, -shift) if shift < 0 else SigmoidNumbers(3 << shift, 0)


GATE_TANH = SigmoidNumbers(3, 0)
"""The numbers of tflite-micro's functions of gates."""


def lstm_numbers(node: Node) -> LstmNumbers:
    """Return the numbers of a layer with int8 or int16 data. Raises Unsupported."""
    cells = one_quantization(node.input(19))
    power = round(math.log2(cells.scale))
    if abs(math.log2(cells.scale) - power) >= 1e-3 or not _LEAST_POWER <= power <= _GREATEST_POWER:
        limits = f"a power of 2 between 2**{_LEAST_POWER} and 2**{_GREATEST_POWER}"
        raise Unsupported(f"the cells '{node.input(19).name}' have the scale {cells.scale:g}", limits)
    inner = node.options["intermediates"]
    if node.input(0).dtype == "int8" and len(inner) == 5:
        return _litert(node, cells, power, inner)
    return _micro(node, cells, power)


def _scale(node: Node, number: int) -> np.float32:
    """Return the scale of symmetric weights as float32."""
    found = one_quantization(node.input(number))
    if found.zero != 0:
        raise Unsupported(f"weights '{node.input(number).name}' with the zero point {found.zero}", "0")
    return np.float32(found.scale)


def _litert(node: Node, cells: Quantization, power: int, inner: tuple[Quantization | None, ...]) -> LstmNumbers:
    has_norms = len(node.inputs) == 24 and node.optional(21) is not None
    hidden = inner[4]
    gates = inner[:4] if has_norms else [Quantization((_GATE_SCALE,), (0,))] * 4
    if hidden is None or None in gates:
        raise Unsupported("an intermediate tensor without a scale", "scales of the intermediate tensors")
    sums = [np.float32(one.scale) for one in gates if one is not None]
    data, last = one_quantization(node.input(0)), one_quantization(node.input(18))

    def multipliers(first: int, scale: float) -> tuple[Multiplier | None, ...]:
        return tuple(
            None
            if node.optional(first + g) is None
            else quantize_multiplier(float(_scale(node, first + g) * np.float32(scale) / sums[g]))
            for g in _GATES
        )

    peepholes = tuple(
        None
        if node.optional(i) is None
        else quantize_multiplier(float32(2.0**power * float(_scale(node, i)) / float(sums[g])))
        for i, g in ((9, 0), (10, 1), (11, 3))
    )
    clip = int(min(float(np.float32(node.options["cell_clip"]) / np.float32(cells.scale)), 32767.0))
    projection = _projection(node, hidden.scale, last)
    if projection is not None and any(peepholes) and node.input(6).shape[1] != node.input(6).shape[0]:
        # LiteRT's kernel takes the number of results for that of cells.
        raise Unsupported("int8 peepholes with a projection to another number of results", "one of both")
    return LstmNumbers(
        is_micro=False,
        rounding=Rounding.TWICE,
        data=multipliers(1, data.scale),
        last=multipliers(5, last.scale),
        zeros=(data.zero, last.zero),
        power=power,
        clip=clip or None,
        products=None,
        hidden=quantize_multiplier(float32(2.0**-15 / hidden.scale * 2.0**-15)),
        hidden_zero=hidden.zero if projection is None else -hidden.zero,
        low=-128,
        high=127,
        peepholes=peepholes,
        norms=tuple(_normalisation(node, i) for i in range(20, 24)) if has_norms else (None,) * 4,
        projection=projection,
    )


def _normalisation(node: Node, number: int) -> Normalisation | None:
    if node.optional(number) is None:
        return None
    scale = _scale(node, number)
    by = quantize_multiplier(float(scale))
    return Normalisation(Multiplier(by.fixed, by.shift + 12), max(1, int(np.float32(10000) * scale)))


def _projection(node: Node, hidden: float, last: Quantization) -> Projection | None:
    if node.optional(16) is None:
        return None
    result = one_quantization(node.output)
    by = quantize_multiplier(float(_scale(node, 16) * np.float32(hidden) / np.float32(last.scale)))
    clip = min(float(np.float32(node.options["proj_clip"]) / np.float32(result.scale)), 127.0)
    return Projection(by, last.zero, int(clip))


def _micro(node: Node, cells: Quantization, power: int) -> LstmNumbers:
    dtype = node.input(0).dtype
    if any(node.optional(i) is not None for i in (*range(9, 12), 16, 17, *range(20, 24))) or node.optional(1) is None:
        raise Unsupported(
            "peepholes, a projection, layer normalisation or coupled gates without intermediate tensors",
            "5 intermediate tensors, as the converter writes them",
        )
    data, last = one_quantization(node.input(0)), one_quantization(node.input(18))

    def multipliers(first: int, scale: float) -> tuple[Multiplier, ...]:
        return tuple(
            quantize_multiplier(float(np.float32(scale) * _scale(node, first + g)) / _GATE_SCALE) for g in _GATES
        )

    clip = node.options["cell_clip"]
    low, high = RANGES[dtype]
    return LstmNumbers(
        is_micro=True,
        rounding=Rounding.TWICE if dtype == "int8" else Rounding.SIXTEEN,
        data=multipliers(1, data.scale),
        last=multipliers(5, last.scale),
        zeros=(data.zero, last.zero),
        power=power,
        clip=int(min(float32(clip) / cells.scale, 32767.0)) if clip > 0 else None,
        products=(quantize_multiplier(2.0**-15), quantize_multiplier(2.0**-30 / cells.scale)),
        hidden=quantize_multiplier(2.0**-30 / last.scale),
        hidden_zero=last.zero,
        low=low,
        high=high,
        peepholes=(None,) * 3,
        norms=(None,) * 4,
        projection=None,
    )
