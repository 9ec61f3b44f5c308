# SPDX-License-Identifier: Apache-2.0
"""Random depthwise convolutions and pools with windows, strides, dilations and multipliers of any size."""

from __future__ import annotations

from typing import Any

from opwest.compiler.ir.program import Program
from opwest.tuning.random_layers.layers import depthwise, pool
from opwest.tuning.random_layers.numbers import Random, makes


def _places(random: Random, image: tuple[int, int]) -> dict[str, Any]:
    """Return a size, a stride and a dilation of windows that fit in an image without padding."""
    kind = random.integers(0, 4)
    size, dilation = [], []
    for axis, extent in enumerate(image):
        most = 1 if kind == axis else extent
        size.append(int(random.integers(1, min(most, 17) + 1)))
        greatest = (extent - 1) // max(1, size[axis] - 1)
        dilation.append(int(random.integers(1, max(1, min(greatest, 5)) + 1)) if random.random() < 0.3 else 1)
    stride = tuple(int(step) for step in random.choice([1, 1, 2, 3, 5, 7], 2))
    return {"size": tuple(size), "stride": stride, "dilation": tuple(dilation)}


def _image(random: Random) -> tuple[int, int]:
    return int(random.integers(1, 20)), int(random.integers(1, 20))


@makes("int8", "int16")
def wide_depthwise(random: Random, dtype: str = "int8", **keys: Any) -> Program:
    """A depthwise convolution: data [n,h,w,c]."""
    image = _image(random)
    if random.random() < 0.2:
        long = int(random.integers(20, 400))
        image = (1, long) if random.random() < 0.6 else (long, 1) if random.random() < 0.5 else (3, long)
    channels = int(random.choice([1, 2, 3, 5, 8, 16, 31, 48, 72, 130]))
    multiplier = int(random.choice([1, 1, 2, 3, 4, 7, 16])) if channels < 40 else 1
    shape = (int(random.choice([1, 1, 2])), *image, channels)
    return depthwise(random, shape=shape, multiplier=multiplier, dtype=dtype, **{**_places(random, image), **keys})


@makes("int8", "uint8", "int16")
def wide_pool(random: Random, dtype: str = "int8", **keys: Any) -> Program:
    """A pool: data [n,h,w,c]; those of averages have no dilation."""
    image = (int(random.integers(1, 32)), int(random.integers(1, 32))) if random.random() < 0.3 else _image(random)
    shape = (int(random.choice([1, 1, 2])), *image, int(random.choice([1, 2, 3, 7, 8, 16, 17, 40])))
    places = _places(random, image)
    if random.random() < 0.3:
        places |= {"size": image, "dilation": (1, 1)}
    made = pool(random, shape, dtype=dtype, **{**places, **keys})
    layer: Any = made.operations[0]
    if layer.kind == "average" and layer.window.dilation != (1, 1):
        return pool(random, shape, dtype=dtype, **{**places, "dilation": (1, 1), **keys})
    return made
