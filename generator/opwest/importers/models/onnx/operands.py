# SPDX-License-Identifier: Apache-2.0
"""The shapes of the parameters of ONNX operators that the shape inference of onnx does not check.

Source: onnx/docs/Operators.md, onnxruntime/docs/ContribOperators.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from opwest.importers.models.graph.faults import Unsupported
from opwest.importers.models.graph.types import Shape
from opwest.importers.models.onnx.values import Op

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
        alternatives = [one.split() for one in text.split("|")]
        if not any(_matches(item.known, one, known) for one in alternatives):
            expected = " or ".join(_shown(one, known) for one in alternatives)
            raise Unsupported(f"input {place} '{item.name}' with the shape {list(item.known)}", expected)


def _known(op: Op) -> dict[str, int]:
    """Return the numbers that attributes determine, by name."""
    given = op.attributes
    found = {"directions": 2 if given.get("direction") == "bidirectional" else 1}
    if "hidden_size" in given:
        found["hidden"] = int(given["hidden_size"])
    if op.kind == "MatMulInteger" and op.input(1).rank == 1:
        found["results"] = 1
    if op.kind == "ConvTranspose":
        found["results"] = op.input(1).known[1] * int(given.get("group", 1))
    if op.kind == "GroupNormalization":
        found["each"] = int(given.get("num_groups", 1)) if op.version < 21 else op.input(0).known[1]
    return found


def _matches(shape: Shape, dimensions: list[str], known: dict[str, int]) -> bool:
    """Whether a shape has dimensions; then their names are known."""
    if dimensions[-1:] == ["..."]:
        dimensions = dimensions[:-1]
        shape = shape[: len(dimensions)]
    if len(shape) != len(dimensions):
        return False
    found = dict(known)
    for number, text in zip(shape, dimensions, strict=True):
        factor, name = _parts(text)
        if name and number % factor == 0:
            found.setdefault(name, number // factor)
        if number != factor * found.get(name, 0 if name else 1):
            return False
    known.update(found)
    return True


def _parts(text: str) -> tuple[int, str]:
    """Return the factor and the name of a dimension: `4*hidden`, `hidden`, `1`."""
    found = re.fullmatch(r"(?:(\d+)\*)?([a-z]+)|(\d+)", text)
    assert found is not None, text
    return int(found[1] or found[3] or 1), found[2] or ""


def _shown(dimensions: list[str], known: Mapping[str, int]) -> str:
    """Return dimensions with the numbers that are known."""
    words = []
    for text in dimensions:
        factor, name = (1, "...") if text == "..." else _parts(text)
        words.append(text if name and name not in known else str(factor * known.get(name, 1)))
    return f"[{', '.join(words)}]"
