# SPDX-License-Identifier: Apache-2.0
"""What a build with Zephyr needs from a machine: programs and a compiler, as the environment selects it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

from opwest.base import commands
from opwest.base.frozen_dataclass import dataclass
from opwest.base.programs import Answer, Command, run_all
from opwest.base.system import System, examine_system, pip_command
from opwest.base.versions import at_least
from opwest.zephyr.sdk import ARM_PATH, PREFIX, SDK_DIR, VARIANT, Sdk, Selection, find_sdks, selection
from opwest.zephyr.workspace import Workspace

_ARM, _RISCV = "arm-none-eabi-gcc", "riscv64-unknown-elf-gcc"
_MULTILIB = "riscv libraries"


class Facts(Protocol):
    """The facts about a machine."""

    @property
    def system(self) -> System:
        """The operating system."""

    @property
    def workspace(self) -> Workspace | None:
        """The workspace that builds use."""

    @property
    def sdks(self) -> tuple[Sdk, ...]:
        """The installed SDKs, the one that builds select first."""

    @property
    def selection(self) -> Selection:
        """What the environment selects."""

    def program(self, name: str) -> Answer:
        """Return the outcome of the command that prints the version of a program, or of one of `compiler_commands`."""


def compiler_commands(chosen: Selection) -> dict[str, Command]:
    """Return the commands that examine compilers, by name, besides those that print the version of a program."""
    march = ("-march=rv32imac_zicsr_zifencei", "-mabi=ilp32")  # as Zephyr names the extensions
    named = {_MULTILIB: Command((_RISCV, *march, "-print-multi-directory"))}
    if chosen.arm_path is not None:
        named["gnuarmemb"] = Command((str(Path(chosen.arm_path, "bin", _ARM)), "--version"))
    if chosen.prefix is not None:
        named["cross-compile"] = Command((f"{chosen.prefix}gcc", "--version"))
        named["cross-compile target"] = Command((f"{chosen.prefix}gcc", "-dumpmachine"))
    return named


class BuildFacts:
    """The facts that one build needs: a program runs when it is asked for. Implements Facts."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace: Workspace | None = workspace
        self.selection = selection()
        self.sdks = find_sdks()
        self.system = examine_system()
        self._named = compiler_commands(self.selection)
        self._answers: dict[str, Answer] = {}

    def program(self, name: str) -> Answer:
        """Return the outcome of a command, which runs once."""
        self.run(name)
        return self._answers[name]

    def run(self, *names: str) -> None:
        """Run the commands that have not run, at the same time."""
        missing = [name for name in names if name not in self._answers]
        self._answers |= run_all({name: self._named.get(name) or Command((name, "--version")) for name in missing})


@dataclass(frozen=True)
class Lack:
    """Something that is missing, and the command that brings it, if there is one."""

    what: str
    command: str | None = None


def program(machine: Facts, name: str, least: str | None = None) -> Iterator[Lack]:
    """Need a program, in a version of at least `least`."""
    answer = machine.program(name)
    command = pip_command([name]) if name == "west" else machine.system.installs(name)
    if answer.path is None:
        yield Lack(name + (f" {least} or newer" if least else ""), command)
    elif not answer.works:
        yield Lack(f"{name} that works: {answer.path}: {answer.fault}", command)
    elif least and answer.version is not None and not at_least(answer.version, least):
        newer = pip_command([f"{name}>={least}"]) if name in ("cmake", "west") else command
        yield Lack(f"{name} {least} or newer (found {answer.version})", newer)


def build_programs(machine: Facts) -> Iterator[Lack]:
    """Need CMake, ninja and dtc, in the versions that the workspace's Zephyr accepts."""
    limits: Mapping[str, str] = machine.workspace.limits if machine.workspace is not None else {}
    for name in ("cmake", "ninja", "dtc"):
        if name != "dtc" or not any(sdk.host_tools for sdk in machine.sdks):
            yield from program(machine, name, limits.get(name))


def toolchain(architecture: str) -> Callable[[Facts], Iterator[Lack]]:
    """Return the need of a compiler for arm or riscv, as a build with Zephyr selects it."""

    def need(machine: Facts) -> Iterator[Lack]:
        chosen = machine.selection
        if chosen.variant == "cross-compile" or (chosen.variant is None and chosen.prefix is not None):
            yield from _cross_compiler(machine, architecture)
        elif chosen.family == "zephyr":  # also the default
            yield from _sdk_need(machine, architecture)
        elif chosen.variant == "gnuarmemb":
            yield from _gnuarmemb(machine, architecture)
        elif chosen.variant == "llvm":
            yield from _llvm(machine)
        elif chosen.family == "host":
            title = _TITLES[architecture]
            yield Lack(f"a compiler for {title}: {VARIANT}={chosen.variant} selects that of this machine")

    return need


def variant(machine: Facts) -> Iterator[Lack]:
    """Need a toolchain that Zephyr has, for all boards. A directory in TOOLCHAIN_ROOT can contain others."""
    chosen, zephyr = machine.selection, machine.workspace
    if zephyr is not None and zephyr.toolchains and chosen.root is None and chosen.family not in zephyr.toolchains:
        known = ", ".join(zephyr.toolchains)
        what = f"a toolchain of Zephyr: {VARIANT} is {chosen.variant!r}, not one of {known}"
        yield Lack(what, commands.unsetting(VARIANT))


def _llvm(machine: Facts) -> Iterator[Lack]:
    missing = [name for name in ("clang", "ld.lld") if not machine.program(name).works]
    if machine.selection.llvm_path is None and missing:
        yield Lack(f"{' and '.join(missing)}, which {VARIANT}=llvm uses", machine.system.installs("lld"))


_TITLES = {"arm": "Arm", "riscv": "RISC-V"}


def _sdk_need(machine: Facts, architecture: str) -> Iterator[Lack]:
    least = machine.workspace.limits.get("sdk", "0") if machine.workspace is not None else "0"
    folder = machine.selection.sdk_folder
    if folder is not None and (not machine.sdks or machine.sdks[0].folder != Path(folder)):
        yield Lack(f"a Zephyr SDK: {SDK_DIR} is {folder!r}, which contains no SDK")
        return
    is_llvm = machine.selection.variant == "zephyr/llvm"
    new = [sdk for sdk in machine.sdks if at_least(sdk.version, least)]
    if any(sdk.llvm if is_llvm else sdk.builds(architecture) for sdk in new):
        return
    title = _TITLES[architecture]
    newer = f"Zephyr SDK {least} or newer" if least != "0" else "Zephyr SDK"
    installed = ", ".join(f"{sdk.version} in {sdk.folder}" for sdk in machine.sdks)
    what = f"a compiler for {title}: a {newer} with {'LLVM' if is_llvm else 'its toolchain'}"
    what += f" (found {installed})" if installed else ""
    command = _instead(machine, architecture)
    if command is None and machine.workspace is not None and machine.workspace.has_sdk_command:
        command = commands.in_directory(str(machine.workspace.top), "west sdk install")
    yield Lack(what, command)


def _instead(machine: Facts, architecture: str) -> str | None:
    """Return the command that selects a compiler that is installed."""
    variables = installed_compiler(machine, architecture)
    return commands.setting(variables) if variables else None


def installed_compiler(machine: Facts, architecture: str) -> dict[str, str]:
    """Return the variables that select a compiler in PATH for arm or riscv; empty if there is none.

    The compiler for RISC-V must have libraries for the extensions as Zephyr names them: it links others without them.
    """
    name = {"arm": _ARM, "riscv": _RISCV}.get(architecture, "")
    answer = machine.program(name) if name else Answer(None)
    if not answer.works or answer.path is None:
        return {}
    path = answer.path.replace("\\", "/")
    if architecture == "arm":
        return {VARIANT: "gnuarmemb", ARM_PATH: path.rpartition("/bin/")[0]}
    libraries = machine.program(_MULTILIB)
    if not libraries.works or libraries.output.strip() in ("", "."):
        return {}
    return {VARIANT: "cross-compile", PREFIX: path.removesuffix(".exe").removesuffix("gcc")}


def _gnuarmemb(machine: Facts, architecture: str) -> Iterator[Lack]:
    if architecture != "arm":
        yield Lack(f"a compiler for RISC-V: {VARIANT}=gnuarmemb selects one for Arm", commands.unsetting(VARIANT))
        return
    chosen, answer = machine.selection.arm_path, machine.program("gnuarmemb")
    command = _instead(machine, "arm") or machine.system.installs("arm-none-eabi-gcc")
    if chosen is None:
        yield Lack(f"{ARM_PATH}, which {VARIANT}=gnuarmemb requires", command)
    elif not answer.works:
        yield Lack(f"bin/arm-none-eabi-gcc in {ARM_PATH} ({chosen}): {answer.fault or 'not found'}", command)


def _cross_compiler(machine: Facts, architecture: str) -> Iterator[Lack]:
    prefix, title = machine.selection.prefix, _TITLES[architecture]
    if prefix is None:
        yield Lack(f"{PREFIX}, which {VARIANT}=cross-compile requires")
        return
    answer = machine.program("cross-compile target")
    if not answer.works:
        yield Lack(f"the compiler {prefix}gcc: {answer.fault or 'not found'}")
    elif not answer.output.startswith(architecture):
        yield Lack(f"a compiler for {title}: {prefix}gcc compiles for {answer.output.splitlines()[0]}")


def compiler_of_build(machine: Facts, architecture: str) -> tuple[dict[str, str], list[Lack]]:
    """Return the variables that a build for arm or riscv needs besides the environment, and what it lacks.

    The variables are those of an installed compiler, if the environment selects none and there is no Zephyr SDK.
    """
    lacks = [*variant(machine), *toolchain(architecture)(machine)]
    chosen = machine.selection
    is_open = (chosen.variant, chosen.prefix, chosen.sdk_folder) == (None, None, None)
    if lacks and (is_open or (chosen.variant == "gnuarmemb" and chosen.arm_path is None)):
        variables = installed_compiler(machine, architecture)
        if variables:
            return variables, []
    return {}, lacks
