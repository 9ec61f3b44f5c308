# SPDX-License-Identifier: Apache-2.0
"""`opwest.report`: a report of models, the differences from an earlier one, and a bill of materials."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from opwest.api.calls import AnyPath, CallResult, Paths, Words, api_function, check_choices, path_of, paths_of, words_of
from opwest.base.diagnostics import Diagnostics
from opwest.base.frozen_dataclass import dataclass
from opwest.reports.changes import Change
from opwest.reports.changes import compare as compare_reports
from opwest.reports.collect import read_inputs, report_of
from opwest.reports.data import Report
from opwest.reports.files import read_report, write_report
from opwest.reports.images import read_images
from opwest.reports.limits import Exceeded, check_limits, parse_limits
from opwest.reports.page import page, picture, pretty_json
from opwest.reports.sbom.collect import make_sbom, render_sbom, write_sbom
from opwest.reports.variants import Selection

Format = Literal["html", "svg", "json"]
FORMATS: tuple[Format, ...] = ("html", "svg", "json")
NO_FILE = "-"
"""The name of an output that is only returned."""


@dataclass(frozen=True)
class ReportResult(CallResult):
    """A report, a bill of materials, or both. If a limit is exceeded, OpwestError has this as `result`."""

    report: Report | None
    """The data: models with pools, buffers, steps and sizes, measurements. None for a bill of materials only."""
    content: str
    """The report in its format."""
    format: Format
    output: Path | None
    """The file of the report; None if it is only returned."""
    differences: tuple[Change, ...] | None
    """The differences from an earlier report; None without one."""
    exceeded: tuple[Exceeded, ...]
    """The figures that exceed their limits."""
    sbom: Path | None
    """The file of the bill of materials."""
    sbom_content: str


@api_function
def report(
    faults: Diagnostics,
    paths: Paths,
    *,
    output: AnyPath | None = None,
    format: Format | None = None,
    profile: Paths = (),
    firmware: Paths = (),
    compare: AnyPath | None = None,
    fail_on: Words = (),
    variant: str | None = None,
    target: str | None = None,
    board: str | None = None,
    sbom: AnyPath | None = None,
    zephyr_spdx: AnyPath | None = None,
) -> ReportResult:
    """Make a report of applications or manifests: memory over time, schedule, flash and RAM, measurements.

    Without `output`, or with `-`, the content is only returned; with `sbom` and without `output`, there is only a bill
    of materials. `firmware` are images or build directories: the report is of the variants that they contain.
    `compare` is an earlier report. A figure that exceeds its limit in `fail_on` is an error.
    """
    check_choices(faults, ("format", format, (None, *FORMATS)))
    file, bill_file, profiles = path_of(output), path_of(sbom), paths_of(profile)
    earlier, images, limited = path_of(compare), paths_of(firmware), words_of(fail_on)
    if file is None and bill_file is None:
        file = Path(NO_FILE)
    kind = _format(format, file)
    given = {"format": format, "profile": profiles, "compare": compare, "fail_on": limited}
    given |= {"variant": variant, "target": target, "board": board}
    _check(given, file, kind, bill_file, path_of(zephyr_spdx), faults)
    inputs = read_inputs(paths_of(paths), faults)
    bill = ""
    linked = read_images(images, faults)
    faults.raise_if_errors()
    if bill_file is not None:
        bill = render_sbom(make_sbom(inputs, linked, path_of(zephyr_spdx), faults), bill_file)
    if file is None:
        assert bill_file is not None
        if str(bill_file) != NO_FILE:
            write_sbom(bill_file, bill)
        return ReportResult(None, "", kind, None, None, (), bill_file, bill)
    limits = parse_limits(limited, faults, has_baseline=earlier is not None)
    faults.raise_if_errors()
    before = None if earlier is None else read_report(earlier)
    current = report_of(inputs, profiles, faults, linked, Selection(variant, target, board))
    changes = None if before is None else compare_reports(before, current)
    content = _render(kind, current, changes, earlier)
    if bill_file is not None:
        write_sbom(bill_file, bill)
    if str(file) != NO_FILE:
        write_report(file, content)
    # After the report is written: it shows the reasons.
    exceeded = tuple(check_limits(limits, before, current, earlier, faults))
    written = None if str(file) == NO_FILE else file
    return ReportResult(current, content, kind, written, changes, exceeded, bill_file, bill)


def _check(
    given: Mapping[str, object],
    file: Path | None,
    kind: Format,
    bill: Path | None,
    spdx: Path | None,
    faults: Diagnostics,
) -> None:
    """Report options that have no effect together. Raises OpwestError."""
    if bill is None and spdx is not None:
        faults.error("--zephyr-spdx has no effect without --sbom")
    if file is None:
        for name, value in given.items():
            if value:
                message = f"--{name.replace('_', '-')} has no effect on a bill of materials"
                faults.error(message, hint="add --output FILE for a report")
    elif given["compare"] is not None and kind == "svg":
        faults.error("--compare has no effect on a picture", expected="the format html or json")
    if file is not None and bill is not None and _same(file, bill):
        faults.error("--output and --sbom name the same file", expected="two files")
    elif file is not None and str(bill) == NO_FILE:
        faults.error("--sbom - prints the bill of materials only", hint="omit --output, or name a file")
    faults.raise_if_errors()


def _same(path: Path, other: Path) -> bool:
    """Whether two paths name the same file; `-` is no file."""
    return str(path) == str(other) or (NO_FILE not in (str(path), str(other)) and path.resolve() == other.resolve())


def _format(given: Format | None, file: Path | None) -> Format:
    """Return the format: the given one, else the suffix of the file."""
    if given is not None:
        return given
    suffix = file.suffix.lower().removeprefix(".") if file is not None else ""
    return next((name for name in FORMATS if name == suffix), "html")


def _render(kind: Format, current: Report, changes: tuple[Change, ...] | None, against: Path | None) -> str:
    if kind == "svg":
        return picture(current)
    if kind == "json":
        return pretty_json(current, changes)
    return page(current, changes, None if against is None else against.name)
