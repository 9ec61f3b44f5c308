# SPDX-License-Identifier: Apache-2.0
"""The versions of the emulator and the compiler of measurements."""

from __future__ import annotations

import re
from pathlib import Path

from opwest.tuning.emulator import execute
from opwest.tuning.machines import Machine


def tools_of(machine: Machine) -> str:
    """Return the programs with their versions, such as `qemu-system-arm 7.2.11, arm-none-eabi-gcc 12.2.1`."""
    return ", ".join(named(name) for name in (machine.emulator[0], machine.compiler[0]))


def named(program: str) -> str:
    """Return the name of a program and its version. Raises EmulatorError."""
    return f"{Path(program).name} {_version(program)}"


def _version(program: str) -> str:
    found = re.search(r"\d+\.\d+(\.\d+)?", execute([program, "--version"]).splitlines()[0].split("(")[0])
    return found[0] if found else execute([program, "-dumpversion"]).strip()
