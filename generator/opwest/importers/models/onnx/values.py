# SPDX-License-Identifier: Apache-2.0
"""Operators and tensors of an ONNX model, with dtypes of numpy, known shapes and folded constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from math import prod
from typing import Any

from opwest.importers.models.graph.faults import Unsupported
from opwest.importers.models.graph.types import Shape
from opwest.importers.models.graph.user import Use
from opwest.records import dataclass

MOST_ELEMENTS = 1 << 28
"""The most elements of a tensor."""


@dataclass(eq=False)
class Item:
    """A tensor, compared by identity."""

    name: str
    dtype: str
    shape: Shape | None
    """None: unknown, after an operator that is not supported."""
    content: Any = None
    """The array of a constant."""

    @property
    def known(self) -> Shape:
        """The shape. Raises Unsupported."""
        if self.shape is None:
            raise Unsupported(
                f"the shape of '{self.name}' is unknown", "fixed shapes", "export the model with fixed shapes"
            )
        return self.shape

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.known)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.known)


@dataclass(eq=False)
class Op:
    """An operator."""

    kind: str
    version: int
    """The opset of its domain."""
    inputs: tuple[Item | None, ...]
    outputs: tuple[Item | None, ...]
    attributes: Mapping[str, Any]
    label: str
    use: Use | None = None
    """The operator of the user that it is."""
    is_integer: bool = False
    """Whether it is part of a quantised operator of the file, such as QLinearConv, which computes integer sums."""
    used: set[str] = field(default_factory=set)
    """The names of the attributes that the translation has read."""

    def input(self, number: int) -> Item:
        """Return a mandatory input. Raises Unsupported."""
        found = self.optional(number)
        if found is None:
            raise Unsupported(f"input {number} is absent")
        return found

    def optional(self, number: int) -> Item | None:
        """Return an input, None if it is absent."""
        return self.inputs[number] if number < len(self.inputs) else None

    @property
    def output(self) -> Item:
        """The first result. Raises Unsupported if the model uses others."""
        first, *others = self.outputs
        if first is None or any(others):
            raise Unsupported(f"{len(self.outputs)} results", "one result")
        return first

    def get(self, name: str, default: Any) -> Any:
        """Return an attribute."""
        self.used.add(name)
        return self.attributes.get(name, default)

    @property
    def is_training(self) -> bool:
        """Whether BatchNormalization or Dropout is in training mode, by attributes; the default before opset 7."""
        return bool(self.get("training_mode", 0)) or (self.version < 7 and not self.get("is_test", 0))

    def constant(self, number: int, name: str | None = None) -> Any:
        """Return the array of an input, or of an attribute in older opsets; None if absent. Raises Unsupported."""
        import numpy as np

        if name is not None and name in self.attributes:
            return np.asarray(self.get(name, None))
        item = self.optional(number)
        if item is None:
            return None
        if item.content is None:
            raise Unsupported(
                f"input {number} '{item.name}' is computed when the model runs, but determines a shape or a layout",
                "a constant",
                "export the model with fixed shapes",
            )
        return item.content

    def numbers(self, number: int, name: str | None = None) -> tuple[int, ...] | None:
        """Return integers of an input or an attribute; None if absent. Raises Unsupported."""
        found = self.constant(number, name)
        return None if found is None else tuple(int(n) for n in found.reshape(-1))


@dataclass(frozen=True)
class Model:
    """A model in the vocabulary of ONNX."""

    inputs: tuple[Item, ...]
    outputs: tuple[Item, ...]
    ops: tuple[Op, ...]
    remarks: tuple[str, ...] = field(default=())
    names: frozenset[str] = frozenset()
    """The names of the operators in the file; those of other domains also with their domain."""
