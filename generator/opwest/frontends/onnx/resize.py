# SPDX-License-Identifier: Apache-2.0
"""Resize and Upsample. Source: onnx/docs/Operators.md, Resize; TFLite's reference/resize_bilinear.h.

Every mode is a weighted sum of neighbours along one dimension after the other, with positions that are known at import.
TFLite's operators are used where they have the same positions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opwest.compiler.graph.types import Tensor, Unsupported
from opwest.compiler.semantics.windows import linear_places, nearest_places
from opwest.frontends.onnx.elements import arithmetic
from opwest.frontends.onnx.movement import gathered, numbers, same
from opwest.frontends.onnx.translation import StoredTensor, Translation, channels_last, permuted, translates
from opwest.frontends.onnx.values import Op

_TRANSFORMS = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_half_pixel_for_nn",
)
_VARIANTS = ((False, False), (True, False), (False, True))
"""align_corners and half_pixel_centers of TFLite's operators."""


@translates("Resize", "Upsample")
def resize(op: Op, t: Translation) -> None:
    """By nearest, linear or cubic interpolation."""
    data, result = op.input(0), op.output
    mode = op.get("mode", "nearest")
    transform = op.get("coordinate_transformation_mode", "half_pixel" if op.kind == "Resize" else "asymmetric")
    if transform not in _TRANSFORMS:
        raise Unsupported(f"coordinate_transformation_mode {transform}", ", ".join(_TRANSFORMS))
    if mode not in ("nearest", "linear", "cubic"):
        raise Unsupported(f"mode {mode}", "nearest, linear or cubic")
    scales = _scales(op, data.known, result.known)
    changed = [axis for axis in range(data.rank) if data.known[axis] != result.known[axis] or scales[axis] != 1]
    # The filter of a larger result is that of the mode itself.
    wide = bool(op.get("antialias", 0)) and any(scales[axis] < 1 for axis in changed)
    if wide and mode == "nearest":
        raise Unsupported("mode nearest with antialias", "linear or cubic")
    is_image = data.rank == 4 and set(changed) <= {2, 3} and not wide
    positions = [_positions(*sizes, transform) for sizes in zip(data.known, result.known, scales, strict=True)]
    if mode == "linear" and is_image and result.dtype in ("int8", "uint8"):
        _integers(op, t, positions[2:])
        return
    if mode != "nearest" and result.dtype != "float32":
        raise Unsupported(
            f"mode {mode}{' with antialias' if wide else ''} of {result.dtype} {list(data.known)}",
            "float32, or linear images of 8 bits without antialias",
        )
    if mode == "linear" and is_image and data in t.real:
        _real(op, t, positions[2:])
        return
    if is_image and mode != "cubic":
        options = _fitting(op, mode, positions[2:])
        if options is not None:
            order = channels_last(4)
            source = t.ordered(t.anywhere(data), order) if mode == "nearest" else t.tensor(data, order)
            t.put_like(data, result, _by_operator(op, t, source, mode, options), order)
            return
    held = t.anywhere(data) if mode == "nearest" else t.stored(data)
    tensor = held.tensor
    for axis in changed:
        tensor = _along(op, t, tensor, held.order.index(axis), mode, positions[axis], float(scales[axis]))
    if mode == "nearest":
        t.put_like(data, result, tensor, held.order)
    else:
        t.put(result, tensor, held.order)


def _scales(op: Op, source: Sequence[int], target: Sequence[int]) -> list[Any]:
    """Return the scale of each dimension: that of the model, or the quotient of the sizes."""
    if op.kind == "Upsample":
        given, sizes = op.constant(1, "scales"), None
    elif len(op.inputs) <= 2 and op.version < 11:
        given, sizes = op.constant(1), None
    else:
        given, sizes = op.constant(2), op.constant(3)
    result = [np.float32(b / a) for a, b in zip(source, target, strict=True)]
    axes = [int(n) for n in op.get("axes", range(len(source)))]
    policy = op.get("keep_aspect_ratio_policy", "stretch")
    if policy != "stretch" and sizes is not None and sizes.size == len(axes):
        quotients = [np.float32(n) / np.float32(source[axis]) for axis, n in zip(axes, sizes.reshape(-1), strict=True)]
        for axis in axes:
            result[axis] = min(quotients) if policy == "not_larger" else max(quotients)
    if given is not None and given.size == len(axes) and sizes is None:
        for axis, value in zip(axes, given.reshape(-1), strict=True):
            result[axis] = np.float32(value)
    return result


def _positions(source: int, target: int, scale: Any, transform: str) -> Any:
    """Return the float32 positions in the data of the elements of the result."""
    at = np.arange(target, dtype=np.float32)
    scale = np.float32(scale)
    half = np.float32(0.5)
    if transform == "asymmetric":
        return at / scale
    if transform == "align_corners":
        return at * np.float32(source - 1) / np.float32(target - 1) if target > 1 else at * 0
    if transform == "tf_half_pixel_for_nn":
        return (at + half) / scale
    if transform == "pytorch_half_pixel" and target == 1:
        return at * 0
    offset = np.float32(0)
    if transform == "half_pixel_symmetric":
        adjustment = target / (float(scale) * source)
        offset = np.float32(source / 2 * (1 - adjustment))
    return offset + (at + half) / scale - half


def _nearest(op: Op, at: Any, source: int) -> Any:
    """Return the indices of the nearest elements."""
    rounding = op.get("nearest_mode", "round_prefer_floor" if op.kind == "Resize" else "floor")
    functions: dict[str, Callable[[Any], Any]] = {
        "round_prefer_floor": lambda x: np.ceil(x - np.float32(0.5)),
        "round_prefer_ceil": lambda x: np.floor(x + np.float32(0.5)),
        "floor": np.floor,
        "ceil": np.ceil,
    }
    if rounding not in functions:
        raise Unsupported(f"nearest_mode {rounding}", ", ".join(functions))
    return np.clip(functions[rounding](at), 0, source - 1).astype(np.int64)


def _fitting(op: Op, mode: str, places: Sequence[Any]) -> dict[str, Any] | None:
    """Return the options of TFLite's operator with the same positions; None if there are none."""
    for corners, centres in _VARIANTS:
        fits = True
        for a, b, at in zip(op.input(0).known[2:], op.output.known[2:], places, strict=True):
            if mode == "nearest":
                fits &= bool((_nearest(op, at, a) == nearest_places(a, b, corners, centres)).all())
            else:
                mine = np.clip(linear_places(a, b, corners, centres), 0, a - 1)
                fits &= bool(np.allclose(np.clip(at, 0, a - 1), mine, rtol=1e-6, atol=1e-6))
        if fits:
            return {"align_corners": corners, "half_pixel_centers": centres}
    return None


def _by_operator(op: Op, t: Translation, image: Tensor, mode: str, options: dict[str, Any]) -> Tensor:
    """Return the result of TFLite's operator on an image with channels last."""
    size = numbers(t, op.output.known[2:], "size")
    kind = "RESIZE_NEAREST_NEIGHBOR" if mode == "nearest" else "RESIZE_BILINEAR"
    return same(t, kind, [image, size], permuted(op.output.known, channels_last(4)), **options)


def _integers(op: Op, t: Translation, places: Sequence[Any]) -> None:
    """Interpolate stored integers in float32 and cut off the fraction; TFLite's rule rounds to nearest instead.

    Source: onnxruntime's core/providers/cpu/tensor/upsample.h, UpsampleBilinear.
    """
    data, result = op.input(0), op.output
    order = channels_last(4)
    options = _fitting(op, "linear", places)
    if options is not None and data in t.eight and not t.rules.float_requantization:
        image = _by_operator(op, t, t.ordered(t.eight[data], order), "linear", options)
        t.eight[result] = StoredTensor(image, order)
        return
    x = t.tensor(data, order)
    sums = _bilinear(t, t.emit("CAST", [x], x.shape), places)
    t.put(result, t.emit("CAST", [sums], sums.shape, result.dtype), order)


def _real(op: Op, t: Translation, places: Sequence[Any]) -> None:
    """Interpolate what DequantizeLinear reads: as integers if the result has their scale."""
    order = channels_last(4)
    held, end = t.real[op.input(0)], t.end(op, False)
    options = _fitting(op, "linear", places)
    is_same = held.tensor.quantization == end.quantization
    if options is not None and is_same and not t.rules.float_requantization:
        result = _by_operator(op, t, t.ordered(held, order), "linear", options)
    else:
        result = _bilinear(t, t.tensor(op.input(0), order), places)
    t.settle(end, result, order)


def _bilinear(t: Translation, x: Tensor, places: Sequence[Any]) -> Tensor:
    """Return the weighted sum of four neighbours of float32 images, in the order of UpsampleBilinear."""
    rows, columns = (_neighbours(at, n) for at, n in zip(places, x.shape[1:3], strict=True))
    total = None
    for row, down in rows:
        part = gathered(t, x, row, 1, "rows")
        for column, over in columns:
            neighbour = gathered(t, part, column, 2, "columns")
            weights = (down[:, None].astype(np.float32) * over[None].astype(np.float32))[None, :, :, None]
            product = arithmetic(t, "MUL", neighbour, t.constant(weights, "weights"))
            total = product if total is None else arithmetic(t, "ADD", total, product)
    assert total is not None
    return total


def _neighbours(at: Any, source: int) -> list[tuple[Any, Any]]:
    """Return the indices and the float32 weights of the two neighbours, as UpsampleBilinear computes them."""
    at = np.clip(at, 0, source - 1).astype(np.float32)
    low = np.minimum(at.astype(np.int64), source - 1)
    high = np.minimum(low + 1, source - 1)
    over, under = (np.abs(at - index.astype(np.float32)) for index in (low, high))
    over, under = (np.where(low == high, np.float32(0.5), weight) for weight in (over, under))
    return [(low, under), (high, over)]


def _along(op: Op, t: Translation, x: Tensor, axis: int, mode: str, at: Any, scale: float) -> Tensor:
    """Interpolate along one stored dimension."""
    source = x.shape[axis]
    if mode == "nearest":
        return gathered(t, x, _nearest(op, at, source), axis)
    total = None
    taps = _filter(op, mode, at, source, scale) if op.get("antialias", 0) else _taps(op, mode, at, source)
    for index, weight in taps:
        wide = [1] * len(x.shape)
        wide[axis] = -1
        weights = t.constant(weight.astype(np.float32).reshape(wide), "weights")
        part = arithmetic(t, "MUL", gathered(t, x, index, axis), weights)
        total = part if total is None else arithmetic(t, "ADD", total, part)
    assert total is not None
    return total


def _taps(op: Op, mode: str, at: Any, source: int) -> list[tuple[Any, Any]]:
    """Return the indices and the weights of the neighbours."""
    if mode == "linear":
        at = np.clip(at, 0, source - 1)
        low = np.floor(at)
        weight = at - low
        below = low.astype(np.int64)
        return [(below, 1 - weight), (np.minimum(below + 1, source - 1), weight)]
    low = np.floor(at)
    s = (at - low).astype(np.float64)
    weights = [_cubic(op, s - k) for k in (-1, 0, 1, 2)]
    return _bounded(op, [low.astype(np.int64) + k for k in (-1, 0, 1, 2)], weights, source)


def _filter(op: Op, mode: str, at: Any, source: int, scale: float) -> list[tuple[Any, Any]]:
    """Return the elements under the filter of a mode, which is wider for a smaller result, and their weights.

    Source: onnxruntime's core/providers/cpu/tensor/upsample_antialias.h.
    """
    width = max(1 / scale, 1.0)
    reach = (1 if mode == "linear" else 2) * width
    centre = at.astype(np.float64) + 0.5
    first, end = (np.floor(centre + side * reach + 0.5).astype(np.int64) for side in (-1, 1))
    index = [first + k for k in range(int((end - first).max()))]
    places = [(i + 0.5 - centre) / width for i in index]
    weights = [np.maximum(0, 1 - np.abs(x)) if mode == "linear" else _cubic(op, x) for x in places]
    weights = [np.where(i < end, w, 0) for i, w in zip(index, weights, strict=True)]
    total = sum(weights)
    return _bounded(op, index, [w / total for w in weights], source)


def _cubic(op: Op, x: Any) -> Any:
    """Return the cubic filter at distances from its centre."""
    a, x = float(op.get("cubic_coeff_a", -0.75)), np.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


def _bounded(op: Op, index: list[Any], weights: list[Any], source: int) -> list[tuple[Any, Any]]:
    """Return indices inside the data: those outside are the edge, or have no weight."""
    if op.get("exclude_outside", 0):
        weights = [np.where((i >= 0) & (i < source), w, 0) for i, w in zip(index, weights, strict=True)]
        total = sum(weights)
        weights = [w / total for w in weights]
    return [(np.clip(i, 0, source - 1), w) for i, w in zip(index, weights, strict=True)]
