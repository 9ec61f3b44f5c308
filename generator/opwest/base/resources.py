# SPDX-License-Identifier: Apache-2.0
"""The files of opwest besides its code, in the repository or the installed package: schemas, templates, runtime."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

_PACKAGE = Path(__file__).resolve().parents[1]


def resource(name: str) -> Path:
    """Return the directory `schemas`, `project_template` or `zephyr_module`."""
    installed = _PACKAGE / "_share" / name
    return installed if installed.is_dir() else _PACKAGE.parents[1] / name


def script(name: str) -> ModuleType:
    """Return a program of `zephyr_module/scripts`, which is not part of a package, as a module."""
    path = resource("zephyr_module") / "scripts" / f"{name}.py"
    known = f"opwest_{name}"
    if known not in sys.modules:
        specification = importlib.util.spec_from_file_location(known, path)
        if specification is None or specification.loader is None:
            raise ImportError(f"cannot load {path}")
        module = importlib.util.module_from_spec(specification)
        sys.modules[known] = module
        specification.loader.exec_module(module)
    return sys.modules[known]
