# SPDX-License-Identifier: Apache-2.0
"""Objects for tests, built from C with whatever compiler is there."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest


def requires_compiler(*names: str) -> pytest.MarkDecorator:
    """Return a mark that skips a test, with the reason, where one of the programs is missing."""
    missing = [name for name in names if shutil.which(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} not found on PATH")


def skip_without(*names: str) -> None:
    """Skip the running test, with the reason, where one of the programs is missing."""
    missing = [name for name in names if shutil.which(name) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not found on PATH")


def compile_object(
    tmp_path: Path,
    source: str,
    compiler: str = "gcc",
    flags: Sequence[str] = (),
    name: str = "operators.o",
) -> Path:
    """Compile C text to an object in `tmp_path` and return its path; skip without the compiler.

    A compiler that is there but lacks what `flags` ask for (gcc without -m32) skips as well when
    an empty file does not compile either; any other failure fails the test.
    """
    skip_without(compiler)
    tmp_path.mkdir(parents=True, exist_ok=True)
    target = tmp_path / name
    text = target.with_suffix(".c")
    text.write_text(source)
    command = [compiler, "-O2", "-c", "-o", target.name, *flags, text.name]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    if result.returncode:
        empty = subprocess.run(
            [compiler, "-c", "-x", "c", *flags, "-o", "/dev/null", "-"],
            cwd=tmp_path, input="int empty;", capture_output=True, text=True, check=False,
        )  # fmt: skip
        if empty.returncode:
            pytest.skip(f"{compiler} {' '.join(flags)}: {empty.stderr.strip()[:200]}")
        pytest.fail(f"{' '.join(command)}:\n{result.stderr}")
    return target


def make_archive(path: Path, members: Sequence[Path], tool: str = "ar", flags: str = "rcsD") -> Path:
    """Put objects into a new archive and return its path."""
    skip_without(tool)
    path.unlink(missing_ok=True)
    subprocess.run([tool, flags, path, *members], check=True, capture_output=True)
    return path
