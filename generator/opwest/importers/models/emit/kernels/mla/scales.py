# SPDX-License-Identifier: Apache-2.0
"""Scalings of layers with channels whose result is a constant: weights of zeros, with biases of any size."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from opwest.importers.models.emit.kernels.scaling import Scaling, scaling_of
from opwest.importers.models.ir.operations import Finish
from opwest.importers.models.operators.fixed_point import Multiplier, Requantisation, Rounding


def scaling_with_constants(finish: Finish, weights: Any, bias: Any, bounds: Any) -> Scaling | None:
    """Return the numbers of a layer, or None: weights int8 [channels, length], the bias with the data's zero point."""
    found = scaling_of(finish, bounds)
    if found or not isinstance(finish, Requantisation) or finish.rounding not in (Rounding.TWICE, Rounding.ONCE):
        return found
    channels = len(weights)
    given = finish.multipliers if len(finish.multipliers) == channels else finish.multipliers * channels
    finish = dataclasses.replace(finish, multipliers=given)
    bounds = np.asarray(bounds, np.int64)
    whole = weights.astype(np.int64)
    start = np.zeros(channels, np.int64) if bias is None else np.asarray(bias, np.int64)
    ends = np.stack([np.minimum(-128 * whole, 127 * whole), np.maximum(-128 * whole, 127 * whole)]).sum(axis=2) + start
    least, greatest = finish.apply(ends)
    # Results increase with sums, as long as a shift to the left does not overflow.
    lefts = np.asarray([max(one.shift, 0) for one in given])
    is_constant = (least == greatest) & (np.abs(ends).max(axis=0) << lefts < 1 << 31)
    reduced = tuple(
        Multiplier(0, 0) if constant else one for one, constant in zip(given, is_constant.tolist(), strict=True)
    )
    found = scaling_of(dataclasses.replace(finish, multipliers=reduced), np.where(is_constant, 0, bounds))
    if found is None:
        return None
    addends = np.where(is_constant, 2 * least, found.addends).astype(np.int32)
    return Scaling(found.multipliers, addends, found.shifts, found.is_doubled, found.is_signed, found.low, found.high)
