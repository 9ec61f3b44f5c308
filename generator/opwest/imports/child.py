# SPDX-License-Identifier: Apache-2.0
"""Imports in a child process: files are hostile, and packages that parse them can abort."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path
from typing import Any

from opwest.compiler import child
from opwest.compiler.request import Imported, Options
from opwest.frontends.vela.request import Options as VelaOptions


def import_and_compare(
    path: Path, folder: Path, options: Options, progress: child.Progress
) -> tuple[Imported, dict[str, Any] | None]:
    """Import a trained model; return the arrays of a comparison too, if the options request one."""
    if not options.compare:
        return import_in_child(path, folder, options, progress), None
    with tempfile.TemporaryDirectory(prefix="opwest-") as work:
        arrays = Path(work) / "arrays.npz"
        done = import_in_child(path, folder, dataclasses.replace(options, arrays=str(arrays)), progress)
        return done, _loaded(arrays)


def import_in_child(path: Path, folder: Path, options: Options | VelaOptions, progress: child.Progress) -> Imported:
    """Import a file; Vela's options select the importer of Vela's files. Raises OpwestError before it writes."""
    given = {field.name: getattr(options, field.name) for field in dataclasses.fields(options)}
    given["is_vela"] = isinstance(options, VelaOptions)
    return Imported(**child.import_in_child(__name__, path, folder, given, progress))


def _loaded(path: Path) -> dict[str, Any]:
    import numpy as np

    with np.load(path, allow_pickle=False) as data:
        return {name: data[name] for name in data.files}


def _run(path: Path, folder: Path, options: dict[str, Any], progress: child.Progress) -> Imported:
    if options.pop("is_vela"):
        from opwest.imports import vela

        return vela.import_vela(path, folder, VelaOptions(**options), progress)
    from opwest.imports.convert import import_model

    return import_model(path, folder, Options(**options), progress)


if __name__ == "__main__":
    child.serve(_run, "cannot import the model")
