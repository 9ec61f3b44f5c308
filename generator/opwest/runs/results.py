# SPDX-License-Identifier: Apache-2.0
"""The results of runs and calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from opwest.base.frozen_dataclass import dataclass
from opwest.runs.check_steps import Checked
from opwest.runs.compare import Difference
from opwest.runs.profile import UNKNOWN_VARIANT, Profile

if TYPE_CHECKING:
    from opwest.model.types.dtypes import Elements as Array


@dataclass(frozen=True)
class Accuracy:
    """The part of the cases in which an output has the class of the case."""

    output: str
    correct: int
    cases: int

    @property
    def accuracy(self) -> float:
        """The part, from 0 to 1."""
        return self.correct / self.cases


@dataclass(frozen=True, eq=False)
class Outputs:
    """What a run or a call gave."""

    model: str | None
    """None for a run of the application's main()."""
    outputs: Mapping[str, Array] = field(default_factory=dict)
    """With streams, the first dimension counts the frames. Dtypes that numpy lacks are converted to numbers."""
    dtypes: Mapping[str, str] = field(default_factory=dict)
    """The dtype of each output in the model."""
    files: Mapping[str, Path] = field(default_factory=dict)
    """The files of the outputs."""
    clock: str = "host"
    """host, board, emulated or simulated: the clock of the latency and of the profile."""
    latency_ns: tuple[int, ...] = ()
    """The duration of each run on a board."""
    board: str | None = None
    connection: str | None = None
    """The serial device or the address of the board."""
    build_directory: Path | None = None


@dataclass(frozen=True, eq=False)
class Run(Outputs):
    """What a run of a model, or of an application's main(), gave."""

    differences: Mapping[str, Difference] = field(default_factory=dict)
    """The difference of each output from its reference."""
    check: Checked | None = None
    """The comparison of the results of steps."""
    accuracy: Accuracy | None = None
    profile: Profile | None = None
    profile_file: Path | None = None
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The names of the classes of outputs."""
    frames: bool = False
    """Whether the outputs have a dimension of frames or cases."""
    variant: str | None = UNKNOWN_VARIANT
    """The variant of the model that ran; None for the base."""
    stdout: str | None = None
    """What the application's main() printed."""

    @property
    def passed(self) -> bool:
        """Whether all differences are within their tolerances, and no step differs."""
        within = not any(difference.beyond for difference in self.differences.values())
        return within and (self.check is None or self.check.first is None)


@dataclass(frozen=True, eq=False)
class OperatorCall(Outputs):
    """What calls of an operator gave."""

    operator: str = ""
