# SPDX-License-Identifier: Apache-2.0
"""The calls in opwest that create errors, and those that created one while the cases ran."""

import ast
import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import opwest
import pytest
from opwest.base.diagnostics import Diagnostics
from opwest.manifest.arrays import ArrayError

PACKAGE = Path(opwest.__file__).parent
FILES = sorted([*(PACKAGE / "manifest").glob("*.py"), *(PACKAGE / "model").rglob("*.py")])
FILES += [PACKAGE / "plan/memory.py", PACKAGE / "plan/fixed.py"]
FILES += [PACKAGE / "objects/ethos_u/stream.py"]
FILES.remove(PACKAGE / "model/inputs/ir.py")  # needs llvmlite: tests/llvm/test_ir_errors.py

# Errors that no case can cause: parts of their text, with another test or the reason.
ELSEWHERE = {
    "examined.error(reason.text, item.file.location": "tests/llvm/test_link_checks.py",
    "does not fit operator": "tests/llvm/test_link_checks.py",
    "the manifest is a directory": "test_invalid_files.py",
    "the manifest is not a regular file": "test_invalid_files.py",
    "the file is {what}, no manifest": "tests/cli/test_cli_run.py",
    "the file is {found[0]}, no manifest": "tests/cli/test_cli_one_door.py",
    "the file has {counted(path.stat().st_size, 'byte')}": "test_invalid_files.py",
    "cannot read the manifest: {error.strerror}": "test_invalid_files.py",
    "cannot read {path.name!r}: {error.strerror}": "test_invalid_files.py: root may read every file",
    "{where} has {counted(info.file_size, 'byte')}": "tests/fuzz: more than 1 GiB; an .npz can say so in few bytes",
    "model {model.name!r} has {count} {what}": "tests/unit/model/test_model_entries.py: a manifest takes 10 s",
    "invalid version in the %YAML directive": "tests/fuzz/regressions.zip: yaml",
    "invalid YAML: {error}": "no YAMLError without a place is known; kept for new versions of PyYAML",
}


class Reached:
    """The lines on the stack of every error that was created during `recording`."""

    def __init__(self) -> None:
        self.lines: set[tuple[str, int]] = set()
        self.cases: set[str] = set()
        """The cases that ran; their tests add them."""

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Record errors."""
        report, make = Diagnostics.error, ArrayError.__init__

        def error(self_: Diagnostics, *arguments, **named) -> None:
            self._record()
            report(self_, *arguments, **named)

        def init(self_: ArrayError, *arguments, **named) -> None:
            self._record()
            make(self_, *arguments, **named)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Diagnostics, "error", error)
            patch.setattr(ArrayError, "__init__", init)
            yield

    def _record(self) -> None:
        frame: FrameType | None = sys._getframe(2)
        while frame is not None:
            if frame.f_code.co_filename.startswith(str(PACKAGE)):
                self.lines.add((frame.f_code.co_filename, frame.f_lineno))
            frame = frame.f_back

    def missing(self) -> list[str]:
        """Return the calls that created no error, and the rows of ELSEWHERE without a call."""
        unreached, unknown = [], set(ELSEWHERE)
        for path in FILES:
            for (first, last), text in error_calls(path).items():
                words = next((part for part in ELSEWHERE if part in text), None)
                unknown.discard(words or "")
                if words is None and not any((str(path), line) in self.lines for line in range(first, last + 1)):
                    unreached.append(f"no case for {path.relative_to(PACKAGE)}:{first}: {' '.join(text.split())}")
        return [*unreached, *(f"no code for ELSEWHERE: {part}" for part in unknown)]


def error_calls(path: Path) -> dict[tuple[int, int], str]:
    """Return the first and last line of every call that creates an error, with their text."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    found = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in ("error", "duplicate", "_fail", "ArrayError"):
                last = node.end_lineno or node.lineno
                found[node.lineno, last] = "\n".join(lines[node.lineno - 1 : last])
    return found
