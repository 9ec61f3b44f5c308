# SPDX-License-Identifier: Apache-2.0
"""`opwest.quantise`: an integer model from a float model and samples."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opwest.api.calls import AnyPath, CallResult, Progress, api_function, check_choices
from opwest.base.diagnostics import Diagnostics, Location
from opwest.base.frozen_dataclass import dataclass
from opwest.quantisation.request import (
    CALIBRATIONS,
    DTYPES,
    KEEPS,
    REPORT_SUFFIX,
    Calibration,
    Dtype,
    Keep,
    Layer,
    Options,
    Quality,
    Quantised,
)

if TYPE_CHECKING:
    from opwest.model.types.dtypes import Elements

    AnySamples = AnyPath | Elements | Mapping[str, Elements]
    AnyLabels = AnyPath | Elements | Mapping[str, AnyPath | Elements]

FORMATS = {".tflite": "tflite", ".onnx": "onnx", ".pt2": "pt2"}
"""The formats by the suffixes of names."""


@dataclass(frozen=True)
class QuantiseResult(CallResult):
    """A quantised model, its quality, and the loss of each layer. Warnings are also among the diagnostics."""

    file: Path
    report: Path
    """The same figures as JSON."""
    format: str
    dtype: Dtype
    calibration: Calibration
    losses: Mapping[str, float]
    """With each calibration that was measured, in `unit`."""
    unit: str
    """Percentage points of accuracy, or percent of error without labels."""
    loss: float
    bound: float | None
    cases: int
    before: Quality
    after: Quality
    layers: tuple[Layer, ...]
    kept: tuple[Layer, ...]
    """To hold the bound."""
    bytes_before: int
    bytes_after: int
    evaluations: int


@api_function
def quantise(
    faults: Diagnostics,
    file: AnyPath,
    *,
    output: AnyPath,
    samples: AnySamples,
    labels: AnyLabels | None = None,
    dtype: Dtype = "int8",
    calibration: Calibration | None = None,
    keep_accuracy: float | None = None,
    keep: Keep | None = None,
    float_io: bool = False,
    progress: Progress | None = None,
) -> QuantiseResult:
    """Quantise a float model (.tflite, .onnx, .pt2) after training: write an integer model of the same format.

    `samples` are typical inputs: the first dimension of each array counts the cases. `labels` are the classes of the
    cases. With `keep_accuracy`, the fewest layers stay in `keep` so that the loss is at most that number. Nothing is
    trained.
    """
    path, target = Path(file), Path(output)
    check_choices(
        faults,
        ("dtype", dtype, DTYPES),
        ("calibration", calibration, (None, *CALIBRATIONS)),
        ("keep", keep, (None, *KEEPS)),
    )
    kind = _kind(path, target, faults)
    _check(kind, dtype, keep_accuracy, keep, float_io=float_io, faults=faults)
    faults.raise_if_errors()
    from opwest.quantisation.child import quantise_in_child

    report = target.with_name(target.name.removesuffix(target.suffix) + REPORT_SUFFIX)
    with tempfile.TemporaryDirectory(prefix="opwest-") as work:
        name, classes = _labels(labels, Path(work))
        options = Options(
            _samples(samples, Path(work)), classes, name, dtype, calibration, keep_accuracy, keep, float_io
        )
        done = quantise_in_child(path, target, report, kind, options, progress or (lambda _: None))
    return _result(done, path, target, report, faults)


def _result(done: Quantised, path: Path, target: Path, report: Path, faults: Diagnostics) -> QuantiseResult:
    for remark in done.remarks:
        faults.note(remark, Location(str(path)))
    for warning in done.warnings:
        faults.warning(warning, Location(str(path)))
    return QuantiseResult(
        target,
        report,
        done.format,
        _word(done.dtype, DTYPES),
        _word(done.calibration, CALIBRATIONS),
        dict(done.losses),
        done.unit,
        done.loss,
        done.bound,
        done.cases,
        done.before,
        done.after,
        done.layers,
        tuple(layer for layer in done.layers if layer.kept),
        done.bytes_before,
        done.bytes_after,
        done.evaluations,
    )


def _word(text: str, words: tuple[Any, ...]) -> Any:
    """Return one of some words."""
    return next(word for word in words if word == text)


def _kind(path: Path, target: Path, faults: Diagnostics) -> str:
    """Return the format of the model, by its content or its name; report another one of the output."""
    from opwest.frontends.formats import format_of_start

    kind = FORMATS.get(path.suffix.lower())
    if kind != "pt2" and path.is_file():
        with path.open("rb") as stream:
            row = format_of_start(stream.read(8))
        kind = None if row is None else row.name
    if kind not in FORMATS.values():
        expected = "a .tflite, .onnx or .pt2 file"
        faults.error("the file is no model that can be quantised", Location(str(path)), expected=expected)
    elif FORMATS.get(target.suffix.lower()) != kind:
        wanted = next(suffix for suffix, name in FORMATS.items() if name == kind)
        faults.error(
            f"the output has the suffix '{target.suffix}'", Location(str(target)), expected=f"a name with {wanted}"
        )
    return str(kind)


def _check(
    kind: str, dtype: str, keep_accuracy: float | None, keep: str | None, *, float_io: bool, faults: Diagnostics
) -> None:
    """Report options without effect, and those that a format does not have."""
    if keep_accuracy is None and keep is not None:
        faults.error(f"--keep {keep} has no effect without --keep-accuracy", expected="--keep-accuracy N")
    if keep_accuracy is not None and not 0 <= keep_accuracy < 1e6:
        faults.error(f"invalid --keep-accuracy {keep_accuracy:g}", expected="a number of at least 0")
    if dtype == keep == "int16x8":
        faults.error("--keep int16x8 has no effect with --dtype int16x8", expected="--keep float")
    if kind in ("onnx", "pt2"):
        for option, value in (("--dtype", dtype), ("--keep", keep)):
            if value == "int16x8":
                text = f"{option} int16x8 has no effect on .{kind} files"
                faults.error(text, hint="int16x8 is an arithmetic of TFLite: quantise a .tflite file")
    if kind == "pt2" and float_io:
        faults.error("--float-io has no effect on .pt2 files", hint="their inputs and outputs always stay float32")


def _samples(samples: AnySamples, folder: Path) -> str:
    """Return the path of a file with the samples."""
    if isinstance(samples, (str, PathLike)):
        return str(Path(samples))
    import numpy as np

    from opwest.compiler.folder import npz

    if isinstance(samples, Mapping):
        file = folder / "samples.npz"
        file.write_bytes(npz(samples))
    else:
        file = folder / "samples.npy"
        np.save(file, np.asarray(samples))
    return str(file)


def _labels(labels: AnyLabels | None, folder: Path) -> tuple[str | None, str | None]:
    """Return the output that labels are of, and the path of a file with them."""
    if labels is None:
        return None, None
    name: str | None = None
    if isinstance(labels, Mapping):
        ((name, labels),) = labels.items()
    if isinstance(labels, (str, PathLike)):
        return name, str(Path(labels))
    import numpy as np

    file = folder / "labels.npy"
    np.save(file, np.asarray(labels))
    return name, str(file)
