# SPDX-License-Identifier: Apache-2.0
"""Operators and tensors of an ONNX model, with dtypes of numpy, known shapes and folded constants."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from math import prod
from typing import Any

from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.compiler.graph.types import Shape, Unsupported
from opwest.compiler.graph.user import Use


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


def constant_item(name: str, array: Any) -> Item:
    """Return a constant."""
    return Item(name, str(array.dtype), tuple(array.shape), array)


@dataclass(frozen=True, eq=False)
class Origin:
    """The operator of another format that operators of ONNX are made of."""

    label: str
    """The operator in messages."""
    source: str
    """The name of the operator in the file, as `--operator` takes it."""
    types: Mapping[str, tuple[str, Shape]] = field(default_factory=dict)
    """The types of its results in the file: those of an operator without a translation."""
    refusal: Unsupported | None = None
    """The reason why it has no translation."""
    is_reported: bool = False
    """Whether the reason is reported although nothing reads the results: what reads them has no type."""


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
    origin: Origin | None = None
    """The operator of another format that it is a part of."""
    used: set[str] = field(default_factory=set)
    """The names of the attributes that the translation has read."""

    @property
    def source(self) -> str:
        """The name of the operator in the file, for `--operator`."""
        return self.kind if self.origin is None else self.origin.source

    def input(self, number: int) -> Item:
        """Return a mandatory input. Raises Unsupported."""
        item = self.optional(number)
        if item is None:
            raise Unsupported(f"input {number} is absent")
        return item

    def optional(self, number: int) -> Item | None:
        """Return an input, None if it is absent."""
        return self.inputs[number] if number < len(self.inputs) else None

    @property
    def given(self) -> list[Item]:
        """The inputs that are not absent."""
        return [item for item in self.inputs if item is not None]

    @property
    def results(self) -> list[Item]:
        """The outputs that the model uses."""
        return [item for item in self.outputs if item is not None]

    @property
    def output(self) -> Item:
        """The first result. Raises Unsupported if the model uses others."""
        first, *others = self.outputs
        if first is None or any(others):
            raise Unsupported(f"{counted(len(self.outputs), 'result')}", "one result")
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
        content = self.constant(number, name)
        return None if content is None else tuple(int(n) for n in content.reshape(-1))


@dataclass(frozen=True, eq=False)
class State:
    """A tensor that lasts from one run to the next."""

    item: Item
    content: Any
    """The array before the first run."""
    after: Item
    """The content after a run."""


@dataclass(frozen=True)
class Model:
    """A model in the vocabulary of ONNX."""

    inputs: tuple[Item, ...]
    outputs: tuple[Item, ...]
    ops: tuple[Op, ...]
    remarks: tuple[str, ...] = field(default=())
    names: frozenset[str] = frozenset()
    """The names of the operators in the file; those of other domains also with their domain."""
    states: tuple[State, ...] = ()

    @property
    def kept(self) -> tuple[Item, ...]:
        """What is read after the last operator: the outputs, and the contents of states."""
        return (*self.outputs, *(state.after for state in self.states))


SHAPES: Mapping[str, tuple[str, ...]] = {
    "Conv": ("", "results ...", "results"),
    "ConvTranspose": ("", "", "results"),
    "BatchNormalization": ("batch channels ... | batch", "channels", "channels", "channels", "channels"),
    "InstanceNormalization": ("batch channels ...", "channels", "channels"),
    "GroupNormalization": ("batch channels ...", "each", "each"),
    "LSTM": (
        *("steps batch width", "directions 4*hidden width", "directions 4*hidden hidden", "directions 8*hidden"),
        *("batch", "directions batch hidden", "directions batch hidden", "directions 3*hidden"),
    ),
    "DynamicQuantizeLSTM": (
        *("steps batch width", "directions width 4*hidden", "directions hidden 4*hidden", "directions 8*hidden"),
        *("batch", "directions batch hidden", "directions batch hidden", "directions 3*hidden"),
        *("directions | directions 4*hidden",) * 4,
    ),
    "GRU": (
        *("steps batch width", "directions 3*hidden width", "directions 3*hidden hidden", "directions 6*hidden"),
        *("batch", "directions batch hidden"),
    ),
    "RNN": (
        *("steps batch width", "directions hidden width", "directions hidden hidden", "directions 2*hidden"),
        *("batch", "directions batch hidden"),
    ),
    "QLinearConv": ("", "", "", "results ...", "| 1 | results", "| 1 | results", "", "", "results"),
    "ConvInteger": ("", "results ...", "", "| 1 | results"),
    "MatMulInteger": ("", "depth results | depth", "", "| 1 | results"),
    "Reshape": ("", "dimensions"),
    "Expand": ("", "dimensions"),
    "Tile": ("", "dimensions"),
}
"""The dimensions of each input, by operator: a name is the same number everywhere, `...` any number of dimensions, `|`
separates alternatives. An input without an entry, or with an empty one, is not checked."""


def check_operands(op: Op) -> None:
    """Refuse parameters of other shapes. Raises Unsupported."""
    known = _known(op)
    for place, (item, text) in enumerate(zip(op.inputs, SHAPES.get(op.kind, ()), strict=False)):
        if item is None or not text:
            continue
        alternatives = [dimensions.split() for dimensions in text.split("|")]
        if not any(_matches(item.known, alternative, known) for alternative in alternatives):
            expected = " or ".join(_shown(alternative, known) for alternative in alternatives)
            raise Unsupported(f"input {place} '{item.name}' with the shape {list(item.known)}", expected)


def _known(op: Op) -> dict[str, int]:
    """Return the numbers that attributes determine, by name."""
    given = op.attributes
    numbers = {"directions": 2 if given.get("direction") == "bidirectional" else 1}
    if "hidden_size" in given:
        numbers["hidden"] = int(given["hidden_size"])
    if op.kind == "MatMulInteger" and op.input(1).rank == 1:
        numbers["results"] = 1
    if op.kind == "ConvTranspose":
        numbers["results"] = op.input(1).known[1] * int(given.get("group", 1))
    if op.kind == "GroupNormalization":
        numbers["each"] = int(given.get("num_groups", 1)) if op.version < 21 else op.input(0).known[1]
    return numbers


def _matches(shape: Shape, dimensions: list[str], known: dict[str, int]) -> bool:
    """Whether a shape has dimensions; then their names are known."""
    if dimensions[-1:] == ["..."]:
        dimensions = dimensions[:-1]
        shape = shape[: len(dimensions)]
    if len(shape) != len(dimensions):
        return False
    numbers = dict(known)
    for number, text in zip(shape, dimensions, strict=True):
        factor, name = _parts(text)
        if name and number % factor == 0:
            numbers.setdefault(name, number // factor)
        if number != factor * numbers.get(name, 0 if name else 1):
            return False
    known.update(numbers)
    return True


def _parts(text: str) -> tuple[int, str]:
    """Return the factor and the name of a dimension: `4*hidden`, `hidden`, `1`."""
    match = re.fullmatch(r"(?:(\d+)\*)?([a-z]+)|(\d+)", text)
    assert match is not None, text
    return int(match[1] or match[3] or 1), match[2] or ""


def _shown(dimensions: list[str], known: Mapping[str, int]) -> str:
    """Return dimensions with the numbers that are known."""
    words = []
    for text in dimensions:
        factor, name = (1, "...") if text == "..." else _parts(text)
        words.append(text if name and name not in known else str(factor * known.get(name, 1)))
    return f"[{', '.join(words)}]"
