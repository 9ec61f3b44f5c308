# SPDX-License-Identifier: Apache-2.0
"""An import in a child process: files are hostile, and numpy's reader of archives runs in it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from opwest.compiler import child
from opwest.compiler.request import Imported
from opwest.frontends.vela.request import Options


def import_in_child(path: Path, folder: Path, options: Options, progress: child.Progress) -> Imported:
    """Import a file in a child process. Raises OpwestError before it writes."""
    given = {field.name: getattr(options, field.name) for field in dataclasses.fields(options)}
    return Imported(**child.import_in_child(__name__, path, folder, given, progress))


def _run(path: Path, folder: Path, options: dict[str, Any], progress: child.Progress) -> Imported:
    from opwest.imports.vela import import_vela

    return import_vela(path, folder, Options(**options), progress)


if __name__ == "__main__":
    child.serve(_run, "cannot import the model")
