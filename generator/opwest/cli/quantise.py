# SPDX-License-Identifier: Apache-2.0
"""`opwest quantise`: its options and its output."""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any

from opwest.api.calls import collecting
from opwest.api.quantise import QuantiseResult
from opwest.api.quantise import quantise as quantise_model
from opwest.base.commands import quoted
from opwest.base.diagnostics import Diagnostics
from opwest.base.result import Result, counted, table_lines
from opwest.cli.arguments import progress_of
from opwest.quantisation.request import Layer, Quality


def quantise(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Quantise a model; print its quality before and after, and the loss of each layer."""
    name, _, file = (options.labels or "").rpartition("=")
    labels: Any = None if not file else ({name: file} if name else file)
    done = collecting(quantise_model, faults)(
        options.file,
        output=options.output,
        samples=options.samples,
        labels=labels,
        dtype=options.dtype,
        calibration=options.calibration,
        keep_accuracy=options.keep_accuracy,
        keep=options.keep,
        float_io=options.float_io,
        progress=progress_of(options),
    )
    return Result(_text(done), _json(done))


def _text(done: QuantiseResult) -> str:
    rows = [("layer", "arithmetic", "alone dB", "all dB", "outputs %"), *map(_row, done.layers)]
    lines = [
        f"loss of each layer ({counted(done.cases, 'sample')}, calibration {done.calibration})",
        *(f"  {line}" for line in table_lines(rows, {2, 3, 4})),
        "  dB: ratio of a layer's results to their difference from float32, if it alone is quantised, and all are;",
        "  outputs: the error of the outputs if it alone is quantised",
    ]
    if len(done.losses) > 1:
        tried = ", ".join(f"{name} {loss:.3g}" for name, loss in done.losses.items())
        lines.append(f"calibrations, in {done.unit}: {tried}")
    lines += [f"{title}: {text}" for title, text in _qualities(done)]
    if done.bound is not None:
        names = ", ".join(f"{layer.layer} in {layer.precision}" for layer in done.kept) or "none"
        lines.append(f"kept for a loss of at most {done.bound:g} {done.unit}: {names}")
    lines.append(f"{done.file}: {done.bytes_after:,} bytes, before {done.bytes_before:,}; figures in {done.report}")
    exact = "" if done.format == "tflite" else " --exact"
    lines.append(f"next: opwest import {quoted(str(done.file))} -o DIR{exact}")
    return "\n".join(lines)


def _qualities(done: QuantiseResult) -> list[tuple[str, str]]:
    """Return the lines of the quality before and after."""
    rows = []
    if done.before.accuracy is not None and done.after.accuracy is not None:
        before, after = done.before.accuracy, done.after.accuracy
        rows.append(
            ("accuracy", f"{before:.2%} before, {after:.2%} after: a loss of {done.loss:.2f} percentage points")
        )
    agreement = done.after.agreement
    same = "" if agreement is None else f"; the class is that of the float model in {agreement:.2%} of the samples"
    rows.append(("error of the outputs", f"{done.after.error:.3g} %{same}"))
    return rows


def _row(layer: Layer) -> tuple[str, ...]:
    ratios = ("" if value is None else f"{value:.1f}" for value in (layer.own_db, layer.total_db))
    outputs = "" if layer.output_error is None else f"{layer.output_error:.3g}"
    return (layer.layer, f"{layer.precision}, kept" if layer.kept else layer.precision, *ratios, outputs)


def _quality(quality: Quality) -> dict[str, Any]:
    return {"error_percent": quality.error, "agreement": quality.agreement, "accuracy": quality.accuracy}


def _json(done: QuantiseResult) -> dict[str, Any]:
    return {
        "file": str(done.file),
        "report": str(done.report),
        "format": done.format,
        "dtype": done.dtype,
        "calibration": done.calibration,
        "calibrations": [{"calibration": name, "loss": loss} for name, loss in done.losses.items()],
        "unit": done.unit,
        "loss": done.loss,
        "bound": done.bound,
        "sample_count": done.cases,
        "before": _quality(done.before),
        "after": _quality(done.after),
        "layers": [dataclasses.asdict(layer) for layer in done.layers],
        "kept": [layer.layer for layer in done.kept],
        "bytes_before": done.bytes_before,
        "bytes_after": done.bytes_after,
        "evaluation_count": done.evaluations,
    }
