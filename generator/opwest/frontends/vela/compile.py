# SPDX-License-Identifier: Apache-2.0
"""Run Vela, as a program of its own: its package is not imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from opwest.base import commands
from opwest.base.processes import run_tool
from opwest.compiler.child import Progress
from opwest.compiler.faults import fault, require_packages
from opwest.frontends.vela.request import Options
from opwest.objects.ethos_u.payload import NPUS

INSTALL = commands.pip_install("opwest[vela]")
_PACKAGES = (("ethosu.vela", "ethos-u-vela"),)
_SECONDS = 1800
_MAX_LINES = 30


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
    given = {"config": options.npu_config, "system-config": options.system_config, "memory-mode": options.memory_mode}
    for name, value in given.items():
        command += [f"--{name}", value] if value is not None else []
    progress(f"running Vela for {options.npu}")
    try:
        done = run_tool(command, seconds=_SECONDS)
    except subprocess.TimeoutExpired:
        raise fault(f"Vela took more than {_SECONDS // 60} minutes", str(path)) from None
    made = work / f"{path.stem}_vela.tflite"
    if done.returncode != 0 or not made.is_file():
        lines = [line for line in f"{done.stdout}\n{done.stderr}".splitlines() if line.strip()]
        shown = "\n".join(f"  {line}" for line in lines[-_MAX_LINES:])
        raise fault(f"Vela ended with exit code {done.returncode}, its messages are:\n{shown}", str(path))
    return made
