# SPDX-License-Identifier: Apache-2.0
"""The check of compiled operators for writable state, with the program that builds of Zephyr run."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from opwest.diagnostics import Diagnostic, Location, OpwestError
from opwest.host.formats import Format


class StateCheck:
    """The checks of one model's operators; `runtime` is the directory of the runtime."""

    def __init__(self, runtime: Path, model: Mapping[str, Any], build: Mapping[str, Any], form: Format) -> None:
        self._is_elf = form == "elf"
        self._program = _load(runtime / "scripts" / "check_state.py")
        self._model = model
        # Records of earlier versions have no positions.
        self._places = dict(zip(build["sources"], build.get("places", ()), strict=False))
        self._faults: list[Diagnostic] = []

    def examine(self, source: str, obj: Path, command: Sequence[str]) -> None:
        """Examine the object of a source, which `command` compiled. Raises OpwestError if it cannot be read."""
        place = self._places.get(source, {"line": 0, "column": 0, "permitted": False})
        if place["permitted"] or not self._is_elf:  # docs/windows-and-macos.md
            return
        at = Location(self._model["manifest"], place["line"], place["column"])
        try:
            # The command has paths relative to the current directory.
            found = self._program.object_states(str(obj), command, os.curdir, f"{self._model['name']}__")
        except self._program.NotElfError as error:
            message = f"{source}: cannot read its object: {error}"
            raise OpwestError([Diagnostic("error", message, at)]) from error
        except subprocess.CalledProcessError as error:
            raise OpwestError([Diagnostic("error", self._program.failure(source, error), at)]) from error
        if found:
            message = self._program.message(source, found)
            self._faults.append(Diagnostic("error", message, at, self._program.EXPECTED, self._program.HINT))

    def raise_if_found(self) -> None:
        """Raise OpwestError with every error."""
        if self._faults:
            raise OpwestError(self._faults)


def _load(path: Path) -> ModuleType:
    """Return a Python file that is not part of a package, as a module."""
    name = f"opwest_{path.stem}"
    if name not in sys.modules:
        specification = importlib.util.spec_from_file_location(name, path)
        if specification is None or specification.loader is None:
            raise ImportError(f"cannot load {path}")
        module = importlib.util.module_from_spec(specification)
        sys.modules[name] = module
        specification.loader.exec_module(module)
    return sys.modules[name]
