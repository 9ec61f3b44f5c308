# SPDX-License-Identifier: Apache-2.0
"""`make golden`: store the emitted trees and reports of the golden projects, and print what changed."""

import sys
from difflib import SequenceMatcher
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
FOLDERS = (TESTS / "golden" / "expected", TESTS / "report" / "expected")
REWRITING = (
    "golden/test_golden.py::test_emitted_tree_is_the_expected_one",
    "report/test_report_files.py::test_golden_json",
)


def main() -> int:
    """Return the status of pytest."""
    before = _stored()
    status = pytest.main(["-q", "--rewrite", *(str(TESTS / test) for test in REWRITING)])
    for line in summary(before, _stored()):
        print(line)
    return int(status)


def summary(before: dict[str, list[str]], after: dict[str, list[str]]) -> list[str]:
    """Return a line for each new, deleted and changed file, with its numbers of added and removed lines."""
    rows = []
    for path in sorted(before.keys() | after.keys()):
        old, new = before.get(path), after.get(path)
        if old != new:
            kind = "new" if old is None else "deleted" if new is None else "changed"
            added, removed = _counts(old or [], new or [])
            rows.append(f"{kind:8}{f'+{added} -{removed}':12}{path}")
    return [*rows, f"{len(rows)} of {len(after)} golden files changed" if rows else "no golden file changed"]


def _counts(old: list[str], new: list[str]) -> tuple[int, int]:
    codes = [code for code in SequenceMatcher(None, old, new, autojunk=False).get_opcodes() if code[0] != "equal"]
    return sum(code[4] - code[3] for code in codes), sum(code[2] - code[1] for code in codes)


def _stored() -> dict[str, list[str]]:
    files = [path for folder in FOLDERS for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(TESTS.parent)): path.read_text(encoding="utf-8").split("\n") for path in files}


if __name__ == "__main__":
    sys.exit(main())
