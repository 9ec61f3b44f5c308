# SPDX-License-Identifier: Apache-2.0
"""Run Vela, as a program of its own: its package is not imported."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from opwest.base import commands, timing
from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.child import Progress
from opwest.compiler.faults import fault, require_packages
from opwest.objects.ethos_u.payload import NPUS

SHARED, SRAM_ONLY, DEDICATED = "Shared_Sram", "Sram_Only", "Dedicated_Sram"
MEMORY_MODES = (SHARED, SRAM_ONLY, DEDICATED)
"""Vela's memory modes in its own configuration files; others can be defined by files of the user."""
KERNELS = ("auto", "portable")
ARENA, FAST, WEIGHTS = "arena", "fast", "weights"
POOLS = (ARENA, FAST, WEIGHTS)
"""The pools of the NPU in the manifest: the shared arena, the fast scratch memory, the weights."""


@dataclass(frozen=True)
class Options:
    """The request for an import."""

    model: str | None = None
    """The model's name; None: the file's, without `_vela`."""
    kernels: str = KERNELS[0]
    """The variants of the operators that Vela left on the processor."""
    pools: Sequence[str] = ()
    """Memory regions of pools: NAME=BOARD:NODELABEL, NAME one of POOLS."""
    boards: Sequence[str] = ()
    """The boards of the manifest."""
    npu: str | None = None
    """The configuration to compile for; None: the file is Vela's output."""
    npu_config: str | None = None
    """Vela's --config: a file."""
    system_config: str | None = None
    memory_mode: str | None = None
    """Of Vela, when it runs here, and for the weights: in Sram_Only they are copied to the arena's memory."""


INSTALL = commands.pip_install("opwest[vela]")
_PACKAGES = (("ethosu.vela", "ethos-u-vela"),)
_SECONDS = 1800
_MOST_LINES = 30


def compiled(path: Path, work: Path, options: Options, progress: Progress) -> Path:
    """Return the file that Vela makes of a .tflite model in the directory `work`. Raises OpwestError."""
    if options.npu not in NPUS:
        raise fault(f"--npu: unknown NPU '{options.npu}'", expected=", ".join(NPUS))
    try:
        require_packages(_PACKAGES, "--npu", INSTALL)
    except ModuleNotFoundError:  # of the package that contains it
        raise fault("--npu requires ethos-u-vela, which is not installed", hint=INSTALL) from None
    command = [sys.executable, "-P", "-m", "ethosu.vela", str(path), "--output-dir", str(work)]
    command += ["--accelerator-config", options.npu]
    for name in ("config", "system_config", "memory_mode"):
        value = options.npu_config if name == "config" else getattr(options, name)
        if value is not None:
            command += [f"--{name.replace('_', '-')}", value]
    progress(f"running Vela for {options.npu}")
    with timing.command(command):
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                encoding="utf-8",
                errors="replace",
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise fault(f"Vela took more than {_SECONDS // 60} minutes", str(path)) from None
    made = work / f"{path.stem}_vela.tflite"
    if done.returncode != 0 or not made.is_file():
        lines = [line for line in f"{done.stdout}\n{done.stderr}".splitlines() if line.strip()]
        shown = "\n".join(f"  {line}" for line in lines[-_MOST_LINES:])
        raise fault(f"Vela ended with exit code {done.returncode}, its messages are:\n{shown}", str(path))
    return made
