# SPDX-License-Identifier: Apache-2.0
"""The processor time of small commands, as a multiple of the import of Jinja, PyYAML and numpy.

The commands of a round run one after the other, so that a slow or fast phase of the machine affects all of them. The
multiple of a command is the median over the rounds. Minima are not compared: the core can be faster during one of them.
Python's compiled modules are in a directory of the measurement, which the first, uncounted round fills.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from common import host_compiler, host_target, opwest_command, write_model

OPERATORS = 10
MOST_OF_GENERATE = 2.0
MOST_OF_VERSION = 0.5
_REFERENCE = (sys.executable, "-c", "import jinja2, yaml, numpy")


class StartUp(NamedTuple):
    """Median seconds of the reference, and the median times of commands as multiples of it."""

    reference: float
    generate: float
    version: float


def measure_start_up(work: Path, rounds: int = 11) -> StartUp:
    """Return the figures, measured in `rounds` rounds. Raises SkippedError if no model can be compiled."""
    manifest = write_model(work / "start_up", OPERATORS, host_target(), [*host_compiler(), "-O1"])
    app = work / "start_up_app"
    commands = {
        "reference": [*_REFERENCE],
        "generate": [*opwest_command(), "generate", str(manifest), "-o", str(app)],
        "version": [*opwest_command(), "--version"],
    }
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(work / "pycache")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment.pop("COVERAGE_PROCESS_START", None)
    environment.pop("COVERAGE_PROCESS_CONFIG", None)
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, command in commands.items():
            shutil.rmtree(app, ignore_errors=True)
            seconds = _processor_time(command, environment)
            if number > 0:
                taken[name].append(seconds)
    reference = taken["reference"]
    multiples = {
        name: statistics.median(one / base for one, base in zip(taken[name], reference, strict=True))
        for name in ("generate", "version")
    }
    return StartUp(statistics.median(reference), **multiples)


def _processor_time(command: Sequence[str], environment: dict[str, str]) -> float:
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command)
    return used.ru_utime + used.ru_stime
