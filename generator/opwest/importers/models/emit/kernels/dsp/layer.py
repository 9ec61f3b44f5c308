# SPDX-License-Identifier: Apache-2.0
"""The constants of int8 convolutions and fully connected layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.importers.models.emit.convolution import folded, plain_weights
from opwest.importers.models.emit.kernels.scaling import Scaling, scaling_of
from opwest.importers.models.emit.matrix import bound_of
from opwest.importers.models.ir.operations import Convolution
from opwest.records import dataclass


@dataclass(frozen=True, eq=False)
class Numbers:
    """The constants of a layer."""

    weights: Any
    """int8 [o,k]."""
    sums: Any
    """The first sums [o]: biases with zero points."""
    bounds: Any
    """The greatest magnitude of sums [o]."""
    scaling: Scaling


def numbers_of(operation: Convolution) -> Numbers | None:
    """Return the constants of an int8 layer; None for other dtypes, groups, and other forms of scales."""
    if operation.inputs[0].dtype != "int8" or operation.results[0].dtype != "int8" or operation.groups != 1:
        return None
    weights = plain_weights(operation.weights, operation.weight_zero)
    if weights.dtype != np.int8:
        return None
    flat = weights.reshape(len(weights), -1)
    sums = folded(weights, operation.bias, operation.zero, "int8")
    bounds = bound_of(weights, sums, "int8")
    scaling = scaling_of(operation.finish, bounds)
    return None if scaling is None else Numbers(flat, sums, bounds, scaling)
