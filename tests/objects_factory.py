# SPDX-License-Identifier: Apache-2.0
"""Objects for tests, built from C with an installed compiler.

`opwest inspect` and `opwest check` must have the same judgement on each.
"""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from judgements import compare_judgements
from requirements_support import need
from tracing import untraced


def compile_object(
    tmp_path: Path,
    source: str,
    compiler: str = "gcc",
    flags: Sequence[str] = (),
    name: str = "operators.o",
) -> Path:
    """Compile C text to an object in `tmp_path` and return its path; skip without the compiler."""
    need(compiler, *(["gcc -m32"] if "-m32" in flags else []))
    tmp_path.mkdir(parents=True, exist_ok=True)
    target = tmp_path / name
    text = target.with_suffix(".c")
    text.write_text(source)
    command = [compiler, "-O2", "-c", "-o", target.name, *flags, text.name]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    if result.returncode:
        pytest.fail(f"{' '.join(command)}:\n{result.stderr}")
    with untraced():
        compare_judgements(target)
    return target


def make_archive(path: Path, members: Sequence[Path], tool: str = "ar", flags: str = "rcsD") -> Path:
    """Put objects into a new archive and return its path."""
    need(tool)
    path.unlink(missing_ok=True)
    subprocess.run([tool, flags, path, *members], check=True, capture_output=True)
    with untraced():
        compare_judgements(path)
    return path
