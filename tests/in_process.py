# SPDX-License-Identifier: Apache-2.0
"""The command `opwest` in the process of a test: starting an interpreter costs more than most commands."""

from __future__ import annotations

import contextlib
import io
from typing import NamedTuple

from opwest.cli.main import main


class Done(NamedTuple):
    """An ended command."""

    returncode: int
    stdout: str
    stderr: str


def opwest(*words: object) -> Done:
    """Run a command."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main([str(word) for word in words])
        except SystemExit as end:
            code = int(end.code or 0)
    return Done(code, out.getvalue(), err.getvalue())


def succeed(*words: object) -> Done:
    """Run a command that must succeed."""
    done = opwest(*words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def fail(*words: object) -> Done:
    """Run a command that must report an error."""
    done = opwest(*words)
    assert done.returncode == 1, done.stdout + done.stderr
    return done
