# SPDX-License-Identifier: Apache-2.0
"""The Zephyr workspace that builds use, and the Python that runs its west."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from opwest.base.frozen_dataclass import dataclass
from opwest.base.programs import Answer, Command
from opwest.doctor.packages import Package, Requirement
from opwest.runs.west import find_west
from opwest.zephyr.version import OLDEST, SERVICE, Version, cortex_m
from opwest.zephyr.workspace import Workspace, build_workspace, fault_of_base

_OPTIONAL = ("picolibc", "cmsis-nn", "cmsis-dsp", "hal_ethos_u")
_SCRIPT = """\
import importlib.metadata, json, sys
found = {}
for name in sys.stdin.read().split():
    try:
        found[name] = importlib.metadata.version(name)
    except Exception:
        found[name] = None
print(json.dumps({"python": sys.version.split()[0], "packages": found}))
"""


@dataclass(frozen=True)
class WorkspacePython:
    """The Python that runs west, and so the scripts of builds."""

    path: str
    version: str | None
    packages: tuple[Package, ...]
    """The dependencies of opwest: for `west opwest` and opwest_add_model()."""
    fault: str | None = None
    """Why it could not be examined."""


@dataclass(frozen=True)
class Zephyr:
    """The workspace that builds use."""

    workspace: Workspace
    modules: Mapping[str, bool] | None
    """Modules that opwest can use, and whether each is installed; None if the workspace cannot be read."""
    west: str | None
    python: WorkspacePython | None = None

    @property
    def base(self) -> Path:
        """The Zephyr tree."""
        return self.workspace.base

    @property
    def top(self) -> Path:
        """The directory of the workspace."""
        return self.workspace.top

    @property
    def version(self) -> Version | None:
        """The version of Zephyr."""
        return self.workspace.version

    @property
    def is_supported(self) -> bool:
        """Whether opwest supports this version."""
        return self.version is not None and self.version.pair >= OLDEST

    @property
    def cortex_m(self) -> str:
        """The module that Cortex-M boards require."""
        return cortex_m(self.version)

    def has(self, module: str) -> bool:
        """Whether a module is installed, or cannot be examined."""
        return self.modules is None or self.modules.get(module, False)


def find_zephyr() -> tuple[Zephyr | None, str | None]:
    """Return the workspace, or None and the fault of ZEPHYR_BASE if there is one."""
    fault = fault_of_base()
    workspace = build_workspace()
    if fault is not None:
        return None, fault
    if not os.path.isfile(workspace.base / "VERSION"):  # noqa: PTH113 -- False for inaccessible directories
        return None, None
    return _described(workspace), None


def _described(workspace: Workspace) -> Zephyr:
    return Zephyr(workspace, _modules(workspace, workspace.version), find_west(workspace))


def _modules(workspace: Workspace, version: Version | None) -> dict[str, bool] | None:
    try:
        hals = [name for name in workspace.projects if name.startswith("hal_") and name not in _OPTIONAL]
        names = [cortex_m(version), SERVICE, *_OPTIONAL]
        modules = {name: workspace.has_module(name) for name in names}
        return modules | {name: True for name in hals if workspace.has_module(name)}
    except ImportError:  # PyYAML is missing
        return None


def python_of(west: str) -> str | None:
    """Return the Python that runs a west: that of its first line, else the one in its directory."""
    path = Path(west)
    try:
        with path.open("rb") as file:
            line = file.readline(500)
    except OSError:
        line = b""
    match = re.match(rb"#!\s*(\S*python[\d.]*)\s*$", line)
    beside = [path.with_name(name) for name in ("python", "python3", "python.exe")]
    beside.append(path.parent.parent / "python.exe")  # of Windows, outside of virtual environments
    named = [Path(os.fsdecode(match[1]))] if match else []
    return next((str(program) for program in (*named, *beside) if program.is_file()), None)


def python_command(python: str, requirements: Iterable[Requirement]) -> Command:
    """Return the command that prints the versions of a Python and of packages as JSON."""
    return Command((python, "-I", "-c", _SCRIPT), " ".join(requirement.name for requirement in requirements))


def workspace_python(path: str, answer: Answer, requirements: Iterable[Requirement]) -> WorkspacePython:
    """Return the facts about a Python from the answer to `python_command`."""
    if not answer.works:
        return WorkspacePython(path, None, (), answer.fault or "not found")
    try:
        facts = json.loads(answer.output.splitlines()[0])
        packages = tuple(Package(requirement, facts["packages"][requirement.name]) for requirement in requirements)
        return WorkspacePython(path, str(facts["python"]), packages)
    except (ValueError, LookupError, TypeError):
        return WorkspacePython(path, None, (), "unexpected output")
