# SPDX-License-Identifier: Apache-2.0
"""The summary of a campaign: the comparisons of all tests of operators, by operator."""

import os
from pathlib import Path

import pytest
from models.bounds import aligned, summary, take

SUMMARY = Path(__file__).resolve().parents[2] / "build" / "models.txt"
DAMAGED = ("format", "stage", "files", "accepted", "refused", "longest s", "largest MiB")
BOARDS = ("board and C library", "results", "greatest float error")


@pytest.fixture(autouse=True)
def recorded(record_property):
    take()
    yield
    rows = take()
    if rows:
        record_property("operators", rows)


@pytest.fixture(scope="module")
def file(request, tmp_path_factory):
    """The file of a module's MODEL, a function that returns its content."""
    path = tmp_path_factory.mktemp("model") / "m.tflite"
    path.write_bytes(request.module.MODEL())
    return path


def pytest_terminal_summary(terminalreporter):
    """Print the comparisons of a campaign, `make models`, and write them to a file."""
    if not os.environ.get("OPWEST_CAMPAIGN"):
        return
    tables = {}
    rows = _properties(terminalreporter, "operators")
    if rows:
        tables["operators of trained models"] = summary([row for test in rows for row in test])
    boards = [(name, str(len(found)), f"{max(far for _, far in found):.1e}") for name, found in
              _properties(terminalreporter, "board")]  # fmt: skip
    if boards:
        tables["a sample of the operators on boards"] = aligned([BOARDS, *boards])
    damaged = [tuple(map(str, row)) for row in _properties(terminalreporter, "damaged")]
    if damaged:
        tables["damaged files"] = aligned([DAMAGED, *damaged])
    lines = []
    for title, table in tables.items():
        terminalreporter.section(title)
        for line in table:
            terminalreporter.line(line.rstrip())
        lines += [title, "", *(line.rstrip() for line in table), ""]
    SUMMARY.parent.mkdir(exist_ok=True)
    SUMMARY.write_text("\n".join(lines), encoding="utf-8")


def _properties(terminalreporter, wanted):
    found = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, value in getattr(report, "user_properties", []):
                if name == wanted:
                    found[report.nodeid] = value  # of the call, and again of the teardown
    return list(found.values())
