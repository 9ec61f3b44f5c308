# SPDX-License-Identifier: Apache-2.0
"""Fold the operators of a TFLite graph that compute shapes, as in Keras models with an open batch dimension."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Arrays = Sequence[Any]
"""Numpy arrays, the inputs of an operator."""


def folded(kind: str, operator: Any, inputs: Arrays) -> Any:
    """Return the result of an operator on known arrays; None if it is not an operator on shapes.

    SHAPE requires its input's shape instead of the input.
    """
    fold = _FOLDS.get(kind)
    return None if fold is None else fold(operator, inputs)


def _options(operator: Any, kind: Any) -> Any:
    """Return the options of an operator, read as a kind of table."""
    table, options = operator.BuiltinOptions(), kind()
    options.Init(table.Bytes, table.Pos)
    return options


def _shape(operator: Any, inputs: Arrays) -> Any:
    import numpy as np
    import tflite

    out = _options(operator, tflite.ShapeOptions).OutType()
    return np.asarray(inputs[0], np.int64 if out == tflite.TensorType.INT64 else np.int32)


def _strided_slice(operator: Any, inputs: Arrays) -> Any:
    """Return the slice of a one-dimensional array; None for other arrays, and for new dimensions."""
    import tflite

    options = _options(operator, tflite.StridedSliceOptions)
    data, begin, end, stride = inputs
    if data.ndim != 1 or begin.size != 1 or options.EllipsisMask() or options.NewAxisMask():
        return None
    if options.ShrinkAxisMask():
        return data[int(begin[0])]
    first = None if options.BeginMask() else int(begin[0])
    last = None if options.EndMask() else int(end[0])
    return data[first : last : int(stride[0])]


def _pack(operator: Any, inputs: Arrays) -> Any:
    import numpy as np
    import tflite

    return np.stack(inputs, axis=_options(operator, tflite.PackOptions).Axis())


def _concatenation(operator: Any, inputs: Arrays) -> Any:
    import numpy as np
    import tflite

    return np.concatenate(inputs, axis=_options(operator, tflite.ConcatenationOptions).Axis())


def _product(operator: Any, inputs: Arrays) -> Any:
    import numpy as np
    import tflite

    keeps = bool(_options(operator, tflite.ReducerOptions).KeepDims())
    axes = tuple(int(a) for a in np.atleast_1d(inputs[1]))
    return inputs[0].prod(axis=axes, keepdims=keeps).astype(inputs[0].dtype)


def _gather(operator: Any, inputs: Arrays) -> Any:
    import tflite

    return inputs[0].take(inputs[1], axis=_options(operator, tflite.GatherOptions).Axis())


_FOLDS: dict[str, Callable[[Any, Arrays], Any]] = {
    "SHAPE": _shape,
    "STRIDED_SLICE": _strided_slice,
    "PACK": _pack,
    "CONCATENATION": _concatenation,
    "REDUCE_PROD": _product,
    "GATHER": _gather,
    "ADD": lambda _, inputs: inputs[0] + inputs[1],
    "SUB": lambda _, inputs: inputs[0] - inputs[1],
    "MUL": lambda _, inputs: inputs[0] * inputs[1],
}
