# SPDX-License-Identifier: Apache-2.0
"""Small quantised models whose layers opwest's table of measurements does not contain: random weights, other sizes.

Each is of a kind that tflite-micro runs with functions of CMSIS-NN.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

Quantised = tuple[Any, float, int]
"""A tensor with its scale and zero point."""


class Layers:
    """A model in the making: each layer has the result of the one before it as data."""

    def __init__(self, seed: int, shape: tuple[int, ...], dtype: str = "int8") -> None:
        from models.made import Model

        self.random = np.random.default_rng(seed)
        self.model: Any = Model()
        self.dtype, self.bias = dtype, np.int64 if dtype == "int16" else np.int32
        self.scale, self.zero = (0.05, -3) if dtype == "int8" else (0.05 / 256, 0)
        self.data: Any = self.input(shape, "data")

    def input(self, shape: tuple[int, ...], name: str) -> Any:
        """Add an input of the model with the scale of its data."""
        return self.model.input(self.dtype, shape, self.scale, self.zero, name=name)

    @property
    def last(self) -> Quantised:
        """The result of the last layer."""
        return self.data, self.scale, self.zero

    @last.setter
    def last(self, chosen: Quantised) -> None:
        self.data, self.scale, self.zero = chosen

    def constants_of(self, shape: tuple[int, ...], results: int, fan_in: int, axis: int) -> list[Any]:
        scales = self.random.uniform(0.5, 1.0, results) * 0.02
        weights = np.clip(np.rint(self.random.normal(0, 40, shape)), -127, 127).astype(np.int8)
        bias = self.random.integers(-500, 500, results).astype(self.bias)
        arrays = [self.model.constant(weights, scales, 0, axis), self.model.constant(bias, self.scale * scales, 0)]
        self.scale = float(self.scale * 0.02 * 40 * np.sqrt(fan_in))
        return arrays

    def convolution(
        self,
        results: int,
        size: tuple[int, int],
        channels: int,
        *,
        stride: tuple[int, int] = (1, 1),
        dilation: tuple[int, int] = (1, 1),
        relu: bool = True,
    ) -> Any:
        """Add a convolution; return its result."""
        arrays = self.constants_of((results, *size, channels), results, size[0] * size[1] * channels, 0)
        return self._add("CONV_2D", arrays, relu, **_window(stride, dilation))

    def depthwise(
        self,
        channels: int,
        size: tuple[int, int],
        *,
        stride: tuple[int, int] = (1, 1),
        dilation: tuple[int, int] = (1, 1),
    ) -> Any:
        """Add a depthwise convolution; return its result."""
        arrays = self.constants_of((1, *size, channels), channels, size[0] * size[1], 3)
        return self._add("DEPTHWISE_CONV_2D", arrays, True, depth_multiplier=1, **_window(stride, dilation))

    def dense(self, results: int, length: int, *, relu: bool = True) -> Any:
        """Add a fully connected layer with one scale for all its weights; return its result."""
        weights = np.clip(np.rint(self.random.normal(0, 40, (results, length))), -127, 127).astype(np.int8)
        bias = self.random.integers(-500, 500, results).astype(self.bias)
        arrays = [self.model.constant(weights, 0.02), self.model.constant(bias, self.scale * 0.02)]
        self.scale = float(self.scale * 0.02 * 40 * np.sqrt(length))
        return self._add("FULLY_CONNECTED", arrays, relu, keep_num_dims=True)

    def _add(self, kind: str, arrays: list[Any], relu: bool, **options: Any) -> Any:
        options["fused_activation_function"] = "RELU" if relu else "NONE"
        self.zero = 0 if self.dtype == "int16" else -128 if relu else 4
        self.data = self.model.operator(kind, [self.data, *arrays], (self.dtype, self.scale, self.zero), **options)
        return self.data

    def pair(self, kind: str, other: Quantised, *, relu: bool = False) -> Any:
        """Add ADD, SUB or MUL of another tensor and the last one, which is the second operand; return its result."""
        factor = {"ADD": 1.5, "SUB": 1.5}.get(kind)
        levels = 128 if self.dtype == "int8" else 32768
        scale = max(other[1], self.scale) * factor if factor else other[1] * self.scale * levels / 2
        zero = 0 if self.dtype == "int16" else -128 if relu else 3
        options = {"fused_activation_function": "RELU" if relu else "NONE"}
        data = self.model.operator(kind, [other[0], self.data], (self.dtype, float(scale), zero), **options)
        self.last = data, float(scale), zero
        return data

    def curve(self, kind: str) -> Any:
        """Add LOGISTIC or TANH; return its result."""
        power, zero = (8, -128) if kind == "LOGISTIC" else (7, 0)
        self.scale, self.zero = (2.0**-power, zero) if self.dtype == "int8" else (2.0**-15, 0)
        self.data = self.model.operator(kind, [self.data], (self.dtype, self.scale, self.zero))
        return self.data

    def pool(self, kind: str, size: tuple[int, int], stride: tuple[int, int] | None = None) -> None:
        """Add AVERAGE_POOL_2D or MAX_POOL_2D; without a stride the windows do not overlap."""
        rows, columns = stride or size
        options = {"filter_height": size[0], "filter_width": size[1], "stride_h": rows, "stride_w": columns}
        result = (self.dtype, self.scale, self.zero)
        self.data = self.model.operator(
            kind, [self.data], result, padding="VALID" if stride is None else "SAME", **options
        )

    def flatten(self, length: int) -> None:
        """Change the shape to one row."""
        shape = self.model.constant(np.asarray([1, length], np.int32))
        self.data = self.model.operator("RESHAPE", [self.data, shape], (self.dtype, self.scale, self.zero))

    def build(self) -> bytes:
        """Return the file."""
        self.data.name = "scores"
        self.model.output(self.data)
        return bytes(self.model.build())


def _window(stride: tuple[int, int], dilation: tuple[int, int]) -> dict[str, Any]:
    options: dict[str, Any] = {"padding": "SAME", "stride_h": stride[0], "stride_w": stride[1]}
    return {**options, "dilation_h_factor": dilation[0], "dilation_w_factor": dilation[1]}


def separable() -> bytes:
    """Return a network of depthwise and 1x1 convolutions: 40x20 values, 48 and 72 channels, 5x5 windows."""
    layers = Layers(1, (1, 40, 20, 1))
    layers.convolution(48, (5, 5), 1, stride=(2, 2))
    for channels, results, stride in ((48, 48, 1), (48, 72, 2), (72, 72, 1)):
        layers.depthwise(channels, (5, 5) if stride == 1 else (3, 3), stride=(stride, stride))
        layers.convolution(results, (1, 1), channels)
    layers.pool("AVERAGE_POOL_2D", (5, 5))
    layers.flatten(144)
    layers.dense(9, 144, relu=False)
    return layers.build()


def separable_int16() -> bytes:
    """Return a keyword network with int16 data: 28x10 values, 40 channels, four depthwise and 1x1 convolutions."""
    layers = Layers(4, (1, 28, 10, 1), "int16")
    layers.convolution(40, (6, 4), 1, stride=(2, 2))
    for results in (40, 40, 40, 38):
        layers.depthwise(40, (3, 3))
        layers.convolution(results, (1, 1), 40)
    layers.pool("AVERAGE_POOL_2D", (14, 5))
    layers.flatten(38)
    layers.dense(11, 38, relu=False)
    return layers.build()


def residual() -> bytes:
    """Return a network with sums: 24x24 values in 3 channels, 20 and 40 channels."""
    layers = Layers(2, (1, 24, 24, 3))
    layers.convolution(20, (3, 3), 3)
    before = layers.last
    layers.convolution(20, (3, 3), 20)
    layers.convolution(20, (3, 3), 20, relu=False)
    layers.pair("ADD", before, relu=True)
    layers.convolution(40, (3, 3), 20, stride=(2, 2))
    layers.convolution(40, (3, 3), 40)
    layers.pool("AVERAGE_POOL_2D", (12, 12))
    layers.flatten(40)
    layers.dense(7, 40, relu=False)
    return layers.build()


def residual_int16() -> bytes:
    """Return a network with sums and int16 data: 13x14 values in 3 channels, 10 and 20 channels."""
    layers = Layers(5, (1, 13, 14, 3), "int16")
    layers.convolution(10, (3, 3), 3)
    before = layers.last
    layers.convolution(10, (3, 3), 10)
    layers.convolution(10, (3, 3), 10, relu=False)
    layers.pair("ADD", before, relu=True)
    layers.convolution(20, (3, 3), 10, stride=(2, 2))
    before = layers.last
    layers.convolution(20, (3, 3), 20, relu=False)
    layers.pair("ADD", before, relu=True)
    layers.pool("AVERAGE_POOL_2D", (7, 7))
    layers.flatten(20)
    layers.dense(7, 20, relu=False)
    return layers.build()


def dense() -> bytes:
    """Return a network of fully connected layers: 300 values."""
    layers = Layers(3, (1, 300))
    for results, length in ((96, 300), (96, 96), (24, 96), (96, 24)):
        layers.dense(results, length)
    layers.dense(300, 96, relu=False)
    return layers.build()


def dense_int16() -> bytes:
    """Return a network of fully connected layers with int16 data: 200 values."""
    layers = Layers(12, (1, 200), "int16")
    for results, length in ((72, 200), (72, 72), (40, 72)):
        layers.dense(results, length)
    layers.dense(13, 40, relu=False)
    return layers.build()


def elements() -> bytes:
    """Return a chain of ADD, MUL and SUB of two inputs of 18x18x13 values."""
    layers = Layers(6, (1, 18, 18, 13))
    second: Quantised = (layers.input((1, 18, 18, 13), "second"), layers.scale, layers.zero)
    first = layers.last
    layers.pair("ADD", second)
    layers.pair("MUL", second)
    layers.pair("SUB", first)
    layers.pair("MUL", first, relu=True)
    layers.pair("ADD", first)
    return layers.build()


def pooling() -> bytes:
    """Return a network with pools between its convolutions: 26x26 values, 18 and 34 channels."""
    layers = Layers(7, (1, 26, 26, 2))
    layers.convolution(18, (3, 3), 2)
    layers.pool("MAX_POOL_2D", (3, 3), (2, 2))
    layers.convolution(34, (2, 2), 18)
    layers.pool("AVERAGE_POOL_2D", (3, 3), (1, 1))
    layers.pool("MAX_POOL_2D", (2, 2), (2, 2))
    layers.pool("AVERAGE_POOL_2D", (7, 7))
    layers.flatten(34)
    layers.dense(5, 34, relu=False)
    return layers.build()


def windows() -> bytes:
    """Return a network of large, strided and dilated windows: 28x22 values, 22 channels."""
    layers = Layers(8, (1, 28, 22, 3))
    layers.convolution(22, (5, 5), 3, stride=(2, 2))
    layers.depthwise(22, (5, 5))
    layers.convolution(22, (3, 3), 22, dilation=(2, 2))
    layers.depthwise(22, (3, 3), dilation=(2, 2))
    layers.depthwise(22, (5, 5), stride=(2, 2))
    layers.convolution(30, (3, 3), 22, stride=(2, 2))
    layers.pool("AVERAGE_POOL_2D", (4, 3))
    layers.flatten(30)
    layers.dense(6, 30, relu=False)
    return layers.build()


def temporal() -> bytes:
    """Return a network of convolutions over time: 60 frames of 14 values, dilations 1, 2 and 4, with sums."""
    layers = Layers(9, (1, 1, 60, 14))
    layers.convolution(26, (1, 3), 14)
    for dilation in (1, 2, 4):
        before = layers.last
        layers.convolution(26, (1, 3), 26, dilation=(1, dilation))
        layers.depthwise(26, (1, 7))
        layers.convolution(26, (1, 1), 26, relu=False)
        layers.pair("ADD", before, relu=True)
    layers.pool("AVERAGE_POOL_2D", (1, 60))
    layers.flatten(26)
    layers.dense(10, 26, relu=False)
    return layers.build()


def recurrent() -> bytes:
    """Return four steps of a GRU with 28 values and 44 cells: fully connected layers, curves, ADD, SUB and MUL."""
    layers = Layers(10, (1, 28))
    value = layers.last
    state: Quantised = (layers.input((1, 44), "state"), layers.scale, layers.zero)

    def part(source: Quantised, length: int) -> Quantised:
        layers.last = source
        layers.dense(44, length, relu=False)
        return layers.last

    def gate(curve: str, left: Quantised, right: Quantised) -> Quantised:
        layers.last = right
        layers.pair("ADD", left)
        layers.curve(curve)
        return layers.last

    for _ in range(4):
        update = gate("LOGISTIC", part(value, 28), part(state, 44))
        reset = gate("LOGISTIC", part(value, 28), part(state, 44))
        layers.last = part(state, 44)
        layers.pair("MUL", reset)
        inner = gate("TANH", part(value, 28), layers.last)
        layers.last = inner
        layers.pair("SUB", state)
        layers.pair("MUL", update)
        layers.pair("ADD", inner)
        state = layers.last
    return layers.build()


def feed_forward() -> bytes:
    """Return two gated feed-forward blocks of a transformer: 14 tokens of 52 values, 88 inner values."""
    layers = Layers(11, (14, 52))
    for _ in range(2):
        before = layers.last
        layers.dense(88, 52, relu=False)
        value = layers.last
        layers.last = before
        layers.dense(88, 52, relu=False)
        layers.curve("LOGISTIC")
        layers.pair("MUL", value)
        layers.dense(52, 88, relu=False)
        layers.pair("ADD", before)
    return layers.build()


KINDS: tuple[Callable[[], bytes], ...] = (
    separable,
    residual,
    dense,
    separable_int16,
    residual_int16,
    dense_int16,
    elements,
    pooling,
    windows,
    temporal,
    recurrent,
    feed_forward,
)


def write(folder: Path, names: list[str]) -> list[Path]:
    """Write the named models to a directory; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for make in KINDS:
        if make.__name__ in names:
            path = folder / f"{make.__name__}.tflite"
            path.write_bytes(make())
            files.append(path)
    return files
