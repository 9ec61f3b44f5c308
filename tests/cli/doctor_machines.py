# SPDX-License-Identifier: Apache-2.0
"""Machines for the tests of `opwest doctor`: programs are scripts in one directory, which is PATH."""

import json
from pathlib import Path

from opwest.base.system import System
from opwest.doctor.packages import declared

DEBIAN = System("Debian GNU/Linux 12 (bookworm)", "Linux", "x86_64", "apt", ("debian", "12"))
_VERSIONS = {
    "git": "git version 2.39.5",
    "cmake": "cmake version 3.25.1",
    "ninja": "1.11.1",
    "dtc": "Version: DTC 1.6.1",
    "gperf": "GNU gperf 3.1",
    "clang": "Debian clang version 14.0.6",
    "ld.lld": "Debian LLD 14.0.6 (compatible with GNU linkers)",
}
_COMPILERS = {
    "cc": "cc (Debian 12.2.0-14+deb12u1) 12.2.0",
    "gcc": "gcc (Debian 12.2.0-14+deb12u1) 12.2.0",
    "arm-none-eabi-gcc": "arm-none-eabi-gcc (15:12.2.rel1-1) 12.2.1 20221205",
    "riscv64-unknown-elf-gcc": "riscv64-unknown-elf-gcc (13.2.0-11ubuntu1+12) 13.2.0",
}
_MACHINES = {
    "qemu-system-arm": "mps2-an385 mps2-an386 mps2-an500 mps2-an505 mps3-an547 none",
    "qemu-system-riscv32": "virt none",
    "qemu-system-riscv64": "virt none",
    "qemu-system-i386": "q35 none",
}
_CMAKE = {
    "python.cmake": "set(PYTHON_MINIMUM_REQUIRED 3.12.1)\n",
    "zephyr_default.cmake": "cmake_minimum_required(VERSION 3.20.0)\n",
    "dts.cmake": "find_package(Dtc 1.4.6)\n",
    "west.cmake": "  set_ifndef(MIN_WEST_VERSION 0.14.0)\n",
    "FindHostTools.cmake": "find_package(Zephyr-sdk 0.16)\n",
}
_MODULES = {
    **{name: f"modules/hal/{name.removeprefix('hal_')}" for name in ("cmsis", "cmsis_6", "hal_stm32", "hal_nordic")},
    "hal_ethos_u": "modules/hal/ethos_u",
    **{name: f"modules/lib/{name}" for name in ("picolibc", "zcbor", "cmsis-nn", "cmsis-dsp")},
}


def script(path: Path, body: str) -> Path:
    """Write a program: a shell script that uses no other program."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def accepted(name: str) -> str:
    """Return a version of a package that opwest accepts."""
    limits = (one.limits[0][1] for one in declared().requirements if one.name == name and one.limits)
    return next(limits, "1.0").removesuffix(".*")


UNSET = (
    *("ZEPHYR_BASE", "ZEPHYR_TOOLCHAIN_VARIANT", "ZEPHYR_SDK_INSTALL_DIR", "GNUARMEMB_TOOLCHAIN_PATH"),
    *("CROSS_COMPILE", "CC", "LLVM_TOOLCHAIN_PATH", "TOOLCHAIN_ROOT"),
)


class FakeMachine:
    """A machine with all programs and a workspace of Zephyr 4.2; tests remove or replace its parts."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.home = folder / "home"
        self.home.mkdir(parents=True)
        for name, text in _VERSIONS.items():
            script(self.bin / name, f"echo '{text}'")
        for name, text in _COMPILERS.items():
            self.compiler(name, text)
        for name, machines in _MACHINES.items():
            lines = "\n".join(f"{one}  a machine" for one in machines.split())
            version = "echo 'QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)'"
            script(self.bin / name, f"case $1 in --version) {version};; *) echo '{lines}';; esac")
        self.zephyr("4.2.0")

    def compiler(self, name: str, text: str) -> None:
        """Write a compiler that has its libraries."""
        cases = "*-print-file-name=*) echo /usr/lib/file;; *--version*) echo '{}';; *dumpmachine*) echo arm;; *) ;;"
        script(self.bin / name, f'case "$*" in {cases.format(text)} esac')

    def remove(self, *names: str) -> None:
        for name in names:
            (self.bin / name).unlink()

    @property
    def top(self) -> Path:
        return self.home / "zephyrproject"

    def zephyr(self, version: str, python: str = "3.12.1") -> None:
        """Write a workspace with all modules, west and its Python."""
        base = self.top / "zephyr"
        (base / "cmake" / "modules").mkdir(parents=True, exist_ok=True)
        major, minor, patch = version.split(".")
        text = f"VERSION_MAJOR = {major}\nVERSION_MINOR = {minor}\nPATCHLEVEL = {patch}\n"
        (base / "VERSION").write_text(text, encoding="utf-8")
        for name, content in _CMAKE.items():
            (base / "cmake" / "modules" / name).write_text(content, encoding="utf-8")
        projects = "".join(f"    - name: {name}\n      path: {path}\n" for name, path in _MODULES.items())
        (base / "west.yml").write_text(f"manifest:\n  projects:\n{projects}", encoding="utf-8")
        script(base / "scripts" / "west_commands" / "sdk.py", "")
        for name, path in _MODULES.items():
            if name != "hal_nordic":
                (self.top / path / "zephyr").mkdir(parents=True, exist_ok=True)
                (self.top / path / "zephyr" / "module.yml").write_text("", encoding="utf-8")
        self.workspace_python(python, {one.name: accepted(one.name) for one in declared().dependencies})
        self.west("1.5.0")

    def workspace_python(self, version: str, packages: dict[str, str | None]) -> None:
        answer = json.dumps({"python": version, "packages": packages})
        script(self.top / ".venv" / "bin" / "python3", f"echo '{answer}'")

    def west(self, version: str) -> None:
        script(self.top / ".venv" / "bin" / "west", f"echo 'West version: v{version}'")

    def sdk(self, folder: Path, version: str, *targets: str) -> None:
        """Write an SDK; from 1.0 on, its toolchains are in `gnu`."""
        folder.mkdir(parents=True)
        (folder / "sdk_version").write_text(f"{version}\n", encoding="utf-8")
        for target in targets:
            (folder / ("gnu" if version >= "1" else "") / target / "bin").mkdir(parents=True)
