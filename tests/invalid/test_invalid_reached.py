# SPDX-License-Identifier: Apache-2.0
"""The cases in this directory reach every error that reading, resolving and planning can report."""

from __future__ import annotations

import ast
import contextlib
import sys
from pathlib import Path
from types import FrameType

import opwest
import pytest
from opwest.cli.main import main
from opwest.diagnostics import Diagnostics
from opwest.manifest.arrays import ArrayError
from requirements_support import need
from test_invalid import CASES, prepare
from workshop import Workshop

PACKAGE = Path(opwest.__file__).parent
FILES = sorted([*(PACKAGE / "manifest").glob("*.py"), *(PACKAGE / "model").glob("*.py")])
FILES += [PACKAGE / "plan/memory.py", PACKAGE / "plan/fixed.py", PACKAGE / "packing/judge.py"]
FILES += [PACKAGE / "ethos_u/check.py"]
FILES.remove(PACKAGE / "model/ir.py")  # needs llvmlite: tests/llvm/test_ir_errors.py

# Errors that no manifest in this directory can cause: parts of their text, with another test or the reason.
ELSEWHERE = {
    "examined.error(reason.text, item.file.location": "tests/llvm/test_link_checks.py",
    "does not fit operator": "tests/llvm/test_link_checks.py",
    "the manifest is a directory": "test_invalid_files.py",
    "the manifest is not a regular file": "test_invalid_files.py",
    "the file has {path.stat().st_size} bytes": "test_invalid_files.py",
    "cannot read the manifest: {error.strerror}": "test_invalid_files.py",
    "cannot read {path.name!r}: {error.strerror}": "test_invalid_files.py: root may read every file",
    "{where} has {info.file_size} bytes": "tests/fuzz: more than 1 GiB; an .npz can say so in few bytes",
    "model {model.name!r} has {count} {what}": "tests/unit/model/test_model_counts.py: a manifest takes 10 s",
    "invalid version in the %YAML directive": "tests/fuzz/regressions.zip: yaml",
    "invalid YAML: {error}": "no YAMLError without a place is known; kept for new versions of PyYAML",
}

Place = tuple[str, int]


def error_calls(path: Path) -> dict[tuple[int, int], str]:
    """Return the first and last line of every call that creates an error, with its source text."""
    text = path.read_text(encoding="utf-8")
    found = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in ("error", "_fail", "ArrayError"):
                found[node.lineno, node.end_lineno or node.lineno] = ast.get_source_segment(text, node) or ""
    return found


@contextlib.contextmanager
def lines_that_report(monkeypatch: pytest.MonkeyPatch, seen: set[Place]):
    """Record all lines on the stack when an error is created."""

    def record() -> None:
        frame: FrameType | None = sys._getframe(2)
        while frame is not None:
            if frame.f_code.co_filename.startswith(str(PACKAGE)):
                seen.add((frame.f_code.co_filename, frame.f_lineno))
            frame = frame.f_back

    report, make = Diagnostics.error, ArrayError.__init__

    def error(self: Diagnostics, *arguments, **named) -> None:
        record()
        report(self, *arguments, **named)

    def init(self: ArrayError, *arguments, **named) -> None:
        record()
        make(self, *arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(Diagnostics, "error", error)
        patch.setattr(ArrayError, "__init__", init)
        yield


def test_every_error_is_reached(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    need("arm-none-eabi-gcc", "riscv64-unknown-elf-gcc", "clang")
    monkeypatch.chdir(workshop.folder)
    seen: set[Place] = set()
    with lines_that_report(monkeypatch, seen):
        for case in CASES:
            # A case without its compiler is skipped, and a crash fails its own test: all others count.
            with contextlib.suppress(Exception, pytest.skip.Exception):
                main(["check", *prepare(case, workshop)])
    capsys.readouterr()

    unreached = []
    unknown = set(ELSEWHERE)
    for path in FILES:
        for (first, last), text in error_calls(path).items():
            words = next((part for part in ELSEWHERE if part in text), None)
            reached = any((str(path), line) in seen for line in range(first, last + 1))
            unknown.discard(words or "")
            if not reached and words is None:
                unreached.append(f"{path.relative_to(PACKAGE)}:{first}: {' '.join(text.split())}")
    assert not unreached, "no case shows\n" + "\n".join(unreached)
    assert not unknown, f"no code reports {unknown}"
