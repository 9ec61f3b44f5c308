# SPDX-License-Identifier: Apache-2.0
"""What was read of a model: a Relax module, and what the file says of its inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opwest.records import dataclass

Progress = Callable[[str], None]
Quantization = tuple[float, int]
"""Scale and zero point."""


@dataclass(frozen=True)
class Port:
    """An input or output, by the name that the model gives it."""

    name: str
    quantization: Quantization | None = None


@dataclass(frozen=True)
class Source:
    """A model before it is lowered. Inputs and outputs stand in the order of the Relax function's."""

    kind: str
    """tflite, onnx or relax."""
    place: str | None
    """The file, for messages."""
    content: bytes
    module: Any
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    nodes: tuple[tuple[str, str], ...] = ()
    """The operators of the file: their kind, and which one it is in words."""
    remarks: tuple[str, ...] = ()
    """What the user should know: kept in the manifest, and told."""

    def where(self, operator: str) -> str:
        """Return which operators of the file a Relax operator is likely from, as the end of a message."""
        name = operator.replace("_", "").rpartition(".")[2]
        found = [words for kind, words in self.nodes if kind.replace("_", "").lower().startswith(name)]
        return f"; in the file, operator {' or '.join(found[:3])}" if found else ""
