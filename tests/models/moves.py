# SPDX-License-Identifier: Apache-2.0
"""Random configurations of operators that move elements, and of those that select by indices.

KINDS has the builder, function(random, dtype) -> made.Model, and the dtypes of each operator: those that LiteRT's
reference kernels run. Inputs with the attribute `limits` are indices below them; those with `small` have a few values
around the data.
"""

import numpy as np
from models.campaigns import quantised
from models.made import Model, of_one

ALL = ("float32", "int8", "uint8", "int16", "int32", "int64", "bool")
BITS = (*ALL, "uint16", "uint32")
SIX = ALL[:-1]
KINDS = {}


def shape_of(random, low=1, high=5, least=1, greatest=7):
    return tuple(int(n) for n in random.integers(least, greatest, int(random.integers(low, high + 1))))


def given(model, random, dtype, shape):
    """Return an input and the description of a result of equal quantisation."""
    scale, zero = quantised(random, dtype)
    return model.input(dtype, shape, scale, zero), (dtype, scale, zero)


def numbers(model, values, dtype="int32"):
    return model.constant(np.asarray(values, dtype))


def index_dtype(random):
    return str(random.choice(["int32", "int64"]))


def on_data(kind, random, dtype, shape, *others, count=1, **options):
    """Return a model of one operator on data of a shape, and on constants; `count` results have its quantisation."""
    scale = quantised(random, dtype)
    inputs = [(dtype, shape, *scale), *((one,) for one in others)]
    return of_one(kind, inputs, *[(dtype, *scale)] * count, **options)


def registered(kind, dtypes):
    def register(build):
        KINDS[kind] = (build, dtypes)
        return build

    return register


def moves(kind, dtypes, *limits):
    """Register a function(model, random, data) that returns further inputs and the options of an operator.

    `limits` are those of the random shape of the data; the result has the quantisation of the data.
    """

    def register(make):
        @registered(kind, dtypes)
        def build(random, dtype):
            model = Model()
            data, result = given(model, random, dtype, shape_of(random, *limits))
            others, options = make(model, random, data)
            return model.ending_with(kind, [data, *others], result, **options)

        return make

    return register


@moves("TRANSPOSE", BITS)
def transpose(model, random, data):
    return [numbers(model, random.permutation(len(data.shape)))], {}


@registered("SQUEEZE", BITS)
def squeeze(random, dtype):
    shape = [int(n) for n in random.choice([1, 1, 2, 3], int(random.integers(1, 6)))]
    ones = [axis for axis, n in enumerate(shape) if n == 1]
    some = [axis - len(shape) * int(random.integers(0, 2)) for axis in ones if random.random() < 0.6]
    return on_data("SQUEEZE", random, dtype, shape, squeeze_dims=some)


@moves("EXPAND_DIMS", BITS, 1, 4)
def expand_dims(model, random, data):
    return [numbers(model, [random.integers(-len(data.shape) - 1, len(data.shape) + 1)])], {}


@moves("TILE", BITS, 1, 4)
def tile(model, random, data):
    return [numbers(model, random.integers(1, 4, len(data.shape)), index_dtype(random))], {}


@registered("BROADCAST_TO", BITS)
def broadcast_to(random, dtype):
    wanted = shape_of(random, 1, 5, 1, 5)
    shape = [1 if random.random() < 0.4 else n for n in wanted[int(random.integers(0, len(wanted))) :]]
    return on_data("BROADCAST_TO", random, dtype, shape, np.asarray(wanted, index_dtype(random)), version=2)


@moves("REVERSE_V2", ALL)
def reverse(model, random, data):
    """LiteRT reverses dimensions that follow each other."""
    rank = len(data.shape)
    first = int(random.integers(0, rank))
    axes = np.arange(first, int(random.integers(first, rank)) + 1)
    return [numbers(model, axes - rank if random.random() < 0.4 else axes)], {}


@moves("SLICE", BITS)
def slice_(model, random, data):
    shape = data.shape
    begin = [int(random.integers(0, n)) for n in shape]
    sizes = [int(random.integers(1, n - at + 1)) for n, at in zip(shape, begin, strict=True)]
    if random.random() < 0.3:  # a contiguous part
        begin[1:], sizes[1:] = [0] * (len(shape) - 1), shape[1:]
    sizes = [
        -1 if n - at == size and random.random() < 0.5 else size
        for n, at, size in zip(shape, begin, sizes, strict=True)
    ]
    kind = index_dtype(random)
    return [numbers(model, begin, kind), numbers(model, sizes, kind)], {}


@registered("STRIDED_SLICE", BITS)
def strided_slice(random, dtype):
    """Indices of at most 5 dimensions with every mask; results without elements are drawn again."""
    while True:
        shape = shape_of(random, 1, 5, 1, 6)
        count = int(random.integers(1, len(shape) + 1))
        ellipsis = int(random.integers(0, count)) if random.random() < 0.3 else None
        new = [i for i in range(count) if random.random() < 0.15 and i != ellipsis]
        shrink = [i for i in range(count) if random.random() < 0.25 and i != ellipsis and i not in new]
        drawn = [
            (random.integers(-6, 7), random.integers(-7, 8), random.choice([1, 1, 1, 2, 3, -1, -1, -2]))
            for _ in range(count)
        ]
        begin, end, steps = (list(map(int, some)) for some in zip(*drawn, strict=True))
        masks = {"begin_mask": int(random.integers(0, 1 << count)), "end_mask": int(random.integers(0, 1 << count))}
        # Source of the expectation: numpy's slices, which the masks describe.
        index, axis = [], 0
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
                    begin[i], steps[i] = int(random.integers(-n, n)), 1
                    masks["begin_mask"] &= ~(1 << i)
                    index.append(begin[i])
                else:
                    first = None if masks["begin_mask"] >> i & 1 else begin[i]
                    last = None if masks["end_mask"] >> i & 1 else end[i]
                    index.append(slice(first, last, steps[i]))
        if np.zeros(shape)[tuple(index)].size > 0:
            break
    masks["new_axis_mask"] = sum(1 << i for i in new)
    masks["shrink_axis_mask"] = sum(1 << i for i in shrink)
    masks["ellipsis_mask"] = 0 if ellipsis is None else 1 << ellipsis
    return on_data("STRIDED_SLICE", random, dtype, shape, *np.asarray([begin, end, steps], np.int32), **masks)


@registered("SPLIT", SIX)
def split(random, dtype):
    model, shape = Model(), list(shape_of(random, 1, 4))
    axis, count = int(random.integers(-len(shape), len(shape))), int(random.integers(1, 4))
    shape[axis] = count * int(random.integers(1, 4))
    data, result = given(model, random, dtype, shape)
    return model.ending_with("SPLIT", [numbers(model, [axis]), data], *[result] * count, num_splits=count)


@registered("SPLIT_V", SIX)
def split_v(random, dtype):
    shape = list(shape_of(random, 1, 4))
    axis = int(random.integers(-len(shape), len(shape)))
    sizes = [int(n) for n in random.integers(1, 4, int(random.integers(2, 4)))]
    shape[axis] = sum(sizes)
    if random.random() < 0.4:
        sizes[int(random.integers(0, len(sizes)))] = -1
    count = len(sizes)
    return on_data("SPLIT_V", random, dtype, shape, np.int32(sizes), np.int32([axis]), count=count, num_splits=count)


@registered("UNPACK", ("float32", "int8", "uint8", "int16", "int32", "bool"))
def unpack(random, dtype):
    shape = list(shape_of(random, 2, 4))
    axis = int(random.integers(-len(shape), len(shape)))
    shape[axis] = int(random.integers(2, 4))
    return on_data("UNPACK", random, dtype, shape, count=shape[axis], num=shape[axis], axis=axis)


@registered("PACK", (*SIX, "uint32"))
def pack(random, dtype):
    shape = shape_of(random, 1, 3)
    axis, count = int(random.integers(-len(shape) - 1, len(shape) + 1)), int(random.integers(1, 4))
    numbers = quantised(random, dtype)
    return of_one("PACK", [(dtype, shape, *numbers)] * count, (dtype, *numbers), values_count=count, axis=axis)


@registered("CONCATENATION", (*ALL, "uint32"))
def concatenation(random, dtype):
    """Inputs, the same one twice, constants; other scales for uint8."""
    model, shape = Model(), list(shape_of(random, 1, 4))
    axis, count = int(random.integers(-len(shape), len(shape))), int(random.integers(2, 5))
    numbers = quantised(random, dtype)
    inputs = []
    for number in range(count):
        shape[axis] = int(random.integers(1, 5))
        pair = quantised(random, dtype) if dtype == "uint8" and random.random() < 0.6 else numbers
        if number and random.random() < 0.2:
            inputs.append(model.constant(random.integers(0, 2, shape).astype(dtype), *pair))
        elif number and random.random() < 0.2:
            inputs.append(inputs[0])
        else:
            inputs.append(model.input(dtype, shape, *pair))
    return model.ending_with("CONCATENATION", inputs, (dtype, *numbers), axis=axis)


@moves("PAD", ALL, 1, 4)
def pad(model, random, data):
    rank = len(data.shape)
    amounts = random.integers(0, 4, (rank, 2)) * random.integers(0, 2, (rank, 1))
    return [numbers(model, amounts, index_dtype(random))], {}


@moves("PADV2", ALL, 1, 4)
def pad_v2(model, random, data):
    """A constant or computed value."""
    amounts = numbers(model, random.integers(0, 4, (len(data.shape), 2)), index_dtype(random))
    if random.random() < 0.3:
        return [amounts, model.input(data.dtype, [1], data.scale, data.zero)], {}
    one = np.asarray([random.choice([0, 1, 5, 100])]).astype(data.dtype)
    return [amounts, model.constant(one, data.scale, data.zero)], {}


@moves("MIRROR_PAD", BITS, 1, 4, 2, 6)
def mirror_pad(model, random, data):
    mode = str(random.choice(["REFLECT", "SYMMETRIC"]))
    less = mode == "REFLECT"
    amounts = np.asarray([[random.integers(0, n - less + 1) for _ in range(2)] for n in data.shape])
    amounts *= random.integers(0, 2, (len(data.shape), 1))
    return [numbers(model, amounts, index_dtype(random))], {"mode": mode}


def _depth(kind):
    def build(random, dtype):
        block = int(random.integers(1, 4))
        shape = random.integers(1, 5, 4) * ((1, block, block, 1) if kind == "SPACE_TO_DEPTH" else (1, 1, 1, block**2))
        return on_data(kind, random, dtype, shape.tolist(), block_size=block)

    return build


for _kind in ("SPACE_TO_DEPTH", "DEPTH_TO_SPACE"):
    registered(_kind, ("float32", "int8", "uint8", "int32", "int64"))(_depth(_kind))


def _batches(kind):
    def build(random, dtype):
        """Blocks of each dimension: their size, their number, and the edges of all."""
        blocks, edges, space = [], [], []
        for _ in range(int(random.integers(1, 3))):
            block, count = int(random.integers(1, 4)), int(random.integers(1, 5))
            before = int(random.integers(0, min(4 if kind == "SPACE_TO_BATCH_ND" else 3, block * count)))
            after = int(random.integers(0, min(3, block * count - before)))
            blocks.append(block)
            edges.append([before, after])
            space.append(block * count - before - after if kind == "SPACE_TO_BATCH_ND" else count)
        batches = 1 if kind == "SPACE_TO_BATCH_ND" else int(np.prod(blocks))
        shape = (batches * int(random.integers(1, 3)), *space, int(random.integers(1, 5)))
        return on_data(kind, random, dtype, shape, np.int32(blocks), np.int32(edges))

    return build


for _kind in ("SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND"):
    registered(_kind, BITS)(_batches(_kind))


def _resize(kind):
    def build(random, dtype):
        shape = tuple(int(n) for n in random.integers(1, [3, 9, 9, 5]))
        sizes = random.integers(1, 20, 2)
        if random.random() < 0.4:
            sizes = np.asarray(shape[1:3]) * random.integers(1, 4, 2)
        options = [{}, {"align_corners": True}, {"half_pixel_centers": True}][int(random.integers(0, 3))]
        return on_data(kind, random, dtype, shape, sizes.astype(np.int32), **options)

    return build


KINDS["RESIZE_NEAREST_NEIGHBOR"] = _resize("RESIZE_NEAREST_NEIGHBOR"), (*ALL[:5], "bool", "uint16", "uint32")
KINDS["RESIZE_BILINEAR"] = _resize("RESIZE_BILINEAR"), ("float32", "int8", "uint8", "int16")


@registered("FILL", (*SIX, "uint32"))
def fill(random, dtype):
    """The second operator has results that vary."""
    model = Model()
    shape = numbers(model, shape_of(random, 1, 4), index_dtype(random))
    value, result = given(model, random, dtype, ())
    model.ending_with("FILL", [shape, value], result)
    return model.ending_with("PACK", [value, value], result, values_count=2, axis=0)


def _with_data(model, data, result):
    """Return a model with one more output, which varies."""
    return model.ending_with("RESHAPE", [data, numbers(model, [-1])], result, new_shape=[-1])


def _of_shape(kind):
    def build(random, dtype):
        model = Model()
        data, result = given(model, random, dtype, shape_of(random, *(() if kind == "ZEROS_LIKE" else (3, 5))))
        found, options = result if kind == "ZEROS_LIKE" else ("int32",), {}
        if kind == "SHAPE":
            options["out_type"] = index_dtype(random)
            found = (options["out_type"],)
        return _with_data(model.ending_with(kind, [data], found, **options), data, result)

    return build


KINDS["ZEROS_LIKE"] = _of_shape("ZEROS_LIKE"), ("float32", "int32", "int64")
KINDS["SHAPE"], KINDS["RANK"] = (_of_shape("SHAPE"), BITS), (_of_shape("RANK"), BITS)


@registered("RANGE", ("float32", "int32", "int64"))
def range_(random, dtype):
    model = Model()
    data, result = given(model, random, dtype, (4,))
    delta = random.choice([-3, -2, -1, 1, 2, 7])
    start = int(random.integers(-20, 20))
    values = np.asarray([start, start + delta * int(random.integers(1, 9)), delta])
    values = [numbers(model, value, dtype) for value in (values * 0.3 if dtype == "float32" else values)]
    return _with_data(model.ending_with("RANGE", values, result), data, result)


def _tuples(model, random, shape, limits, dtype="int32"):
    if random.random() < 0.4:
        values = np.stack([random.integers(0, limit, shape) for limit in limits], axis=-1)
        return model.constant(values.astype(dtype))
    made = model.input(dtype, (*shape, len(limits)))
    made.limits = limits
    return made


def _indices(model, random, shape, limit, dtype="int32"):
    made = _tuples(model, random, shape, [limit], dtype)
    made.shape = made.shape[:-1]
    made.content = None if made.content is None else made.content.reshape(made.shape)
    return made


@moves("GATHER", ALL, 1, 4)
def gather(model, random, data):
    """Computed or constant indices of all dtypes, batches, negative axes."""
    rank = len(data.shape)
    axis = int(random.integers(0, rank))
    batches = int(random.integers(0, axis + 1)) if random.random() < 0.5 else 0
    places = (*data.shape[:batches], *shape_of(random, 0, 2))
    indices = _indices(model, random, places, data.shape[axis], str(random.choice(["int16", "int32", "int64"])))
    if random.random() < 0.3:
        axis -= rank
    if batches and random.random() < 0.3 and len(places) > batches:
        batches -= len(places)
    return [indices], {"axis": axis, "batch_dims": batches, "version": 4}


@moves("GATHER_ND", ALL, 1, 4)
def gather_nd(model, random, data):
    depth = int(random.integers(1, len(data.shape) + 1))
    return [_tuples(model, random, shape_of(random, 0, 2), data.shape[:depth], index_dtype(random))], {}


@registered("EMBEDDING_LOOKUP", ("float32", "int8", "uint8", "hybrid"))
def embedding(random, dtype):
    """Rows; of int8 also as float32."""
    model, shape = Model(), shape_of(random, 2, 3)
    indices = _indices(model, random, (int(random.integers(1, 6)),), shape[0])
    if dtype == "hybrid":
        per_row = bool(random.integers(0, 2))
        scales = random.uniform(0.01, 0.1, shape[0] if per_row else 1)
        table = model.constant(random.integers(-128, 128, shape).astype(np.int8), scales)
        return model.ending_with("EMBEDDING_LOOKUP", [indices, table], ("float32",))
    scale, zero = quantised(random, dtype)
    table = model.constant((random.standard_normal(shape) * 50).astype(dtype), scale, zero)
    return model.ending_with("EMBEDDING_LOOKUP", [indices, table], (dtype, scale, zero))


@registered("SCATTER_ND", ("float32", "int8", "uint8", "int32", "int64", "bool"))
def scatter(random, dtype):
    model, shape = Model(), shape_of(random, 1, 4)
    depth = int(random.integers(1, len(shape) + 1))
    places = shape_of(random, 1, 2)
    indices = _tuples(model, random, places, shape[:depth])
    updates, result = given(model, random, dtype, (*places, *shape[depth:]))
    return model.ending_with("SCATTER_ND", [indices, updates, numbers(model, shape)], result)


@moves("DYNAMIC_UPDATE_SLICE", ALL, 1, 4)
def update_slice(model, random, data):
    """Starts inside and outside of the data, which LiteRT clamps."""
    shape = data.shape
    part = [int(random.integers(1, n + 1)) if random.random() < 0.7 else n for n in shape]
    update = model.input(data.dtype, part, data.scale, data.zero)
    kind = index_dtype(random)
    start = model.constant(random.integers(-2, 7, len(shape)).astype(kind))
    if random.random() < 0.6:
        start = model.input(kind, (len(shape),))
        start.small = True
    return [update, start], {}


@registered("ONE_HOT", ("float32", "int8", "uint8", "int32", "int64", "bool"))
def one_hot(random, dtype):
    """Indices of both signs; computed or constant values."""
    model, shape = Model(), shape_of(random, 1, 3)
    indices = model.input(index_dtype(random), shape)
    axis, depth = int(random.integers(0, len(shape) + 1)), int(random.integers(1, 6))
    axis = -1 if axis == len(shape) else axis
    on, off = (model.constant(np.asarray(v, dtype)) for v in (1, 0))
    if random.random() < 0.3:
        on = model.input(dtype, ())
    return model.ending_with("ONE_HOT", [indices, numbers(model, depth), on, off], (dtype,), axis=axis)
