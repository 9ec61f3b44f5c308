# SPDX-License-Identifier: Apache-2.0
"""Graphs of which Vela leaves operators to the processor: those that no Ethos-U55 has, or that `--ignore-ops` names."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import tflite
from models.made import Made, Model

from npu_model.configurations import with_shapes
from npu_model.graphs import graph

_SAME = {"padding": "SAME", "stride_h": 1, "stride_w": 1}


class _Graph:
    """A graph in the making; every method adds one operator."""

    def __init__(self) -> None:
        self.model = Model()
        self.random = np.random.default_rng(11)

    def input(self, depth: int = 4, dtype: str = "int8") -> Made:
        zero = 3 if dtype == "int8" else 0
        return self.model.input(dtype, (1, 8, 8, depth), 0.05 if dtype == "int8" else 0.001, zero)

    def convolution(self, tensor: Made, depths: tuple[int, int], dtype: str = "int8", relu: str = "NONE") -> Made:
        """On the NPU: 3 x 3, from and to a number of channels."""
        result = (dtype, 0.06, -3) if dtype == "int8" else (dtype, 0.0012, 0)
        weights = self.random.integers(-127, 128, (depths[1], 3, 3, depths[0])).astype(np.int8)
        factors = self.random.uniform(0.5, 1, depths[1]) / (70 * np.sqrt(9 * depths[0]))
        bias = self.random.integers(-500, 500, depths[1]).astype(np.int32 if dtype == "int8" else np.int64)
        constants = [self.model.constant(weights, factors, 0), self.model.constant(bias, tensor.scale * factors, 0)]
        return self.model.operator("CONV_2D", [tensor, *constants], result, fused_activation_function=relu, **_SAME)

    def pool(self, tensor: Made) -> Made:
        """On the NPU, without weights."""
        return self._moved("MAX_POOL_2D", tensor, filter_height=2, filter_width=3, **_SAME)

    def add(self, first: Made, second: Made) -> Made:
        """On the NPU, without weights."""
        return self.model.operator("ADD", [first, second], ("int8", 0.09, -5))

    def _moved(self, kind: str, tensor: Made, *constants: Made, **options: Any) -> Made:
        result = (tensor.dtype, tensor.scale, tensor.zero)
        return self.model.operator(kind, [tensor, *constants], result, **options)

    def reverse(self, tensor: Made) -> Made:
        """On the processor: the rows in reverse order."""
        return self._moved("REVERSE_V2", tensor, self.model.constant(np.array([1], np.int32)))

    def gather(self, tensor: Made, depth: int) -> Made:
        """On the processor: the channels in another order."""
        order = self.random.permutation(depth).astype(np.int32)
        return self._moved("GATHER", tensor, self.model.constant(order), axis=3)

    def blocks(self, tensor: Made) -> Made:
        """On the processor: squares of 2 x 2 elements as channels."""
        return self._moved("SPACE_TO_DEPTH", tensor, block_size=2)

    def squares(self, tensor: Made) -> Made:
        """On the processor: channels as squares of 2 x 2 elements."""
        return self._moved("DEPTH_TO_SPACE", tensor, block_size=2)

    def normal(self, tensor: Made) -> Made:
        return self.model.operator("L2_NORMALIZATION", [tensor], ("int8", 1 / 128, 0))


def _branches(made: _Graph) -> tuple[Made, ...]:
    """Two results of the first subgraph: one is read by the processor, the other by the second subgraph."""
    stem = made.convolution(made.input(), (4, 8))
    kept = made.convolution(made.pool(stem), (8, 8))
    return (made.add(made.convolution(made.normal(stem), (8, 8)), kept),)


def _alternating(made: _Graph) -> tuple[Made, ...]:
    """Three subgraphs, operators on the processor at the beginning, between them and at the end; three outputs."""
    first = made.convolution(made.blocks(made.input()), (16, 24))
    second = made.add(made.reverse(first), made.pool(first))
    third = made.convolution(made.squares(second), (6, 5), relu="RELU")
    return made.gather(third, 5), first, third


def _late_input(made: _Graph) -> tuple[Made, ...]:
    """The second input waits in the arena while the first subgraph and the processor run."""
    first, late = made.input(), made.input(8)
    return (made.add(made.gather(made.convolution(first, (4, 8)), 8), late),)


def _words(made: _Graph) -> tuple[Made, ...]:
    first = made.convolution(made.input(dtype="int16"), (4, 8), "int16")
    return (made.convolution(made.reverse(first), (8, 8), "int16"),)


@dataclass(frozen=True)
class Mixed:
    """A graph, and where Vela leaves its operators: the steps of its import, in their order."""

    outputs: Callable[[_Graph], tuple[Made, ...]]
    places: str

    def build(self) -> bytes:
        made = _Graph()
        made.model.output(*self.outputs(made))
        return with_shapes(made.model)


MIXED = {
    "first": Mixed(lambda made: (made.pool(made.convolution(made.reverse(made.input()), (4, 8))),), "cpu npu"),
    "middle": Mixed(
        lambda made: (made.convolution(made.normal(made.convolution(made.input(), (4, 8))), (8, 8), relu="RELU"),),
        "npu cpu npu",
    ),
    "last": Mixed(lambda made: (made.gather(made.convolution(made.input(), (4, 24), relu="RELU6"), 24),), "npu cpu"),
    "branches": Mixed(_branches, "npu cpu npu"),
    "alternating": Mixed(_alternating, "cpu npu cpu npu cpu npu cpu"),
    "late input": Mixed(_late_input, "npu cpu npu"),
    "no weights": Mixed(lambda made: (made.pool(made.reverse(made.add(made.input(), made.input()))),), "npu cpu npu"),
    "words": Mixed(_words, "npu cpu npu"),
}


def random_mixed(random: Any) -> tuple[bytes, str]:
    """Return a random graph, and the option of Vela that leaves up to two kinds of its operators to the processor."""
    while True:
        content = graph(random)
        file = tflite.Model.GetRootAs(content, 0)
        codes = [file.OperatorCodes(number).BuiltinCode() for number in range(file.OperatorCodesLength())]
        kinds = sorted({tflite.opcode2name(code) for code in codes})
        if len(kinds) > 1:
            left = random.choice(kinds, min(2, len(kinds) - 1), replace=False)
            return content, f"--ignore-ops={','.join(left)}"
