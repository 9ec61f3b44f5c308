# SPDX-License-Identifier: Apache-2.0
"""Reading the runtime that applications get a copy of."""

from __future__ import annotations

from pathlib import PurePosixPath

from opwest.resources import resource


def read_runtime() -> dict[PurePosixPath, bytes]:
    """Return the files of the runtime module, by path inside it."""
    root = resource("zephyr_module")
    return {
        PurePosixPath(path.relative_to(root).as_posix()): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
