# SPDX-License-Identifier: Apache-2.0
"""The check of compiled operators for state and hidden effects, with the programs that builds of Zephyr run."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from opwest.diagnostics import Diagnostic, Location, OpwestError
from opwest.host.formats import Format
from opwest.objects.effects import EFFECT_EXPECTED, hidden_effects
from opwest.objects.inspect import read_member
from opwest.objects.instructions import instruction_effects
from opwest.resources import script


class OperatorCheck:
    """The checks of one model's operators."""

    def __init__(self, model: Mapping[str, Any], build: Mapping[str, Any], form: Format) -> None:
        self._is_elf = form == "elf"
        self._program = script("check_operators")
        self._model = model
        # Records of earlier versions have no positions and no permitted effects.
        self._places = dict(zip(build["sources"], build.get("places", ()), strict=False))
        self._permits = dict(zip(build["sources"], build.get("permits", ()), strict=False))
        self._faults: list[Diagnostic] = []

    def examine(self, source: str, obj: Path, command: Sequence[str]) -> None:
        """Examine the object of a source, which `command` compiled. Raises OpwestError if it cannot be read."""
        place = self._places.get(source, {"line": 0, "column": 0})
        permits = self._permits.get(source, ())
        if not self._is_elf:  # docs/windows-and-macos.md
            return
        at = Location(self._model["manifest"], place["line"], place["column"])
        try:
            # The command has paths relative to the current directory.
            found = self._program.object_facts(str(obj), command, os.curdir, f"{self._model['name']}__")
        except self._program.NotElfError as error:
            message = f"{source}: cannot read its object: {error}"
            raise OpwestError([Diagnostic("error", message, at)]) from error
        except subprocess.CalledProcessError as error:
            raise OpwestError([Diagnostic("error", self._program.failure(source, error), at)]) from error
        if found.states and "state" not in permits:
            message = self._program.message(source, found.states)
            self._faults.append(Diagnostic("error", message, at, self._program.EXPECTED, self._program.HINT))
        compiled = read_member(obj.name, obj.read_bytes())
        for one in (*hidden_effects(found.undefined, ("host",), permits), *instruction_effects(compiled, permits)):
            self._faults.append(Diagnostic("error", f"{source} {one.text}", at, EFFECT_EXPECTED, one.hint))

    def raise_if_found(self) -> None:
        """Raise OpwestError with every error."""
        if self._faults:
            raise OpwestError(self._faults)
