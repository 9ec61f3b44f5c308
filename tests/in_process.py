# SPDX-License-Identifier: Apache-2.0
"""The command `opwest` in the process of a test: starting an interpreter costs more than most commands."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from opwest.cli.main import main


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def opwest(*words: object) -> Done:
    with tempfile.TemporaryDirectory() as work:
        out, err = Path(work) / "out", Path(work) / "err"
        with _to_file(1, out, contextlib.redirect_stdout), _to_file(2, err, contextlib.redirect_stderr):
            try:
                code = main([str(word) for word in words])
            except SystemExit as end:
                code = int(end.code or 0)
        return Done(code, out.read_text(encoding="utf-8"), err.read_text(encoding="utf-8"))


@contextlib.contextmanager
def _to_file(descriptor: int, path: Path, redirect: type) -> Iterator[None]:
    """Write to a file what this process and its child processes write to a descriptor."""
    kept = os.dup(descriptor)
    with path.open("w", encoding="utf-8", buffering=1) as file, redirect(file):
        os.dup2(file.fileno(), descriptor)
        try:
            yield
        finally:
            os.dup2(kept, descriptor)
            os.close(kept)


def succeed(*words: object) -> Done:
    done = opwest(*words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def fail(*words: object) -> Done:
    done = opwest(*words)
    assert done.returncode == 1, done.stdout + done.stderr
    return done
