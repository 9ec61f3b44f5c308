# SPDX-License-Identifier: Apache-2.0
"""What opwest does in child processes, in the process of a test: a start costs more than the work of most of them.

Files of tests that are about these processes, or that end them, are in PROCESSES; all others import models, and run
LiteRT and onnxruntime, in the process of the test. Requests and answers are the same bytes.
"""

import contextlib
import importlib
import json
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from opwest.base import timing
from opwest.base.diagnostics import first_line, printable
from opwest.compiler import child

PROCESSES = ("test_mutated_files.py", "test_runtimes.py", "test_system.py")
_SUBJECTS = {
    "opwest.imports.child": "cannot import the model",
    "opwest.quantisation.child": "cannot quantise the model",
}
"""The modules that can run here, with the start of the message of an unexpected error."""
_run_in_child = child.run_in_child
_patch = pytest.MonkeyPatch()


def use_processes(item: pytest.Item) -> None:
    """Choose where the children of a test run."""
    _patch.undo()
    if item.path.name in PROCESSES or item.path.parent.name == "zephyr":
        return
    _patch.setattr(child, "run_in_child", _run_here)
    with contextlib.suppress(ImportError):  # without numpy
        _patch.setattr(importlib.import_module("opwest.compiler.reference.runtimes"), "_run", _runtime_here)


def _run_here(
    module: str, path: Path, folder: Path, options: Mapping[str, Any], progress: child.Progress, what: str
) -> dict[str, Any]:
    if module not in _SUBJECTS:
        return _run_in_child(module, path, folder, options, progress, what)
    request = json.loads(json.dumps({"path": str(path), "folder": str(folder), "options": dict(options)}))
    run = importlib.import_module(module)._run

    def reported(path: Path, folder: Path, options: dict[str, Any], _: child.Progress) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return run(path, folder, options, progress)

    with timing.command([sys.executable, "-P", "-m", module]):
        answer = json.dumps(child._answer(reported, request, _SUBJECTS[module]))
    return child._result(json.loads(answer))


def _runtime_here(command: list[str], request: Sequence[bytes]) -> tuple[int, bytes]:
    from opwest.compiler.reference import runtimes

    head, content, inputs = json.loads(request[0]), request[1], request[2]
    call = runtimes.Call(**head["call"])
    with timing.command(command), _silence():
        try:
            cases = runtimes._unpacked(runtimes._loaded(inputs), head["cases"])
            found = runtimes._SERVED[call.format](call, content, cases)
        except Exception as error:
            return 0, runtimes._line({"reason": printable(first_line(error))})
    tensors = {f"{case}/tensor/{one}": array for case, some in enumerate(found.tensors) for one, array in some.items()}
    return 0, runtimes._line({"reason": ""}) + runtimes._packed(found.outputs, tensors)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Omit the messages of libraries on standard error, as the parent of a runtime does."""
    kept = os.dup(2)
    with Path(os.devnull).open("w") as nothing, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.dup2(nothing.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
