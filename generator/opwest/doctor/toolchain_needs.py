# SPDX-License-Identifier: Apache-2.0
"""The need of a compiler for builds with Zephyr: the environment selects it, as Zephyr's CMake files do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from opwest.doctor.machine import Machine
from opwest.doctor.needs import Lack, Need
from opwest.doctor.programs import Answer
from opwest.doctor.toolchains import ARM_PATH, PREFIX, SDK_DIR, VARIANT
from opwest.doctor.versions import at_least
from opwest.system import commands


def toolchain(architecture: str) -> Need:
    """Return the need of a compiler for arm or riscv, as a build with Zephyr selects it."""

    def need(machine: Machine) -> Iterator[Lack]:
        chosen = machine.selection
        if chosen.variant is None and chosen.prefix is not None:
            yield from _cross_compiler(machine, architecture)
        elif chosen.is_sdk:
            yield from _sdk(machine, architecture)
        elif chosen.variant == "gnuarmemb":
            yield from _gnuarmemb(machine, architecture)
        elif chosen.variant == "cross-compile":
            yield from _cross_compiler(machine, architecture)
        elif chosen.variant == "llvm":
            yield from _llvm(machine)
        elif chosen.family == "host":
            title = _TITLES[architecture]
            yield Lack(f"a compiler for {title}: {VARIANT}={chosen.variant} selects that of this machine")

    return need


def variant(machine: Machine) -> Iterator[Lack]:
    """Need a toolchain that Zephyr has, for all boards. A directory in TOOLCHAIN_ROOT can contain others."""
    chosen, zephyr = machine.selection, machine.zephyr
    if zephyr is not None and zephyr.toolchains and chosen.root is None and chosen.family not in zephyr.toolchains:
        known = ", ".join(zephyr.toolchains)
        what = f"a toolchain of Zephyr: {VARIANT} is {chosen.variant!r}, not one of {known}"
        yield Lack(what, commands.unsetting(VARIANT))


def _llvm(machine: Machine) -> Iterator[Lack]:
    missing = [name for name in ("clang", "ld.lld") if not machine.program(name).works]
    if machine.selection.llvm_path is None and missing:
        yield Lack(f"{' and '.join(missing)}, which {VARIANT}=llvm uses", machine.system.installs("lld"))


_TITLES = {"arm": "Arm", "riscv": "RISC-V"}


def _sdk(machine: Machine, architecture: str) -> Iterator[Lack]:
    least = machine.zephyr.limits.get("sdk", "0") if machine.zephyr is not None else "0"
    if machine.selection.sdk_folder is not None and (
        not machine.sdks or machine.sdks[0].folder != Path(machine.selection.sdk_folder)
    ):
        yield Lack(f"a Zephyr SDK: {SDK_DIR} is {machine.selection.sdk_folder!r}, which contains no SDK")
        return
    is_llvm = machine.selection.is_llvm_of_sdk
    new = [sdk for sdk in machine.sdks if at_least(sdk.version, least)]
    if any(sdk.llvm if is_llvm else sdk.builds(architecture) for sdk in new):
        return
    title = _TITLES[architecture]
    newer = f"Zephyr SDK {least} or newer" if least != "0" else "Zephyr SDK"
    found = ", ".join(f"{sdk.version} in {sdk.folder}" for sdk in machine.sdks)
    what = f"a compiler for {title}: a {newer} with {'LLVM' if is_llvm else 'its toolchain'}"
    what += f" (found {found})" if found else ""
    yield Lack(what, _instead(machine, architecture) or _install_sdk(machine))


def _instead(machine: Machine, architecture: str) -> str | None:
    """Return the command that selects a compiler that is installed."""
    compiler = machine.program("arm-none-eabi-gcc")
    if architecture == "arm" and compiler.works and compiler.path is not None:
        folder = compiler.path.replace("\\", "/").rpartition("/bin/")[0]
        return commands.setting({VARIANT: "gnuarmemb", ARM_PATH: folder})
    return None


def _install_sdk(machine: Machine) -> str | None:
    zephyr = machine.zephyr
    if zephyr is None or not zephyr.sdk_command:
        return None
    return commands.in_directory(str(zephyr.top), "west sdk install")


def _gnuarmemb(machine: Machine, architecture: str) -> Iterator[Lack]:
    if architecture != "arm":
        yield Lack(f"a compiler for RISC-V: {VARIANT}=gnuarmemb selects one for Arm", commands.unsetting(VARIANT))
        return
    chosen, installed = machine.selection.arm_path, machine.program("arm-none-eabi-gcc")
    if chosen is None:
        command = _instead(machine, "arm") or machine.system.installs("arm-none-eabi-gcc")
        yield Lack(f"{ARM_PATH}, which {VARIANT}=gnuarmemb requires", command)
        return
    answer = machine.program("gnuarmemb")
    if not answer.works:
        command = _instead(machine, "arm") if installed.works else machine.system.installs("arm-none-eabi-gcc")
        yield Lack(f"bin/arm-none-eabi-gcc in {ARM_PATH} ({chosen}): {_fault(answer)}", command)


def _fault(answer: Answer) -> str:
    return "not found" if answer.path is None else str(answer.fault)


def _cross_compiler(machine: Machine, architecture: str) -> Iterator[Lack]:
    prefix, title = machine.selection.prefix, _TITLES[architecture]
    if prefix is None:
        yield Lack(f"{PREFIX}, which {VARIANT}=cross-compile requires")
        return
    answer = machine.program("cross-compile target")
    if not answer.works:
        yield Lack(f"the compiler {prefix}gcc: {_fault(answer)}")
    elif not answer.output.startswith(architecture):
        yield Lack(f"a compiler for {title}: {prefix}gcc compiles for {answer.output.splitlines()[0]}")
