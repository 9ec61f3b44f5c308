# SPDX-License-Identifier: Apache-2.0
"""The Zephyr workspace: its version, the versions of programs that it requires, its modules, west and Python."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from opwest.base.frozen_dataclass import dataclass
from opwest.doctor.packages import Package, Requirement
from opwest.doctor.programs import Answer, Command
from opwest.runs.west import find_west
from opwest.zephyr.hardware import read_text
from opwest.zephyr.version import OLDEST, Version
from opwest.zephyr.west_manifest import SERVICE, cortex_m
from opwest.zephyr.workspace import Workspace, build_workspace, fault_of_base

_OPTIONAL = ("picolibc", "cmsis-nn", "cmsis-dsp", "hal_ethos_u")
_LIMITS = {
    "python": ("python.cmake", r"set\(PYTHON_MINIMUM_REQUIRED\s+([\d.]+)\)"),
    "cmake": ("zephyr_default.cmake", r"cmake_minimum_required\(VERSION\s+([\d.]+)"),
    "dtc": ("dts.cmake", r"find_package\(Dtc\s+([\d.]+)"),
    "west": ("west.cmake", r"MIN_WEST_VERSION\s+([\d.]+)\)"),
    "sdk": ("FindHostTools.cmake", r"find_package\(Zephyr-sdk\s+([\d.]+)"),
}
"""Where Zephyr declares the oldest version of a program, below cmake/modules."""
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

    base: Path
    top: Path
    version: Version | None
    limits: Mapping[str, str]
    """The oldest versions of python, cmake, dtc, west and the SDK (`sdk`) that this Zephyr accepts."""
    modules: Mapping[str, bool] | None
    """Modules that opwest can use, and whether each is installed; None if the workspace cannot be read."""
    west: str | None
    sdk_command: bool
    """Whether its west has the command `sdk`."""
    toolchains: tuple[str, ...]
    """The names that ZEPHYR_TOOLCHAIN_VARIANT can have, without what follows a slash; empty if unknown."""
    python: WorkspacePython | None = None

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
    version = workspace.version
    limits = {}
    for name, (file, pattern) in _LIMITS.items():
        found = re.search(pattern, read_text(workspace.base / "cmake" / "modules" / file))
        if found:
            limits[name] = found[1].removesuffix(".0") if found[1].count(".") > 1 else found[1]
    return Zephyr(
        workspace.base,
        workspace.top,
        version,
        limits,
        _modules(workspace, version),
        find_west(workspace),
        (workspace.base / "scripts" / "west_commands" / "sdk.py").is_file(),
        tuple(sorted(one.name for one in (workspace.base / "cmake" / "toolchain").glob("*") if one.is_dir())),
    )


def _modules(workspace: Workspace, version: Version | None) -> dict[str, bool] | None:
    try:
        hals = [name for name in workspace.projects if name.startswith("hal_") and name not in _OPTIONAL]
        names = [cortex_m(version), SERVICE, *_OPTIONAL]
        found = {name: workspace.has_module(name) for name in names}
        return found | {name: True for name in hals if workspace.has_module(name)}
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
    found = re.match(rb"#!\s*(\S*python[\d.]*)\s*$", line)
    beside = [path.with_name(name) for name in ("python", "python3", "python.exe")]
    beside.append(path.parent.parent / "python.exe")  # of Windows, outside of virtual environments
    named = [Path(os.fsdecode(found[1]))] if found else []
    return next((str(one) for one in (*named, *beside) if one.is_file()), None)


def python_command(python: str, requirements: Iterable[Requirement]) -> Command:
    """Return the command that prints the versions of a Python and of packages as JSON."""
    return Command((python, "-I", "-c", _SCRIPT), " ".join(one.name for one in requirements))


def workspace_python(path: str, answer: Answer, requirements: Iterable[Requirement]) -> WorkspacePython:
    """Return the facts about a Python from the answer to `python_command`."""
    if not answer.works:
        return WorkspacePython(path, None, (), answer.fault or "not found")
    try:
        found = json.loads(answer.output.splitlines()[0])
        packages = tuple(Package(one, found["packages"][one.name]) for one in requirements)
        return WorkspacePython(path, str(found["python"]), packages)
    except (ValueError, LookupError, TypeError):
        return WorkspacePython(path, None, (), "unexpected output")
