# SPDX-License-Identifier: Apache-2.0
"""Quantisation in a child process: files are hostile, and onnxruntime and torch can abort or exhaust the memory."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from opwest.base.files import retried
from opwest.base.frozen_dataclass import dataclass
from opwest.compiler import child
from opwest.project.disk import refuse_existing, system_faults
from opwest.quantisation.request import Made, Options, Quantised, result_of

FLOWS = {
    "tflite": "opwest.quantisation.tflite",
    "onnx": "opwest.quantisation.onnx",
    "pt2": "opwest.quantisation.pt2",
}
"""The module with quantise() of each format."""
_HINT = "choose another name, or remove the file"


def quantise_in_child(
    path: Path, output: Path, report: Path, kind: str, options: Options, progress: child.Progress
) -> Quantised:
    """Quantise a file; write a model and a report, or neither. Raises OpwestError."""
    for file in (output, report):
        refuse_existing(file, _HINT)
    with tempfile.TemporaryDirectory(prefix="opwest-") as work:
        draft = Path(work) / "model"
        given = {**dataclasses.asdict(options), "kind": kind}
        fields = child.run_in_child(__name__, path, draft, given, progress, "the quantisation")
        content = draft.read_bytes()
    result = result_of(fields["result"])
    text = json.dumps({"version": 1, "model": output.name, **as_json(result)}, indent=2) + "\n"
    with system_faults(output, "cannot write the model", "nothing was written"):
        output.parent.mkdir(parents=True, exist_ok=True)
        _write_both({output: content, report: text.encode()})
    return result


def _write_both(files: Mapping[Path, bytes]) -> None:
    """Write new files, all of them or none."""
    drafts = {file: file.with_name(f".{file.name}.{os.getpid()}.opwest-draft") for file in files}
    done: list[Path] = []
    try:
        for file, content in files.items():
            drafts[file].write_bytes(content)
        for file, draft in drafts.items():
            retried(functools.partial(draft.replace, file))
            done.append(file)
    except BaseException:
        for file in (*drafts.values(), *done):
            with contextlib.suppress(OSError):
                file.unlink()
        raise


def as_json(result: Quantised) -> dict[str, Any]:
    """Return the result as JSON values."""
    values = dataclasses.asdict(result)
    return {**values, "loss": result.loss}


@dataclass(frozen=True)
class _Answer:
    folder: str
    result: dict[str, Any]


def _run(path: Path, folder: Path, options: dict[str, Any], progress: child.Progress) -> _Answer:
    from opwest.frontends.read import read_file

    kind = options.pop("kind")
    flow: Callable[..., Made] = importlib.import_module(FLOWS[kind]).quantise
    made = flow(path, read_file(path), Options(**options), progress)
    folder.write_bytes(made.content)
    return _Answer(str(folder), dataclasses.asdict(made.result))


if __name__ == "__main__":
    child.serve(_run, "cannot quantise the model")
