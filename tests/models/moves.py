# SPDX-License-Identifier: Apache-2.0
"""Random configurations of operators that move elements, by kind: function(random, dtype) -> made.Model."""

import numpy as np
from models.made import Model


def quantised(random, dtype):
    """Return a scale and a zero point for 8 bits and int16, else none."""
    if dtype not in ("int8", "uint8", "int16"):
        return None, 0
    low, high = {"int8": (-128, 128), "uint8": (0, 256), "int16": (0, 1)}[dtype]
    return float(random.uniform(0.01, 0.1)), int(random.integers(low, high))


def shape_of(random, low=1, high=5, least=1, greatest=7):
    """Return a random shape of `low` to `high` dimensions."""
    return tuple(int(n) for n in random.integers(least, greatest, int(random.integers(low, high + 1))))


def given(model, random, dtype, shape):
    """Return an input and the description of a result of equal quantisation."""
    scale, zero = quantised(random, dtype)
    return model.input(dtype, shape, scale, zero), (dtype, scale, zero)


def numbers(model, values, dtype="int32"):
    return model.constant(np.asarray(values, dtype))


def index_dtype(random):
    return str(random.choice(["int32", "int64"]))


def transpose(random, dtype):
    model, shape = Model(), shape_of(random)
    data, result = given(model, random, dtype, shape)
    order = random.permutation(len(shape))
    model.output(model.operator("TRANSPOSE", [data, numbers(model, order)], result))
    return model


def squeeze(random, dtype):
    model = Model()
    shape = [int(n) for n in random.choice([1, 1, 2, 3], int(random.integers(1, 6)))]
    ones = [axis for axis, n in enumerate(shape) if n == 1]
    some = [axis - len(shape) * int(random.integers(0, 2)) for axis in ones if random.random() < 0.6]
    data, result = given(model, random, dtype, shape)
    model.output(model.operator("SQUEEZE", [data], result, squeeze_dims=some))
    return model


def expand_dims(random, dtype):
    model, shape = Model(), shape_of(random, 1, 4)
    data, result = given(model, random, dtype, shape)
    axis = int(random.integers(-len(shape) - 1, len(shape) + 1))
    model.output(model.operator("EXPAND_DIMS", [data, numbers(model, [axis])], result))
    return model


def tile(random, dtype):
    model, shape = Model(), shape_of(random, 1, 4)
    data, result = given(model, random, dtype, shape)
    times = numbers(model, random.integers(1, 4, len(shape)), index_dtype(random))
    model.output(model.operator("TILE", [data, times], result))
    return model


def broadcast_to(random, dtype):
    model, wanted = Model(), shape_of(random, 1, 5, 1, 5)
    kept = wanted[int(random.integers(0, len(wanted))) :]
    shape = [1 if random.random() < 0.4 else n for n in kept]
    data, result = given(model, random, dtype, shape)
    model.output(model.operator("BROADCAST_TO", [data, numbers(model, wanted, index_dtype(random))], result, version=2))
    return model


def reverse(random, dtype):
    """LiteRT reverses dimensions that follow each other."""
    model, shape = Model(), shape_of(random)
    data, result = given(model, random, dtype, shape)
    first = int(random.integers(0, len(shape)))
    axes = list(range(first, int(random.integers(first, len(shape))) + 1))
    if random.random() < 0.4:
        axes = [axis - len(shape) for axis in axes]
    model.output(model.operator("REVERSE_V2", [data, numbers(model, axes)], result))
    return model


def slice_(random, dtype):
    model, shape = Model(), shape_of(random)
    data, result = given(model, random, dtype, shape)
    begin = [int(random.integers(0, n)) for n in shape]
    sizes = [int(random.integers(1, n - at + 1)) for n, at in zip(shape, begin, strict=True)]
    if random.random() < 0.3:  # a contiguous part
        begin[1:], sizes[1:] = [0] * (len(shape) - 1), shape[1:]
    sizes = [
        -1 if n - at == size and random.random() < 0.5 else size
        for n, at, size in zip(shape, begin, sizes, strict=True)
    ]
    kind = index_dtype(random)
    model.output(model.operator("SLICE", [data, numbers(model, begin, kind), numbers(model, sizes, kind)], result))
    return model


def strided_slice(random, dtype):
    """Indices of at most 5 dimensions with every mask; results without elements are drawn again."""
    while True:
        shape = shape_of(random, 1, 5, 1, 6)
        count = int(random.integers(1, len(shape) + 1))
        ellipsis = int(random.integers(0, count)) if random.random() < 0.3 else None
        new = [i for i in range(count) if random.random() < 0.15 and i != ellipsis]
        shrink = [i for i in range(count) if random.random() < 0.25 and i != ellipsis and i not in new]
        begin, end, steps = [], [], []
        for _ in range(count):
            begin.append(int(random.integers(-6, 7)))
            end.append(int(random.integers(-7, 8)))
            steps.append(int(random.choice([1, 1, 1, 2, 3, -1, -1, -2])))
        masks = {"begin_mask": int(random.integers(0, 1 << count)), "end_mask": int(random.integers(0, 1 << count))}
        # Source of the expectation: numpy's slices, which the masks describe.
        index, axis, is_good = [], 0, True
        used = count - len(new) - (ellipsis is not None)
        for i in range(count):
            if i == ellipsis:
                index.append(Ellipsis)
                axis += len(shape) - used
            elif i in new:
                index.append(None)
            else:
                n = shape[axis]
                axis += 1
                if i in shrink:
                    begin[i] = int(random.integers(-n, n))
                    steps[i] = 1
                    masks["begin_mask"] &= ~(1 << i)
                    index.append(begin[i])
                else:
                    first = None if masks["begin_mask"] >> i & 1 else begin[i]
                    last = None if masks["end_mask"] >> i & 1 else end[i]
                    index.append(slice(first, last, steps[i]))
        is_good = np.zeros(shape)[tuple(index)].size > 0
        if is_good:
            break
    model = Model()
    data, result = given(model, random, dtype, shape)
    masks["new_axis_mask"] = sum(1 << i for i in new)
    masks["shrink_axis_mask"] = sum(1 << i for i in shrink)
    masks["ellipsis_mask"] = 0 if ellipsis is None else 1 << ellipsis
    operands = [data, numbers(model, begin), numbers(model, end), numbers(model, steps)]
    model.output(model.operator("STRIDED_SLICE", operands, result, **masks))
    return model


def split(random, dtype):
    model, shape = Model(), list(shape_of(random, 1, 4))
    axis, count = int(random.integers(-len(shape), len(shape))), int(random.integers(1, 4))
    shape[axis] = count * int(random.integers(1, 4))
    data, result = given(model, random, dtype, shape)
    found = model.operator("SPLIT", [numbers(model, [axis]), data], *[result] * count, num_splits=count)
    model.output(*(found if count > 1 else [found]))
    return model


def split_v(random, dtype):
    model, shape = Model(), list(shape_of(random, 1, 4))
    axis = int(random.integers(-len(shape), len(shape)))
    sizes = [int(n) for n in random.integers(1, 4, int(random.integers(2, 4)))]
    shape[axis] = sum(sizes)
    if random.random() < 0.4:
        sizes[int(random.integers(0, len(sizes)))] = -1
    data, result = given(model, random, dtype, shape)
    inputs = [data, numbers(model, sizes), numbers(model, [axis])]
    model.output(*model.operator("SPLIT_V", inputs, *[result] * len(sizes), num_splits=len(sizes)))
    return model


def unpack(random, dtype):
    model, shape = Model(), list(shape_of(random, 2, 4))
    axis = int(random.integers(-len(shape), len(shape)))
    shape[axis] = int(random.integers(2, 4))
    data, result = given(model, random, dtype, shape)
    model.output(*model.operator("UNPACK", [data], *[result] * shape[axis], num=shape[axis], axis=axis))
    return model


def pack(random, dtype):
    model, shape = Model(), shape_of(random, 1, 3)
    axis, count = int(random.integers(-len(shape) - 1, len(shape) + 1)), int(random.integers(1, 4))
    scale, zero = quantised(random, dtype)
    inputs = [model.input(dtype, shape, scale, zero) for _ in range(count)]
    model.output(model.operator("PACK", inputs, (dtype, scale, zero), values_count=count, axis=axis))
    return model


def concatenation(random, dtype):
    """Inputs, the same one twice, constants; other scales for uint8."""
    model, shape = Model(), list(shape_of(random, 1, 4))
    axis, count = int(random.integers(-len(shape), len(shape))), int(random.integers(2, 5))
    scale, zero = quantised(random, dtype)
    inputs = []
    for number in range(count):
        shape[axis] = int(random.integers(1, 5))
        pair = quantised(random, dtype) if dtype == "uint8" and random.random() < 0.6 else (scale, zero)
        if number and random.random() < 0.2:
            inputs.append(model.constant(random.integers(0, 2, shape).astype(dtype), *pair))
        elif number and random.random() < 0.2:
            inputs.append(inputs[0])
        else:
            inputs.append(model.input(dtype, shape, *pair))
    model.output(model.operator("CONCATENATION", inputs, (dtype, scale, zero), axis=axis))
    return model


def pad(random, dtype):
    model, shape = Model(), shape_of(random, 1, 4)
    data, result = given(model, random, dtype, shape)
    amounts = random.integers(0, 4, (len(shape), 2)) * random.integers(0, 2, (len(shape), 1))
    model.output(model.operator("PAD", [data, numbers(model, amounts, index_dtype(random))], result))
    return model


def pad_v2(random, dtype):
    """A constant or computed value."""
    model, shape = Model(), shape_of(random, 1, 4)
    data, result = given(model, random, dtype, shape)
    amounts = numbers(model, random.integers(0, 4, (len(shape), 2)), index_dtype(random))
    if random.random() < 0.3:
        value = model.input(dtype, [1], *result[1:])
    else:
        one = np.asarray([random.choice([0, 1, 5, 100])]).astype(dtype)
        value = model.constant(one, *result[1:])
    model.output(model.operator("PADV2", [data, amounts, value], result))
    return model


def mirror_pad(random, dtype):
    model, shape = Model(), shape_of(random, 1, 4, 2, 6)
    data, result = given(model, random, dtype, shape)
    mode = str(random.choice(["REFLECT", "SYMMETRIC"]))
    less = mode == "REFLECT"
    amounts = np.asarray([[random.integers(0, n - less + 1) for _ in range(2)] for n in shape])
    amounts *= random.integers(0, 2, (len(shape), 1))
    model.output(model.operator("MIRROR_PAD", [data, numbers(model, amounts, index_dtype(random))], result, mode=mode))
    return model


def space_to_depth(random, dtype):
    model, block = Model(), int(random.integers(1, 4))
    n, rows, columns, depth = (int(n) for n in random.integers(1, 5, 4))
    data, result = given(model, random, dtype, (n, rows * block, columns * block, depth))
    model.output(model.operator("SPACE_TO_DEPTH", [data], result, block_size=block))
    return model


def depth_to_space(random, dtype):
    model, block = Model(), int(random.integers(1, 4))
    n, rows, columns, depth = (int(n) for n in random.integers(1, 5, 4))
    data, result = given(model, random, dtype, (n, rows, columns, depth * block * block))
    model.output(model.operator("DEPTH_TO_SPACE", [data], result, block_size=block))
    return model


def space_to_batch(random, dtype):
    model, rank = Model(), int(random.integers(1, 3))
    blocks, edges, space = [], [], []
    for _ in range(rank):
        block, count = int(random.integers(1, 4)), int(random.integers(1, 5))
        total = block * count
        padded = [int(random.integers(0, min(4, total))), 0]
        padded[1] = int(random.integers(0, min(3, total - padded[0])))
        blocks.append(block)
        edges.append(padded)
        space.append(total - sum(padded))
    shape = (int(random.integers(1, 3)), *space, int(random.integers(1, 5)))
    data, result = given(model, random, dtype, shape)
    inputs = [data, numbers(model, blocks), numbers(model, edges)]
    model.output(model.operator("SPACE_TO_BATCH_ND", inputs, result))
    return model


def batch_to_space(random, dtype):
    model, rank = Model(), int(random.integers(1, 3))
    blocks, edges, space = [], [], []
    for _ in range(rank):
        block, count = int(random.integers(1, 4)), int(random.integers(1, 5))
        before = int(random.integers(0, min(3, block * count)))
        after = int(random.integers(0, min(3, block * count - before)))
        blocks.append(block)
        edges.append([before, after])
        space.append(count)
    shape = (int(np.prod(blocks)) * int(random.integers(1, 3)), *space, int(random.integers(1, 5)))
    data, result = given(model, random, dtype, shape)
    inputs = [data, numbers(model, blocks), numbers(model, edges)]
    model.output(model.operator("BATCH_TO_SPACE_ND", inputs, result))
    return model


def _resize(kind):
    def build(random, dtype):
        model = Model()
        shape = tuple(int(n) for n in random.integers(1, [3, 9, 9, 5]))
        sizes = random.integers(1, 20, 2)
        if random.random() < 0.4:
            sizes = np.asarray(shape[1:3]) * random.integers(1, 4, 2)
        options = [{}, {"align_corners": True}, {"half_pixel_centers": True}][int(random.integers(0, 3))]
        data, result = given(model, random, dtype, shape)
        model.output(model.operator(kind, [data, numbers(model, sizes)], result, **options))
        return model

    return build


def fill(random, dtype):
    model = Model()
    shape = numbers(model, shape_of(random, 1, 4), index_dtype(random))
    scale, zero = quantised(random, dtype)
    value = model.input(dtype, (), scale, zero)
    model.output(model.operator("FILL", [shape, value], (dtype, scale, zero)), _anything(model, value))
    return model


def _anything(model, value):
    """Return a result that varies, so that not all are equal."""
    return model.operator("PACK", [value, value], (value.dtype, value.scale, value.zero), values_count=2, axis=0)


def zeros_like(random, dtype):
    model, shape = Model(), shape_of(random)
    data, result = given(model, random, dtype, shape)
    model.output(model.operator("ZEROS_LIKE", [data], result), _reshaped(model, data, result))
    return model


def _reshaped(model, data, result):
    return model.operator("RESHAPE", [data, numbers(model, [-1])], result, new_shape=[-1])


def shape(random, dtype):
    model = Model()
    data, result = given(model, random, dtype, shape_of(random, 3, 5))
    kind = index_dtype(random)
    model.output(model.operator("SHAPE", [data], (kind,), out_type=kind), _reshaped(model, data, result))
    return model


def rank(random, dtype):
    model = Model()
    data, result = given(model, random, dtype, shape_of(random, 3, 5))
    model.output(model.operator("RANK", [data], ("int32",)), _reshaped(model, data, result))
    return model


def range_(random, dtype):
    model = Model()
    data, result = given(model, random, dtype, (4,))
    delta = random.choice([-3, -2, -1, 1, 2, 7])
    start = int(random.integers(-20, 20))
    values = [start, start + delta * int(random.integers(1, 9)), delta]
    if dtype == "float32":
        values = [v * 0.3 for v in values]
    values = [model.constant(np.asarray(v, dtype)) for v in values]
    model.output(model.operator("RANGE", values, result), _reshaped(model, data, result))
    return model


ALL = ("float32", "int8", "uint8", "int16", "int32", "int64", "bool")
BITS = (*ALL, "uint16", "uint32")
SIX = ALL[:-1]
KINDS = {
    "TRANSPOSE": (transpose, BITS),
    "SQUEEZE": (squeeze, BITS),
    "EXPAND_DIMS": (expand_dims, BITS),
    "TILE": (tile, BITS),
    "BROADCAST_TO": (broadcast_to, BITS),
    "REVERSE_V2": (reverse, ALL),
    "SLICE": (slice_, BITS),
    "STRIDED_SLICE": (strided_slice, BITS),
    "SPLIT": (split, SIX),
    "SPLIT_V": (split_v, SIX),
    "UNPACK": (unpack, ("float32", "int8", "uint8", "int16", "int32", "bool")),
    "PACK": (pack, (*SIX, "uint32")),
    "CONCATENATION": (concatenation, (*ALL, "uint32")),
    "PAD": (pad, ALL),
    "PADV2": (pad_v2, ALL),
    "MIRROR_PAD": (mirror_pad, BITS),
    "SPACE_TO_DEPTH": (space_to_depth, ("float32", "int8", "uint8", "int32", "int64")),
    "DEPTH_TO_SPACE": (depth_to_space, ("float32", "int8", "uint8", "int32", "int64")),
    "SPACE_TO_BATCH_ND": (space_to_batch, BITS),
    "BATCH_TO_SPACE_ND": (batch_to_space, BITS),
    "RESIZE_NEAREST_NEIGHBOR": (_resize("RESIZE_NEAREST_NEIGHBOR"), (*ALL[:5], "bool", "uint16", "uint32")),
    "RESIZE_BILINEAR": (_resize("RESIZE_BILINEAR"), ("float32", "int8", "uint8", "int16")),
    "FILL": (fill, (*SIX, "uint32")),
    "ZEROS_LIKE": (zeros_like, ("float32", "int32", "int64")),
    "SHAPE": (shape, BITS),
    "RANK": (rank, BITS),
    "RANGE": (range_, ("float32", "int32", "int64")),
}
"""The builder and the dtypes of each operator: those that LiteRT's reference kernels run."""
