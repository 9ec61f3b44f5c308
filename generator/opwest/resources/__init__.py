# SPDX-License-Identifier: Apache-2.0
"""The files of opwest besides its code, in the repository or the installed package: schemas, templates, runtime."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


def resource(name: str) -> Path:
    """Return the directory `schemas`, `project_template` or `zephyr_module`."""
    installed = _PACKAGE / "_share" / name
    return installed if installed.is_dir() else _PACKAGE.parents[1] / name
