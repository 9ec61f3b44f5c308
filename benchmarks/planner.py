# SPDX-License-Identifier: Apache-2.0
"""The results of the memory planners: tables in MiniMalloc's format, each in its own process, and whole models.

The name of a table contains its capacity, as in A.1048576.csv; without it, the search minimises the plan.
Tables default to those of ../shared/minimalloc (eleven challenging problems of the MiniMalloc paper, and its example);
models are directories with a manifest.yaml, as written by `opwest import tflite`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import Report, SkippedError, opwest_command, parser

TABLES = Path(__file__).resolve().parents[2] / "shared" / "minimalloc"
MAX_SECONDS = 60.0
MAX_SECONDS_MODEL = 5.0


def run(command: Sequence[str]) -> tuple[dict[str, Any], float, float]:
    """Return the JSON output of an opwest command, with its processor time and clock time in seconds."""
    before, began = os.times(), time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    after, clock = os.times(), time.perf_counter() - began
    report = json.loads(done.stdout)
    if report["result"] is None:
        raise SkippedError(report["diagnostics"][0]["message"])
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return report["result"], cpu, clock


def table_row(table: Path) -> tuple[list[Any], float]:
    """Return the row of one table, and its processor time."""
    capacity = table.stem.rpartition(".")[2]
    limit = ["--capacity", capacity] if capacity.isdigit() else []
    found, cpu, clock = run([*opwest_command(), "plan", str(table), "--json", *limit])
    fits = {True: "yes", False: "no", None: "-"}[found["fits"]]
    name = table.stem.removesuffix(f".{capacity}") if limit else table.stem
    sizes = [found[key] for key in ("buffer_count", "lower_bound_bytes", "greedy_bytes", "bytes")]
    return [name, *sizes, capacity if limit else "-", fits, cpu, clock], cpu


def model_rows(folder: Path) -> tuple[list[list[Any]], float]:
    """Return a row for every pool of a model, and the processor time of the whole check."""
    found, cpu, clock = run([*opwest_command(), "check", str(folder / "manifest.yaml"), "--json"])
    return [
        [model["model"], pool["name"], pool["lower_bound_bytes"], pool["bytes"], cpu, clock]
        for model in found
        for pool in model["pools"]
    ], cpu


def main() -> int:
    """Measure, print, compare with the limits."""
    options = parser(__doc__)
    options.add_argument(
        "tables", metavar="TABLE.csv", type=Path, nargs="*", help="default: all of ../shared/minimalloc"
    )
    options.add_argument(
        "--models", metavar="DIR", type=Path, nargs="+", default=[], help="directories with a manifest.yaml"
    )
    given = options.parse_args()
    report = Report("Memory planning")
    tables = given.tables or sorted(TABLES.glob("*.csv"))
    if not tables and not given.models:
        report.skip("tables", f"none given, and {TABLES.name} does not exist")
        return report.finish(given.json)
    rows, times = [], {}
    for table in tables:
        try:
            row, cpu = table_row(table)
        except SkippedError as reason:
            report.skip(table.name, reason)
            continue
        rows.append(row)
        times[row[0]] = (cpu, row[6] == "yes")
    if rows:
        columns = ["problem", "buffers", "lower bound", "greedy", "peak", "capacity", "fits", "CPU s", "clock s"]
        report.table("`opwest plan TABLE --capacity N`, bytes.", columns, rows)
    hard = [times[name] for name in "ABCDEFGHIJK" if name in times]
    if len(hard) == 11:
        fitting = sum(fits and cpu <= MAX_SECONDS for cpu, fits in hard)
        what = f"problems A to K that do not fit within {MAX_SECONDS:g} s of processor time"
        report.limit(what, float(11 - fitting), 0.0)
    models = []
    for folder in given.models:
        try:
            found, cpu = model_rows(folder)
        except SkippedError as reason:
            report.skip(str(folder), reason)
            continue
        models += found
        for _, pool, bound, size, *_ in found:
            report.limit(f"{folder.name}, pool {pool}: bytes above the lower bound", float(size - bound), 0.0)
        report.limit(f"{folder.name}: processor time of `opwest check`", cpu, MAX_SECONDS_MODEL, " s")
    if models:
        report.table("`opwest check`, bytes.", ["model", "pool", "lower bound", "peak", "CPU s", "clock s"], models)
    return report.finish(given.json)


if __name__ == "__main__":
    sys.exit(main())
