# SPDX-License-Identifier: Apache-2.0
"""The installed runtime, and a check of applications for it."""

from __future__ import annotations

from pathlib import Path

from opwest.diagnostics import Diagnostic, Location, OpwestError
from opwest.resources import resource
from opwest.system.commands import quoted
from opwest.write import disk
from opwest.write.lock import read_lock

_COPY = "modules/opwest/"


def installed_runtime(project: Path) -> Path:
    """Return the runtime installed with this opwest.

    Raises OpwestError if `project` has a copy of another version, for which its models were generated.
    """
    root = resource("zephyr_module")
    lock = read_lock(project)
    copied = {} if lock is None else lock.files
    for path, digest in copied.items():
        if path.startswith(_COPY) and disk.look(root, path.removeprefix(_COPY)) != digest:
            raise OpwestError(
                [
                    Diagnostic(
                        "error",
                        "the application has the runtime of another version of opwest",
                        Location(str(project / path)),
                        hint=f"generate it again: opwest update {quoted(str(project))}",
                    )
                ]
            )
    return root
