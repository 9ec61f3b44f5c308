# SPDX-License-Identifier: Apache-2.0
"""Builds of C programs with files of the runtime, without a generated project."""

from collections.abc import Sequence
from pathlib import Path

from c_support import RUNTIME, SANITIZED, compile_all, run, runtime_objects
from requirements_support import need_compiler

PROGRAMS = Path(__file__).parent / "programs"


def build_with_runtime(
    work: Path, main: Path, names: Sequence[str], flags: Sequence[str] = SANITIZED, compiler: str = "gcc"
) -> Path:
    """Build `main` with files of the runtime's src/ and its drivers, which tests with equal flags share."""
    need_compiler(compiler, flags, link=True)
    compile_all(work / "main", [main], compiler, flags, [f"-I{RUNTIME / 'include'}"])
    shared = runtime_objects([RUNTIME / "src" / name for name in names], compiler, flags)
    run([compiler, *flags, *(work / "main").glob("*.o"), *shared, "-pthread", "-o", "program"], work)
    return work / "program"
