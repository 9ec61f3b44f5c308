# SPDX-License-Identifier: Apache-2.0
"""The summary of a campaign: the comparisons of all tests of operators, by operator."""

import os

import pytest
from models.records import aligned, summary, take


@pytest.fixture(autouse=True)
def recorded(record_property):
    """Attach the comparisons of a test to its report."""
    take()
    yield
    rows = take()
    if rows:
        record_property("operators", rows)


def pytest_terminal_summary(terminalreporter):
    """Print the comparisons of a campaign, `make models`."""
    if not os.environ.get("OPWEST_CAMPAIGN"):
        return
    found = {"operators": [], "boards": [], "damaged": []}
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", "") in ("call", "teardown"):
                for name, value in getattr(report, "user_properties", []):
                    # The reports of a test's teardown repeat the properties of its call.
                    if name in found and value not in found[name]:
                        found[name].append(value)
    if found["operators"]:
        terminalreporter.section("operators of trained models")
        for line in summary([row for rows in found["operators"] for row in rows]):
            terminalreporter.line(line.rstrip())
    if found["damaged"]:
        terminalreporter.section("damaged files")
        titles = ("format", "stage", "files", "accepted", "refused", "longest s", "largest MiB")
        for line in aligned([titles, *(tuple(map(str, row)) for row in found["damaged"])]):
            terminalreporter.line(line.rstrip())
    if found["boards"]:
        terminalreporter.section("sample of the operators on boards")
        for where, rows in found["boards"]:
            terminalreporter.line(f"{where}: {len(rows)} results")
