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
from opwest.compiler.folder import refuse_occupied

PROCESSES = ("test_mutated_files.py", "test_runtimes.py", "test_system.py")
_MODULE = "opwest.imports.child"
"""The module whose imports can run here."""
_import_in_child = child.import_in_child
_patch = pytest.MonkeyPatch()


def use_processes(item: pytest.Item) -> None:
    """Choose where the children of a test run."""
    _patch.undo()
    if item.path.name in PROCESSES or item.path.parent.name == "zephyr":
        return
    _patch.setattr(child, "import_in_child", _import_here)
    with contextlib.suppress(ImportError):  # without numpy
        _patch.setattr(importlib.import_module("opwest.compiler.reference.runtimes"), "_run", _runtime_here)


def _import_here(
    module: str, path: Path, folder: Path, options: Mapping[str, Any], progress: child.Progress
) -> dict[str, Any]:
    if module != _MODULE:
        return _import_in_child(module, path, folder, options, progress)
    refuse_occupied(folder)
    request = json.loads(json.dumps({"path": str(path), "folder": str(folder), "options": dict(options)}))
    run = importlib.import_module(module)._run

    def reported(path: Path, folder: Path, options: dict[str, Any], _: child.Progress) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return run(path, folder, options, progress)

    with timing.command([sys.executable, "-P", "-m", module]):
        answer = json.dumps(child._answer(reported, request, "cannot import the model"))
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
