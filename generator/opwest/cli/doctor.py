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
from opwest.base.programs import Answer
from opwest.base.result import Result
from opwest.doctor.features import State, offered, states
from opwest.doctor.machine import BUILD_TOOLS, COMPILERS, EMULATORS, Machine, examine
from opwest.doctor.packages import Package
from opwest.doctor.zephyr import Zephyr
from opwest.zephyr.sdk import ARM_PATH, LLVM_PATH, PREFIX, VARIANT, Sdk
from opwest.zephyr.version import OLDEST

_WIDTH = 118


def doctor(options: argparse.Namespace) -> Result:
    """Examine this machine. The exit code is 0 if the named features work, without names the basic ones."""
    machine = examine()
    offers = states(machine)
    names = options.features
    shown = [state for state in offers if not names or state.feature.name in names]
    # A feature of the table whose packages this opwest does not declare does not work.
    working = {state.feature.name for state in offers if not state.lacks}
    required = set(names) or {state.feature.name for state in offers if state.feature.basic}
    text = _text(machine, shown, with_machine=not names)
    return Result(text, _json(machine, shown), status=0 if required <= working else 1)


def _text(machine: Machine, shown: Sequence[State], *, with_machine: bool) -> str:
    parts = _machine(machine) if with_machine else []
    features = []
    for state in shown:
        first, *others = [f"lacks {lack.what}" for lack in state.lacks] or ["works"]
        features += [(state.feature.name, first), *(("", text) for text in others)]
    width = max((len(state.feature.name) for state in shown), default=0)
    parts.append(_block("features", features, width))
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
    """Return the parts of the text about the machine."""
    extras = (None, *dict.fromkeys(feature.extra for feature in offered(machine) if feature.extra))
    packages = [
        (extra or "opwest", ", ".join(_package(p) for p in machine.packages if p.requirement.extra == extra))
        for extra in extras
    ]
    programs = [
        ("git", _program(machine.program("git"))),
        ("compilers", _list(machine, COMPILERS)),
        ("host", _host(machine)),
        ("QEMU", _list(machine, EMULATORS)),
        ("build", _list(machine, BUILD_TOOLS)),
        ("serial", _ports(machine)),
    ]
    return [
        f"opwest {__version__} on {machine.system.name}, {machine.system.processor}",
        _block(f"Python {machine.python}, {sys.executable}", packages),
        _zephyr(machine),
        _block("programs", programs),
    ]


def _block(heading: str, rows: Iterable[tuple[str, str]], width: int = 10) -> str:
    """Return a heading, and below it texts with labels of a width."""
    lines = [heading]
    for label, text in rows:
        lines += _wrapped(f"  {label:<{width}}  ", text)
    return "\n".join(lines)


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


def _zephyr(machine: Machine) -> str:
    """Return the part of the text about Zephyr and its toolchains."""
    zephyr = machine.zephyr
    rows = []
    if zephyr is None:
        heading = f"Zephyr: {machine.base_fault or 'no workspace found'}"
    else:
        support = "supported" if zephyr.is_supported else f"not supported: {'.'.join(map(str, OLDEST))} is the oldest"
        heading = f"Zephyr {zephyr.version or 'of unknown version'} ({support}), {zephyr.base}"
        west = "missing" if zephyr.west is None else f"{_program(machine.program('west'))}, {zephyr.west}"
        limits = ", ".join(f"{_LIMIT.get(name, name)} {least}" for name, least in zephyr.workspace.limits.items())
        rows = [
            ("modules", _modules(zephyr)),
            ("west", west),
            ("Python", _workspace_python(zephyr)),
            ("requires", limits or "unknown"),
        ]
    chosen = machine.selection
    values = {VARIANT: chosen.variant, ARM_PATH: chosen.arm_path, PREFIX: chosen.prefix, LLVM_PATH: chosen.llvm_path}
    selected = ", ".join(f"{name}={value}" for name, value in values.items() if value is not None)
    rows += [
        ("SDK", ", ".join(map(_sdk, machine.sdks)) or "none found"),
        ("toolchain", selected or f"{VARIANT} is not set: the SDK"),
    ]
    return _block(heading, rows)


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
            for name in ("git", "cc", *COMPILERS, *EMULATORS, *BUILD_TOOLS, "west")
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
        "requires": dict(zephyr.workspace.limits),
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
