# SPDX-License-Identifier: Apache-2.0
"""The operating system, its package manager, and the commands that install programs with it."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

from opwest.base import commands
from opwest.base.frozen_dataclass import dataclass

_MANAGERS = {
    "apt": "apt-get install",
    "dnf": "dnf install",
    "brew": "brew install",
    "winget": "winget install",
    "choco": "choco install",
}
"""The package managers, the preferred ones first, and their command."""
_AS_ROOT = ("apt", "dnf")

_QEMU = ("qemu", "SoftwareFreedomConservancy.QEMU", "qemu")
_PROGRAMS: dict[str, tuple[str | None, ...]] = {
    "git": ("git", "git", "git", "Git.Git", "git"),
    "cc": ("gcc libc6-dev", "gcc glibc-devel", None, "BrechtSanders.WinLibs.POSIX.UCRT", "mingw"),
    "cc -m32": ("gcc-multilib g++-multilib", "glibc-devel.i686 libgcc.i686 libstdc++-devel.i686", None, None, None),
    "cmake": ("cmake", "cmake", "cmake", "Kitware.CMake", "cmake"),
    "ninja": ("ninja-build", "ninja-build", "ninja", "Ninja-build.Ninja", "ninja"),
    "dtc": ("device-tree-compiler", "dtc", "dtc", "oss-winget.dtc", "dtc-msys2"),
    "gperf": ("gperf", "gperf", "gperf", "oss-winget.gperf", "gperf"),
    "qemu-system-arm": ("qemu-system-arm", "qemu-system-arm", *_QEMU),
    "qemu-system-riscv32": ("qemu-system-misc", "qemu-system-riscv", *_QEMU),
    "arm-none-eabi-gcc": (
        "gcc-arm-none-eabi libnewlib-arm-none-eabi",
        "arm-none-eabi-gcc-cs arm-none-eabi-newlib",
        "--cask gcc-arm-embedded",
        "Arm.GnuArmEmbeddedToolchain",
        "gcc-arm-embedded",
    ),
    "riscv64-unknown-elf-gcc": ("gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf", None, None, None, None),
    "lld": ("clang lld", "clang lld", "llvm lld", "LLVM.LLVM", "llvm"),
}
"""The packages that contain a program, in the order of the package managers; None: no package."""


@dataclass(frozen=True)
class System:
    """The operating system of this machine."""

    name: str
    """For people, such as `Debian GNU/Linux 12 (bookworm)`."""
    kind: str
    """Linux, Darwin or Windows."""
    processor: str
    manager: str | None
    """The package manager; None for an unknown one."""
    release: tuple[str, str] = ("", "")
    """ID and VERSION_ID of os-release(5)."""

    def installs(self, program: str) -> str | None:
        """Return the command that installs a program; None if there is no package."""
        if program == "cc" and self.kind == "Darwin":
            return "xcode-select --install"
        if self.manager is None:
            return None
        packages = dict(zip(_MANAGERS, _PROGRAMS[program], strict=True))[self.manager]
        if packages is None:
            return None
        if program == "qemu-system-riscv32" and self._has_riscv_package:
            packages = "qemu-system-riscv"
        return f"{self._as_root}{_MANAGERS[self.manager]} {packages}"

    @property
    def _has_riscv_package(self) -> bool:
        """Whether QEMU for RISC-V has a package of its own: since Debian 13 and Ubuntu 25.04."""
        least = {"debian": 13.0, "ubuntu": 25.04}.get(self.release[0])
        try:
            return least is not None and float(self.release[1]) >= least
        except ValueError:
            return False

    @property
    def _as_root(self) -> str:
        is_root = hasattr(os, "geteuid") and os.geteuid() == 0
        return "sudo " if self.manager in _AS_ROOT and not is_root else ""


def examine_system() -> System:
    """Return the operating system of this machine."""
    kind = platform.system()
    manager = next((name for name, command in _MANAGERS.items() if _is_used(name, command, kind)), None)
    if kind == "Linux":
        try:
            release = platform.freedesktop_os_release()
        except OSError:
            release = {}
        name = release.get("PRETTY_NAME") or f"Linux {platform.release()}"
        return System(name, kind, platform.machine(), manager, (release.get("ID", ""), release.get("VERSION_ID", "")))
    if kind == "Darwin":
        return System(f"macOS {platform.mac_ver()[0]}", kind, platform.machine(), manager)
    return System(f"{kind} {platform.release()}", kind, platform.machine(), manager)


def _is_used(name: str, command: str, kind: str) -> bool:
    """Whether a package manager is installed. The system's directories count: PATH can lack them."""
    folders = os.pathsep.join([os.environ.get("PATH", os.defpath), *(["/usr/bin"] if kind == "Linux" else [])])
    if kind == "Linux" and name in ("brew", "winget", "choco"):
        return False
    return shutil.which(command.split()[0], path=folders) is not None


def pip_command(requirements: Iterable[str]) -> str:
    """Return the command that installs Python packages for opwest's own Python."""
    packages = [commands.quoted(text) for text in requirements]
    if "pipx" in Path(sys.prefix).parts:
        return " ".join(["pipx inject opwest", *packages])
    return " ".join([commands.program(sys.executable), "-m pip install", *packages])
