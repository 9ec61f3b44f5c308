# SPDX-License-Identifier: Apache-2.0
"""The output of `opwest report`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from opwest.api.calls import collecting
from opwest.api.report import NO_FILE, ReportResult
from opwest.api.report import report as make_report
from opwest.base.diagnostics import Diagnostics
from opwest.base.result import Result
from opwest.reports import words
from opwest.reports.data import Model


def report(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Generate the report, the bill of materials, or both."""
    if options.output is None and options.sbom is None:
        options.usage_error("one of the arguments -o/--output --sbom is required")
    done = collecting(make_report, faults)(
        options.paths,
        output=options.output,
        format=options.format,
        profile=options.profile,
        firmware=options.firmware,
        compare=options.compare,
        fail_on=options.fail_on,
        variant=options.variant,
        target=options.target,
        board=options.board,
        sbom=options.sbom,
        zephyr_spdx=options.zephyr_spdx,
    )
    if done.report is None:
        if str(done.sbom) == NO_FILE:
            shown = {"sbom": None, "content": done.sbom_content}
            return Result(done.sbom_content.removesuffix("\n"), shown, is_content=True)
        return Result(f"{done.sbom}: bill of materials", {"sbom": str(done.sbom), "content": None})
    if done.output is None:
        content = json.loads(done.content) if done.format == "json" else done.content
        return Result(done.content.removesuffix("\n"), {**_json(done), "content": content}, is_content=True)
    return Result(_text(done), _json(done))


def _text(done: ReportResult) -> str:
    models = done.report.models if done.report else ()
    lines = [f"{done.output}: {', '.join(model.name for model in models)}"]
    for model in models:
        if model.variants:
            lines.append(f"  {_variant_text(model)}")
        lines += [f"  {model.name}: {line}" for line in _layers(model)]
        lines += [
            f"  {model.name}: pool {pool.name} {words.counted(pool.planned, 'byte')}, peak in step {pool.peak.step}"
            for pool in model.pools
        ]
    if done.differences is not None:
        worse = sum(change.verdict == "worse" for change in done.differences)
        better = sum(change.verdict == "better" for change in done.differences)
        lines.append(f"  {words.counted(len(done.differences), 'difference')}: {better} better, {worse} worse")
    return "\n".join(lines)


def _variant_text(model: Model) -> str:
    """Return which variant the report shows, and the others."""
    shown = f"{model.name}: {f'variant {model.variant}' if model.variant else 'the base'}"
    if model.images:
        return f"{shown}, as in {', '.join(image.source for image in model.images)}"
    others = [name for name in (*model.variants, None) if name != model.variant]
    return f"{shown}; others, by --variant: {', '.join(name or 'the base' for name in others)}"


def _layers(model: Model) -> Iterator[str]:
    """Yield the sums of the layers, if an import has them."""
    macs = sum(layer.macs or 0 for layer in model.layers)
    cycles = ", ".join(f"{core.cycles:,} ({core.name})" for core in model.cores)
    if macs or cycles:
        parts = [words.counted(len(model.layers), "layer"), *([f"{macs:,} MACs"] if macs else [])]
        yield ", ".join([*parts, *([f"modelled cycles: {cycles}"] if cycles else [])])


def _model(model: Model) -> dict[str, Any]:
    return {
        "model": model.name,
        "variant": model.variant,
        "layer_count": len(model.layers),
        "mac_count": sum(layer.macs or 0 for layer in model.layers) if model.cores else None,
        "cores": [{"core": core.name, "cycles": core.cycles} for core in model.cores],
        "other_variants": [other.variant for other in model.alternatives],
    }


def _json(done: ReportResult) -> dict[str, Any]:
    assert done.report is not None
    return {
        "file": None if done.output is None else str(done.output),
        "sbom": None if done.sbom is None else str(done.sbom),
        "content": None,
        "content_format": done.format,
        "models": [model.name for model in done.report.models],
        "layers": [_model(model) for model in done.report.models],
        "stale": [asdict(stale) for stale in done.report.stale],
        "differences": None if done.differences is None else [change.as_json() for change in done.differences],
        "exceeded": [asdict(row) for row in done.exceeded],
    }
