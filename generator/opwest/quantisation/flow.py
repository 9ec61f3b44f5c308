# SPDX-License-Identifier: Apache-2.0
"""The stages of a quantisation, the same for each format: calibrate, measure layers, keep some of them, write."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.compiler.child import Progress
from opwest.compiler.faults import fault
from opwest.quantisation.measure import quality
from opwest.quantisation.request import (
    CALIBRATIONS,
    PERCENT,
    POINTS,
    Layer,
    Made,
    Options,
    Quality,
    Quantised,
    loss_of,
)
from opwest.quantisation.samples import Samples
from opwest.quantisation.search import Search

TRIED = 256
"""The most samples for the choice of a calibration."""
Key = TypeVar("Key", bound=Hashable)
Outputs = list[list[Any]]
"""float32 arrays by case, then by output."""


@dataclass(frozen=True)
class Loss:
    """The loss of a layer that is quantised alone, and of its results in the whole model: see Layer in request.py."""

    own_db: float | None
    total_db: float | None
    output_error: float


class Backend(ABC, Generic[Key]):
    """What a format does; a layer has a key."""

    format: str
    keep: str
    """The arithmetic of kept layers."""
    remarks: Sequence[str]
    is_classifier: bool
    """Whether the greatest element of the only output is a class."""

    @abstractmethod
    def calibrate(self) -> Outputs:
        """Run the float model on all samples, collect statistics, return the outputs."""

    @abstractmethod
    def outputs(self, method: str, kept: frozenset[Key], most: int | None) -> Outputs:
        """Return the outputs of the quantised model on the first samples, all for None."""

    @abstractmethod
    def losses(self, method: str, kept: frozenset[Key]) -> Mapping[Key, Loss]:
        """Return the loss of each layer; `total_db` is that with the kept layers."""

    @abstractmethod
    def can_keep(self, layer: Key) -> bool:
        """Whether a layer can have the arithmetic of kept ones."""

    @abstractmethod
    def rows(self, losses: Mapping[Key, Loss], method: str, kept: frozenset[Key]) -> tuple[Layer, ...]:
        """Return the layers in the order of the file."""

    @abstractmethod
    def warnings(self) -> Sequence[str]:
        """Return the warnings about the last model."""

    @abstractmethod
    def content(self, method: str, kept: frozenset[Key]) -> bytes:
        """Return the file. Raises OpwestError."""


def run(backend: Backend[Key], size: int, samples: Samples, options: Options, place: str, progress: Progress) -> Made:
    """Return a quantised file and what it loses; `size`: bytes of the float file. Raises OpwestError."""
    stages = _Stages(backend, samples, options, place, progress)
    method, tried = stages.calibrated()
    progress("measuring the layers")
    alone = backend.losses(method, frozenset())
    kept, evaluations = stages.kept(method, alone)
    after = stages.measured(method, kept)
    totals = backend.losses(method, kept) if kept else alone
    joined = {key: Loss(loss.own_db, totals[key].total_db, loss.output_error) for key, loss in alone.items()}
    rows = backend.rows(joined, method, kept)
    content = backend.content(method, kept)
    result = Quantised(
        backend.format,
        options.dtype,
        method,
        backend.keep,
        len(samples.cases),
        stages.before,
        after,
        rows,
        tried,
        size,
        len(content),
        options.keep_accuracy,
        stages.unit,
        evaluations,
        tuple(backend.remarks),
        (*samples.warnings, *backend.warnings()),
    )
    return Made(content, result)


class _Stages:
    def __init__(
        self, backend: Backend[Any], samples: Samples, options: Options, place: str, progress: Progress
    ) -> None:
        self.backend, self.samples, self.options = backend, samples, options
        self.place, self.progress = place, progress
        progress(f"calibrating with {counted(len(samples.cases), 'sample')}")
        self.floats = backend.calibrate()
        self.before = self._quality(self.floats)
        self.unit = PERCENT if self.before.accuracy is None else POINTS

    def _quality(self, outputs: Outputs) -> Quality:
        classes = self.samples.classes
        if classes is not None:
            classes = (classes[0], classes[1][: len(outputs)])
        is_classifier = self.backend.is_classifier or classes is not None
        return quality(outputs, self.floats[: len(outputs)], classes, is_classifier=is_classifier)

    def measured(self, method: str, kept: frozenset[Any], most: int | None = None) -> Quality:
        """Return the quality of a quantised model on the first samples."""
        return self._quality(self.backend.outputs(method, kept, most))

    def calibrated(self) -> tuple[str, dict[str, float]]:
        """Return the calibration with the least loss, and the loss of each."""
        methods = CALIBRATIONS if self.options.calibration is None else (self.options.calibration,)
        before, found = self._quality(self.floats[:TRIED]), {}
        for method in methods:
            self.progress(f"measuring the calibration {method}")
            found[method] = self.measured(method, frozenset(), TRIED)
        # Equal losses of accuracy are decided by the error.
        best = min(found, key=lambda method: (round(loss_of(before, found[method]), 6), found[method].error))
        return best, {method: loss_of(before, one) for method, one in found.items()}

    def kept(self, method: str, alone: Mapping[Any, Loss]) -> tuple[frozenset[Any], int]:
        """Return the layers to keep, and the number of measurements. Raises OpwestError."""
        bound, keep = self.options.keep_accuracy, self.backend.keep
        if bound is None:
            return frozenset(), 0
        order = sorted((key for key in alone if self.backend.can_keep(key)), key=lambda key: -alone[key].output_error)

        def loss(kept: frozenset[Any]) -> float:
            found = loss_of(self.before, self.measured(method, kept))
            self.progress(f"{counted(len(kept), 'layer')} kept in {keep}: a loss of {found:.3g} {self.unit}")
            return found

        search = Search(loss, bound)
        kept = search.fewest(order)
        if kept is None:
            best = min(search.losses.values())
            text = f"the bound of {bound:g} {self.unit} does not hold: {best:.3g} with all layers kept in {keep}"
            ways = ["--keep float"] if keep != "float" else []
            ways += ["--float-io"] if not self.options.float_io and self.backend.format != "pt2" else []
            hint = f"use {' or '.join(ways)}, or raise the bound" if ways else "raise the bound"
            raise fault(text, self.place, hint=hint)
        return frozenset(kept), len(search.losses)
