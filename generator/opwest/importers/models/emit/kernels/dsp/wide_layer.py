# SPDX-License-Identifier: Apache-2.0
"""The constants of int16 convolutions and fully connected layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.importers.models.emit.convolution import folded, plain_weights
from opwest.importers.models.emit.kernels.dsp.tile import Ending, ending_of
from opwest.importers.models.emit.kernels.scaling import Scaling, long_scaling_of, scaling_of
from opwest.importers.models.ir.operations import Convolution, Depthwise
from opwest.records import dataclass

GREATEST = 1 << 15
"""The greatest magnitude of data."""


@dataclass(frozen=True, eq=False)
class WideNumbers:
    """The constants of a layer. With the long form of the scaling, sums can need 64 bits."""

    weights: Any
    """[o,k] of int8 or int16."""
    sums: Any
    """The first sums int64 [o]: the biases."""
    bounds: Any
    """The greatest magnitude of sums [o]."""
    scaling: Scaling

    @property
    def ending(self) -> Ending:
        """The form of the layer's end."""
        return ending_of(self.scaling, 16)

    @property
    def ends(self) -> Any:
        """Multiplier, addend and shift of each channel, int32 [o,3]."""
        return np.stack([self.scaling.multipliers, self.scaling.addends, self.scaling.shifts], axis=1)


def wide_numbers_of(operation: Convolution | Depthwise, weights: Any) -> WideNumbers | None:
    """Return the constants of an int16 layer with weights [o,...]; None for other dtypes, and other forms of scales."""
    dtypes = {operation.inputs[0].dtype, operation.results[0].dtype}
    if dtypes != {"int16"} or operation.zero != 0 or weights.dtype.kind != "i":
        return None
    flat = plain_weights(weights.reshape(len(weights), -1), operation.weight_zero)
    sums = folded(flat, operation.bias, 0, "int16")
    sums = np.zeros(len(flat), np.int64) if sums is None else sums
    bounds = np.abs(flat.astype(np.int64)).sum(axis=1) * GREATEST + np.abs(sums)
    scaling = scaling_of(operation.finish, bounds) or long_scaling_of(operation.finish, bounds)
    return None if scaling is None else WideNumbers(flat, sums, bounds, scaling)
