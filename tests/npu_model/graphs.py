# SPDX-License-Identifier: Apache-2.0
"""Random graphs of layers that Vela schedules in stripes, with rolling buffers and shared memory."""

from typing import Any

import numpy as np
from models.made import Made, Model

from npu_model.configurations import with_shapes

_SAME = {"filter_height": 2, "filter_width": 3, "stride_h": 1, "stride_w": 1, "padding": "SAME"}


class Drawn:
    """A graph in the making. Each tensor has a height, a width and a depth; the scale of all is that of int8 data."""

    def __init__(self, random: Any) -> None:
        self.random, self.model = random, Model()
        shape = tuple(int(n) for n in random.integers([8, 8, 1], [41, 41, 9]))
        self.tensors: list[tuple[Made, tuple[int, int, int]]] = []
        self.add(self.model.input("int8", (1, *shape), 0.05, int(random.integers(-20, 20))), shape)

    def add(self, tensor: Made, shape: tuple[int, int, int]) -> None:
        self.tensors.append((tensor, shape))

    def scale(self) -> tuple[str, float, int]:
        return "int8", float(self.random.uniform(0.03, 0.08)), int(self.random.integers(-30, 30))

    def step(self) -> None:
        """Add one operator after the last one, sums also of an earlier tensor of its shape."""
        tensor, shape = self.tensors[-1]
        kinds = [self.convolution, self.convolution, self.depthwise, self.pool, self.table, self.joined]
        equal = [one for one, other in self.tensors[:-1] if other == shape]
        if equal:
            kinds += [self.sum_, self.sum_, self.sum_]
        self.random.choice(np.asarray(kinds, object))(tensor, shape, *equal[-1:])

    def convolution(self, tensor: Made, shape: tuple[int, int, int], *_: Made) -> None:
        size, depth = int(self.random.choice([1, 3, 5])), int(self.random.choice([4, 8, 16, 24, 40]))
        weights = self.random.integers(-127, 128, (depth, size, size, shape[2])).astype(np.int8)
        self._layer("CONV_2D", tensor, shape, weights, size, depth)

    def depthwise(self, tensor: Made, shape: tuple[int, int, int], *_: Made) -> None:
        size = int(self.random.choice([3, 5]))
        weights = self.random.integers(-127, 128, (1, size, size, shape[2])).astype(np.int8)
        self._layer("DEPTHWISE_CONV_2D", tensor, shape, weights, size, shape[2], depth_multiplier=1)

    def _layer(self, kind: str, tensor: Made, shape: Any, weights: Any, size: int, depth: int, **options: Any) -> None:
        step = 2 if min(shape[:2]) > 12 and self.random.random() < 0.4 else 1
        dtype, scale, zero = self.scale()
        fan = size * size * (weights.shape[3] if kind == "CONV_2D" else 1)
        factors = self.random.uniform(0.5, 1, depth) * scale / (tensor.scale * 70 * np.sqrt(fan))
        constant = self.model.constant(weights, factors, 0, 0 if kind == "CONV_2D" else 3)
        bias = self.random.integers(-500, 500, depth).astype(np.int32)
        inputs = [tensor, constant, self.model.constant(bias, tensor.scale * factors, 0)]
        relu = str(self.random.choice(["NONE", "RELU", "RELU6"]))
        options = {"padding": "SAME", "fused_activation_function": relu, **options, "stride_h": step, "stride_w": step}
        result = self.model.operator(kind, inputs, (dtype, scale, zero), **options)
        self.add(result, (-(-shape[0] // step), -(-shape[1] // step), depth))

    def pool(self, tensor: Made, shape: tuple[int, int, int], *_: Made) -> None:
        kind = str(self.random.choice(["MAX_POOL_2D", "AVERAGE_POOL_2D"]))
        step = 2 if min(shape[:2]) > 12 else 1
        options = {"filter_height": 3, "filter_width": 2, "stride_h": step, "stride_w": step, "padding": "SAME"}
        result = self.model.operator(kind, [tensor], ("int8", tensor.scale, tensor.zero), **options)
        self.add(result, (-(-shape[0] // step), -(-shape[1] // step), shape[2]))

    def table(self, tensor: Made, shape: tuple[int, int, int], *_: Made) -> None:
        kind = str(self.random.choice(["HARD_SWISH", "TANH", "LEAKY_RELU"]))
        result = ("int8", 1 / 128, 0) if kind == "TANH" else self.scale()
        options = {"alpha": 0.2} if kind == "LEAKY_RELU" else {}
        self.add(self.model.operator(kind, [tensor], result, **options), shape)

    def sum_(self, tensor: Made, shape: tuple[int, int, int], other: Made) -> None:
        kind = str(self.random.choice(["ADD", "SUB"]))
        self.add(self.model.operator(kind, [tensor, other], self.scale()), shape)

    def joined(self, tensor: Made, shape: tuple[int, int, int], *_: Made) -> None:
        result = ("int8", tensor.scale, tensor.zero)
        other = self.model.operator("MAX_POOL_2D", [tensor], result, **_SAME)
        self.add(self.model.operator("CONCATENATION", [tensor, other], result, axis=3), (*shape[:2], 2 * shape[2]))


def graph(random: Any) -> bytes:
    """Return the file of a graph of three to nine operators."""
    drawn = Drawn(random)
    for _ in range(int(random.integers(3, 10))):
        drawn.step()
    drawn.model.output(drawn.tensors[-1][0])
    return with_shapes(drawn.model)
