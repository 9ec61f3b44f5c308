# SPDX-License-Identifier: Apache-2.0
"""`opwest doctor`: what this machine has, and what each feature lacks, as text and as JSON."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from opwest import __version__
from opwest.base.diagnostics import printable
from opwest.base.result import Result
from opwest.doctor.features import State, offered, states
from opwest.doctor.machine import EMULATORS, Machine, examine
from opwest.doctor.packages import Package
from opwest.doctor.programs import Answer
from opwest.doctor.zephyr import VARIANT, Sdk, Zephyr
from opwest.zephyr.version import OLDEST

_BUILD = ("cmake", "ninja", "dtc", "gperf")
_COMPILERS = ("gcc", "clang", "ld.lld", "arm-none-eabi-gcc", "riscv64-unknown-elf-gcc")
_WIDTH = 118
_LABEL = 10


def doctor(options: argparse.Namespace) -> Result:
    """Examine this machine. The exit code is 0 if the named features work, without names the basic ones."""
    machine = examine()
    found = states(machine)
    names = tuple(dict.fromkeys(options.features))
    shown = [state for state in found if not names or state.feature.name in names]
    # A feature of the table whose packages this opwest does not declare does not work.
    works = {state.feature.name: not state.lacks for state in found}
    required = names or tuple(state.feature.name for state in found if state.feature.basic)
    lacking = [name for name in required if not works.get(name, False)]
    return Result(
        _text(machine, shown, with_machine=not names),
        _json(machine, shown),
        status=1 if lacking else 0,
    )


def _text(machine: Machine, shown: Sequence[State], *, with_machine: bool) -> str:
    parts = _machine(machine) if with_machine else []
    features = ["features"]
    width = max((len(state.feature.name) for state in shown), default=0)
    for state in shown:
        verdict = "works" if not state.lacks else "lacks " + state.lacks[0].what
        features += _wrapped(f"  {state.feature.name:<{width}}  ", verdict)
        for lack in state.lacks[1:]:
            features += _wrapped(f"  {'':<{width}}  ", f"lacks {lack.what}")
    parts.append("\n".join(features))
    commands = _commands(shown)
    if commands:
        parts.append("\n".join(["commands that provide what is missing", *commands]))
    return "\n\n".join(printable(part, "\n") for part in parts)


def _commands(shown: Iterable[State]) -> list[str]:
    """Return each command once, below the features that need it."""
    users: dict[str, list[str]] = {}
    for state in shown:
        for lack in state.lacks:
            if lack.command is not None:
                users.setdefault(lack.command, []).append(state.feature.name)
    lines = []
    for command, names in users.items():
        lines += _wrapped("  ", f"{', '.join(dict.fromkeys(names))}:")
        lines.append(f"    {command}")
    return lines


def _machine(machine: Machine) -> list[str]:
    head = f"opwest {__version__} on {machine.system.name}, {machine.system.processor}"
    python = [f"Python {machine.python}, {sys.executable}"]
    for extra in (None, *dict.fromkeys(feature.extra for feature in offered(machine) if feature.extra)):
        packages = [package for package in machine.packages if package.requirement.extra == extra]
        python += _wrapped(f"  {extra or 'opwest':<{_LABEL}}  ", ", ".join(map(_package, packages)))
    programs = ["programs"]
    programs += _wrapped(f"  {'git':<{_LABEL}}  ", _program(machine.program("git")))
    programs += _wrapped(f"  {'compilers':<{_LABEL}}  ", _list(machine, _COMPILERS))
    programs += _wrapped(f"  {'host':<{_LABEL}}  ", _host(machine))
    programs += _wrapped(f"  {'QEMU':<{_LABEL}}  ", _list(machine, EMULATORS))
    programs += _wrapped(f"  {'build':<{_LABEL}}  ", _list(machine, _BUILD))
    programs += _wrapped(f"  {'serial':<{_LABEL}}  ", _ports(machine))
    return [head, "\n".join(python), "\n".join(_zephyr(machine)), "\n".join(programs)]


def _wrapped(start: str, text: str) -> list[str]:
    """Return a text in lines; the second and later ones are indented as the first one's text."""
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=start,
        subsequent_indent=" " * len(start),
        break_long_words=False,
        break_on_hyphens=False,
    ) or [start.rstrip()]


def _package(package: Package) -> str:
    name = package.requirement.name
    if package.version is None:
        return f"{name} missing"
    return f"{name} {package.version}" + ("" if package.suffices else f" (required: {package.requirement.range})")


def _program(answer: Answer) -> str:
    if answer.path is None:
        return "missing"
    return answer.fault or answer.version or "unknown version"


def _list(machine: Machine, names: Iterable[str]) -> str:
    return ", ".join(f"{name} {_program(machine.program(name))}" for name in names)


def _host(machine: Machine) -> str:
    compiler = machine.program("cc")
    if compiler.path is None:
        return f"{machine.compiler} missing"
    bits = "present" if machine.program("cc -m32 compiles").works and machine.has_file("cc -m32 crt1.o") else "missing"
    return f"{machine.compiler} {_program(compiler)}, 32-bit C library {bits}"


def _ports(machine: Machine) -> str:
    if machine.ports is None:
        return "not examined: pyserial is missing"
    names = [port.name + ("" if port.usable else " (no permission)") for port in machine.ports]
    return ", ".join(names) or "no USB device"


def _zephyr(machine: Machine) -> list[str]:
    zephyr = machine.zephyr
    if zephyr is None:
        lines = [f"Zephyr: {machine.base_fault or 'no workspace found'}"]
    else:
        support = "supported" if zephyr.is_supported else f"not supported: {'.'.join(map(str, OLDEST))} is the oldest"
        lines = [f"Zephyr {zephyr.version or 'of unknown version'} ({support}), {zephyr.base}"]
        lines += _wrapped(f"  {'modules':<{_LABEL}}  ", _modules(zephyr))
        west = "missing" if zephyr.west is None else f"{_program(machine.program('west'))}, {zephyr.west}"
        lines += _wrapped(f"  {'west':<{_LABEL}}  ", west)
        lines += _wrapped(f"  {'Python':<{_LABEL}}  ", _workspace_python(zephyr))
        limits = ", ".join(f"{_LIMIT.get(name, name)} {least}" for name, least in zephyr.limits.items())
        lines += _wrapped(f"  {'requires':<{_LABEL}}  ", limits or "unknown")
    lines += _wrapped(f"  {'SDK':<{_LABEL}}  ", ", ".join(map(_sdk, machine.sdks)) or "none found")
    chosen = machine.selection
    values = {
        VARIANT: chosen.variant,
        "GNUARMEMB_TOOLCHAIN_PATH": chosen.arm_path,
        "CROSS_COMPILE": chosen.prefix,
        "LLVM_TOOLCHAIN_PATH": chosen.llvm_path,
    }
    selected = ", ".join(f"{name}={value}" for name, value in values.items() if value is not None)
    return lines + _wrapped(f"  {'toolchain':<{_LABEL}}  ", selected or f"{VARIANT} is not set: the SDK")


_LIMIT = {"python": "Python", "cmake": "CMake", "sdk": "Zephyr SDK"}


def _modules(zephyr: Zephyr) -> str:
    if zephyr.modules is None:
        return "not examined: PyYAML is missing"
    present = [name for name, is_present in zephyr.modules.items() if is_present]
    missing = [name for name, is_present in zephyr.modules.items() if not is_present]
    return (", ".join(present) or "none") + (f"; missing: {', '.join(missing)}" if missing else "")


def _workspace_python(zephyr: Zephyr) -> str:
    python = zephyr.python
    if python is None:
        return "not found"
    if python.version is None:
        return f"{python.path}: {python.fault}"
    lacking = [_package(package) for package in python.packages if not package.suffices]
    return f"{python.version}, {python.path}; " + (", ".join(lacking) or "all packages of opwest")


def _sdk(sdk: Sdk) -> str:
    kinds = [*sdk.targets, *(["llvm"] if sdk.llvm else [])]
    return f"{sdk.version} in {sdk.folder} ({', '.join(kinds) or 'no toolchain'})"


def _json(machine: Machine, shown: Iterable[State]) -> dict[str, Any]:
    zephyr = machine.zephyr
    return {
        "opwest": __version__,
        "system": {
            "name": machine.system.name,
            "kind": machine.system.kind,
            "processor": machine.system.processor,
            "package_manager": machine.system.manager,
        },
        "python": {
            "version": machine.python,
            "executable": sys.executable,
            "packages": [
                {**_package_json(package), "extra": package.requirement.extra} for package in machine.packages
            ],
        },
        "programs": {
            name: {"path": answer.path, "version": answer.version if answer.works else None, "fault": answer.fault}
            for name in ("git", "cc", *_COMPILERS, *EMULATORS, *_BUILD, "west")
            for answer in [machine.program(name)]
        },
        "zephyr": None if zephyr is None else _zephyr_json(zephyr),
        "sdks": [
            {"version": sdk.version, "directory": str(sdk.folder), "toolchains": list(sdk.targets), "llvm": sdk.llvm}
            for sdk in machine.sdks
        ],
        "toolchain_variant": machine.selection.variant,
        "serial_ports": None
        if machine.ports is None
        else [{"name": port.name, "usable": port.usable} for port in machine.ports],
        "features": [
            {
                "name": state.feature.name,
                "purpose": state.feature.purpose,
                "basic": state.feature.basic,
                "works": not state.lacks,
                "lacks": [{"what": lack.what, "command": lack.command} for lack in state.lacks],
            }
            for state in shown
        ],
    }


def _package_json(package: Package) -> dict[str, Any]:
    requirement = package.requirement
    return {
        "name": requirement.name,
        "version": package.version,
        "required": requirement.range,
        "suffices": package.suffices,
    }


def _zephyr_json(zephyr: Zephyr) -> dict[str, Any]:
    python = zephyr.python
    return {
        "base": str(zephyr.base),
        "version": None if zephyr.version is None else str(zephyr.version),
        "supported": zephyr.is_supported,
        "requires": dict(zephyr.limits),
        "modules": None if zephyr.modules is None else dict(zephyr.modules),
        "west": zephyr.west,
        "python": None
        if python is None
        else {
            "path": python.path,
            "version": python.version,
            "fault": python.fault,
            "packages": [_package_json(package) for package in python.packages],
        },
    }
