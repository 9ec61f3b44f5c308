# SPDX-License-Identifier: Apache-2.0
"""The options of runs and calls: the application, its board, the connection to it, the arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path

from opwest.base.frozen_dataclass import dataclass
from opwest.runs.arrays import Source
from opwest.runs.compare import Tolerance
from opwest.runs.places import Udp
from opwest.runs.progress import SILENT, StageProgress

BAUD, TIMEOUT = 115200, 30.0
"""The defaults of the baud rate, and of the timeout for a response in seconds."""


@dataclass(frozen=True)
class ImageOptions:
    """An application, the board that it runs on, and the connection to it. The names are those of the command line."""

    directory: Path
    board: str = ""
    serial: str | None = None
    udp: Udp | None = None
    ble: str | None = None
    baud: int = BAUD
    timeout: float = TIMEOUT
    build_dir: Path | None = None
    no_build: bool = False
    no_flash: bool = False
    zephyr_base: Path | None = None
    shield: Sequence[str] = ()
    snippet: Sequence[str] = ()
    cmake: Sequence[str] = ()
    """Options of CMake: -DNAME=VALUE."""
    given: frozenset[str] = frozenset()
    """The options of the user: some are errors where they have no effect, also with the value of the default."""
    check_steps: bool = False
    profile: bool = False
    output_profile: Path | None = None
    operator: str | None = None
    """The operator to call in place of a run of the model."""
    progress: StageProgress = SILENT


@dataclass(frozen=True)
class RunOptions(ImageOptions):
    """A run of a model, or of an application's main(); without a board on this machine."""

    model: str | None = None
    inputs: Sequence[Source] = ()
    streams: Sequence[Source] = ()
    references: Sequence[Source] = ()
    tolerance: Mapping[str | None, Tolerance] = field(default_factory=dict)
    """The tolerances of tensors by name; None: that of all others."""
    output_dir: Path | None = None
    repeat: int = 1
    bits: int | None = None
    sanitize: bool = False
    cmsis_nn: Path | None = None
    dataset: Sequence[Source] = ()
    labels: Source | None = None
    capture: bool = True
    """Whether to keep what the application's main() prints."""


@dataclass(frozen=True)
class CallOptions(ImageOptions):
    """A call of one operator."""

    model: str | None = None
    arg: Sequence[str] = ()
    device: str | None = None
    output_dir: Path | None = None
    repeat: int = 1
