# SPDX-License-Identifier: Apache-2.0
"""What was read of a model: a Relax module, and what the file says of its inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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
    remarks: tuple[str, ...] = ()
    """What the user should know: kept in the manifest, and told."""
