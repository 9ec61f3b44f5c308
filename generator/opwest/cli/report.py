# SPDX-License-Identifier: Apache-2.0
"""`opwest report`: make a report, compare it with an earlier one, write it."""

from __future__ import annotations

import argparse
from pathlib import Path

from opwest.diagnostics import Diagnostics
from opwest.report import data, words
from opwest.report.changes import Change, compare
from opwest.report.files import read_report, write_report
from opwest.report.limits import check_limits, parse_limits
from opwest.report.make import make_report
from opwest.report.page import page, pretty_json
from opwest.report.picture import picture
from opwest.result import Result

FORMATS = ("html", "svg", "json")


def report(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Generate the report."""
    kind = _format(options)
    if kind == "svg" and options.compare is not None:
        faults.error("--compare has no effect on a picture", expected="the format html or json")
        faults.raise_if_errors()
    limits = parse_limits(options.fail_on, faults, has_baseline=options.compare is not None)
    faults.raise_if_errors()
    before = None if options.compare is None else read_report(options.compare)
    current = make_report(options.paths, options.profile, faults, options.firmware, options.variant)
    changes = None if before is None else compare(before, current)
    content = _render(kind, current, changes, options.compare)
    shown = _json(current, changes, options, kind)
    if str(options.output) != "-":
        write_report(options.output, content)
    # After the report is written: it shows the reasons.
    shown["exceeded"] = [one.as_json() for one in check_limits(limits, before, current, options.compare, faults)]
    if str(options.output) == "-":
        return Result(content.removesuffix("\n"), {**shown, "report": content}, is_content=True)
    return Result(_text(current, changes, options.output), shown)


def _format(options: argparse.Namespace) -> str:
    """Return the format: the option, else the suffix of the file."""
    if options.format is not None:
        return str(options.format)
    suffix = options.output.suffix.lower().removeprefix(".")
    return suffix if suffix in FORMATS else "html"


def _render(kind: str, current: data.Report, changes: tuple[Change, ...] | None, against: Path | None) -> str:
    if kind == "svg":
        return picture(current)
    if kind == "json":
        return pretty_json(current, changes)
    return page(current, changes, None if against is None else against.name)


def _text(current: data.Report, changes: tuple[Change, ...] | None, output: Path) -> str:
    lines = [f"{output}: {', '.join(model.name for model in current.models)}"]
    for model in current.models:
        lines += [
            f"  {model.name}: pool {pool.name} {words.counted(pool.planned, 'byte')}, peak in step {pool.peak.step}"
            for pool in model.pools
        ]
    if changes is not None:
        worse = sum(one.verdict == "worse" for one in changes)
        better = sum(one.verdict == "better" for one in changes)
        lines.append(f"  {words.counted(len(changes), 'difference')}: {better} better, {worse} worse")
    return "\n".join(lines)


def _json(
    current: data.Report, changes: tuple[Change, ...] | None, options: argparse.Namespace, kind: str
) -> dict[str, object]:
    return {
        "output": str(options.output),
        "format": kind,
        "models": [model.name for model in current.models],
        "stale": [{"model": one.model, "file": one.file, "state": one.state} for one in current.stale],
        "differences": None if changes is None else len(changes),
    }
