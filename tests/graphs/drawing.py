# SPDX-License-Identifier: Apache-2.0
"""Random TFLite graphs: chains and directed graphs of 5 to 40 operators, each drawn from one seed."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

import numpy as np
from models.made import Made, Model

MODES = ("int8", "int8 per tensor", "uint8", "int16", "float32", "mixed")
"""The dtypes of a graph; mixed: tensors of several dtypes, converted by QUANTIZE."""
MOST = 1600
"""The most elements of a tensor."""
RANGES = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767)}
NONE = {"fused_activation_function": "NONE"}


@dataclass
class Drawing:
    """A graph in the making. `Made.shape` of each result is set."""

    random: np.random.Generator
    mode: str
    model: Model = field(default_factory=Model)
    tensors: list = field(default_factory=list)
    """The results and the inputs that further operators can read."""
    used: set = field(default_factory=set)

    def chance(self, share):
        return self.random.random() < share

    def number(self, low, high):
        """Return an integer from low to high."""
        return int(self.random.integers(low, high + 1))

    def choice(self, items):
        return items[int(self.random.integers(0, len(items)))]

    @property
    def dtype(self):
        """The dtype of new inputs."""
        if self.mode == "mixed":
            return self.choice(["int8", "uint8", "int16"])
        return self.mode.split()[0]

    def zero(self, dtype):
        if dtype == "int16":
            return 0
        low, high = RANGES[dtype]
        return self.choice([low, high, 0 if dtype == "int8" else 128, self.number(low, high)])

    def scale(self, low=-2.0, high=0.0):
        return float(np.float32(10 ** self.random.uniform(low, high)))

    def quantisation(self, dtype):
        """Return the scale and the zero point of a new tensor."""
        return (None, 0) if dtype == "float32" else (self.scale(), self.zero(dtype))

    def input(self, shape, dtype=None):
        dtype = dtype or self.dtype
        made = self.model.input(dtype, shape, *self.quantisation(dtype), name=f"in{len(self.model.graph.inputs)}")
        self.tensors.append(made)
        return made

    def pick(self, accepts=lambda one: True):
        """Return a tensor, the latest ones more often; None if none is accepted."""
        some = [one for one in self.tensors if accepts(one)]
        if not some:
            return None
        if self.chance(0.6):
            return some[-1]
        unread = [one for one in some if id(one) not in self.used]
        return self.choice(unread if unread and self.chance(0.5) else some)

    def add(self, kind, inputs, shape, dtype, scale=None, zero=0, **options):
        """Append an operator with one result of a shape."""
        made = self.model.operator(kind, inputs, (dtype, scale, zero), **options)
        return self.keep(made, inputs, shape)

    def keep(self, made, inputs, shape):
        assert prod(shape) > 0, shape
        made.shape = tuple(int(n) for n in shape)
        made.name = f"t{len(self.model.graph.tensors)}"
        self.used.update(id(one) for one in inputs)
        self.tensors.append(made)
        return made

    def like(self, kind, inputs, shape, **options):
        """Append an operator whose result has the quantisation of the first input."""
        first = inputs[0]
        return self.add(kind, inputs, shape, first.dtype, first.scale, first.zero, **options)

    def shape_constant(self, values):
        return self.model.constant(np.asarray(values, np.int32))


def quantised(one):
    return one.dtype in RANGES


def image(one):
    return len(one.shape) == 4


def convolution_numbers(draw, data, results, fan, axis_shape, axis, depthwise=False):
    """Return the weights, the bias and the quantisation of the result of a layer."""
    random, dtype = draw.random, data.dtype
    model = draw.model
    if dtype == "float32":
        weights = (random.standard_normal(axis_shape) / np.sqrt(fan)).astype(np.float32)
        if draw.chance(0.3):
            weights[_channels(weights, axis, random)] = 0
        bias = model.constant(random.standard_normal(results).astype(np.float32))
        return model.constant(weights), bias, "float32", None, 0
    per_channel = dtype != "uint8" and draw.mode != "int8 per tensor" and draw.chance(0.85)
    low, high = (0, 255) if dtype == "uint8" else (-127, 127)
    weights = random.integers(low, high + 1, axis_shape)
    weight_zero = draw.number(0, 255) if dtype == "uint8" else 0
    scales = np.full(results if per_channel else 1, 0.01)
    if per_channel:
        scales = scales * 10 ** random.uniform(-0.6, 0.6, results)
    scales = scales.astype(np.float32)
    spread_of_data = {"int8": 70, "uint8": 70, "int16": 12000}[dtype]
    real = data.scale * spread_of_data * float(scales.mean()) * 70 * np.sqrt(fan)
    bias_limit = max(2, int(spread_of_data * 70 * np.sqrt(fan)))
    bias = random.integers(-bias_limit, bias_limit + 1, results)
    if draw.chance(0.4):
        weights[_channels(weights, axis, random)] = weight_zero  # dead or constant channels
        if draw.chance(0.5):
            bias[random.random(results) < 0.3] = 0
    if draw.chance(0.25):  # saturated channels
        bias[random.random(results) < 0.3] = bias_limit * draw.choice([-30, 30])
    target = dtype
    low, high = RANGES[target]
    scale = float(np.float32(real * 3 / (high - low) * 10 ** random.uniform(-0.4, 0.6)))
    zero = draw.zero(target)
    given = (scales, np.zeros(results, np.int64)) if per_channel else (float(scales[0]), weight_zero)
    one = model.constant(weights.astype("uint8" if dtype == "uint8" else "int8"), *given, axis=axis)
    kind = np.int64 if dtype == "int16" else np.int32
    of_bias = (np.float32(data.scale) * scales).astype(np.float32)
    bias_given = (of_bias, np.zeros(results, np.int64)) if per_channel else (float(of_bias[0]), 0)
    return one, model.constant(bias.astype(kind), *bias_given), target, scale, zero


def _channels(weights, axis, random):
    """Return the index of some channels of an axis."""
    return tuple(random.random(n) < 0.4 if at == axis else slice(None) for at, n in enumerate(weights.shape))


def activation(draw):
    return {"fused_activation_function": draw.choice(["NONE", "NONE", "RELU", "RELU6"])}


def window(draw, data, size, stride, dilation=(1, 1)):
    """Return the padding and the rows and columns of the result; None if there are none."""
    padding = draw.choice(["SAME", "SAME", "VALID"])
    reach = [(one - 1) * d + 1 for one, d in zip(size, dilation, strict=True)]
    found = []
    for axis in range(2):
        length = data.shape[1 + axis]
        count = -(-length // stride[axis]) if padding == "SAME" else -(-(length - reach[axis] + 1) // stride[axis])
        if count < 1:
            return None
        found.append(count)
    return padding, found


def sizes(draw, most=3):
    return draw.number(1, most), draw.number(1, most)


def convolution(draw, data=None, results=None, size=None, plain=False):
    data = data or draw.pick(image)
    if data is None:
        return None
    channels = data.shape[3]
    results = results or draw.number(1, 12)
    size = size or draw.choice([(1, 1), (1, 1), (3, 3), sizes(draw)])
    stride = (1, 1) if plain or draw.chance(0.7) else sizes(draw, 2)
    dilation = (2, 1) if not plain and size == (3, 3) and stride == (1, 1) and draw.chance(0.1) else (1, 1)
    found = window(draw, data, size, stride, dilation)
    if plain:
        found = "SAME", list(data.shape[1:3])
    groups = 1
    if not plain and channels % 2 == 0 and results % 2 == 0 and data.dtype == "float32" and draw.chance(0.1):
        groups = 2
    if found is None or prod(found[1]) * results * data.shape[0] > MOST:
        return None
    inner = channels // groups
    shape = (results, *size, inner)
    weights, bias, dtype, scale, zero = convolution_numbers(draw, data, results, prod(size) * inner, shape, 0)
    options = {"padding": found[0], "stride_h": stride[0], "stride_w": stride[1], **activation(draw)}
    options |= {"dilation_h_factor": dilation[0], "dilation_w_factor": dilation[1]}
    inputs = [data, weights] if bias is None else [data, weights, bias]
    return draw.add("CONV_2D", inputs, (data.shape[0], *found[1], results), dtype, scale, zero, **options)


def depthwise(draw, data=None, plain=False):
    data = data or draw.pick(image)
    if data is None:
        return None
    multiplier = 1 if plain else draw.choice([1, 1, 1, 2])
    size = draw.choice([(3, 3), (3, 3), sizes(draw)])
    stride = (1, 1) if plain or draw.chance(0.7) else (2, 2)
    found = ("SAME", list(data.shape[1:3])) if plain else window(draw, data, size, stride)
    results = data.shape[3] * multiplier
    if found is None or prod(found[1]) * results * data.shape[0] > MOST or results > 40:
        return None
    shape = (1, *size, results)
    weights, bias, dtype, scale, zero = convolution_numbers(draw, data, results, prod(size), shape, 3)
    options = {"padding": found[0], "stride_h": stride[0], "stride_w": stride[1], **activation(draw)}
    options |= {"depth_multiplier": multiplier, "dilation_h_factor": 1, "dilation_w_factor": 1}
    inputs = [data, weights] if bias is None else [data, weights, bias]
    return draw.add("DEPTHWISE_CONV_2D", inputs, (data.shape[0], *found[1], results), dtype, scale, zero, **options)


def dense(draw):
    data = draw.pick(lambda one: len(one.shape) >= 2)
    if data is None:
        return None
    keep = draw.chance(0.5)
    length = data.shape[-1] if keep else prod(data.shape[1:])
    if length > 700:
        return None
    rows = prod(data.shape) // length
    results = draw.number(1, 16)
    if rows * results > MOST:
        return None
    weights, bias, dtype, scale, zero = convolution_numbers(draw, data, results, length, (results, length), 0)
    inputs = [data, weights] if bias is None else [data, weights, bias]
    shape = (*data.shape[:-1], results) if keep else (rows, results)
    options = {**activation(draw), "keep_num_dims": keep}
    return draw.add("FULLY_CONNECTED", inputs, shape, dtype, scale, zero, **options)


def pool(draw):
    data = draw.pick(image)
    if data is None:
        return None
    size, stride = sizes(draw), draw.choice([(1, 1), (2, 2), (1, 2)])
    found = window(draw, data, size, stride)
    if found is None:
        return None
    options = {"padding": found[0], "stride_h": stride[0], "stride_w": stride[1], **activation(draw)}
    options |= {"filter_height": size[0], "filter_width": size[1]}
    kind = draw.choice(["AVERAGE_POOL_2D", "MAX_POOL_2D"])
    return draw.like(kind, [data], (data.shape[0], *found[1], data.shape[3]), **options)


def _range(one):
    return 1.0 if one.dtype == "float32" else one.scale * (RANGES[one.dtype][1] - RANGES[one.dtype][0])


def result_of(draw, dtype, reach):
    """Return the quantisation of a result whose real values reach over a range."""
    if dtype == "float32":
        return None, 0
    low, high = RANGES[dtype]
    reach = min(max(reach, 1e-6), 1e9)
    return float(np.float32(reach / (high - low) * 10 ** draw.random.uniform(-0.3, 0.3))), draw.zero(dtype)


def binary(draw):
    one = draw.pick()
    if one is None:
        return None
    kinds = ["ADD", "ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM"]
    kind = draw.choice(kinds)
    return pair(draw, kind, one)


def pair(draw, kind, one, other=None):
    """Append a function of two operands; the second one has the shape of the first or is broadcast."""
    if other is None:
        same = [two for two in draw.tensors if two.dtype == one.dtype and two.shape == one.shape]
        if draw.chance(0.65) and len(same) > 1:
            other = draw.choice(same if draw.chance(0.15) else [two for two in same if two is not one])
        else:
            shape = draw.choice([one.shape, one.shape[-1:], (1,) * len(one.shape), ()])
            if not shape and one.dtype == "int16":
                shape = (1,)
            other = constant(draw, one.dtype, shape)
    if kind in ("MAXIMUM", "MINIMUM"):
        if quantised(one) and (other.scale, other.zero) != (one.scale, one.zero):
            other = requantised(draw, other, one) if other.content is None else reconstant(draw, other, one)
        return draw.like(kind, _swapped(draw, one, other), one.shape)
    reach = _range(one) * _range(other) / 2 if kind == "MUL" else _range(one) + _range(other)
    options = activation(draw)
    inputs = _swapped(draw, one, other) if kind != "SUB" or other.shape == one.shape else [one, other]
    if kind in ("ADD", "SUB") and one.dtype == "int16":
        options["pot_scale_int16"] = False
    return draw.add(kind, inputs, one.shape, one.dtype, *result_of(draw, one.dtype, reach), **options)


def _swapped(draw, one, other):
    return [other, one] if draw.chance(0.25) else [one, other]


def constant(draw, dtype, shape):
    """Return a constant; one with a second user now and then."""
    known = [
        two
        for two in draw.model.graph.tensors
        if two.content is not None and two.dtype == dtype and two.shape == shape and two.name.startswith("k")
    ]
    if known and draw.chance(0.5):
        return draw.choice(known)
    name = f"k{len(draw.model.graph.tensors)}"
    if dtype == "float32":
        return draw.model.constant(draw.random.standard_normal(shape).astype(np.float32), name=name)
    low, high = RANGES[dtype]
    array = draw.random.integers(low, high + 1, shape).astype(dtype)
    if draw.chance(0.1):
        array = np.full(shape, draw.choice([low, high]), dtype)
    return draw.model.constant(array, *draw.quantisation(dtype), name=name)


def reconstant(draw, other, one):
    """Return a constant with the quantisation of another tensor."""
    return draw.model.constant(other.content, one.scale, one.zero, name=f"k{len(draw.model.graph.tensors)}")


def requantised(draw, other, one):
    """Return a tensor in the dtype and the quantisation of another one."""
    if other.dtype == one.dtype and (other.scale, other.zero) == (one.scale, one.zero):
        return other
    return draw.add("QUANTIZE", [other], other.shape, one.dtype, one.scale, one.zero)


CONVERSIONS = {"int8": ("int8", "uint8", "int16"), "uint8": ("int8", "uint8"), "int16": ("int16", "int8")}
"""The dtypes that LiteRT's QUANTIZE converts integers to."""


def requantise(draw):
    data = draw.pick(quantised)
    if data is None:
        return None
    target = draw.choice(CONVERSIONS[data.dtype]) if draw.mode == "mixed" else data.dtype
    if draw.chance(0.1) and target == data.dtype:
        return draw.add("QUANTIZE", [data], data.shape, target, data.scale, data.zero)
    low, high = RANGES[data.dtype]
    scale, zero = result_of(draw, target, data.scale * (high - low))
    return draw.add("QUANTIZE", [data], data.shape, target, scale, zero)


def concatenation(draw, given=None):
    first = draw.pick(lambda one: len(one.shape) >= 2)
    if first is None:
        return None
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
    if len(operands) < 2:
        return None
    axis = len(operands[0].shape) - 1 if given else axis
    first = operands[0]
    if quantised(first):
        operands = [requantised(draw, one, first) for one in operands]
    if draw.chance(0.1):
        operands.append(constant_like(draw, first))
    shape = list(first.shape)
    shape[axis] = sum(one.shape[axis] for one in operands)
    if prod(shape) > MOST:
        return None
    if draw.chance(0.3):
        draw.random.shuffle(operands)
    chosen = axis - len(shape) if draw.chance(0.3) else axis
    return draw.add("CONCATENATION", operands, shape, first.dtype, first.scale, first.zero, axis=chosen, **NONE)


def constant_like(draw, one):
    if one.dtype == "float32":
        return draw.model.constant(draw.random.standard_normal(one.shape).astype(np.float32))
    low, high = RANGES[one.dtype]
    array = draw.random.integers(low, high + 1, one.shape).astype(one.dtype)
    return draw.model.constant(array, one.scale, one.zero)


def padding(draw):
    data = draw.pick(lambda one: len(one.shape) in (2, 3, 4))
    if data is None:
        return None
    kind = draw.choice(["PAD", "PAD", "PADV2", "MIRROR_PAD"])
    most = [min(2, n - 1) if kind == "MIRROR_PAD" else 2 for n in data.shape]
    amounts = [(draw.number(0, m), draw.number(0, m)) if draw.chance(0.6) else (0, 0) for m in most]
    if image(data) and draw.chance(0.6):
        amounts[0] = amounts[3] = (0, 0)
    shape = [n + a + b for n, (a, b) in zip(data.shape, amounts, strict=True)]
    if prod(shape) > MOST:
        return None
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
    if data is None:
        return None
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
    if data is None:
        return None
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
    if data is None:
        return None
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
        return draw.like(kind, [data, draw.shape_constant(times)], shape) if prod(shape) <= MOST else None
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


def reduction(draw):
    data = draw.pick(lambda one: len(one.shape) >= 2)
    if data is None:
        return None
    kind = draw.choice(["MEAN", "MEAN", "REDUCE_MAX", "REDUCE_MIN"])
    rank = len(data.shape)
    axes = [1, 2] if rank == 4 and draw.chance(0.6) else sorted({draw.number(0, rank - 1) for _ in range(2)})
    keep = draw.chance(0.6)
    shape = [1 if at in axes else n for at, n in enumerate(data.shape) if keep or at not in axes]
    if not shape:
        return None
    inputs = [data, draw.shape_constant(axes)]
    if kind == "MEAN" and quantised(data) and draw.chance(0.6):
        scale, zero = result_of(draw, data.dtype, _range(data))
        return draw.add(kind, inputs, shape, data.dtype, scale, zero, keep_dims=keep)
    return draw.like(kind, inputs, shape, keep_dims=keep)


UNARY = ("RELU", "RELU6", "LEAKY_RELU", "LOGISTIC", "TANH", "HARD_SWISH", "ABS", "RELU_N1_TO_1")
_WITHOUT = {
    "int16": ("HARD_SWISH", "RELU_N1_TO_1"),
    "uint8": ("ABS",),
    "int8": (),
    "float32": (),
}


def unary(draw):
    data = draw.pick()
    if data is None:
        return None
    kind = draw.choice([one for one in UNARY if one not in _WITHOUT[data.dtype]])
    options = {"alpha": float(np.float32(draw.choice([0.1, 0.25, -0.5])))} if kind == "LEAKY_RELU" else {}
    if not quantised(data):
        return draw.add(kind, [data], data.shape, data.dtype, **options)
    fixed = {
        "LOGISTIC": {"int8": (1 / 256, -128), "uint8": (1 / 256, 0), "int16": (1 / 32768, 0)},
        "TANH": {"int8": (1 / 128, 0), "uint8": (1 / 128, 128), "int16": (1 / 32768, 0)},
    }
    if kind in fixed:
        if data.dtype == "int16" and data.scale > 4:
            return None
        return draw.add(kind, [data], data.shape, data.dtype, *fixed[kind][data.dtype], **options)
    if kind in ("RELU", "RELU6", "RELU_N1_TO_1") and draw.chance(0.5):
        return draw.like(kind, [data], data.shape, **options)
    scale, zero = result_of(draw, data.dtype, _range(data))
    return draw.add(kind, [data], data.shape, data.dtype, scale, zero, **options)


def softmax(draw):
    data = draw.pick(lambda one: 1 <= len(one.shape) <= 4 and (one.scale is None or one.scale < 2))
    if data is None:
        return None
    fixed = {"int8": (1 / 256, -128), "uint8": (1 / 256, 0), "int16": (1 / 32768, 0), "float32": (None, 0)}
    return draw.add("SOFTMAX", [data], data.shape, data.dtype, *fixed[data.dtype], beta=1.0)


def prelu(draw):
    data = draw.pick(lambda one: image(one) and one.dtype != "int16")
    if data is None:
        return None
    slope = constant(draw, data.dtype, (1, 1, data.shape[3]))
    return draw.add("PRELU", [data, slope], data.shape, data.dtype, *result_of(draw, data.dtype, _range(data)))


def resize(draw):
    data = draw.pick(lambda one: image(one) and prod(one.shape) * 4 <= MOST)
    if data is None:
        return None
    size = draw.number(1, 2 * data.shape[1]), draw.number(1, 2 * data.shape[2])
    kind = draw.choice(["RESIZE_NEAREST_NEIGHBOR", "RESIZE_BILINEAR"])
    form = draw.choice([(False, False), (True, False), (False, True)])
    options = {"align_corners": form[0], "half_pixel_centers": form[1]}
    return draw.like(kind, [data, draw.shape_constant(size)], (data.shape[0], *size, data.shape[3]), **options)


def depth_blocks(draw):
    data = draw.pick(lambda one: image(one) and one.dtype != "int16")
    if data is None:
        return None
    n, rows, columns, channels = data.shape
    if channels % 4 == 0 and draw.chance(0.5):
        return draw.like("DEPTH_TO_SPACE", [data], (n, rows * 2, columns * 2, channels // 4), block_size=2)
    if rows % 2 == 0 and columns % 2 == 0:
        return draw.like("SPACE_TO_DEPTH", [data], (n, rows // 2, columns // 2, channels * 4), block_size=2)
    return None


def gather(draw):
    data = draw.pick(lambda one: len(one.shape) >= 2)
    if data is None:
        return None
    axis = draw.number(0, len(data.shape) - 1)
    indices = draw.random.integers(0, data.shape[axis], draw.number(1, 4))
    shape = (*data.shape[:axis], len(indices), *data.shape[axis + 1 :])
    given = [data, draw.shape_constant(indices)]
    return draw.like("GATHER", given, shape, axis=axis, batch_dims=0) if prod(shape) <= MOST else None


def indexed(draw):
    """Append a GATHER with indices that are an input: 0 or 1."""
    data = draw.pick(lambda one: len(one.shape) >= 2 and max(one.shape) > 1)
    if data is None or sum(one.dtype == "int32" for one in draw.model.graph.inputs) > 1:
        return None
    axis = draw.choice([at for at, n in enumerate(data.shape) if n > 1])
    batches = draw.number(0, min(1, axis))
    count = draw.number(1, 4)
    places = (*data.shape[:batches], count)
    shape = (*data.shape[:axis], count, *data.shape[axis + 1 :])
    if prod(shape) > MOST:
        return None
    indices = draw.model.input("int32", places, name=f"in{len(draw.model.graph.inputs)}")
    return draw.like("GATHER", [data, indices], shape, axis=axis, batch_dims=batches)


def padded(draw):
    """Append a PAD before a layer with windows, as frameworks without SAME write it."""
    data = draw.pick(image)
    if data is None:
        return None
    edges = [(0, 0), (draw.number(0, 2), draw.number(0, 2)), (draw.number(0, 2), draw.number(0, 2)), (0, 0)]
    shape = [n + a + b for n, (a, b) in zip(data.shape, edges, strict=True)]
    if prod(shape) > MOST:
        return None
    inputs = [data, draw.shape_constant(edges)]
    if draw.chance(0.4):
        least = np.finfo(np.float32).min if data.dtype == "float32" else RANGES[data.dtype][0]
        fill = draw.model.constant(np.asarray([least]).astype(data.dtype), data.scale, data.zero)
        wide = draw.like("PADV2", [*inputs, fill], shape)
        size = (min(3, shape[1]), min(3, shape[2]))
        options = {"padding": "VALID", "stride_h": 1, "stride_w": draw.number(1, 2), **activation(draw)}
        options |= {"filter_height": size[0], "filter_width": size[1]}
        columns = -(-(shape[2] - size[1] + 1) // options["stride_w"])
        return draw.like("MAX_POOL_2D", [wide], (shape[0], shape[1] - size[0] + 1, columns, shape[3]), **options)
    wide = draw.like("PAD", inputs, shape)
    return depthwise(draw, wide) if draw.chance(0.4) else convolution(draw, wide)


def packing(draw):
    data = draw.pick(lambda one: 1 <= len(one.shape) <= 3)
    if data is not None and draw.chance(0.5):
        same = [one for one in draw.tensors if one.dtype == data.dtype and one.shape == data.shape]
        operands = [data, draw.choice(same)]
        operands = [requantised(draw, one, data) if quantised(data) else one for one in operands]
        axis = draw.number(0, len(data.shape))
        shape = (*data.shape[:axis], 2, *data.shape[axis:])
        return draw.like("PACK", operands, shape, values_count=2, axis=axis) if prod(shape) <= MOST else None
    data = draw.pick(lambda one: len(one.shape) >= 2 and min(one.shape) <= 4)
    if data is None:
        return None
    axis = draw.choice([at for at, n in enumerate(data.shape) if n <= 4])
    results = [(data.dtype, data.scale, data.zero)] * data.shape[axis]
    made = draw.model.operator("UNPACK", [data], *results, num=data.shape[axis], axis=axis)
    made = [made] if isinstance(made, Made) else made
    for one in made:
        draw.keep(one, [data], data.shape[:axis] + data.shape[axis + 1 :])
    return made[0]


def product(draw):
    one = draw.pick(lambda two: len(two.shape) in (2, 3) and two.dtype in ("int8", "int16", "float32"))
    if one is None or prod(one.shape) > 600:
        return None
    shape = (*one.shape[:-2], one.shape[-1], draw.number(1, 8))
    fits = [
        two for two in draw.tensors if two.dtype == one.dtype and two.shape == (*one.shape[:-2], *one.shape[:-3:-1])
    ]
    swap = bool(fits) and draw.chance(0.6)
    other = one if swap else constant(draw, one.dtype, shape)
    columns = one.shape[-2] if swap else shape[-1]
    reach = _range(one) * _range(other) * np.sqrt(one.shape[-1]) / 6
    found = (*one.shape[:-1], columns)
    options = {"adj_x": False, "adj_y": swap}
    return draw.add("BATCH_MATMUL", [one, other], found, one.dtype, *result_of(draw, one.dtype, reach), **options)


def transposed(draw):
    data = draw.pick(image)
    if data is None or data.dtype == "uint8":
        return None
    stride, results = draw.choice([1, 2]), draw.number(1, 6)
    shape = (data.shape[0], data.shape[1] * stride, data.shape[2] * stride, results)
    if prod(shape) > MOST:
        return None
    size = draw.choice([(2, 2), (3, 3)])
    fan = prod(size) * data.shape[3]
    layout = (results, *size, data.shape[3])
    weights, bias, dtype, scale, zero = convolution_numbers(draw, data, results, fan, layout, 0)
    inputs = [draw.shape_constant(shape), weights, data] + ([] if bias is None else [bias])
    options = {"padding": "SAME", "stride_h": stride, "stride_w": stride, **NONE}
    return draw.add("TRANSPOSE_CONV", inputs, shape, dtype, scale, zero, **options)


def shared_activation(draw):
    """Append a conversion of a tensor to float32, operators there, and the conversion back."""
    data = draw.pick(quantised)
    if data is None or draw.mode != "mixed":
        return None
    real = draw.add("DEQUANTIZE", [data], data.shape, "float32")
    real = draw.add("RELU", [real], real.shape, "float32") if draw.chance(0.5) else real
    target = draw.choice(["int8", "uint8", "int16"])
    return draw.add("QUANTIZE", [real], real.shape, target, *result_of(draw, target, _range(data)))


def ghost(draw):
    data = draw.pick(image)
    one = data and convolution(draw, data, draw.number(2, 8), (1, 1), plain=True)
    two = one and depthwise(draw, one, plain=True)
    return two and concatenation(draw, [one, two])


def inverted(draw):
    data = draw.pick(image)
    wide = data and convolution(draw, data, draw.number(4, 16), (1, 1), plain=True)
    wide = wide and depthwise(draw, wide, plain=True)
    narrow = wide and convolution(draw, wide, data.shape[3], (1, 1), plain=True)
    return narrow and pair(draw, "ADD", data, narrow)


def excitation(draw):
    data = draw.pick(lambda one: image(one) and one.dtype != "float32")
    if data is None:
        return None
    mean = draw.like("MEAN", [data, draw.shape_constant([1, 2])], (data.shape[0], 1, 1, data.shape[3]), keep_dims=True)
    inner = convolution(draw, mean, draw.number(1, 4), (1, 1), plain=True)
    gate = inner and convolution(draw, inner, data.shape[3], (1, 1), plain=True)
    return gate and pair(draw, "MUL", data, gate)


def cell(draw):
    data = draw.pick(image)
    if data is None:
        return None
    parts = [
        convolution(draw, data, draw.number(1, 6), (1, 1), plain=True),
        convolution(draw, data, draw.number(1, 6), (3, 3), plain=True),
        depthwise(draw, data, plain=True),
    ]
    parts = [one for one in parts if one is not None]
    return concatenation(draw, parts) if len(parts) > 1 else None


OPERATORS = {
    convolution: 16,
    depthwise: 10,
    dense: 5,
    pool: 6,
    binary: 14,
    requantise: 4,
    concatenation: 9,
    padding: 5,
    cut: 5,
    split: 4,
    rearranged: 7,
    reduction: 5,
    unary: 7,
    softmax: 1,
    prelu: 1,
    resize: 3,
    depth_blocks: 2,
    gather: 2,
    indexed: 2,
    padded: 5,
    packing: 3,
    product: 2,
    transposed: 1,
    shared_activation: 2,
    ghost: 3,
    inverted: 3,
    excitation: 2,
    cell: 2,
}
"""The functions that append operators, and how often."""
_FUNCTIONS = list(OPERATORS)
_SHARES = np.asarray(list(OPERATORS.values()), float) / sum(OPERATORS.values())


def drawn(seed):
    """Return the graph of a seed, and its mode."""
    random = np.random.default_rng([seed, 1])
    draw = Drawing(random, MODES[int(random.choice(len(MODES), p=[0.3, 0.15, 0.13, 0.12, 0.12, 0.18]))])
    batch = draw.choice([1, 1, 1, 1, 2, 3])
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        if draw.chance(0.85):
            shape = (batch, draw.number(1, 12), draw.number(1, 12), draw.number(1, 8))
        else:
            shape = (batch, draw.number(1, 40))
        draw.input(shape)
    wanted = draw.number(5, 12) if draw.chance(0.7) else draw.number(12, 40)
    tries = 0
    while len(draw.model.graph.operators) < wanted and tries < 10 * wanted:
        tries += 1
        draw.random.choice(_FUNCTIONS, p=_SHARES)(draw)
    _outputs(draw)
    return draw.model, draw.mode


def _outputs(draw):
    """Choose outputs: results that nothing reads, most of them, and some intermediate ones."""
    results = [one for one in draw.tensors if one not in draw.model.graph.inputs]
    ends = [one for one in results if id(one) not in draw.used]
    kept = [one for one in ends if draw.chance(0.85)] or ends[-1:] or results[-1:]
    kept += [one for one in results if id(one) in draw.used and draw.chance(0.06)]
    if not kept:
        kept = [draw.model.graph.inputs[0]]
    draw.model.output(*{id(one): one for one in kept[-6:]}.values())
