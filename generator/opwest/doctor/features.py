# SPDX-License-Identifier: Apache-2.0
"""The table of features: what each one needs from a machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from opwest.base import commands
from opwest.base.frozen_dataclass import dataclass
from opwest.base.packages import OF_FEATURES
from opwest.base.system import pip_command
from opwest.base.versions import at_least
from opwest.doctor import packages as packages_of_python
from opwest.doctor.machine import Machine
from opwest.doctor.packages import Package, Requirement, python_suffices
from opwest.doctor.zephyr import Zephyr
from opwest.zephyr.toolchains import Lack, build_programs, compiler_of_build, program, toolchain, variant
from opwest.zephyr.version import OLDEST

SINGLE = frozenset(OF_FEATURES.values())
"""Packages that opwest always requires, but that only some features use."""
_UNUSED_BY_WEST = ("argcomplete", "llvmlite", "smpclient", "west")
_OLDEST_GIT = "1.5.4"
"""The first git with merge-file, `-p` and several labels."""


Need = Callable[[Machine], Iterator[Lack]]


def python(machine: Machine) -> Iterator[Lack]:
    """Need a Python that opwest supports."""
    least = machine.declared.python
    if not python_suffices(machine.python, least):
        yield Lack(f"Python {least} or newer (found {machine.python})")


def packages(machine: Machine) -> Iterator[Lack]:
    """Need the packages that all features use."""
    if not machine.declared.requirements:
        yield Lack("the metadata of the package opwest: its requirements are unknown", "install opwest with pip")
    yield from _lacking(machine, lambda requirement: requirement.extra is None and requirement.name not in SINGLE)


def extra(name: str) -> Need:
    """Return the need of the packages of an extra."""
    return lambda machine: _lacking(machine, lambda requirement: requirement.extra == name)


def single(name: str) -> Need:
    """Return the need of one package that other features do not use."""
    return lambda machine: _lacking(machine, lambda requirement: (requirement.extra, requirement.name) == (None, name))


def _lacking(machine: Machine, is_needed: Callable[[Requirement], bool]) -> Iterator[Lack]:
    lacking = [package for package in machine.packages if is_needed(package.requirement) and not package.suffices]
    if lacking:
        command = pip_command(package.requirement.text for package in lacking)
        yield Lack(", ".join(map(_described, lacking)), command)


def _described(package: Package) -> str:
    """Return what is wrong with a package."""
    if package.version is None:
        return f"the Python package {package.requirement.name}"
    return f"{package.requirement.name} {package.requirement.range} (found {package.version})"


def git(machine: Machine) -> Iterator[Lack]:
    """Need a git with merge-file."""
    yield from program(machine, "git", _OLDEST_GIT)


def compiler(machine: Machine) -> Iterator[Lack]:
    """Need a C compiler of this machine, with the C library."""
    yield from _compiler(machine, "cc", "a C compiler", "the headers or libraries of the C library")


def compiler_32(machine: Machine) -> Iterator[Lack]:
    """Need the 32-bit C library."""
    if machine.program("cc compiles").works:
        yield from _compiler(machine, "cc -m32", "", "the 32-bit C library (-m32)")


def _compiler(machine: Machine, key: str, program: str, library: str) -> Iterator[Lack]:
    command = machine.system.installs(key)
    answer = machine.program(f"{key} compiles")
    if answer.path is None:
        yield Lack(f"{program}: {machine.compiler!r} not found", command)
    elif not machine.program("cc").works:
        yield Lack(f"a C compiler that works: {machine.compiler}: {machine.program('cc').fault}", command)
    elif not answer.works:
        yield Lack(f"{library}: {machine.compiler}: {answer.fault}", command)
    elif machine.system.kind == "Linux" and not all(machine.has_file(f"{key} {f}") for f in ("libgcc.a", "crt1.o")):
        yield Lack(library, command)


def linux(machine: Machine) -> Iterator[Lack]:
    """Need Linux: Zephyr's native_sim runs on no other system."""
    if machine.system.kind != "Linux":
        yield Lack(f"Linux: Zephyr's native_sim does not run on {machine.system.name}")


def workspace(machine: Machine) -> Iterator[Lack]:
    """Need a Zephyr workspace in a supported version."""
    if machine.base_fault is not None:
        yield Lack(f"a Zephyr workspace: {machine.base_fault}", commands.unsetting("ZEPHYR_BASE"))
    elif machine.zephyr is None:
        yield Lack("a Zephyr workspace: ZEPHYR_BASE is not set, and ~/zephyrproject does not exist", _new_workspace())
    elif not machine.zephyr.is_supported:
        oldest = ".".join(map(str, OLDEST))
        yield Lack(f"Zephyr {oldest} or newer (found {machine.zephyr.version} in {machine.zephyr.base})")


def _new_workspace() -> str:
    """Return the command that makes a Zephyr workspace."""
    folder = commands.home("zephyrproject")
    init = commands.both(f"west init {folder}", f"cd {folder}")
    return commands.both(init, commands.both("west update", "west packages pip --install"))


def build_tools(machine: Machine) -> Iterator[Lack]:
    """Need west, its Python, CMake, ninja and dtc, in the versions that the workspace's Zephyr accepts."""
    zephyr = machine.zephyr
    if zephyr is not None:
        yield from _west(machine, zephyr)
    elif not any(p.requirement.name == "west" and p.version is not None for p in machine.packages):
        yield Lack("west", pip_command(["west"]))
    yield from build_programs(machine)


def _west(machine: Machine, zephyr: Zephyr) -> Iterator[Lack]:
    if zephyr.west is None:
        yield Lack("west", pip_command(["west"]))
        return
    yield from program(machine, "west", zephyr.workspace.limits.get("west"))
    oldest = zephyr.workspace.limits.get("python")
    python_version = zephyr.python.version if zephyr.python is not None else None
    if python_version is not None and oldest is not None and not at_least(python_version, oldest):
        yield Lack(f"Python {oldest} or newer for Zephyr {zephyr.version} (west runs with {python_version})")


def workspace_packages(machine: Machine) -> Iterator[Lack]:
    """Need west, and the packages of opwest for the Python that runs it."""
    zephyr = machine.zephyr
    if zephyr is None:
        return
    if zephyr.west is None:
        yield Lack("west", pip_command(["west"]))
        return
    workspace_python = zephyr.python
    if workspace_python is None or workspace_python.version is None:
        reason = "not found" if workspace_python is None else f"{workspace_python.path}: {workspace_python.fault}"
        yield Lack(f"the Python of {zephyr.west}: {reason}")
        return
    if not python_suffices(workspace_python.version, machine.declared.python):
        yield Lack(f"Python {machine.declared.python} or newer (west runs with {workspace_python.version})")
    lacking = [
        package
        for package in workspace_python.packages
        if not package.suffices and package.requirement.name not in _UNUSED_BY_WEST
    ]
    if lacking:
        path = workspace_python.path
        texts = " ".join(commands.quoted(package.requirement.text) for package in lacking)
        command = f"{commands.program(path)} -m pip install {texts}"
        yield Lack(f"{', '.join(map(_described, lacking))} for {path}", command)


def module(name: str) -> Need:
    """Return the need of a module of the workspace."""

    def need(machine: Machine) -> Iterator[Lack]:
        zephyr = machine.zephyr
        if zephyr is not None and not zephyr.has(name):
            yield Lack(
                f"the module {name} in the workspace", commands.in_directory(str(zephyr.top), f"west update {name}")
            )

    return need


def cortex_m(machine: Machine) -> Iterator[Lack]:
    """Need the module of Cortex-M boards."""
    if machine.zephyr is not None:
        yield from module(machine.zephyr.cortex_m)(machine)


def arm_gcc(machine: Machine) -> Iterator[Lack]:
    """Need arm-none-eabi-gcc and its C library."""
    yield from _bare_metal(machine, "arm-none-eabi-gcc", "arm-none-eabi-gcc libc", "its C library (newlib)")


def riscv_gcc(machine: Machine) -> Iterator[Lack]:
    """Need riscv64-unknown-elf-gcc and picolibc."""
    yield from _bare_metal(machine, "riscv64-unknown-elf-gcc", "riscv64-unknown-elf-gcc picolibc", "picolibc")


def _bare_metal(machine: Machine, name: str, library: str, title: str) -> Iterator[Lack]:
    lacks = list(program(machine, name))
    if not lacks and not machine.has_file(library):
        lacks = [Lack(f"{title} for {name}", machine.system.installs(name))]
    yield from lacks


def qemu(architecture: str, *machines: str) -> Need:
    """Return the need of an emulator with machines."""
    emulator = f"qemu-system-{architecture}"

    def need(machine: Machine) -> Iterator[Lack]:
        lacks = list(program(machine, emulator))
        missing = [name for name in machines if name not in machine.emulated(emulator)]
        if not lacks and missing:
            fault = machine.program(f"{emulator} machines").fault
            what = fault or f"it has no machine {', '.join(missing)}"
            version = machine.program(emulator).version
            lacks = [Lack(f"a newer {emulator} (found {version}): {what}", machine.system.installs(emulator))]
        yield from lacks

    return need


def serial_port(machine: Machine) -> Iterator[Lack]:
    """Need a serial device of a board that this user may open."""
    ports = machine.ports
    if ports is None:
        return  # smpclient[serial] brings pyserial
    if not ports:
        yield Lack("a serial device of a board: plug in the board")
    elif not any(port.usable for port in ports):
        names = ", ".join(port.name for port in ports)
        yield Lack(f"permission for {names}", commands.joining_group(ports[0].name))


def bluetooth(_machine: Machine) -> Iterator[Lack]:
    """Need the package with which smpclient uses Bluetooth: no extra of opwest declares it."""
    if packages_of_python.installed("bleak") is None:
        yield Lack("the Python package bleak", pip_command(["smpclient[ble]"]))


def _arm_machines() -> tuple[str, ...]:
    """Return the machines of QEMU that measure Arm cores; none without PyYAML, which `packages` reports."""
    try:
        from opwest.objects.targets import measured_cores
    except ImportError:
        return ()
    rows = (core.qemu for core in measured_cores().values() if core.machine == "arm" and core.qemu is not None)
    return tuple(dict.fromkeys(row["machine"] for row in rows))


def board_compiler(architecture: str) -> Need:
    """Return the need of a compiler for `opwest run --board`, which also selects one that is in PATH."""

    def need(machine: Machine) -> Iterator[Lack]:
        yield from compiler_of_build(machine, architecture)[1]

    return need


_CORE = (python, packages)
_BUILD = (workspace, build_tools, variant)
_ARM = (*_BUILD, toolchain("arm"), cortex_m)
_RISCV = (*_BUILD, toolchain("riscv"))
_NATIVE = (*_BUILD, linux, compiler)
_ARRAYS = (*_CORE, single("numpy"))
_LINK = (*_ARRAYS, single("pyserial"))
_RUN = (*_LINK, workspace, build_tools)
_SMP = (single("smpclient"), module("zcbor"))


@dataclass(frozen=True)
class Feature:
    """A feature of opwest."""

    name: str
    """Its argument of `opwest doctor`."""
    purpose: str
    needs: tuple[Need, ...]
    basic: bool = False
    """Whether the exit code without arguments depends on it."""
    extra: str | None = None
    """The extra of pyproject.toml that declares its packages; the feature is absent where that is not declared."""


FEATURES = (
    Feature("generate", "check, inspect, init, generate", _CORE, basic=True),
    Feature("update", "update projects, merging your changes", (*_CORE, git), basic=True),
    Feature("report", "reports and their comparison", _CORE, basic=True),
    Feature("run-host", "run on this machine", (*_CORE, compiler)),
    Feature("run-host-32", "run --bits 32", (*_CORE, compiler, compiler_32)),
    Feature("arrays", "plan, import mlf; constants, inputs and outputs in .npy and .npz files", _ARRAYS),
    Feature("stack", "the stack of check from the code of objects", (*_CORE, single("capstone"))),
    Feature("llvm", "operators in LLVM IR, --metadata=llvm", (*_CORE, single("llvmlite"))),
    Feature("import-models", "import tflite, import torch, import onnx", (*_ARRAYS, extra("models")), extra="models"),
    Feature("quantise-onnx", "quantise ONNX files", (*_ARRAYS, extra("models"), extra("quantise")), extra="quantise"),
    Feature("import-tvm", "Relax modules (opwest.frontends.tvm)", (*_ARRAYS, extra("tvm")), extra="tvm"),
    Feature("import-npu", "import tflite --npu (Vela)", (*_ARRAYS, extra("models"), extra("vela")), extra="vela"),
    Feature("tune-arm", "tune for Cortex-M in QEMU", (*_ARRAYS, arm_gcc, qemu("arm", *_arm_machines()))),
    Feature("tune-riscv", "tune for RISC-V in QEMU", (*_ARRAYS, riscv_gcc, qemu("riscv32", "virt"))),
    Feature("bundle", "link bundles for Cortex-M", (*_CORE, arm_gcc)),
    Feature("bundle-sign", "sign and verify bundles", (*_CORE, extra("bundle")), extra="bundle"),
    Feature("west", "west opwest, opwest_add_model()", (workspace, workspace_packages)),
    Feature("build-native-sim", "west build for native_sim/native/64", _NATIVE),
    Feature("build-arm", "west build for Cortex-M boards", _ARM),
    Feature("build-riscv", "west build for RISC-V boards", _RISCV),
    Feature("run-native-sim", "run --board native_sim/native/64", (*_LINK, *_NATIVE)),
    Feature(
        "run-qemu-arm",
        "run --board mps2/an385, mps3/corstone300/an547",
        (*_RUN, board_compiler("arm"), cortex_m, *_SMP, qemu("arm", "mps2-an385", "mps3-an547")),
    ),
    Feature(
        "run-qemu-riscv",
        "run --board qemu_riscv32",
        (*_RUN, board_compiler("riscv"), *_SMP, qemu("riscv32", "virt")),
    ),
    Feature("run-serial", "run --board on a connected board", (*_LINK, single("smpclient"), serial_port)),
    Feature("run-udp", "run --udp HOST", (*_ARRAYS, single("smpclient"))),
    Feature("run-ble", "run --ble NAME", (*_ARRAYS, single("smpclient"), bluetooth)),
    Feature("docs", "make docs", (extra("docs"),), extra="docs"),
)


@dataclass(frozen=True)
class State:
    """A feature on a machine: it works if nothing lacks."""

    feature: Feature
    lacks: tuple[Lack, ...]


def states(machine: Machine) -> tuple[State, ...]:
    """Return the state of every feature that this opwest has."""
    return tuple(
        State(feature, tuple(dict.fromkeys(lack for need in feature.needs for lack in need(machine))))
        for feature in offered(machine)
    )


def offered(machine: Machine) -> tuple[Feature, ...]:
    """Return the features without those whose packages this opwest does not declare."""
    extras = machine.declared.extras
    return tuple(feature for feature in FEATURES if feature.extra is None or feature.extra in extras)
