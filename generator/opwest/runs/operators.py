# SPDX-License-Identifier: Apache-2.0
"""The check of compiled operators for state and hidden effects, with the programs that builds of Zephyr run."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from opwest.base.diagnostics import Diagnostic, Location, OpwestError
from opwest.base.resources import script
from opwest.objects.inspect import read_member
from opwest.objects.instructions import instruction_effects
from opwest.objects.library_symbols import EFFECT_EXPECTED, hidden_effects

Format = Literal["elf", "macho", "coff"]

_SECTION = re.compile(r'^\t\.section \.rodata\.(\S+), "a(G?)", %progbits.*$')
_DROPPED = re.compile(r"^\t\.(?:type|size) ")
_SYMBOL = re.compile(r"^(\t\.(?:global|weak) )?([A-Za-z_]\w*)(:?)$")


def format_of(macros: str) -> Format:
    """Return the format of a compiler's objects by its predefined macros (`-dM -E`)."""
    names = set(re.findall(r"^#define (\w+)", macros, re.MULTILINE))
    if "__APPLE__" in names:
        return "macho"
    return "coff" if "_WIN32" in names else "elf"


def prefix_of(macros: str) -> str:
    """Return the prefix of C symbols in assembly, which predefined macros contain."""
    found = re.search(r"^#define __USER_LABEL_PREFIX__ (\S+)$", macros, re.MULTILINE)
    return found[1] if found else ""


def translated(source: str, form: Format, prefix: str) -> str:
    """Return emitted assembly (constants.S, vectors.S) for another format.

    Programs have a section that all models of an image share: `.linkonce` in COFF, a weak definition in Mach-O.
    """
    return "\n".join(_line(line, form, prefix) for line in source.split("\n"))


def _line(line: str, form: Format, prefix: str) -> str:
    if found := _SECTION.match(line):
        if form == "macho":
            return "\t.const_data"  # __DATA,__const: the linker also moves constants with pointers to it
        shared = "\n\t.linkonce discard" if found[2] else ""
        return f'\t.section .rdata${found[1]},"dr"{shared}'
    if _DROPPED.match(line):
        return ""
    if found := _SYMBOL.match(line):
        directive, name, colon = found.groups()
        if directive is None and not colon:
            return line
        if directive and directive.strip() == ".weak":
            # A COFF symbol of a .linkonce section is an ordinary one.
            weak = f"\n\t.weak_definition {prefix}{name}" if form == "macho" else ""
            return f"\t.globl {prefix}{name}{weak}"
        return f"{chr(9) + '.globl ' if directive else ''}{prefix}{name}{colon}"
    return line


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
        for effect in (*hidden_effects(found.undefined, ("host",), permits), *instruction_effects(compiled, permits)):
            self._faults.append(Diagnostic("error", f"{source} {effect.text}", at, EFFECT_EXPECTED, effect.hint))

    def raise_if_found(self) -> None:
        """Raise OpwestError with every error."""
        if self._faults:
            raise OpwestError(self._faults)
