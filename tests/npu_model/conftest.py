# SPDX-License-Identifier: Apache-2.0
"""The summary of a campaign: the comparisons of applications whose NPU is the model."""

import os

COLUMNS = ("model", "reference", "files", "runs", "values", "differing")


def pytest_terminal_summary(terminalreporter):
    """Print the comparisons of a campaign, `make npu-model`: one row for each model and reference."""
    if not os.environ.get("OPWEST_CAMPAIGN"):
        return
    rows = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", None) != "call":  # the report of the teardown has the same properties
                continue
            for kind, found in report.user_properties:
                if kind == "end to end":
                    numbers = rows.setdefault(tuple(found[:2]), [0, 0, 0, 0])
                    numbers[:] = [one + other for one, other in zip(numbers, (1, *found[2:]), strict=True)]
    if rows:
        terminalreporter.section("applications on the model of the NPU")
        for row in (COLUMNS, *((*key, *(f"{number:,}" for number in numbers)) for key, numbers in rows.items())):
            terminalreporter.line(" | ".join(row))
