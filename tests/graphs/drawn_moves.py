# SPDX-License-Identifier: Apache-2.0
"""Operators that move elements."""

from math import prod

import numpy as np
from graphs.drawing import MOST, NONE, RANGES, attempt, constant_like, image, quantised, requantised, require
from models.made import Made


def concatenation(draw, given=None):
    first = draw.pick(lambda one: len(one.shape) >= 2)
    axis = draw.number(0, len(first.shape) - 1) if draw.chance(0.4) else len(first.shape) - 1
    fits = [
        one
        for one in draw.tensors
        if one.dtype == first.dtype
        and len(one.shape) == len(first.shape)
        and all(n == m for at, (n, m) in enumerate(zip(one.shape, first.shape, strict=True)) if at != axis)
    ]
    operands = given or [first, *(draw.choice(fits) for _ in range(draw.number(1, 3)))]
    if not draw.chance(0.15):
        operands = list({id(one): one for one in operands}.values())
    require(len(operands) >= 2)
    axis = len(operands[0].shape) - 1 if given else axis
    first = operands[0]
    if quantised(first):
        operands = [requantised(draw, one, first) for one in operands]
    if draw.chance(0.1):
        operands.append(constant_like(draw, first))
    shape = list(first.shape)
    shape[axis] = sum(one.shape[axis] for one in operands)
    require(prod(shape) <= MOST)
    if draw.chance(0.3):
        draw.random.shuffle(operands)
    chosen = axis - len(shape) if draw.chance(0.3) else axis
    return draw.add("CONCATENATION", operands, shape, first.dtype, first.scale, first.zero, axis=chosen, **NONE)


def padding(draw):
    data = draw.pick(lambda one: len(one.shape) in (2, 3, 4))
    kind = draw.choice(["PAD", "PAD", "PADV2", "MIRROR_PAD"])
    most = [min(2, n - 1) if kind == "MIRROR_PAD" else 2 for n in data.shape]
    amounts = [(draw.number(0, m), draw.number(0, m)) if draw.chance(0.6) else (0, 0) for m in most]
    if image(data) and draw.chance(0.6):
        amounts[0] = amounts[3] = (0, 0)
    shape = [n + a + b for n, (a, b) in zip(data.shape, amounts, strict=True)]
    require(prod(shape) <= MOST)
    inputs = [data, draw.shape_constant(amounts)]
    if kind == "MIRROR_PAD":
        return draw.like(kind, inputs, shape, mode=draw.choice(["REFLECT", "SYMMETRIC"]))
    if kind == "PADV2":
        low = -3.0 if data.dtype == "float32" else RANGES[data.dtype][0]
        value = np.asarray([draw.choice([low, 0 if data.dtype == "float32" else data.zero])]).astype(data.dtype)
        inputs.append(draw.model.constant(value, data.scale, data.zero))
    return draw.like(kind, inputs, shape)


def cut(draw):
    data = draw.pick(lambda one: len(one.shape) >= 1)
    starts = [draw.number(0, n - 1) if draw.chance(0.5) else 0 for n in data.shape]
    counts = [draw.number(1, n - at) if draw.chance(0.7) else n - at for n, at in zip(data.shape, starts, strict=True)]
    if draw.chance(0.5):
        inputs = [data, draw.shape_constant(starts), draw.shape_constant(counts)]
        return draw.like("SLICE", inputs, counts)
    steps = [draw.choice([1, 1, 2]) for _ in data.shape]
    ends = [at + n for at, n in zip(starts, counts, strict=True)]
    shape = [-(-n // step) for n, step in zip(counts, steps, strict=True)]
    if draw.chance(0.15):
        starts, ends = [n - 1 for n in data.shape], [-n - 1 for n in data.shape]
        steps, shape = [-1] * len(shape), list(data.shape)
    shrink = 0
    if len(shape) > 1 and draw.chance(0.15) and steps[0] > 0:
        shrink, shape = 1, shape[1:]
        ends[0], steps[0] = starts[0] + 1, 1
    inputs = [data, *(draw.shape_constant(one) for one in (starts, ends, steps))]
    masks = dict.fromkeys(("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask"), 0)
    return draw.like("STRIDED_SLICE", inputs, shape, **masks, shrink_axis_mask=shrink)


def split(draw):
    data = draw.pick(lambda one: len(one.shape) >= 1 and any(n > 1 for n in one.shape))
    axis = draw.choice([at for at, n in enumerate(data.shape) if n > 1])
    length = data.shape[axis]
    parts = [n for n in range(2, 5) if length % n == 0]
    axis_constant = draw.model.constant(np.asarray(axis, np.int32))
    if parts and draw.chance(0.6):
        count = draw.choice(parts)
        lengths, kind = [length // count] * count, "SPLIT"
        inputs = [axis_constant, data]
    else:
        first = draw.number(1, length - 1)
        lengths, kind = [first, length - first], "SPLIT_V"
        inputs = [data, draw.shape_constant(lengths), axis_constant]
    results = [(data.dtype, data.scale, data.zero)] * len(lengths)
    made = draw.model.operator(kind, inputs, *results, num_splits=len(lengths))
    for one, n in zip(made, lengths, strict=True):
        draw.keep(one, [data], [n if at == axis else m for at, m in enumerate(data.shape)])
    return made[0]


def rearranged(draw):
    data = draw.pick()
    kind = draw.choice(["TRANSPOSE", "RESHAPE", "RESHAPE", "SQUEEZE", "EXPAND_DIMS", "TILE", "REVERSE_V2"])
    rank = len(data.shape)
    if kind == "TRANSPOSE" and rank > 1:
        order = [int(n) for n in draw.random.permutation(rank)]
        return draw.like(kind, [data, draw.shape_constant(order)], [data.shape[n] for n in order])
    if kind == "RESHAPE":
        shape = draw.choice([(prod(data.shape),), (1, prod(data.shape)), (*data.shape, 1), _folded(draw, data.shape)])
        return draw.like(kind, [data, draw.shape_constant(shape)], shape, new_shape=list(shape))
    if kind == "SQUEEZE" and 1 in data.shape and rank > 1:
        axis = data.shape.index(1)
        return draw.like(kind, [data], data.shape[:axis] + data.shape[axis + 1 :], squeeze_dims=[axis])
    if kind == "EXPAND_DIMS" and rank < 4:
        axis = draw.number(0, rank)
        at = draw.model.constant(np.asarray(axis, np.int32))
        return draw.like(kind, [data, at], (*data.shape[:axis], 1, *data.shape[axis:]))
    if kind == "TILE" and rank >= 1 and data.dtype != "int16":
        times = [draw.choice([1, 1, 2]) for _ in data.shape]
        shape = [n * m for n, m in zip(data.shape, times, strict=True)]
        require(prod(shape) <= MOST)
        return draw.like(kind, [data, draw.shape_constant(times)], shape)
    if kind == "REVERSE_V2" and rank >= 1 and data.dtype != "int8":
        return draw.like(kind, [data, draw.shape_constant([draw.number(0, rank - 1)])], data.shape)
    return None


def _folded(draw, shape):
    """Return a shape of 4 dimensions with as many elements."""
    size = prod(shape)
    rows = draw.choice([n for n in (1, 2, 3, 4, 5, 6) if size % n == 0])
    rest = size // rows
    columns = draw.choice([n for n in (1, 2, 3, 4, 5, 6) if rest % n == 0])
    return (1, rows, columns, rest // columns)


def resize(draw):
    data = draw.pick(lambda one: image(one) and prod(one.shape) * 4 <= MOST)
    size = draw.number(1, 2 * data.shape[1]), draw.number(1, 2 * data.shape[2])
    kind = draw.choice(["RESIZE_NEAREST_NEIGHBOR", "RESIZE_BILINEAR"])
    form = draw.choice([(False, False), (True, False), (False, True)])
    options = {"align_corners": form[0], "half_pixel_centers": form[1]}
    return draw.like(kind, [data, draw.shape_constant(size)], (data.shape[0], *size, data.shape[3]), **options)


def depth_blocks(draw):
    data = draw.pick(lambda one: image(one) and one.dtype != "int16")
    n, rows, columns, channels = data.shape
    if channels % 4 == 0 and draw.chance(0.5):
        return draw.like("DEPTH_TO_SPACE", [data], (n, rows * 2, columns * 2, channels // 4), block_size=2)
    require(rows % 2 == 0 and columns % 2 == 0)
    return draw.like("SPACE_TO_DEPTH", [data], (n, rows // 2, columns // 2, channels * 4), block_size=2)


def gather(draw):
    data = draw.pick(lambda one: len(one.shape) >= 2)
    axis = draw.number(0, len(data.shape) - 1)
    indices = draw.random.integers(0, data.shape[axis], draw.number(1, 4))
    shape = (*data.shape[:axis], len(indices), *data.shape[axis + 1 :])
    given = [data, draw.shape_constant(indices)]
    require(prod(shape) <= MOST)
    return draw.like("GATHER", given, shape, axis=axis, batch_dims=0)


def indexed(draw):
    """Append a GATHER with indices that are an input: 0 or 1."""
    data = draw.pick(lambda one: len(one.shape) >= 2 and max(one.shape) > 1)
    require(sum(one.dtype == "int32" for one in draw.model.graph.inputs) < 2)
    axis = draw.choice([at for at, n in enumerate(data.shape) if n > 1])
    batches = draw.number(0, min(1, axis))
    count = draw.number(1, 4)
    places = (*data.shape[:batches], count)
    shape = (*data.shape[:axis], count, *data.shape[axis + 1 :])
    require(prod(shape) <= MOST)
    indices = draw.model.input("int32", places, name=f"in{len(draw.model.graph.inputs)}")
    return draw.like("GATHER", [data, indices], shape, axis=axis, batch_dims=batches)


def packing(draw):
    data = attempt(draw.pick, lambda one: 1 <= len(one.shape) <= 3)
    if data is not None and draw.chance(0.5):
        same = [one for one in draw.tensors if one.dtype == data.dtype and one.shape == data.shape]
        operands = [data, draw.choice(same)]
        operands = [requantised(draw, one, data) if quantised(data) else one for one in operands]
        axis = draw.number(0, len(data.shape))
        shape = (*data.shape[:axis], 2, *data.shape[axis:])
        require(prod(shape) <= MOST)
        return draw.like("PACK", operands, shape, values_count=2, axis=axis)
    data = draw.pick(lambda one: len(one.shape) >= 2 and min(one.shape) <= 4)
    axis = draw.choice([at for at, n in enumerate(data.shape) if n <= 4])
    results = [(data.dtype, data.scale, data.zero)] * data.shape[axis]
    made = draw.model.operator("UNPACK", [data], *results, num=data.shape[axis], axis=axis)
    made = [made] if isinstance(made, Made) else made
    for one in made:
        draw.keep(one, [data], data.shape[:axis] + data.shape[axis + 1 :])
    return made[0]
