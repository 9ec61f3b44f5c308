# SPDX-License-Identifier: Apache-2.0
"""Plugins of QEMU, compiled for the installed QEMU."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from opwest.base import commands
from opwest.base.processes import first_lines, run_tool

HERE = Path(__file__).resolve().parent / "qemu"
_NEWEST = 5
"""The newest version of the interface that the plugins are for; QEMU loads older ones, and names its own."""


class PluginError(Exception):
    """A plugin that cannot be compiled, or that QEMU does not load. `hint`: what to do."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def built_plugin(source: Path, plugin: Path, emulator: str, options: str, includes: Sequence[Path] = ()) -> Path:
    """Compile a plugin for the emulator's version of the interface; `options` load it. Raises PluginError."""
    try:
        compiler = commands.compiler_words("CC", commands.C_COMPILERS)
    except ValueError as error:
        raise PluginError(f"cannot parse $CC: {error}", "set CC to a compiler of this machine") from error
    if shutil.which(compiler[0]) is None:
        raise PluginError(f"C compiler '{compiler[0]}' not found", "install gcc or clang, or set CC")
    folders = [f"-I{folder}" for folder in (HERE, *includes)]
    version = _NEWEST
    while True:
        flags = ["-O2", "-shared", "-fPIC", f"-DPLUGIN_VERSION={version}", *folders]
        done = run_tool([*compiler, *flags, str(source), "-o", str(plugin)])
        if done.returncode != 0:
            reason = first_lines(done.stderr, 1) or f"exit code {done.returncode}"
            raise PluginError(f"{compiler[0]} cannot compile a plugin of QEMU: {reason}", "set CC to another compiler")
        fault = _fault_of(plugin, emulator, options)
        if fault is None:
            return plugin
        older = re.search(r"supports only up to version (\d+)", fault)
        if older is None or int(older[1]) >= version:
            hint = "use a QEMU built with --enable-plugins, which the packages of Debian and Ubuntu are"
            raise PluginError(f"{Path(emulator).name} loads no plugin: {fault}", hint)
        version = int(older[1])


def _fault_of(plugin: Path, emulator: str, options: str) -> str | None:
    """Load a plugin in a machine without a processor; return the error of the emulator."""
    words = [emulator, "-M", "none", "-display", "none", "-serial", "none", "-monitor", "stdio"]
    words += ["-plugin", f"{escaped(plugin)},{options},out={os.devnull}"]
    try:
        done = subprocess.run(words, input="quit\n", capture_output=True, text=True, timeout=60, check=False)
    except FileNotFoundError:
        raise PluginError(f"{emulator} not found", "install QEMU") from None
    except subprocess.TimeoutExpired:
        return "no end within 60 s"
    return None if done.returncode == 0 else first_lines(done.stderr, 1) or f"exit code {done.returncode}"


def escaped(path: Path) -> str:
    """Return a path in an option of QEMU, where a comma ends a value."""
    return str(path).replace(",", ",,")
