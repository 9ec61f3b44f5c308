# SPDX-License-Identifier: Apache-2.0
"""Whether an application is complete, and generated from the present manifest and operators."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from opwest.base.commands import quoted
from opwest.base.diagnostics import Diagnostics, Location, OpwestError
from opwest.base.files import with_lf
from opwest.base.paths import spelled
from opwest.project.lock import read_lock
from opwest.project.origin import read_origin

_SHOWN = 3


def check_files(project: Path, faults: Diagnostics) -> None:
    """Report generated files that are missing: version control may have left them out."""
    lock = read_lock(project)
    missing = [name for name in (lock.files if lock else ()) if not os.path.lexists(project / name)]
    if missing:
        more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        faults.error(
            f"generated files are missing: {', '.join(sorted(missing)[:_SHOWN])}{more}",
            Location(str(project)),
            hint=f"run opwest update {quoted(spelled(project))}; rules such as *.o in .gitignore leave such files out",
        )


def note_changes(project: Path, record: dict[str, Any], faults: Diagnostics) -> None:
    """Note inputs of the models that differ from those of the application: it was not generated again."""
    try:
        origin = read_origin(project)
    except OpwestError:
        return  # the record of the manifests is damaged: `update` reports it
    manifests = origin.manifests if origin else ()
    models = record["models"] if len(record["models"]) == len(manifests) else ()
    changed: dict[str, None] = {}
    for model, manifest in zip(models, manifests, strict=False):
        for name, digest in model.get("inputs", {}).items() if manifest.name == model["manifest"] else ():
            path = manifest.parent / name
            if (content := _content(path)) is not None and hashlib.sha256(with_lf(content)).hexdigest() != digest:
                changed[spelled(path)] = None
    if changed:
        names = list(changed)
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        faults.note(
            f"the application is older than {', '.join(names[:_SHOWN])}{more}",
            Location(str(project)),
            hint=f"to run the new version: opwest update {quoted(spelled(project))}",
        )


def _content(path: Path) -> bytes | None:
    """Return the content of a file; None if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError:
        return None
