# SPDX-License-Identifier: Apache-2.0
"""Toolchains: Zephyr SDKs, and the one that a build with Zephyr selects by the environment."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from opwest.base.frozen_dataclass import dataclass
from opwest.doctor.packages import Package, Requirement, numbers
from opwest.doctor.programs import Answer, Command
from opwest.runs.west import find_west
from opwest.zephyr.hardware import read_text
from opwest.zephyr.version import OLDEST, SERVICE, Version, cortex_m
from opwest.zephyr.workspace import Workspace, build_workspace, fault_of_base

_TARGETS = {"arm": "arm-zephyr-eabi", "riscv": "riscv64-zephyr-elf"}
_PLACES = ("/usr", "/usr/local", "/opt", "~", "~/.local", "~/.local/opt", "~/bin")
"""Where Zephyr's FindZephyr-sdk.cmake searches for SDKs."""
_PACKAGE = "Zephyr-sdk"
VARIANT = "ZEPHYR_TOOLCHAIN_VARIANT"
SDK_DIR = "ZEPHYR_SDK_INSTALL_DIR"
ARM_PATH = "GNUARMEMB_TOOLCHAIN_PATH"
PREFIX = "CROSS_COMPILE"
LLVM_PATH = "LLVM_TOOLCHAIN_PATH"


@dataclass(frozen=True)
class Sdk:
    """An installed Zephyr SDK."""

    folder: Path
    version: str
    targets: tuple[str, ...]
    """The names of its GNU toolchains."""
    llvm: bool
    """Whether it contains LLVM (SDK 1.0 and newer)."""
    host_tools: bool
    """Whether it contains dtc and QEMU, which builds find without PATH."""

    def builds(self, architecture: str) -> bool:
        """Whether it has a toolchain for arm or riscv."""
        return _TARGETS[architecture] in self.targets


def find_sdks() -> tuple[Sdk, ...]:
    """Return the installed SDKs, the one that builds select first: of the environment, else the newest."""
    given = os.environ.get(SDK_DIR)
    first = [sdk for sdk in [_sdk(Path(given))] if sdk is not None] if given else []
    others = {}
    for folder in _registered():
        sdk = _sdk(folder)
        if sdk is not None:
            others[os.path.realpath(folder)] = sdk
    for sdk in first:
        others.pop(os.path.realpath(sdk.folder), None)
    return (*first, *sorted(others.values(), key=lambda sdk: numbers(sdk.version), reverse=True))


def _registered() -> Iterator[Path]:
    """Yield the directories of CMake's package registry and of the usual places."""
    with contextlib.suppress(OSError):
        for entry in sorted((Path.home() / ".cmake" / "packages" / _PACKAGE).iterdir()):
            named = Path(read_text(entry).strip() or os.devnull)
            yield named.parent if named.name == "cmake" else named
    yield from _of_windows()
    for place in _PLACES:
        with contextlib.suppress(OSError, RuntimeError):
            yield from sorted(Path(place).expanduser().glob("zephyr-sdk*"))


def _of_windows() -> list[Path]:
    """Return the directories in CMake's package registry on Windows."""
    windows: list[Path] = []
    if sys.platform == "win32":
        import winreg

        with (
            contextlib.suppress(OSError),
            winreg.OpenKey(winreg.HKEY_CURRENT_USER, rf"Software\Kitware\CMake\Packages\{_PACKAGE}") as key,
        ):
            for index in range(winreg.QueryInfoKey(key)[1]):
                named = Path(str(winreg.EnumValue(key, index)[1]))
                windows.append(named.parent if named.name == "cmake" else named)
    return windows


def _sdk(folder: Path) -> Sdk | None:
    version = read_text(folder / "sdk_version").strip()
    if not version:
        return None
    targets: list[str] = []
    for parent in (folder, folder / "gnu"):  # SDK 1.0 has a directory per compiler
        with contextlib.suppress(OSError):
            targets += [path.name for path in sorted(parent.glob("*-zephyr-e*")) if (path / "bin").is_dir()]
    tools = any(any(folder.glob(f"{parent}sysroots/*/usr/bin/dtc")) for parent in ("", "hosttools/"))
    return Sdk(folder, version, tuple(targets), (folder / "llvm" / "bin").is_dir(), tools)


@dataclass(frozen=True)
class Selection:
    """What the environment selects for builds with Zephyr."""

    variant: str | None
    """ZEPHYR_TOOLCHAIN_VARIANT; None if it is not set."""
    arm_path: str | None
    """GNUARMEMB_TOOLCHAIN_PATH."""
    prefix: str | None
    """CROSS_COMPILE: the start of the compiler's name."""
    llvm_path: str | None
    """LLVM_TOOLCHAIN_PATH."""
    sdk_folder: str | None
    """ZEPHYR_SDK_INSTALL_DIR."""
    root: str | None
    """TOOLCHAIN_ROOT: a directory with toolchains that Zephyr does not contain."""

    @property
    def family(self) -> str:
        """The variant without the compiler after its slash: that of the SDK if none is set."""
        return (self.variant or "zephyr").partition("/")[0]


def selection() -> Selection:
    """Return what the environment selects."""
    names = (VARIANT, ARM_PATH, PREFIX, LLVM_PATH, SDK_DIR, "TOOLCHAIN_ROOT")
    return Selection(*(os.environ.get(name) or None for name in names))


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
        match = re.search(pattern, read_text(workspace.base / "cmake" / "modules" / file))
        if match:
            limits[name] = match[1].removesuffix(".0") if match[1].count(".") > 1 else match[1]
    return Zephyr(
        workspace.base,
        workspace.top,
        version,
        limits,
        _modules(workspace, version),
        find_west(workspace),
        (workspace.base / "scripts" / "west_commands" / "sdk.py").is_file(),
        tuple(sorted(path.name for path in (workspace.base / "cmake" / "toolchain").glob("*") if path.is_dir())),
    )


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
