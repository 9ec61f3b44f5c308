# SPDX-License-Identifier: Apache-2.0
"""The request and the result of an import."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from pathlib import Path

from opwest.base.frozen_dataclass import dataclass

KERNELS = ("auto", "portable", "cmsis-nn", "cmsis-nn-none", "cmsis-nn-dsp", "cmsis-nn-mve")
"""The variants of operators; auto: those with the least cost on each class of processors."""
LIBRARIES = ("cmsis-nn",)
"""Libraries whose functions can be candidates beside the variants of operators."""
OBJECTIVES = ("speed", "flash", "ram")
UNLIMITED = 1 << 62
"""The value of `max_flash` without a limit."""
ROUNDINGS = ("tflite", "cmsis-nn")


@dataclass(frozen=True)
class Options:
    """The request for an import."""

    model: str | None = None
    """The model's name; None: the file's."""
    vectors: int = 8
    """The number of golden vectors."""
    format: str | None = None
    """The format that the file must have, tflite or onnx; None: any."""
    dequantise_weights: bool = False
    """Whether int8 weights of layers with float32 data become float32, instead of TFLite's hybrid kernels."""
    float_io: bool = False
    """Whether quantised inputs and outputs become float32."""
    operators: Sequence[Sequence[str]] = ()
    """Pairs of the name of an operator in the model and the path of a snippet with an operator of the user."""
    signature: str | None = None
    """The signature to import; None: all of the file."""
    compare: int = 0
    """The number of inputs to compare with the format's runtime."""
    exact: bool = False
    """Whether quantised operators of ONNX are rounded as in onnxruntime, instead of TFLite's fixed-point rule."""
    kernels: str = KERNELS[0]
    """The variants of operators to prefer."""
    libraries: Sequence[str] = ()
    """Those of LIBRARIES whose functions are candidates too: the firmware then needs them."""
    rounding: str = ROUNDINGS[0]
    """The rule of int8 FULLY_CONNECTED: one rounding, or two."""
    optimize: str = OBJECTIVES[0]
    """What variants of operators are chosen for."""
    max_flash: int | None = None
    """The bytes of constants and operators of each class of processors; None: those of `choice/limit.py`."""
    max_ram: int | None = None
    """The bytes of the planned memory of each class of processors; None: no limit."""
    prefer: Sequence[str] = ()
    """The variants to choose where they apply, whatever they cost."""
    tuning: Sequence[str] = ()
    """Paths of further tables of measurements."""
    caller_memory: bool = True
    """Whether the caller provides the memory of inputs and outputs; otherwise it is in the workspace."""
    place: Sequence[str] = ()
    """Layers with constants that are copied to a pool when the model is opened: LAYERS=POOL."""
    pools: Sequence[str] = ()
    """Memory regions of such pools: NAME=BOARD:NODELABEL."""
    optimisations: bool = True
    """Whether the graph is simplified, and the passes change the program."""
    arrays: str | None = None
    """The path for the arrays of the comparison."""


@dataclass(frozen=True)
class Imported:
    """The result of an import."""

    folder: Path
    models: tuple[str, ...]
    """The names: one for each signature. With several, each has a directory of its name."""
    files: tuple[str, ...]
    operators: int
    steps: int
    constant_bytes: int
    remarks: tuple[str, ...]
    warnings: tuple[str, ...] = field(default=())
    choices: str = ""
    """The table of the variants of operators."""
