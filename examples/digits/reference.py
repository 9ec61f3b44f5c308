# SPDX-License-Identifier: Apache-2.0
"""The digits network in numpy, integers only, equal to the C operators bit for bit.

Every function takes a batch of N images; the C operators are compiled for N = 1.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

CHANNELS = 8
CLASSES = 10
KERNEL = 3
POOL = 2
SHIFT = 5
"""The convolution's sums are divided by 2**SHIFT; operators/conv2d_relu.c has the same constant."""

PARAMETERS = Path(__file__).resolve().parent / "parameters.npz"

Int8 = NDArray[np.int8]
Int32 = NDArray[np.int32]


def requantize(sums: Int32) -> Int8:
    """ReLU, divide by 2**SHIFT (an exact half rounds up), saturate to int8."""
    positive = np.maximum(sums, 0)
    return np.minimum((positive + (1 << (SHIFT - 1))) >> SHIFT, 127).astype(np.int8)


def neighbourhoods(images: NDArray[Any]) -> NDArray[Any]:
    """The 3x3 neighbourhood of every pixel, zeros outside: [N, 8, 8, C] becomes [N, 8, 8, 9 * C]."""
    margin = KERNEL // 2
    height, width = images.shape[1:3]
    padded = np.pad(images, ((0, 0), (margin, margin), (margin, margin), (0, 0)))
    taps = [padded[:, y : y + height, x : x + width] for y in range(KERNEL) for x in range(KERNEL)]
    return np.concatenate(taps, axis=3)


def conv2d_relu(images: Int8, weight: Int8, bias: Int32) -> Int8:
    """Convolve 3x3 with zero padding, then ReLU and requantization: [N, 8, 8, 1] to [N, 8, 8, 8]."""
    matrix = weight.reshape(weight.shape[0], -1).T.astype(np.int32)
    return requantize(neighbourhoods(images).astype(np.int32) @ matrix + bias)


def max_pool(features: Int8) -> Int8:
    """Take the maximum of every 2x2 window, channel by channel: [N, 8, 8, 8] to [N, 4, 4, 8]."""
    count, height, width, channels = features.shape
    windows = features.reshape(count, height // POOL, POOL, width // POOL, POOL, channels)
    return windows.max(axis=(2, 4))


def dense(pooled: Int8, weight: Int8, bias: Int32) -> Int32:
    """Apply the fully connected layer: [N, 4, 4, 8] to the int32 scores [N, 10]."""
    flat = pooled.reshape(len(pooled), -1).astype(np.int32)
    return flat @ weight.T.astype(np.int32) + bias


def arg_max(scores: Int32) -> Int32:
    """Find the largest score, the first of equal ones: [N, 10] to [N]."""
    return scores.argmax(axis=1).astype(np.int32)


def load_parameters(path: Path = PARAMETERS) -> dict[str, NDArray[Any]]:
    """Read the trained parameters, keyed like the constants of manifest.yaml."""
    with np.load(path) as file:
        return {key: file[key] for key in file.files}


def predict(images: Int8, parameters: dict[str, NDArray[Any]] | None = None) -> Int32:
    """Classify int8 images [N, 8, 8, 1] (pixels 0 to 16); without parameters, with the trained ones."""
    values = load_parameters() if parameters is None else parameters
    features = conv2d_relu(images, values["conv_weight"], values["conv_bias"])
    scores = dense(max_pool(features), values["dense_weight"], values["dense_bias"])
    return arg_max(scores)
