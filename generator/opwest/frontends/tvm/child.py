# SPDX-License-Identifier: Apache-2.0
"""An import through TVM in a child process: a damaged file can make TVM or LLVM abort."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from opwest.compiler import child
from opwest.frontends.tvm.convert import Imported, Options, import_model
from opwest.frontends.tvm.read import Progress


def import_in_child(path: Path, folder: Path, options: Options) -> Imported:
    """Import a file in a child process. Raises OpwestError before anything is written."""
    given = {"model": options.model, "targets": list(options.targets), "vectors": options.vectors}
    return Imported(**child.import_in_child(__name__, path, folder, given, options.progress))


def _run(path: Path, folder: Path, options: dict[str, Any], progress: Progress) -> Imported:
    return import_model(path, folder, Options(**options, progress=progress))


if __name__ == "__main__":
    child.serve(_run, "TVM cannot import the model")
