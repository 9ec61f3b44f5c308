# SPDX-License-Identifier: Apache-2.0
"""A model in a child process with limits: a damaged file can make a library abort, or exhaust the memory."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from opwest.base import timing
from opwest.base.diagnostics import Diagnostic, Location, OpwestError
from opwest.base.processes import exceeded_time, limit_next_request, limit_process, limits_time, signal_name
from opwest.compiler.faults import fault, internal
from opwest.compiler.folder import refuse_occupied

Progress = Callable[[str], None]


def silent(_: str) -> None:
    """Ignore progress."""


ENVIRONMENT = {"PYTHONUTF8": "1", "OPENBLAS_NUM_THREADS": "1"}
"""Variables of an import, and of each process that it starts: requests, answers and messages are UTF-8 on each system;
further threads of numpy cost more processor time than they save."""
MEMORY = 8 << 30
"""Bytes of address space of an import, and of each process that it starts."""
SECONDS = 1800
"""Processor time of each of them."""
_PROGRESS = "opwest: "
"""The prefix of progress lines on the child's standard error."""


def import_in_child(module: str, path: Path, folder: Path, options: Mapping[str, Any], progress: Progress) -> Any:
    """Import a file with a module whose main() calls serve(); return the fields of the result.

    `options` are JSON values. Raises OpwestError before anything is written.
    """
    refuse_occupied(folder)
    made = run_in_child(module, path, folder, options, progress, "the import")
    return {**made, "folder": Path(made["folder"])}


def run_in_child(
    module: str, path: Path, folder: Path, options: Mapping[str, Any], progress: Progress, what: str
) -> dict[str, Any]:
    """Run a module whose main() calls serve(); return the fields of the result, with tuples for lists.

    `what` names the work in the message of a process that fails.
    """
    request = {"path": str(path), "folder": str(folder), "options": dict(options)}
    command = [sys.executable, "-P", "-m", module]
    with (
        timing.command(command),
        tempfile.TemporaryFile("w+", encoding="utf-8") as answers,  # a pipe could block while the other is read
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=answers,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            env={**os.environ, **ENVIRONMENT},
        ) as child,
        _time_limit(child) as is_expired,
    ):
        assert child.stdin is not None and child.stderr is not None
        try:
            child.stdin.write(json.dumps(request))
            child.stdin.close()
            last = ""
            for line in child.stderr:
                if line.startswith(_PROGRESS):
                    last = line.removeprefix(_PROGRESS).strip()
                    progress(last)
            child.wait()
        except BaseException:
            child.kill()
            raise
        answers.seek(0)
        answer = answers.read()
    if child.returncode != 0:
        raise fault(f"{what} {_failure(child.returncode, is_expired())}, after: {last or 'the start'}", str(path))
    return _result(json.loads(answer))


@contextlib.contextmanager
def _time_limit(child: subprocess.Popen[str]) -> Iterator[Callable[[], bool]]:
    """End the child after the time limit where it cannot limit itself; yield whether it was ended."""
    end = time.monotonic() + SECONDS
    timer = threading.Timer(SECONDS, child.kill)
    timer.daemon = True
    if not limits_time():
        timer.start()
    try:
        yield lambda: not limits_time() and time.monotonic() >= end
    finally:
        timer.cancel()


def _failure(code: int, is_expired: bool) -> str:
    """Return a description of the exit code of the child."""
    if is_expired or exceeded_time(code):
        return f"took more than {SECONDS // 60} minutes"
    by = signal_name(code)
    return f"was terminated by {by}" if by else f"failed with exit code {code}"


def _result(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of the result in an answer of the child. Raises OpwestError with its diagnostics."""
    if "diagnostics" in answer:
        diagnostics = []
        for fields in answer["diagnostics"]:
            location = fields.pop("location")
            diagnostics.append(Diagnostic(location=Location(**location) if location else None, **fields))
        raise OpwestError(diagnostics)
    return {key: tuple(value) if isinstance(value, list) else value for key, value in answer["made"].items()}


def serve(run: Callable[[Path, Path, dict[str, Any], Progress], Any], subject: str) -> None:
    """Answer the request on standard input; `run` returns a dataclass whose fields are JSON values or paths.

    Output of libraries is redirected to standard error. `subject` starts the message of an unexpected error.
    """
    answers, sys.stdout = sys.stdout, sys.stderr
    limit_process(MEMORY)
    limit_next_request(SECONDS)
    request = json.load(sys.stdin)
    print(json.dumps(_answer(run, request, subject)), file=answers)


def _answer(run: Any, request: dict[str, Any], subject: str) -> dict[str, Any]:
    """Run one import and return its result as a JSON value."""
    path = Path(request["path"])
    try:
        made = run(path, Path(request["folder"]), request["options"], _print_progress)
        return {"made": json.loads(json.dumps(dataclasses.asdict(made), default=str))}  # paths become text
    except OpwestError as error:
        answer = error
    except MemoryError:
        answer = fault(f"{subject}: more than {MEMORY >> 30} GiB of memory are required", str(path))
    except Exception as error:
        text = str(error).strip().splitlines()[-1:] or [type(error).__name__]
        hint = "the file may be damaged, or use a feature that opwest does not support"
        answer = internal(error, str(path)) or fault(f"{subject}: {text[0]}", str(path), hint=hint)
    return {"diagnostics": [diagnostic.as_json() for diagnostic in answer.diagnostics]}


def _print_progress(text: str) -> None:
    print(f"{_PROGRESS}{text}", file=sys.stderr, flush=True)
