# SPDX-License-Identifier: Apache-2.0
"""Print the slowest 20 tests of the last `make test` and `make test-rest`, and the sums of directories."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "build" / "tests"
SHOWN = 20


def print_times(command: str, lines: list[str]) -> None:
    """Print the times of one command; a line is the seconds and the test."""
    tests = [(float(seconds), test) for seconds, _, test in (line.partition(" ") for line in lines)]
    folders: Counter[str] = Counter()
    for seconds, test in tests:
        folders["/".join(test.split("::")[0].split("/")[:2])] += seconds
    print(f"{command}: {sum(seconds for seconds, _ in tests):.0f} s of tests in all processes")
    for seconds, test in sorted(tests, reverse=True)[:SHOWN]:
        print(f"  {seconds:7.1f} s  {test}")
    for folder, seconds in folders.most_common():
        print(f"  {seconds:7.1f} s  {folder}")


def main() -> int:
    """Print the times that tests/conftest.py wrote; return 1 without them."""
    found = {f"make {name}": FOLDER / f"times_{tier}.txt" for name, tier in (("test", "host"), ("test-rest", "rest"))}
    for command, path in found.items():
        if path.exists():
            print_times(command, path.read_text(encoding="utf-8").splitlines())
    if not any(path.exists() for path in found.values()):
        print(f"error: {FOLDER} has no times of tests\n  expected: those of a run\n  hint: run make test")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
