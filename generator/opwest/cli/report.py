# SPDX-License-Identifier: Apache-2.0
"""`opwest report`: make a report, compare it with an earlier one, write it; make a bill of materials."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from opwest.base.diagnostics import Diagnostics
from opwest.base.result import Result
from opwest.cli.arguments import option_of
from opwest.reports import data, words
from opwest.reports.changes import Change, compare
from opwest.reports.collect import read_inputs, report_of
from opwest.reports.files import read_report, write_report
from opwest.reports.limits import check_limits, parse_limits
from opwest.reports.page import page, picture, pretty_json
from opwest.reports.sbom.collect import make_sbom, render_sbom, write_sbom

FORMATS = ("html", "svg", "json")


def report(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Generate the report, the bill of materials, or both."""
    _check(options, faults)
    inputs = read_inputs(options.paths, faults)
    bill = ""
    if options.sbom is not None:
        bill = render_sbom(make_sbom(inputs, options.firmware, options.zephyr_spdx, faults), options.sbom)
    if options.output is None:
        return _bill_only(options.sbom, bill)
    kind = _format(options)
    limits = parse_limits(options.fail_on, faults, has_baseline=options.compare is not None)
    faults.raise_if_errors()
    before = None if options.compare is None else read_report(options.compare)
    current = report_of(inputs, options.profile, faults, options.firmware, options.variant)
    changes = None if before is None else compare(before, current)
    content = _render(kind, current, changes, options.compare)
    shown = _json(current, changes, options, kind)
    if options.sbom is not None:
        write_sbom(options.sbom, bill)
    if str(options.output) != "-":
        write_report(options.output, content)
    # After the report is written: it shows the reasons.
    shown["exceeded"] = [asdict(row) for row in check_limits(limits, before, current, options.compare, faults)]
    if str(options.output) == "-":
        return Result(content.removesuffix("\n"), {**shown, "report": content}, is_content=True)
    return Result(_text(current, changes, options.output), shown)


def _check(options: argparse.Namespace, faults: Diagnostics) -> None:
    """Report options that have no effect together."""
    if options.output is None and options.sbom is None:
        options.usage_error("one of the arguments -o/--output --sbom is required")
    if options.sbom is None and options.zephyr_spdx is not None:
        faults.error("--zephyr-spdx has no effect without --sbom")
    if options.output is None:
        for name in ("format", "profile", "compare", "fail_on", "variant"):
            if getattr(options, name):
                message = f"{option_of(name)} has no effect on a bill of materials"
                faults.error(message, hint="add --output FILE for a report")
    elif options.compare is not None and _format(options) == "svg":
        faults.error("--compare has no effect on a picture", expected="the format html or json")
    if options.output is not None and options.sbom is not None and _same(options.output, options.sbom):
        faults.error("--output and --sbom name the same file", expected="two files")
    elif options.output is not None and str(options.sbom) == "-":
        faults.error("--sbom - prints the bill of materials only", hint="omit --output, or name a file")
    faults.raise_if_errors()


def _same(path: Path, other: Path) -> bool:
    """Whether two paths name the same file; `-` is no file."""
    return str(path) == str(other) or ("-" not in (str(path), str(other)) and path.resolve() == other.resolve())


def _bill_only(path: Path, content: str) -> Result:
    if str(path) == "-":
        return Result(content.removesuffix("\n"), {"sbom": content}, is_content=True)
    write_sbom(path, content)
    return Result(f"{path}: bill of materials", {"sbom": str(path)})


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
        worse = sum(change.verdict == "worse" for change in changes)
        better = sum(change.verdict == "better" for change in changes)
        lines.append(f"  {words.counted(len(changes), 'difference')}: {better} better, {worse} worse")
    return "\n".join(lines)


def _json(
    current: data.Report, changes: tuple[Change, ...] | None, options: argparse.Namespace, kind: str
) -> dict[str, object]:
    return {
        "output": str(options.output),
        **({} if options.sbom is None else {"sbom": str(options.sbom)}),
        "format": kind,
        "models": [model.name for model in current.models],
        "stale": [asdict(stale) for stale in current.stale],
        "differences": None if changes is None else len(changes),
    }
