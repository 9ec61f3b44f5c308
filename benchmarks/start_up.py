# SPDX-License-Identifier: Apache-2.0
"""The instructions of small commands, as a multiple of those of the import of Jinja, PyYAML and numpy.

Valgrind counts the instructions of a process of this machine's processor. They are no measure of time, but other load
does not change them: processor times of processes of 0.3 s differ by 15 % between runs beside other load. Python's
compiled modules are in a directory of the measurement, which a first, uncounted run of each command fills.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from common import SkippedError, host_compiler, host_target, opwest_command, write_model

OPERATORS = 10
MAX_RATIOS = {(3, 11): (2.25, 0.4), (3, 12): (2.45, 0.43), (3, 13): (2.4, 0.425)}
"""By version of Python: the bounds of `generate` and `version`, 2 to 2.5 % above the measured multiples."""
MAX_GENERATE_RATIO, MAX_VERSION_RATIO = MAX_RATIOS.get(sys.version_info[:2], MAX_RATIOS[max(MAX_RATIOS)])
_REFERENCE = (sys.executable, "-c", "import jinja2, yaml, numpy")


class StartUp(NamedTuple):
    """The instructions of the reference, and those of commands as multiples of it."""

    reference: int
    generate: float
    version: float


def measure_start_up(work: Path) -> StartUp:
    """Return the figures. Raises SkippedError without Valgrind, or if no model can be compiled."""
    if shutil.which("valgrind") is None:
        raise SkippedError("valgrind is not installed")
    manifest = write_model(work / "start_up", OPERATORS, host_target(), [*host_compiler(), "-O1"])
    app = work / "start_up_app"
    commands = {
        "reference": [*_REFERENCE],
        "generate": [*opwest_command(), "generate", str(manifest), "-o", str(app)],
        "version": [*opwest_command(), "--version"],
    }
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(work / "pycache"), "PYTHONHASHSEED": "0"}
    environment["OPENBLAS_NUM_THREADS"] = "1"  # threads of numpy wait in a loop
    for name in ("PYTHONDONTWRITEBYTECODE", "COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG"):
        environment.pop(name, None)
    counts = {}
    for name, command in commands.items():
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
        shutil.rmtree(app, ignore_errors=True)
        counts[name] = _instructions(command, environment, work / f"{name}.txt")
    reference = counts["reference"]
    return StartUp(reference, counts["generate"] / reference, counts["version"] / reference)


def _instructions(command: Sequence[str], environment: dict[str, str], log: Path) -> int:
    counter = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    subprocess.run([*counter, f"--log-file={log}", *command], env=environment, stdout=subprocess.DEVNULL, check=True)
    found = re.search(r"I\s+refs:\s+([\d,]+)", log.read_text(encoding="utf-8"))
    if found is None:
        raise SkippedError(f"{log}: valgrind counted no instructions")
    return int(found[1].replace(",", ""))
