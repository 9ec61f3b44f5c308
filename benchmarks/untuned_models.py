# SPDX-License-Identifier: Apache-2.0
"""int8 models with layers that opwest's table of measurements does not contain: random weights, other widths."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))


class _Layers:
    """A model in the making: each layer has the result of the one before it as data."""

    def __init__(self, seed: int, shape: tuple[int, ...]) -> None:
        from models.made import Model

        self.random = np.random.default_rng(seed)
        self.model: Any = Model()
        self.data: Any = self.model.input("int8", shape, 0.05, -3, name="data")
        self.scale, self.zero = 0.05, -3

    def _constants(self, shape: tuple[int, ...], results: int, fan_in: int, axis: int) -> list[Any]:
        scales = self.random.uniform(0.5, 1.0, results) * 0.02
        weights = np.clip(np.rint(self.random.normal(0, 40, shape)), -127, 127).astype(np.int8)
        bias = self.random.integers(-500, 500, results).astype(np.int32)
        found = [self.model.constant(weights, scales, 0, axis), self.model.constant(bias, self.scale * scales, 0)]
        self.scale = float(self.scale * 0.02 * 40 * np.sqrt(fan_in))
        return found

    def convolution(self, results: int, size: int, channels: int, *, stride: int = 1, relu: bool = True) -> Any:
        """Add a convolution; return its result."""
        given = self._constants((results, size, size, channels), results, size * size * channels, 0)
        return self._add("CONV_2D", given, stride, relu)

    def depthwise(self, channels: int, size: int, *, stride: int = 1) -> Any:
        """Add a depthwise convolution; return its result."""
        given = self._constants((1, size, size, channels), channels, size * size, 3)
        return self._add("DEPTHWISE_CONV_2D", given, stride, True, depth_multiplier=1)

    def dense(self, results: int, length: int, *, relu: bool = True) -> Any:
        """Add a fully connected layer with one scale for all its weights; return its result."""
        weights = np.clip(np.rint(self.random.normal(0, 40, (results, length))), -127, 127).astype(np.int8)
        bias = self.random.integers(-500, 500, results).astype(np.int32)
        given = [self.model.constant(weights, 0.02), self.model.constant(bias, self.scale * 0.02)]
        self.scale = float(self.scale * 0.02 * 40 * np.sqrt(length))
        return self._add("FULLY_CONNECTED", given, 0, relu)

    def _add(self, kind: str, given: list[Any], stride: int, relu: bool, **options: Any) -> Any:
        if stride:
            options.update(padding="SAME", stride_h=stride, stride_w=stride)
        options["fused_activation_function"] = "RELU" if relu else "NONE"
        self.zero = -128 if relu else 4
        self.data = self.model.operator(kind, [self.data, *given], ("int8", self.scale, self.zero), **options)
        return self.data

    def add(self, other: Any, scale: float) -> None:
        """Add the result of an earlier layer."""
        self.scale, self.zero = scale * 1.5, -128
        result = ("int8", self.scale, self.zero)
        self.data = self.model.operator("ADD", [other, self.data], result, fused_activation_function="RELU")

    def pool(self, size: int) -> None:
        """Add an average pool over the whole image."""
        options = {"filter_height": size, "filter_width": size, "stride_h": size, "stride_w": size, "padding": "VALID"}
        self.data = self.model.operator("AVERAGE_POOL_2D", [self.data], ("int8", self.scale, self.zero), **options)

    def flatten(self, length: int) -> None:
        """Change the shape to one row."""
        shape = self.model.constant(np.asarray([1, length], np.int32))
        self.data = self.model.operator("RESHAPE", [self.data, shape], ("int8", self.scale, self.zero))

    def build(self) -> bytes:
        """Return the file."""
        self.data.name = "scores"
        self.model.output(self.data)
        return bytes(self.model.build())


def separable() -> bytes:
    """Return a network of depthwise and 1x1 convolutions: 40x20 values, 48 and 72 channels, 5x5 windows."""
    layers = _Layers(1, (1, 40, 20, 1))
    layers.convolution(48, 5, 1, stride=2)
    for results, stride in ((48, 1), (72, 2), (72, 1)):
        layers.depthwise(48 if stride == 2 or results == 48 else 72, 5 if stride == 1 else 3, stride=stride)
        layers.convolution(results, 1, 48 if stride == 2 or results == 48 else 72)
    layers.pool(5)
    layers.flatten(144)
    layers.dense(9, 144, relu=False)
    return layers.build()


def residual() -> bytes:
    """Return a network with sums: 24x24 values in 3 channels, 20 and 40 channels."""
    layers = _Layers(2, (1, 24, 24, 3))
    before = layers.convolution(20, 3, 3)
    scale = layers.scale
    layers.convolution(20, 3, 20)
    layers.convolution(20, 3, 20, relu=False)
    layers.add(before, max(scale, layers.scale))
    layers.convolution(40, 3, 20, stride=2)
    layers.convolution(40, 3, 40)
    layers.pool(12)
    layers.flatten(40)
    layers.dense(7, 40, relu=False)
    return layers.build()


def dense() -> bytes:
    """Return a network of fully connected layers: 300 values."""
    layers = _Layers(3, (1, 300))
    for results, length in ((96, 300), (96, 96), (24, 96), (96, 24)):
        layers.dense(results, length)
    layers.dense(300, 96, relu=False)
    return layers.build()


def write(folder: Path) -> list[Path]:
    """Write all models to a directory; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    for make in (separable, residual, dense):
        path = folder / f"untuned_{make.__name__}.tflite"
        path.write_bytes(make())
        found.append(path)
    return found
