# SPDX-License-Identifier: Apache-2.0
"""What this machine has: reads everything once; programs run at the same time."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import sys
from collections.abc import Mapping
from dataclasses import replace

from opwest.base.commands import C_COMPILERS, compiler_words
from opwest.base.frozen_dataclass import dataclass
from opwest.base.programs import Answer, Command, run_all
from opwest.base.system import System, examine_system
from opwest.doctor.packages import Declared, Package, declared, examined
from opwest.doctor.zephyr import Zephyr, find_zephyr, python_command, python_of, workspace_python
from opwest.zephyr.sdk import Sdk, Selection, find_sdks, selection
from opwest.zephyr.toolchains import compiler_commands
from opwest.zephyr.workspace import Workspace

_SOURCE = "#include <errno.h>\n#include <stdint.h>\n#include <stdio.h>\nint32_t x;\n"
"""Needs the compiler proper and the headers of the C library."""
_COMPILE = ("-x", "c", "-S", "-o", "-", "-")
COMPILERS = ("gcc", "clang", "ld.lld", "arm-none-eabi-gcc", "riscv64-unknown-elf-gcc")
BUILD_TOOLS = ("cmake", "ninja", "dtc", "gperf")
EMULATORS = ("qemu-system-arm", "qemu-system-riscv32", "qemu-system-riscv64", "qemu-system-i386")
_LIBRARIES = {
    "arm-none-eabi-gcc libc": ("arm-none-eabi-gcc", "-mcpu=cortex-m3", "-mthumb", "-print-file-name=libc.a"),
    "riscv64-unknown-elf-gcc picolibc": ("riscv64-unknown-elf-gcc", "-print-file-name=picolibc.specs"),
}
_MACHINE = re.compile(r"^(\S+)\s", re.MULTILINE)


@dataclass(frozen=True)
class SerialPort:
    """A serial device of a board."""

    name: str
    usable: bool
    """Whether this user may open it."""


@dataclass(frozen=True)
class Machine:
    """The facts about this machine."""

    system: System
    declared: Declared
    packages: tuple[Package, ...]
    """All packages that opwest or one of its extras requires."""
    answers: Mapping[str, Answer]
    """The programs, by name."""
    compiler: str
    """The host's C compiler: $CC, else the first of cc, gcc and clang."""
    zephyr: Zephyr | None
    base_fault: str | None
    """Why ZEPHYR_BASE is not usable."""
    sdks: tuple[Sdk, ...]
    selection: Selection
    ports: tuple[SerialPort, ...] | None
    """The USB serial devices; None if pyserial is missing."""

    @property
    def python(self) -> str:
        """The version of opwest's Python."""
        return platform.python_version()

    @property
    def workspace(self) -> Workspace | None:
        """The workspace that builds use."""
        return self.zephyr.workspace if self.zephyr is not None else None

    def program(self, name: str) -> Answer:
        """Return the outcome of the command that prints the version of a program."""
        return self.answers.get(name, Answer(None))

    def emulated(self, emulator: str) -> frozenset[str]:
        """Return the machines that an emulator has."""
        answer = self.program(f"{emulator} machines")
        return frozenset(_MACHINE.findall(answer.output)) if answer.works else frozenset()

    def has_file(self, key: str) -> bool:
        """Whether a compiler has the file that `-print-file-name` asked for: the answer is a path then."""
        answer = self.program(key)
        return answer.works and os.path.isabs(answer.output.splitlines()[0] if answer.output else "")  # noqa: PTH117


def examine() -> Machine:
    """Return the facts about this machine. Never raises for a missing or broken program, package or workspace."""
    required = declared()
    zephyr, fault = find_zephyr()
    chosen = selection()
    words = _compiler_words()
    commands = {name: Command((name, "--version")) for name in ("git", *BUILD_TOOLS, *COMPILERS, *EMULATORS)}
    commands |= {name: Command(command) for name, command in _LIBRARIES.items()}
    commands["cc"] = Command((*words, "--version"))
    for bits, options in (("", ()), (" -m32", ("-m32",))):
        commands[f"cc{bits} compiles"] = Command((*words, *options, *_COMPILE), _SOURCE)
        for file in ("libgcc.a", "crt1.o"):
            commands[f"cc{bits} {file}"] = Command((*words, *options, f"-print-file-name={file}"))
    for emulator in EMULATORS:
        commands[f"{emulator} machines"] = Command((emulator, "-M", "help"))
    commands |= compiler_commands(chosen)
    python = python_of(zephyr.west) if zephyr is not None and zephyr.west is not None else None
    if zephyr is not None and zephyr.west is not None:
        commands["west"] = Command((zephyr.west, "--version"))
        if python is not None:
            commands["workspace python"] = python_command(python, required.dependencies)
    answers = run_all(commands)
    if zephyr is not None and python is not None:
        facts = workspace_python(python, answers["workspace python"], required.dependencies)
        zephyr = replace(zephyr, python=facts)
    return Machine(
        examine_system(),
        required,
        examined(required.requirements),
        answers,
        " ".join(words),
        zephyr,
        fault,
        find_sdks(),
        chosen,
        _ports(),
    )


def _compiler_words() -> tuple[str, ...]:
    try:
        return tuple(compiler_words("CC", C_COMPILERS)) or C_COMPILERS[:1]
    except ValueError:  # `opwest run --host` reports it
        return (os.environ["CC"],)


def _ports() -> tuple[SerialPort, ...] | None:
    try:
        from opwest.runs.ports import serial_devices

        names = serial_devices()
    except ImportError:
        return None
    except Exception:  # pyserial fails in various ways where a system hides its devices
        return ()
    ports = []
    for name in names:
        usable = True
        if sys.platform != "win32":
            with contextlib.suppress(OSError):
                usable = os.access(name, os.R_OK | os.W_OK)
        ports.append(SerialPort(name, usable))
    return tuple(ports)
