# SPDX-License-Identifier: Apache-2.0
"""The layers that the variants of convolutions accept."""

from __future__ import annotations

from typing import Any

from opwest.importers.models.emit.convolution import folded, plain_weights
from opwest.importers.models.emit.kernels.mve.ending import Ending, ending_of
from opwest.importers.models.emit.matrix import bound_of
from opwest.importers.models.ir.operations import Convolution


def layer_of(operation: Convolution) -> tuple[Any, Any, Ending] | None:
    """Return weights [o,kh,kw,c], biases and the end of an int8 layer without groups; None for others."""
    data, result = operation.inputs[0], operation.results[0]
    weights = plain_weights(operation.weights, operation.weight_zero)
    if (data.dtype, result.dtype, str(weights.dtype)) != ("int8", "int8", "int8") or operation.groups != 1:
        return None
    bias = folded(weights, operation.bias, operation.zero, "int8")
    ending = ending_of(operation.finish, len(weights), bound_of(weights, bias, "int8"))
    return None if ending is None else (weights, bias, ending)
