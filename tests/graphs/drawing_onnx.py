# SPDX-License-Identifier: Apache-2.0
"""Random ONNX graphs: float32, and int8 by pairs of QuantizeLinear and DequantizeLinear (QDQ)."""

from dataclasses import dataclass, field
from math import prod

import numpy as np
from graphs.drawing import MOST, Draws, attempt, image, require
from models.onnx_support import Made

MODES = ("float32", "QDQ", "QDQ per channel")


@dataclass(eq=False)
class Result:
    """A tensor: NCHW for 4 dimensions. `reach`: about the greatest magnitude."""

    name: str
    shape: tuple
    reach: float
    scale: float = 0.0
    zero: int = 0


@dataclass
class Drawing(Draws):
    """An ONNX graph in the making."""

    made: Made = field(default_factory=lambda: Made(opset=14))

    @property
    def is_quantised(self):
        return self.mode != "float32"

    def pair(self, name, scale, zero):
        """Append QuantizeLinear and DequantizeLinear."""
        given = np.float32(scale), np.int8(zero)
        return self.made.add("DequantizeLinear", self.made.add("QuantizeLinear", name, *given), *given)

    def keep(self, name, inputs, shape, reach, like=None):
        """Keep a result; a quantised graph quantises it."""
        scale, zero = 0.0, 0
        if self.is_quantised:
            scale, zero = (like.scale, like.zero) if like is not None else self.quantisation(reach)
            name = self.pair(name, scale, zero)
        found = Result(name, tuple(int(n) for n in shape), max(reach, 1e-3), scale, zero)
        self.used.update((id(one), one) for one in inputs)
        self.tensors.append(found)
        return found

    def quantisation(self, reach):
        scale = float(np.float32(reach / 127 * 10 ** self.random.uniform(-0.3, 0.3)))
        return scale, self.choice([-128, 127, 0, self.number(-128, 127)])

    def input(self, shape):
        name = self.made.input(*shape)
        return self.keep(name, [], shape, 3.0)

    def weights(self, shape, fan, axis=0):
        """Return the name of float weights, or of dequantised ones; some channels are dead."""
        random = self.random
        array = random.standard_normal(shape).astype(np.float32) / np.sqrt(fan)
        if self.chance(0.3):
            place = tuple(random.random(n) < 0.4 if at == axis else slice(None) for at, n in enumerate(shape))
            array[place] = 0
        if not self.is_quantised:
            return self.made.constant(array.astype(np.float32))
        integers = np.clip(np.rint(array * np.sqrt(fan) * 50), -127, 127).astype(np.int8)
        if self.mode == "QDQ per channel" and self.chance(0.8):
            scales = (10 ** random.uniform(-0.5, 0.5, shape[axis]) / 50 / np.sqrt(fan)).astype(np.float32)
            zeros = np.zeros(shape[axis], np.int8)
            return self.made.add("DequantizeLinear", integers, scales, zeros, axis=axis), scales
        scale = np.float32(1 / 50 / np.sqrt(fan))
        return self.made.add("DequantizeLinear", integers, scale, np.int8(0)), scale

    def bias(self, data, scales, count):
        """Return the name of a bias; quantised ones have the product of the scales."""
        if not self.is_quantised:
            return self.made.constant(self.random.standard_normal(count).astype(np.float32))
        of = (np.float32(data.scale) * np.broadcast_to(scales, count)).astype(np.float32)
        limit = max(2, int(data.reach / max(float(of.max()), 1e-9)))
        integers = self.random.integers(-limit, limit + 1, count).astype(np.int32)
        if self.chance(0.2):
            integers[self.random.random(count) < 0.3] *= 30
        if np.ndim(scales):
            return self.made.add("DequantizeLinear", integers, of, np.zeros(count, np.int32), axis=0)
        return self.made.add("DequantizeLinear", integers, np.float32(of[0]), np.int32(0))


def convolution(draw, data=None, results=None, size=None, plain=False, depthwise=False):
    data = data or draw.pick(image)
    n, channels, height, width = data.shape
    results = channels if depthwise else results or draw.number(1, 10)
    size = size or draw.choice([(1, 1), (3, 3), (3, 3), (draw.number(1, 3), draw.number(1, 3))])
    stride = (1, 1) if plain or draw.chance(0.7) else (2, 2)
    pads = [(one - 1) // 2 for one in size] + [one // 2 for one in size] if plain or draw.chance(0.6) else [0] * 4
    rows = (height + pads[0] + pads[2] - size[0]) // stride[0] + 1
    columns = (width + pads[1] + pads[3] - size[1]) // stride[1] + 1
    require(min(rows, columns) >= 1)
    require(height + pads[0] + pads[2] >= size[0] and width + pads[1] + pads[3] >= size[1])
    require(n * rows * columns * results <= MOST)
    groups = channels if depthwise else 1
    inner = channels // groups
    found = draw.weights((results, inner, *size), prod(size) * inner)
    weights, scales = found if draw.is_quantised else (found, None)
    bias = draw.bias(data, scales, results)
    options = {"kernel_shape": size, "strides": stride, "pads": pads, "group": groups}
    name = draw.made.add("Conv", data.name, weights, bias, **options)
    name = draw.made.add("Relu", name) if draw.chance(0.4) else name
    return draw.keep(name, [data], (n, results, rows, columns), data.reach * 2)


def depthwise(draw):
    return convolution(draw, depthwise=True)


def dense(draw):
    data = draw.pick(lambda one: len(one.shape) == 2)
    require(data.shape[1] <= 600)
    results = draw.number(1, 12)
    found = draw.weights((results, data.shape[1]), data.shape[1])
    weights, scales = found if draw.is_quantised else (found, None)
    name = draw.made.add("Gemm", data.name, weights, draw.bias(data, scales, results), transB=1)
    return draw.keep(name, [data], (data.shape[0], results), data.reach * 2)


def pool(draw):
    data = draw.pick(image)
    n, channels, height, width = data.shape
    if draw.chance(0.25):
        name = draw.made.add("GlobalAveragePool", data.name)
        return draw.keep(name, [data], (n, channels, 1, 1), data.reach)
    kind = draw.choice(["MaxPool", "AveragePool"])
    require(min(height, width) >= 2)
    name = draw.made.add(kind, data.name, kernel_shape=(2, 2), strides=(1, 1) if draw.chance(0.4) else (2, 2))
    stride = draw.made.nodes[-1].attribute[-1].ints[0]
    shape = (n, channels, (height - 2) // stride + 1, (width - 2) // stride + 1)
    return draw.keep(name, [data], shape, data.reach, data if kind == "MaxPool" else None)


def binary(draw):
    one = draw.pick()
    kind = draw.choice(["Add", "Add", "Sub", "Mul"])
    same = [two for two in draw.tensors if two.shape == one.shape]
    if draw.chance(0.65) and len(same) > 1:
        return _sum(draw, kind, one, draw.choice(same))
    shape = draw.choice([one.shape, (one.shape[1], *(1,) * (len(one.shape) - 2)) if len(one.shape) > 1 else (1,)])
    array = draw.random.standard_normal(shape).astype(np.float32)
    if not draw.is_quantised:
        return _sum(draw, kind, one, Result(draw.made.constant(array), shape, 3.0))
    integers = np.clip(np.rint(array * 40), -128, 127).astype(np.int8)
    name = draw.made.add("DequantizeLinear", integers, np.float32(1 / 40), np.int8(0))
    return _sum(draw, kind, one, Result(name, shape, 3.0))


def _sum(draw, kind, one, other):
    name = draw.made.add(
        kind, *([one.name, other.name] if draw.chance(0.8) or kind == "Sub" else [other.name, one.name])
    )
    reach = one.reach * other.reach if kind == "Mul" else one.reach + other.reach
    return draw.keep(name, [one, other], one.shape, reach)


def concatenation(draw, given=None):
    first = draw.pick(lambda one: len(one.shape) >= 2)
    axis = 1 if draw.chance(0.6) or given else draw.number(0, len(first.shape) - 1)
    fits = [
        one
        for one in draw.tensors
        if len(one.shape) == len(first.shape)
        and all(n == m for at, (n, m) in enumerate(zip(one.shape, first.shape, strict=True)) if at != axis)
    ]
    operands = given or list(dict.fromkeys([first, *(draw.choice(fits) for _ in range(draw.number(1, 3)))]))
    shape = list(operands[0].shape)
    shape[axis] = sum(one.shape[axis] for one in operands)
    require(len(operands) >= 2 and prod(shape) <= MOST)
    name = draw.made.add("Concat", *(one.name for one in operands), axis=axis)
    return draw.keep(name, operands, shape, max(one.reach for one in operands))


def movement(draw):
    data = draw.pick()
    kind = draw.choice(["Transpose", "Reshape", "Flatten", "Slice", "Pad", "Split", "Unsqueeze", "Gather", "Resize"])
    rank, shape, add = len(data.shape), list(data.shape), draw.made.add
    if kind == "Transpose":
        order = [int(n) for n in draw.random.permutation(rank)]
        return draw.keep(add(kind, data.name, perm=order), [data], [shape[n] for n in order], data.reach, data)
    if kind == "Reshape":
        found = draw.choice([(1, prod(shape)), (prod(shape), 1), (1, shape[0], prod(shape[1:]))])
        return draw.keep(add(kind, data.name, np.asarray(found)), [data], found, data.reach, data)
    if kind == "Flatten" and rank > 1:
        return draw.keep(add(kind, data.name), [data], (shape[0], prod(shape[1:])), data.reach, data)
    if kind == "Slice":
        axis = draw.number(0, rank - 1)
        start = draw.number(0, shape[axis] - 1)
        end = draw.number(start + 1, shape[axis])
        given = [np.asarray([one]) for one in (start, end, axis)]
        shape[axis] = end - start
        return draw.keep(add(kind, data.name, *given), [data], shape, data.reach, data)
    if kind == "Pad":
        amounts = [draw.number(0, 1) if draw.chance(0.5) else 0 for _ in range(2 * rank)]
        shape = [n + amounts[at] + amounts[at + rank] for at, n in enumerate(shape)]
        require(prod(shape) <= MOST)
        return draw.keep(add(kind, data.name, np.asarray(amounts)), [data], shape, data.reach, data)
    if kind == "Split":
        axes = [at for at, n in enumerate(shape) if n > 1]
        require(axes)
        axis = draw.choice(axes)
        first = draw.number(1, shape[axis] - 1)
        lengths = [first, shape[axis] - first]
        names = add(kind, data.name, np.asarray(lengths), results=2, axis=axis)
        found = None
        for name, length in zip(names, lengths, strict=True):
            part = [length if at == axis else n for at, n in enumerate(shape)]
            found = draw.keep(name, [data], part, data.reach, data)
        return found
    if kind == "Unsqueeze" and rank < 4:
        axis = draw.number(0, rank)
        name = add(kind, data.name, np.asarray([axis]))
        return draw.keep(name, [data], (*shape[:axis], 1, *shape[axis:]), data.reach, data)
    if kind == "Gather":
        axis = draw.number(0, rank - 1)
        indices = draw.random.integers(0, shape[axis], 2)
        shape[axis] = 2
        return draw.keep(add(kind, data.name, indices, axis=axis), [data], shape, data.reach, data)
    if kind == "Resize" and rank == 4 and 4 * prod(shape) <= MOST:
        factors = np.asarray([1, 1, 2, 2], np.float32)
        options = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        name = add(kind, data.name, "", factors, **options)
        return draw.keep(name, [data], (*shape[:2], shape[2] * 2, shape[3] * 2), data.reach, data)
    return None


def unary(draw):
    data = draw.pick()
    kind = draw.choice(["Relu", "LeakyRelu", "Sigmoid", "Tanh", "HardSwish", "Clip"])
    if kind == "Clip":
        name = draw.made.add(kind, data.name, np.float32(-0.5), np.float32(2.0))
    else:
        name = draw.made.add(kind, data.name, **({"alpha": 0.25} if kind == "LeakyRelu" else {}))
    return draw.keep(name, [data], data.shape, 1.0 if kind in ("Sigmoid", "Tanh") else data.reach)


def softmax(draw):
    data = draw.pick(lambda one: len(one.shape) == 2)
    return draw.keep(draw.made.add("Softmax", data.name, axis=-1), [data], data.shape, 1.0)


def reduction(draw):
    data = draw.pick(lambda one: len(one.shape) >= 2)
    axes = sorted({draw.number(0, len(data.shape) - 1) for _ in range(2)})
    keep = draw.number(0, 1)
    shape = [1 if at in axes else n for at, n in enumerate(data.shape) if keep or at not in axes]
    require(shape)
    kind = draw.choice(["ReduceMean", "ReduceMax", "ReduceMin"])
    name = draw.made.add(kind, data.name, axes=axes, keepdims=keep)
    return draw.keep(name, [data], shape, data.reach, None if kind == "ReduceMean" else data)


def ghost(draw):
    data = draw.pick(image)
    one = convolution(draw, data, draw.number(2, 8), (1, 1), plain=True)
    two = convolution(draw, one, size=(3, 3), plain=True, depthwise=True)
    return concatenation(draw, [one, two])


def inverted(draw):
    data = draw.pick(image)
    wide = convolution(draw, data, draw.number(4, 12), (1, 1), plain=True)
    wide = convolution(draw, wide, size=(3, 3), plain=True, depthwise=True)
    narrow = convolution(draw, wide, data.shape[1], (1, 1), plain=True)
    return _sum(draw, "Add", data, narrow)


OPERATORS = {
    convolution: 14, depthwise: 7, dense: 4, pool: 6, binary: 10, concatenation: 7, movement: 18, unary: 6, softmax: 1,
    reduction: 4, ghost: 3, inverted: 3,
}  # fmt: skip
_FUNCTIONS = list(OPERATORS)
_SHARES = np.asarray(list(OPERATORS.values()), float) / sum(OPERATORS.values())


def drawn(seed):
    """Return the graph of a seed, and its mode."""
    random = np.random.default_rng([seed, 5])
    draw = Drawing(random, MODES[int(random.choice(3, p=[0.35, 0.35, 0.3]))])
    batch = draw.choice([1, 1, 1, 2])
    for _ in range(draw.choice([1, 1, 2])):
        image_shape = (batch, draw.number(1, 6), draw.number(2, 10), draw.number(2, 10))
        draw.input(image_shape if draw.chance(0.85) else (batch, draw.number(1, 30)))
    wanted, tries, done = draw.number(5, 20), 0, 0
    while done < wanted and tries < 10 * wanted:
        tries += 1
        done += attempt(draw.random.choice(_FUNCTIONS, p=_SHARES), draw) is not None
    results = draw.tensors[len(draw.made.inputs) :]
    ends = [one for one in results if id(one) not in draw.used]
    kept = [one for one in ends if draw.chance(0.85)] or ends[-1:] or results[-1:] or draw.tensors[-1:]
    kept += [one for one in results if id(one) in draw.used and draw.chance(0.06)]
    draw.made.output(*dict.fromkeys(one.name for one in kept[-6:]))
    return draw.made, draw.mode
