# SPDX-License-Identifier: Apache-2.0
"""A random TFLite graph in the making: its tensors, and what operators of all kinds need."""

from dataclasses import dataclass, field
from math import prod

import numpy as np
from models.made import Model

MODES = ("int8", "int8 per tensor", "uint8", "int16", "float32", "mixed")
"""The dtypes of a graph; mixed: tensors of several dtypes, converted by QUANTIZE."""

MOST = 1600
"""The most elements of a tensor."""

RANGES = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767)}

NONE = {"fused_activation_function": "NONE"}


class NothingError(Exception):
    """No tensor is accepted, or the result would be too large: the function appends nothing more."""


def require(condition):
    """Give up a function whose result is not possible."""
    if not condition:
        raise NothingError


def attempt(function, *arguments, **options):
    """Return the result of a function, None if it gave up."""
    try:
        return function(*arguments, **options)
    except NothingError:
        return None


@dataclass
class Draws:
    """Random choices, among others of tensors."""

    random: np.random.Generator
    mode: str
    tensors: list = field(default_factory=list)
    """The results and the inputs that further operators can read."""
    used: dict = field(default_factory=dict)
    """The tensors that an operator reads, by id()."""

    def chance(self, share):
        return self.random.random() < share

    def number(self, low, high):
        """Return an integer from low to high."""
        return int(self.random.integers(low, high + 1))

    def choice(self, items):
        return items[int(self.random.integers(0, len(items)))]

    def pick(self, accepts=lambda one: True):
        """Return a tensor, the latest ones more often."""
        some = [one for one in self.tensors if accepts(one)]
        require(some)
        if self.chance(0.6):
            return some[-1]
        unread = [one for one in some if id(one) not in self.used]
        return self.choice(unread if unread and self.chance(0.5) else some)


@dataclass
class Drawing(Draws):
    """A graph in the making. `Made.shape` of each result is set."""

    model: Model = field(default_factory=Model)

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

    def add(self, kind, inputs, shape, dtype, scale=None, zero=0, **options):
        """Append an operator with one result of a shape."""
        made = self.model.operator(kind, inputs, (dtype, scale, zero), **options)
        return self.keep(made, inputs, shape)

    def keep(self, made, inputs, shape):
        assert prod(shape) > 0, shape
        made.shape = tuple(int(n) for n in shape)
        made.name = f"t{len(self.model.graph.tensors)}"
        self.used.update((id(one), one) for one in inputs)
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


def activation(draw):
    return {"fused_activation_function": draw.choice(["NONE", "NONE", "RELU", "RELU6"])}


PADDINGS = ("SAME", "SAME", "VALID")


def window(padding, data, size, stride, dilation=(1, 1)):
    """Return the rows and columns of the result."""
    reach = [(one - 1) * d + 1 for one, d in zip(size, dilation, strict=True)]
    found = []
    for axis in range(2):
        length = data.shape[1 + axis]
        count = -(-length // stride[axis]) if padding == "SAME" else -(-(length - reach[axis] + 1) // stride[axis])
        require(count >= 1)
        found.append(count)
    return found


def sizes(draw, most=3):
    return draw.number(1, most), draw.number(1, most)


def reach_of(one):
    return 1.0 if one.dtype == "float32" else one.scale * (RANGES[one.dtype][1] - RANGES[one.dtype][0])


def result_of(draw, dtype, reach):
    """Return the quantisation of a result whose real values reach over a range."""
    if dtype == "float32":
        return None, 0
    low, high = RANGES[dtype]
    reach = min(max(reach, 1e-6), 1e9)
    return float(np.float32(reach / (high - low) * 10 ** draw.random.uniform(-0.3, 0.3))), draw.zero(dtype)


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


def constant_like(draw, one):
    if one.dtype == "float32":
        return draw.model.constant(draw.random.standard_normal(one.shape).astype(np.float32))
    low, high = RANGES[one.dtype]
    array = draw.random.integers(low, high + 1, one.shape).astype(one.dtype)
    return draw.model.constant(array, one.scale, one.zero)
