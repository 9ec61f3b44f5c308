# SPDX-License-Identifier: Apache-2.0
"""The arguments of `opwest report`: apart from what it does, which is loaded only where it is asked for."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_report_options(report: argparse.ArgumentParser) -> None:
    """Add what `opwest report` takes."""
    report.add_argument(
        "paths", metavar="DIR", nargs="+", type=Path, help="a folder that `opwest generate` wrote; or manifests"
    )
    report.add_argument(
        "-o", "--output", metavar="FILE", type=Path, required=True, help="the report; - is standard output"
    )
    report.add_argument(
        "--format",
        choices=("html", "svg", "json"),
        help="html: the page; svg: maps and schedule as a picture; json: the data (default: as FILE ends, or html)",
    )
    report.add_argument(
        "--profile",
        metavar="FILE",
        type=Path,
        action="append",
        default=[],
        help="what `opwest run` measured, written with --json or --output-profile; repeatable",
    )
    report.add_argument(
        "--firmware",
        metavar="ELF",
        type=Path,
        action="append",
        default=[],
        help="a linked image, build/zephyr/zephyr.elf: show what the model takes in it; repeatable",
    )
    report.add_argument(
        "--compare", metavar="REPORT", type=Path, help="an earlier report, of any format: show what changed since"
    )
