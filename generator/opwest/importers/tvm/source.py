# SPDX-License-Identifier: Apache-2.0
"""A model as read: a Relax module, with the inputs and outputs of the file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opwest.records import dataclass

Progress = Callable[[str], None]
Quantization = tuple[float, int]
"""Scale and zero point."""


@dataclass(frozen=True)
class Port:
    """An input or output, with its name in the model."""

    name: str
    quantization: Quantization | None = None


@dataclass(frozen=True)
class Source:
    """A model before it is lowered. Inputs and outputs are in the order of the Relax function."""

    kind: str
    """tflite, onnx or relax."""
    place: str | None
    """The file, for messages."""
    content: bytes
    module: Any
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    nodes: tuple[tuple[str, str], ...] = ()
    """The operators of the file: kind and description."""
    remarks: tuple[str, ...] = ()
    """Remarks for the user, printed and written to the manifest."""

    def where(self, operator: str) -> str:
        """Return the likely source operators of a Relax operator, as the end of a message."""
        name = operator.replace("_", "").rpartition(".")[2]
        found = [words for kind, words in self.nodes if kind.replace("_", "").lower().startswith(name)]
        return f"; in the file, operator {' or '.join(found[:3])}" if found else ""
