# SPDX-License-Identifier: Apache-2.0
"""Random inputs and shapes of configurations, and the table of operators. Runs in the environment of PyTorch."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

SCALES = (0.5, 1.0, 2.0)


@dataclass(frozen=True)
class Operator:
    """An operator of ATen with random configurations."""

    name: str
    """That of its target, without the overload."""
    bound: str
    """The operator of ONNX in models/bounds.py that has the bound of its results."""
    make: Callable
    """From a random generator to a function or module, and the draws of its inputs."""
    quantised: bool
    """Whether quantisers of PT2E annotate it."""
    overload: str
    """The target in an export without decompositions, where it is another one."""


OPERATORS: dict[str, Operator] = {}


def operator(name, bound, quantised=False, overload=""):
    """Register a function from a random generator to a function of tensors and the draws of its inputs."""

    def register(make):
        assert name not in OPERATORS, name
        OPERATORS[name] = Operator(name, bound, make, quantised, overload or name)
        return make

    return register


def normal(*shape, scale=None):
    shape = [int(n) for n in shape]

    def draw(random):
        factor = scale or float(random.choice(SCALES))
        return torch.from_numpy(random.standard_normal(shape) * factor).to(torch.float32)

    return draw


def positive(*shape, least=0.1, greatest=4.0):
    shape = [int(n) for n in shape]
    return lambda random: torch.from_numpy(random.uniform(least, greatest, shape)).to(torch.float32)


def integers(low, high, *shape, dtype=torch.int64):
    shape = [int(n) for n in shape]
    return lambda random: torch.from_numpy(random.integers(low, high, shape)).to(dtype)


def shape_of(random, least=1, most=4, size=5):
    return [int(n) for n in random.integers(1, size + 1, int(random.integers(least, most + 1)))]


def pair_of(random, most=4):
    """Return two shapes that are equal, or broadcast."""
    whole = shape_of(random, 1, most)
    other = [1 if random.random() < 0.3 else n for n in whole][int(random.integers(0, len(whole))) :]
    return (whole, other) if random.random() < 0.5 else (other, whole)


def dimension(random, shape):
    """Return a dimension, from the front or from the end."""
    return int(random.integers(-len(shape), len(shape)))


def dimensions(random, shape):
    count = int(random.integers(1, len(shape) + 1))
    chosen = random.permutation(len(shape))[:count].tolist()
    return [n - len(shape) if random.random() < 0.3 else n for n in chosen]


def coin(random, chance=0.5):
    return bool(random.random() < chance)


def pick(random, *values):
    return values[int(random.integers(0, len(values)))]


def weights(random, *shape, scale=1.0):
    """Return a constant of normal numbers."""
    values = random.standard_normal([int(n) for n in shape]) * scale
    return torch.from_numpy(values).to(torch.float32)


def fill(random, module):
    """Give the parameters and statistics of a module random values that `random` chooses."""
    with torch.no_grad():
        for parameter in module.parameters():
            scale = 1.0 if parameter.dim() < 2 else parameter[0].numel() ** -0.5
            parameter.copy_(weights(random, *parameter.shape, scale=scale))
        for one in module.modules():
            if getattr(one, "running_var", None) is not None:
                one.running_mean.copy_(weights(random, *one.running_mean.shape, scale=0.3))
                one.running_var.copy_(positive(*one.running_var.shape, least=0.5, greatest=1.5)(random))
    return module.eval()


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


class Many(nn.Module):
    """Several functions, each of inputs of its own: one program for many configurations."""

    def __init__(self, parts):
        """Parameter `parts`: functions or modules, each with the number of its inputs."""
        super().__init__()
        self.parts = nn.ModuleList(one if isinstance(one, nn.Module) else Function(one) for one, _ in parts)
        self.counts = [count for _, count in parts]

    def forward(self, *inputs):
        results, first = [], 0
        for part, count in zip(self.parts, self.counts, strict=True):
            found = part(*inputs[first : first + count])
            results += found if isinstance(found, (tuple, list)) else [found]
            first += count
        return tuple(results)
