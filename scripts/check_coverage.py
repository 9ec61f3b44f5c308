# SPDX-License-Identifier: Apache-2.0
"""Check the coverage of generator/ by the tests: lines per directory.

Usage: check_coverage.py coverage.json (of `coverage json`). Exit code 1 if the tests reach a smaller share of the
lines than LEAST. Branches are not measured: before Python 3.14 that adds 70 % to the time of the tests. `make mutation`
also changes conditions.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from collections import defaultdict
from pathlib import Path

LEAST = 96.0
"""Per cent."""
PACKAGE = "generator/opwest/"
OPTIONAL = {"frontends/tvm": "tvm"}
"""Directories that require an optional package."""
COUNTS = ("num_statements", "covered_lines")


def main() -> int:
    """Print the table; exit with 1 below the minimum."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    given = parser.parse_args()
    files = json.loads(given.file.read_text(encoding="utf-8"))["files"]
    folders: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for name, found in files.items():
        folder = Path(name.replace("\\", "/").rpartition(PACKAGE)[2]).parent.as_posix()
        folders[folder] = [a + found["summary"][key] for a, key in zip(folders[folder], COUNTS, strict=True)]
    left_out = {folder: why for folder in folders if (why := reason_left_out(folder))}
    total = [sum(row[i] for folder, row in folders.items() if folder not in left_out) for i in range(2)]
    print(f"{'':<16}{'lines':>8}{'reached':>9}")
    for folder, row in sorted(folders.items()):
        remark = f"   not counted: {left_out[folder]}" if folder in left_out else ""
        print(line("opwest" if folder == "." else folder, row) + remark)
    print(line("all", total))
    reached = share(total[1], total[0])
    if reached < LEAST:
        print(f"error: {reached:.1f} % of the lines are reached, expected at least {LEAST:g} %")
    return int(reached < LEAST)


def reason_left_out(folder: str) -> str | None:
    """Return why a directory does not count, None if it does."""
    if folder in OPTIONAL and importlib.util.find_spec(OPTIONAL[folder]) is None:
        return f"{OPTIONAL[folder]} is not installed"
    return None


def line(name: str, row: list[int]) -> str:
    """Return one row of the table."""
    lines, covered = row
    return f"{name:<16}{lines:>8,}{share(covered, lines):>8.1f}%"


def share(part: int, whole: int) -> float:
    """Return per cent."""
    return 100.0 * part / whole if whole else 100.0


if __name__ == "__main__":
    sys.exit(main())
