# SPDX-License-Identifier: Apache-2.0
"""Tensors, nodes and graphs. The vocabulary of operators and options is TFLite's, with channels last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from math import prod
from typing import Any

from opwest.base.diagnostics import Location
from opwest.base.frozen_dataclass import dataclass


class Unsupported(Exception):  # noqa: N818 - a reason, collected for all operators of a file
    """The reason why an operator cannot be imported; the caller adds the operator and the file."""

    def __init__(
        self, reason: str, expected: str | None = None, hint: str | None = None, location: Location | None = None
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.expected = expected
        self.hint = hint
        self.location = location
        """The place in a file of the user; None: in the model."""


class Damaged(Exception):  # noqa: N818
    """The reason why a file is not a model: contradictory or impossible content."""


Shape = tuple[int, ...]
MAX_ELEMENTS = 1 << 28
"""The most elements of a tensor."""


@dataclass(frozen=True)
class Quantization:
    """real = scale * (value - zero): one pair, or one for each slice along `axis`.

    Scales are float32 numbers. Source: TFLite's schema.fbs, QuantizationParameters.
    """

    scales: tuple[float, ...]
    zeros: tuple[int, ...]
    axis: int | None = None
    """None: one pair for the tensor."""

    @property
    def scale(self) -> float:
        """The only scale."""
        [scale] = self.scales
        return scale

    @property
    def zero(self) -> int:
        """The only zero point."""
        [zero] = self.zeros
        return zero


@dataclass(eq=False)
class Tensor:
    """A tensor of a graph, compared by identity."""

    name: str
    dtype: str
    """A name of numpy: int8, float32, bool."""
    shape: Shape
    quantization: Quantization | None = None
    content: Any = None
    """The numpy array of a constant; None for other tensors."""
    number: int | None = None
    """The number of the tensor in a TFLite file; None for other tensors."""
    is_state: bool = False
    """Whether the content lasts from one run to the next. `content` is then the initial content; None: zeros."""

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def is_constant(self) -> bool:
        """Whether the content is known at import and never changes."""
        return self.content is not None and not self.is_state


@dataclass(eq=False)
class Node:
    """One operator of a graph."""

    kind: str
    """TFLite's name, such as CONV_2D; readers of other formats translate."""
    inputs: tuple[Tensor | None, ...]
    """None: an optional input that is absent."""
    outputs: tuple[Tensor, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""
    """The operator in messages: its number and kind in the file, and the name of its result."""
    refusal: Unsupported | None = None
    """The reason why a reader cannot express the operator."""
    source: str = ""
    """The name of the operator in the file, for `--operator`; empty: the kind."""

    def input(self, number: int) -> Tensor:
        """Return a mandatory input."""
        tensor = self.inputs[number]
        assert tensor is not None, f"{self.label}: no input {number}"
        return tensor

    def optional(self, number: int) -> Tensor | None:
        """Return an optional input, None if it is absent."""
        return self.inputs[number] if number < len(self.inputs) else None

    @property
    def output(self) -> Tensor:
        """The only result."""
        [tensor] = self.outputs
        return tensor


@dataclass(frozen=True)
class Rules:
    """The choices between arithmetic rules, for a whole model. Defaults: TFLite's reference kernels."""

    dense_rounds_twice: bool = False
    """int8 FULLY_CONNECTED as in CMSIS-NN: gemmlowp's two roundings instead of one."""
    float_requantization: bool = False
    """onnxruntime, PyTorch: int32 sums times a float32 scale, half to even, instead of fixed-point numbers."""
    inverse_scales: bool = False
    """PyTorch: float32 numbers are quantised by a product with the inverse of the scale; float biases remain exact."""


@dataclass(frozen=True)
class Signature:
    """The key of a signature, and the names of inputs and outputs in it; an empty name: not part of it."""

    key: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class Converters:
    """The nodes that convert each input and output of a file; None: it is not converted."""

    inputs: tuple[Node | None, ...]
    outputs: tuple[Node | None, ...]


@dataclass(frozen=True)
class Graph:
    """A model: one signature of a file."""

    name: str
    """The name of the signature; empty for the only one."""
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    nodes: tuple[Node, ...]
    """In order: each input is a constant, a state, an input of the graph or the result of an earlier node."""
    rules: Rules = Rules()
    updates: Mapping[Tensor, Tensor] = field(default_factory=dict)
    """The tensor that becomes the content of a state after a run. Nodes can change other states in place."""
    labels: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """The names of the classes, by the number of the output."""
    subgraph: int = 0
    """The number of the subgraph in a TFLite file."""
    signature: Signature | None = None
    """The signature in a TFLite file."""
    converters: Converters | None = None
    """The nodes that convert inputs and outputs of the file to float32 ones; None: the graph has those of the file."""
    names: frozenset[str] = frozenset()
    """The names of the operators in the file, as `--operator` takes them."""
    has_shapes: bool = False
    """Whether the reader has set the shapes of all results, which the check compares with those of the operators."""
    remarks: tuple[str, ...] = ()
    """Facts about the file that users should know, without a final period."""
