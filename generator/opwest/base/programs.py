# SPDX-License-Identifier: Apache-2.0
"""Run programs of this machine at the same time, each with a time limit: a broken program does not block the others."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Mapping

from opwest.base import processes, timing
from opwest.base.frozen_dataclass import dataclass

SECONDS = 5.0
"""The time limit. The first start of a program can take seconds, for example under a virus scanner."""
_MAX_TEXT = 1 << 16
_PARENTHESES = re.compile(r"\([^()]*\)")
_VERSION = re.compile(r"(?<![\w.])v?(\d+(?:\.\d+)+)")


@dataclass(frozen=True)
class Command:
    """A command and the text for its standard input."""

    words: tuple[str, ...]
    text: str = ""


@dataclass(frozen=True)
class Answer:
    """The outcome of a command."""

    path: str | None
    """The program; None if it is not installed."""
    output: str = ""
    """Standard output, then standard error."""
    fault: str | None = None
    """Why the command failed; None if its exit code is 0."""

    @property
    def works(self) -> bool:
        """Whether the program is installed and the command succeeded."""
        return self.path is not None and self.fault is None

    @property
    def version(self) -> str | None:
        """The first version number in the output, outside of parentheses; None without one."""
        text = self.output.split("\n", 1)[0]
        while text != (text := _PARENTHESES.sub(" ", text)):
            pass
        match = _VERSION.search(text)
        return match[1] if match else None


def run_all(commands: Mapping[str, Command], seconds: float = SECONDS) -> dict[str, Answer]:
    """Run all commands at the same time; return the outcome of each after at most about `seconds`."""
    answers: dict[str, Answer] = {}
    threads = []
    end = time.monotonic() + seconds
    for key, command in commands.items():
        path = shutil.which(command.words[0])
        if path is None:
            answers[key] = Answer(None)
            continue
        timing.started((path, *command.words[1:]))
        # Not a pool: the interpreter waits for the threads of a pool at its end.
        thread = threading.Thread(target=_run, args=(key, path, command, end, answers), daemon=True)
        thread.start()
        threads.append((key, path, thread))
    for key, path, thread in threads:
        thread.join(max(0.0, end + 1 - time.monotonic()))
        answers.setdefault(key, Answer(path, fault=_silent(seconds)))
    return {key: answers[key] for key in commands}


def _silent(seconds: float) -> str:
    return f"no answer within {seconds:g} s"


def _run(key: str, path: str, command: Command, end: float, answers: dict[str, Answer]) -> None:
    began = time.monotonic()
    try:
        process = subprocess.Popen(
            (path, *command.words[1:]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            env={**os.environ, "LC_ALL": "C"},
            **processes.group(),  # so that its children end with it
        )
    except (OSError, ValueError) as error:
        answers[key] = Answer(path, fault=f"cannot start: {getattr(error, 'strerror', None) or error}")
        return
    try:
        out, err = process.communicate(command.text, timeout=max(0.1, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        _end(process)
        answers[key] = Answer(path, fault=_silent(round(time.monotonic() - began)))
        return
    output = "\n".join(part.strip() for part in (out, err) if part.strip())[:_MAX_TEXT]
    fault = None
    if process.returncode != 0:
        last = _reason(err or out)
        fault = f"exit code {process.returncode}" + (f": {last}" if last else "")
    answers[key] = Answer(path, output, fault)


def _end(process: subprocess.Popen[str]) -> None:
    """End a program and its children; do not wait for one that cannot end."""
    with contextlib.suppress(OSError):
        processes.kill_group(process)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.communicate(timeout=0.2)


def _reason(text: str) -> str:
    """Return the line of an output that contains the error, else its last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    reason = next((line for line in lines if "error" in line.lower()), lines[-1] if lines else "")
    return reason[:200]
