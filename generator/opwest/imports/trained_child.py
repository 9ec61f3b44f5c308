# SPDX-License-Identifier: Apache-2.0
"""An import in a child process: files are hostile, and packages that parse them can abort."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path
from typing import Any

from opwest.compiler import child
from opwest.compiler.request import Imported, Options


def import_in_child(
    path: Path, folder: Path, options: Options, progress: child.Progress
) -> tuple[Imported, dict[str, Any] | None]:
    """Import a file in a child process; return the arrays of a comparison too. Raises OpwestError before it writes."""
    given = {field.name: getattr(options, field.name) for field in dataclasses.fields(options)}
    if not options.compare:
        return Imported(**child.import_in_child(__name__, path, folder, given, progress)), None
    with tempfile.TemporaryDirectory(prefix="opwest-") as work:
        arrays = Path(work) / "arrays.npz"
        given["arrays"] = str(arrays)
        done = Imported(**child.import_in_child(__name__, path, folder, given, progress))
        return done, _loaded(arrays)


def _loaded(path: Path) -> dict[str, Any]:
    import numpy as np

    with np.load(path, allow_pickle=False) as data:
        return {name: data[name] for name in data.files}


def _run(path: Path, folder: Path, options: dict[str, Any], progress: child.Progress) -> Imported:
    from opwest.imports.convert import import_model

    return import_model(path, folder, Options(**options), progress)


if __name__ == "__main__":
    child.serve(_run, "cannot import the model")
