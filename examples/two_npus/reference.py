# SPDX-License-Identifier: Apache-2.0
"""The two-branch digits network in numpy, integers only, equal to the operators and accelerators bit for bit.

How an accelerator scales its sums is read from the programs that it is loaded with. Every function takes
a batch of N images; the operators are made for N = 1.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

CHANNELS = 8
CLASSES = 10
HIDDEN = 32
INK = 255
"""The value of the darkest pixel, relative to PAPER."""
KERNEL = 3
PAPER = -128
PIXELS = 8 * 8
STRIDE = 2

FEATURES, SCORES = 1, 2
"""The numbers of the kernels in both programs."""

EXAMPLE = Path(__file__).resolve().parent
HEADER = struct.Struct("<4sHHII")
ENTRY = struct.Struct("<HBBibbbbI")

Int8 = NDArray[np.int8]
Int32 = NDArray[np.int32]
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Kernel:
    """How a kernel of a program reads its input and scales its sums."""

    multiplier: int
    shift: int
    input_zero: int
    output_zero: int
    least: int
    most: int

    def scaled(self, sums: NDArray[np.int64]) -> Int8:
        """Multiply, shift (an exact half rounds up), saturate; with `least` at the zero point that is a ReLU."""
        half = (1 << self.shift) >> 1
        values = ((sums * self.multiplier + half) >> self.shift) + self.output_zero
        return np.clip(values, self.least, self.most).astype(np.int8)

    def dense(self, x: Int8, weights: Int8, bias: Int32) -> Int8:
        """Apply a fully connected layer: [N, inputs] to [N, outputs]."""
        return self.scaled((x.astype(np.int64) - self.input_zero) @ weights.T.astype(np.int64) + bias)


@dataclass(frozen=True)
class Network:
    """The trained parameters, and the programs of the two accelerators."""

    parameters: Arrays
    conv: dict[int, Kernel]
    dense: dict[int, Kernel]


def read_program(content: bytes) -> dict[int, Kernel]:
    """Read a program written by make_program.py."""
    count = HEADER.unpack_from(content)[2]
    kernels = {}
    for index in range(count):
        number, _, shift, multiplier, *rest, _ = ENTRY.unpack_from(content, HEADER.size + index * ENTRY.size)
        kernels[number] = Kernel(multiplier, shift, *rest)
    return kernels


def load(folder: Path = EXAMPLE) -> Network:
    """Read the parameters written by train.py."""
    with np.load(folder / "parameters.npz") as file:
        parameters = {key: file[key] for key in file.files}
    conv, dense = (read_program((folder / "programs" / f"{name}.onpu").read_bytes()) for name in ("conv", "dense"))
    return Network(parameters, conv, dense)


def stretch(images: Int8) -> Int8:
    """Make the darkest pixel of every image INK above PAPER, on the CPU: [N, 8, 8, 1] of any contrast."""
    ink = np.maximum(images, 0).astype(np.int32)
    darkest = np.maximum(ink.max(axis=(1, 2, 3), keepdims=True), 1)
    return ((ink * INK + darkest // 2) // darkest + PAPER).astype(np.int8)


def patches(images: NDArray[Any]) -> NDArray[Any]:
    """Gather the 3x3 neighbourhoods of every second pixel, zeros outside: [N, 8, 8, 1] becomes [N, 4, 4, 9]."""
    height, width = images.shape[1:3]
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    taps = [padded[:, y : y + height : STRIDE, x : x + width : STRIDE] for y in range(KERNEL) for x in range(KERNEL)]
    return np.concatenate(taps, axis=3)


def conv_branch(images: Int8, network: Network) -> Int8:
    """Compute the int8 scores of the first accelerator."""
    values = network.parameters
    kernel = network.conv[FEATURES]
    seen = patches(stretch(images).astype(np.int64) - kernel.input_zero)
    weights = values["conv_weight"].reshape(CHANNELS, -1).T.astype(np.int64)
    features = kernel.scaled(seen @ weights + values["conv_bias"])
    flat = features.reshape(len(images), -1)
    return network.conv[SCORES].dense(flat, values["conv_score_weight"], values["conv_score_bias"])


def dense_branch(images: Int8, network: Network) -> Int8:
    """Compute the int8 scores of the second accelerator."""
    values = network.parameters
    flat = images.reshape(len(images), -1)
    hidden = network.dense[FEATURES].dense(flat, values["hidden_weight"], values["hidden_bias"])
    return network.dense[SCORES].dense(hidden, values["hidden_score_weight"], values["hidden_score_bias"])


def weigh(scores: Int8, factor: Int32) -> Int32:
    """Rescale the scores of a branch to the common scale."""
    return scores.astype(np.int32) * factor


def arg_max(scores: Int32) -> Int32:
    """Find the largest score, the first of equal ones: [N, 10] to [N]."""
    return scores.argmax(axis=1).astype(np.int32)


def predict(images: Int8, network: Network | None = None) -> Int32:
    """Classify int8 images [N, 8, 8, 1] (pixels 0 to 16); without a network, with the trained one."""
    trained = load() if network is None else network
    first = weigh(conv_branch(images, trained), trained.parameters["conv_factor"])
    second = weigh(dense_branch(images, trained), trained.parameters["dense_factor"])
    return arg_max(first + second)
