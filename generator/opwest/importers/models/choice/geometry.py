# SPDX-License-Identifier: Apache-2.0
"""What the cost of a layer depends on, as a key of the table of measurements and as numbers for estimates."""

from __future__ import annotations

from math import prod
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from opwest.importers.models.ir.movement import Move, runs
from opwest.importers.models.ir.operations import Convolution, Depthwise, Elementwise, Pool
from opwest.importers.models.ir.program import Operation
from opwest.importers.models.ir.stripes import Striped
from opwest.importers.models.operators.fixed_point import Requantisation

GROUP = 8
"""The neighbouring taps whose weights are added for variants that sum several products in 16 bits."""

_KEYS: WeakKeyDictionary[Operation, str] = WeakKeyDictionary()
"""The keys of the operations in use: sums over weights take time."""


def kind_of(operation: Operation) -> str:
    """Return the name of the operation: estimates are by kind."""
    if isinstance(operation, Convolution):
        return "dense" if operation.results[0].size == len(operation.weights) else "convolution"
    if isinstance(operation, Striped):
        return "stripes"
    if isinstance(operation, Elementwise):
        return type(operation.function).__name__.lower()
    return type(operation).__name__.lower()


def key_of(operation: Operation) -> str:
    """Return the geometry, the dtype and what the legality of variants depends on."""
    if operation not in _KEYS:
        _KEYS[operation] = _key(operation, geometry_of(operation))
    return _KEYS[operation]


def key_without_pitch(operation: Operation) -> str:
    """Return the key of a layer with a result whose rows follow each other."""
    return _key(operation, geometry_without_pitch(operation))


def _key(operation: Operation, geometry: str) -> str:
    words = _legality(operation) if isinstance(operation, Convolution | Depthwise) else []
    return " ".join([geometry, *words])


def geometry_of(operation: Operation) -> str:
    """Return the shapes, the window and the dtype: layers that agree in them can share code."""
    if isinstance(operation, Striped):
        # Two blocks never share code.
        return operation.label
    return geometry_without_pitch(operation) + "".join(f" pitch {one.pitch}" for one in operation.results if one.pitch)


def geometry_without_pitch(operation: Operation) -> str:
    """Return the geometry of a layer with a result whose rows follow each other."""
    data = (*operation.inputs, *operation.results)[0]
    words = [kind_of(operation), data.dtype, *(_shape(one.shape) for one in operation.inputs)]
    words.append(f"to {_shape(operation.results[0].shape)}")
    window = getattr(operation, "window", None)
    if window is not None:
        size, stride, dilation, before = map(_shape, (window.size, window.stride, window.dilation, window.before))
        words.append(f"window {size} stride {stride} dilation {dilation} before {before}")
    if isinstance(operation, Pool):
        words.append(operation.kind)
    return " ".join(words)


def _shape(shape: Any) -> str:
    return "x".join(map(str, shape)) or "1"


def _legality(operation: Convolution | Depthwise) -> list[str]:
    finish = operation.finish
    if not isinstance(finish, Requantisation):
        return ["float"]
    weights = operation.weights
    flat = (
        weights.reshape(-1, weights.shape[-1]).T
        if isinstance(operation, Depthwise)
        else weights.reshape(len(weights), -1)
    )
    sizes = np.abs(flat.astype(np.int64) - operation.weight_zero)
    padded = np.pad(sizes, ((0, 0), (0, -sizes.shape[1] % GROUP)))
    grouped = int(padded.reshape(len(padded), -1, GROUP).sum(axis=2).max(initial=0))
    shifts = [one.shift for one in finish.multipliers]
    words = [finish.rounding.value, "relu" if finish.low == finish.zero else "signed"]
    words.append("left" if max(shifts) > 0 else "unshifted" if max(shifts) == 0 else "right")
    words.append(f"weights {int(sizes.sum(axis=1).max(initial=0)).bit_length()}:{grouped.bit_length()}")
    return words


def numbers_of(operation: Operation) -> dict[str, int]:
    """Return what estimates are linear in: products or runs of copies, results, elements of data, calls."""
    result = operation.results[0].size
    weights = getattr(operation, "weights", None)
    products = 0
    if isinstance(operation, Convolution):
        products = result * prod(weights.shape[1:]) if weights is not None else 0
    elif isinstance(operation, Depthwise):
        products = result * prod(weights.shape[:2]) if weights is not None else 0
    elif isinstance(operation, Pool):
        products = result * prod(operation.window.size)
    elif isinstance(operation, Move):
        # A copy costs more for each of its runs than for its elements.
        products = sum(runs(one) for one in operation.regions)
    return {"product": products, "result": result, "data": sum(one.size for one in operation.inputs), "call": 1}
