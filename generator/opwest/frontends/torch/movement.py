# SPDX-License-Identifier: Apache-2.0
"""Shapes and orders of dimensions."""

from __future__ import annotations

from math import prod

import numpy as np

from opwest.compiler.graph.types import Unsupported
from opwest.frontends.torch.build import Builder, Context, Value, axes_of, axis_of, translates


@translates("view", "reshape", "_unsafe_view", "flatten", "unflatten", "view_as", "reshape_as", "squeeze", "unsqueeze")
@translates("_reshape_copy", "view_copy", "squeeze_copy", "unsqueeze_copy", "ravel", "expand_dims", "atleast_1d")
def reshape(x: Context, b: Builder) -> Value:
    """The elements in another shape, which the program has."""
    data = x.tensor("self")
    if x.call.target == "aten.view.dtype":
        raise Unsupported("the same bytes in another dtype", "to(dtype)")
    shape = x.meta.shape
    if prod(shape) != data.size:
        raise Unsupported(f"{list(data.shape)} as {list(shape)}")
    return b.reshape(data, shape)


@translates("permute", "permute_copy")
def permute(x: Context, b: Builder) -> Value:
    """Any order."""
    data = x.tensor("self")
    order = axes_of(x.integers("dims"), data.rank)
    if len(order) != data.rank:
        raise Unsupported(f"{len(order)} of {data.rank} dimensions")
    return b.transpose(data, order)


@translates("transpose", "swapaxes", "swapdims", "t", "numpy_T", "mT", "transpose_copy", "t_copy", "adjoint")
def transpose(x: Context, b: Builder) -> Value:
    """Two dimensions exchanged, or all reversed."""
    data = x.tensor("self")
    order = list(range(data.rank))
    if x.call.operator == "aten.numpy_T":
        return b.transpose(data, order[::-1])
    if x.call.operator in ("aten.t", "aten.t_copy"):
        return b.transpose(data, order[::-1])
    if x.call.operator in ("aten.mT", "aten.adjoint"):
        first, second = data.rank - 2, data.rank - 1
    else:
        names = ("axis0", "axis1") if x.call.operator == "aten.swapaxes" else ("dim0", "dim1")
        first, second = (axis_of(x.integer(name), data.rank) for name in names)
    if not order:
        return data
    order[first], order[second] = order[second], order[first]
    return b.transpose(data, order)


@translates("movedim", "moveaxis")
def move(x: Context, b: Builder) -> Value:
    """Dimensions at other places."""
    data = x.tensor("self")
    source, target = (axes_of(x.integers(name), data.rank) for name in ("source", "destination"))
    if len(source) != len(target):
        raise Unsupported(f"{len(source)} dimensions to {len(target)} places")
    order = [axis for axis in range(data.rank) if axis not in source]
    for place, axis in sorted(zip(target, source, strict=True)):
        order.insert(place, axis)
    return b.transpose(data, order)


@translates("expand", "expand_as", "broadcast_to", "expand_copy")
def expand(x: Context, b: Builder) -> Value:
    """Repeat dimensions of one element."""
    data, shape = x.tensor("self"), x.meta.shape
    if len(shape) < data.rank or any(n not in (1, m) for n, m in zip(data.shape[::-1], shape[::-1], strict=False)):
        raise Unsupported(f"{list(data.shape)} as {list(shape)}")
    if data.content is not None and prod(shape) < 1 << 20:
        return b.constant(np.broadcast_to(data.content, shape))
    return b.expand(data, shape)


@translates("repeat", "tile")
def repeat(x: Context, b: Builder) -> Value:
    """Copies of the data, along new first dimensions too."""
    data = x.tensor("self")
    counts = x.integers("repeats" if x.call.operator == "aten.repeat" else "dims")
    counts = [1] * (data.rank - len(counts)) + counts
    data = b.reshape(data, (*[1] * (len(counts) - data.rank), *data.shape))
    if all(count == 1 for count in counts):
        return data
    return b.op("Tile", [data, b.ints(counts)], x.meta.shape)


@translates("repeat_interleave")
def interleave(x: Context, b: Builder) -> Value:
    """Copies of each element or slice."""
    data = x.tensor("self")
    if not isinstance(x.get("repeats"), int):
        raise Unsupported("repeats that are a tensor", "a number")
    count = x.integer("repeats")
    if not x.has("dim"):
        data = b.reshape(data, (data.size,))
    axis = axis_of(x.integer("dim", 0), data.rank)
    wide = b.reshape(data, (*data.shape[: axis + 1], 1, *data.shape[axis + 1 :]))
    shape = (*wide.shape[: axis + 1], count, *wide.shape[axis + 2 :])
    return b.reshape(b.expand(wide, shape), x.meta.shape)


@translates("pixel_shuffle", "pixel_unshuffle")
def pixel_shuffle(x: Context, b: Builder) -> Value:
    """Blocks of pixels from channels, or channels from blocks."""
    data = x.tensor("self")
    is_up = x.call.operator == "aten.pixel_shuffle"
    size = x.integer("upscale_factor" if is_up else "downscale_factor")
    if data.rank != 4:
        shape = (prod(data.shape[:-3]), *data.shape[-3:])
        data = b.reshape(data, shape)
    n, channels, rows, columns = data.shape
    if is_up:
        shape = (n, channels // size**2, rows * size, columns * size)
        made = b.op("DepthToSpace", [data], shape, blocksize=size, mode="CRD")
        return b.reshape(made, x.meta.shape)
    wide = b.reshape(data, (n, channels, rows // size, size, columns // size, size))
    return b.reshape(b.transpose(wide, (0, 1, 3, 5, 2, 4)), x.meta.shape)


@translates("channel_shuffle", "native_channel_shuffle")
def channel_shuffle(x: Context, b: Builder) -> Value:
    """Channels of groups in turn."""
    data, groups = x.tensor("self"), x.integer("groups")
    n, channels, *image = data.shape
    wide = b.reshape(data, (n, groups, channels // groups, *image))
    order = (0, 2, 1, *range(3, wide.rank))
    return b.reshape(b.transpose(wide, order), data.shape)


@translates("flip", "fliplr", "flipud")
def flip(x: Context, b: Builder) -> Value:
    """Dimensions in reverse order."""
    data = x.tensor("self")
    axes = {"aten.fliplr": [1], "aten.flipud": [0]}.get(x.call.operator) or axes_of(x.integers("dims"), data.rank)
    if data.content is not None:
        return b.constant(np.flip(data.content, tuple(axes)))
    numbers = ([-1] * len(axes), [-(1 << 62)] * len(axes), axes, [-1] * len(axes))
    return b.op("Slice", [data, *map(b.ints, numbers)], data.shape)


@translates("roll")
def roll(x: Context, b: Builder) -> Value:
    """Dimensions turned around."""
    data = x.tensor("self")
    shifts, axes = x.integers("shifts"), x.integers("dims", [])
    shape = data.shape
    if not axes:
        data, axes = b.reshape(data, (data.size,)), [0]
    for shift, axis in zip(shifts, axes_of(axes, data.rank), strict=True):
        n = data.shape[axis]
        if n and shift % n:
            cut = n - shift % n
            data = b.concat([b.slice(data, axis, cut, n), b.slice(data, axis, 0, cut)], axis)
    return b.reshape(data, shape)


@translates("rot90")
def rotated(x: Context, b: Builder) -> Value:
    """Two dimensions turned by right angles."""
    data = x.tensor("self")
    places = np.rot90(np.arange(data.size).reshape(data.shape), x.integer("k", 1), x.integers("dims", [0, 1]))
    return pick(b, data, places)


@translates("diagonal")
def diagonal(x: Context, b: Builder) -> Value:
    """The diagonal of two dimensions, last."""
    data = x.tensor("self")
    first, second = axis_of(x.integer("dim1", 0), data.rank), axis_of(x.integer("dim2", 1), data.rank)
    offset = x.integer("offset", 0)
    places = np.diagonal(np.arange(data.size).reshape(data.shape), offset, first, second)
    return pick(b, data, places)


def pick(b: Builder, data: Value, places: object) -> Value:
    """Return the elements with constant numbers in the flattened data."""
    where = np.asarray(places)
    if data.content is not None:
        return b.constant(data.content.reshape(-1)[where])
    flat = b.reshape(data, (data.size,))
    picked = b.op("Gather", [flat, b.constant(where.reshape(-1).astype(np.int64))], (where.size,), axis=0)
    return b.reshape(picked, where.shape)


@translates("unfold")
def unfold(x: Context, b: Builder) -> Value:
    """Windows of one dimension."""
    data = x.tensor("self")
    axis = axis_of(x.integer("dimension"), data.rank)
    size, step = x.integer("size"), x.integer("step")
    windows = np.lib.stride_tricks.sliding_window_view(np.arange(data.shape[axis]), size)[::step]
    places = windows.reshape(-1)
    shape = (*data.shape[:axis], places.size, *data.shape[axis + 1 :])
    taken = b.op("Gather", [data, b.constant(places.astype(np.int64))], shape, axis=axis)
    wide = b.reshape(taken, (*data.shape[:axis], len(windows), size, *data.shape[axis + 1 :]))
    order = [*(i for i in range(wide.rank) if i != axis + 1), axis + 1]
    return b.transpose(wide, order)


@translates("im2col")
def im2col(x: Context, b: Builder) -> Value:
    """The windows of an image as columns."""
    data = x.tensor("self")
    batch = (data.shape[0],) if data.rank == 4 else ()
    n, channels, rows, columns = (*([1] if data.rank == 3 else []), *data.shape)
    kernel, dilation, padding, stride = (x.integers(k) for k in ("kernel_size", "dilation", "padding", "stride"))
    places = np.arange(1, channels * rows * columns + 1).reshape(channels, rows, columns)
    places = np.pad(places, [(0, 0), (padding[0],) * 2, (padding[1],) * 2])
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    windows = np.lib.stride_tricks.sliding_window_view(places, reach, axis=(1, 2))
    windows = windows[:, :: stride[0], :: stride[1], :: dilation[0], :: dilation[1]]
    where = windows.transpose(0, 3, 4, 1, 2).reshape(channels * kernel[0] * kernel[1], -1)
    flat = b.reshape(data, (n, channels * rows * columns))
    if any(padding):  # place 0 is a zero
        flat = b.concat([b.constant(np.zeros((n, 1), data.dtype)), flat], 1)
    else:
        where = where - 1
    index = b.constant(where.reshape(-1).astype(np.int64))
    return b.reshape(b.op("Gather", [flat, index], (n, where.size), axis=1), (*batch, *where.shape))
