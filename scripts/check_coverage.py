# SPDX-License-Identifier: Apache-2.0
"""Check the coverage of generator/ by the tests: lines and branches per directory.

Usage: check_coverage.py coverage.json (of `coverage json`). Exit code 1 where fewer lines are reached than LEAST.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections import defaultdict
from pathlib import Path

LEAST = 92.0
"""Per cent of lines."""
PACKAGE = "generator/opwest/"
OPTIONAL = {"importers/tvm": "tvm"}
"""Directories that require an optional package."""
COUNTS = ("num_statements", "covered_lines", "num_branches", "covered_branches")


def main() -> int:
    """Print the table; exit with 1 below the minimum."""
    files = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["files"]
    folders: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for name, found in files.items():
        folder = Path(name.replace("\\", "/").rpartition(PACKAGE)[2]).parent.as_posix()
        folders[folder] = [a + found["summary"][key] for a, key in zip(folders[folder], COUNTS, strict=True)]
    left_out = [f for f, package in OPTIONAL.items() if f in folders and importlib.util.find_spec(package) is None]
    total = [sum(row[i] for folder, row in folders.items() if folder not in left_out) for i in range(4)]
    print(f"{'':<16}{'lines':>8}{'reached':>9}{'branches':>10}{'reached':>9}")
    for folder, row in sorted(folders.items()):
        remark = f"   not counted: {OPTIONAL[folder]} is not installed" if folder in left_out else ""
        print(line("opwest" if folder == "." else folder, row) + remark)
    print(line("all", total))
    reached = share(total[1], total[0])
    if reached < LEAST:
        print(f"line coverage is {reached:.1f} %, minimum {LEAST:g} %")
    return int(reached < LEAST)


def line(name: str, row: list[int]) -> str:
    """Return one row of the table."""
    lines, covered, branches, taken = row
    return f"{name:<16}{lines:>8,}{share(covered, lines):>8.1f}%{branches:>10,}{share(taken, branches):>8.1f}%"


def share(part: int, whole: int) -> float:
    """Return per cent."""
    return 100.0 * part / whole if whole else 100.0


if __name__ == "__main__":
    sys.exit(main())
