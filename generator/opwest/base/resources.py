# SPDX-License-Identifier: Apache-2.0
"""The files of opwest besides its code, in the repository or the installed package: schemas, templates, runtime."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from opwest.base.paths import spelled

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


def own_files() -> list[Path]:
    """Return the files that the output of opwest depends on: its code, templates, schemas, and parts of the runtime."""
    folders = [_PACKAGE, *map(resource, ("project_template", "schemas"))]
    folders += [resource("zephyr_module") / folder for folder in ("bundle/image", "include/opwest")]
    found = (path for folder in folders for path in folder.rglob("*") if path.is_file())
    return sorted(path for path in found if path.suffix != ".pyc")


if __name__ == "__main__":  # python -m opwest.base.resources, for opwest_python() of CMake
    print("\n".join(spelled(path) for path in own_files()))
