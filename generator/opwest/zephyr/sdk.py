# SPDX-License-Identifier: Apache-2.0
"""Toolchains of builds with Zephyr: installed Zephyr SDKs, and what the environment selects."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from opwest.base.frozen_dataclass import dataclass
from opwest.base.versions import numbers
from opwest.zephyr.hardware import read_text

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
