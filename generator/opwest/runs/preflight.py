# SPDX-License-Identifier: Apache-2.0
"""What a build needs, examined before CMake starts: workspace, tools, compiler, board, objects for its processor."""

from __future__ import annotations

import contextlib
import os
import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from opwest.base.diagnostics import Diagnostics, Location
from opwest.base.frozen_dataclass import dataclass
from opwest.runs.link import LinkError
from opwest.runs.progress import StageProgress
from opwest.runs.west import find_west
from opwest.zephyr.checks import check_board
from opwest.zephyr.floats import listed
from opwest.zephyr.processors import (
    architecture,
    known_configuration,
    of_processor,
    selected_targets,
    simulated_symbols,
)
from opwest.zephyr.sdk import VARIANT
from opwest.zephyr.version import SERVICE
from opwest.zephyr.workspace import Workspace, build_workspace, fault_of_base

_EMULATORS = {"arm": "qemu-system-arm", "riscv": "qemu-system-riscv32", "riscv64": "qemu-system-riscv64"}
_LISTED = 6
_MODULES = ("ZEPHYR_MODULES", "ZEPHYR_EXTRA_MODULES", "EXTRA_ZEPHYR_MODULES")
"""The lists of modules of builds, in the environment or as options of CMake."""
_TARGET = re.compile(r"set\((\w+)_NAME ([\w.+-]+)\)\nset\(\1_KCONFIG ([^)]*)\)\nset\(\1_HOST([^)]*)\)")
"""A target in models/NAME/model.cmake, which opwest_select_target() of the runtime reads."""


@dataclass(frozen=True)
class Tools:
    """The workspace of a build, its west, and the variables of the environment that select a compiler."""

    workspace: Workspace
    west: str
    variables: Mapping[str, str]


def find_workspace_of_build(given: Path | None, *, is_used: bool) -> Workspace:
    """Return the workspace. Raises LinkError without one, unless it is not used."""
    wrong = fault_of_base() if given is None else None
    if wrong is not None:
        raise LinkError(wrong, "correct or unset ZEPHYR_BASE, or give --zephyr-base")
    workspace = build_workspace(given)
    if workspace.version is None and is_used:
        if given is not None:
            raise LinkError(f"'{given}' is not a Zephyr tree: missing file 'VERSION'")
        raise LinkError("no Zephyr workspace found", "set ZEPHYR_BASE, run in the workspace, or give --zephyr-base")
    return workspace


def examine_build(
    board: str,
    workspace: Workspace,
    project: Path,
    options: Sequence[str],
    progress: StageProgress,
    faults: Diagnostics,
    *,
    is_started: bool,
    needs_smp: bool,
) -> Tools:
    """Return the tools of a build. Raises OpwestError with everything that the build lacks.

    `options` are those of CMake. `is_started`: whether this machine runs the image, if the board is simulated.
    `needs_smp`: whether a host reaches the image by MCUmgr.
    """
    _check_board(board, workspace, project, faults)
    configuration = known_configuration(board, workspace)
    symbols = configuration.true() if configuration is not None else frozenset()
    if architecture(symbols) is None:
        symbols |= simulated_symbols(board) or frozenset()
    _check_targets(board, workspace, symbols, project, faults)
    west = find_west(workspace)
    lacks, variables = tool_lacks(board, workspace, symbols, is_started=is_started)
    if any(option.startswith(f"-D{VARIANT}") for option in options):
        variables = {}
    if west is None:
        from opwest.base.system import pip_command

        lacks = [("west", pip_command(["west"])), *lacks]
    if needs_smp and not workspace.has_module(SERVICE) and not _has_modules_elsewhere(options):
        how = workspace.ways_to_install([SERVICE])[SERVICE]
        faults.error(f"a build for board {board!r} lacks module {SERVICE!r}, which MCUmgr depends on", hint=how)
    for what, command in lacks:
        faults.error(f"a build for board {board!r} lacks {what}", hint=None if command is None else f"run {command}")
    faults.raise_if_errors()
    assert west is not None
    if variables:
        chosen = " ".join(f"{name}={value}" for name, value in variables.items())
        progress.show(f"no Zephyr SDK found: compiling with {chosen}")
    return Tools(workspace, west, variables)


def tool_lacks(
    board: str, workspace: Workspace, symbols: frozenset[str], *, is_started: bool
) -> tuple[list[tuple[str, str | None]], dict[str, str]]:
    """Return what a build lacks, each with the command that provides it, and the variables that select a compiler."""
    from opwest.zephyr.toolchains import BuildFacts, build_programs, compiler_of_build, program

    facts = BuildFacts(workspace)
    facts.run("cmake", "ninja", "dtc")
    lacks = list(build_programs(facts))
    variables: dict[str, str] = {}
    name = _architecture(board, workspace, symbols)
    if name in ("arm", "riscv"):
        variables, missing = compiler_of_build(facts, name)
        lacks += missing
        if is_started and "QEMU_TARGET" in symbols:
            lacks += program(facts, _EMULATORS["riscv64" if name == "riscv" and "64BIT" in symbols else name])
    return [(lack.what, lack.command) for lack in dict.fromkeys(lacks)], variables


def _architecture(board: str, workspace: Workspace, symbols: frozenset[str]) -> str | None:
    if "RISCV" in symbols:
        return "riscv"
    if any(re.match(r"CPU_CORTEX_[MR]", symbol) for symbol in symbols):
        return "arm"
    return workspace.architecture(board)


def _has_modules_elsewhere(options: Sequence[str]) -> bool:
    """Whether the environment or the options of CMake name modules besides those of the workspace."""
    given = [option.removeprefix("-D").partition("=")[0].partition(":")[0] for option in options]
    return any(os.environ.get(name) or name in given for name in _MODULES)


def _check_board(board: str, workspace: Workspace, project: Path, faults: Diagnostics) -> None:
    """Report a board that the workspace lacks, unless the application sets a BOARD_ROOT."""
    with contextlib.suppress(OSError):
        if "BOARD_ROOT" in (project / "CMakeLists.txt").read_text(encoding="utf-8", errors="replace"):
            return
    check_board(board, replace(workspace, roots=(project,)), faults)


def _check_targets(
    board: str, workspace: Workspace, symbols: frozenset[str], project: Path, faults: Diagnostics
) -> None:
    """Report models whose objects are all for other processors. CMake compares the options, which builds can change."""
    processor = architecture(symbols)
    if processor is None:
        return
    for model in sorted(project.glob("models/*")):
        # The firmware selects the base or a variant: one of them must fit.
        targets = [target for file in sorted(model.rglob("model.cmake")) for target in _targets(file)]
        if targets and not any(_fits(kconfig, hosts, symbols) for _, kconfig, hosts in targets):
            usual = selected_targets(board, workspace)
            rows = (f"{name} requires {_with_values(kconfig, symbols)}" for name, kconfig, _ in targets)
            faults.error(
                f"model {model.name!r} has no objects for board {board!r}, whose processor is {processor}",
                Location(str(model / "model.cmake")),
                expected=f"{f'objects for {listed(usual, _LISTED)}, or ' if usual else ''}C sources",
                hint="\n        ".join(dict.fromkeys(rows)),
            )


def _targets(file: Path) -> Iterator[tuple[str, dict[str, str], list[str]]]:
    """Yield the targets of a model's objects: the name, with its conditions in Kconfig and its hosts."""
    with contextlib.suppress(OSError):
        for _, name, kconfig, host in _TARGET.findall(file.read_text(encoding="utf-8", errors="replace")):
            words = (word.partition("=") for word in kconfig.split())
            yield name, {symbol: value for symbol, _, value in words}, host.split()


def _fits(kconfig: Mapping[str, str], hosts: Sequence[str], symbols: frozenset[str]) -> bool:
    """Whether the conditions on the processor hold."""
    if hosts and platform.machine() not in hosts:
        return False
    own = of_processor(kconfig)
    return not own or all(_value(symbol, symbols) == value for symbol, value in own.items())


def _with_values(kconfig: Mapping[str, str], symbols: frozenset[str]) -> str:
    """Return the conditions of a target, each with the value of the board if it is another one."""
    return ", ".join(
        f"{symbol}={value}" + ("" if _value(symbol, symbols) == value else f" (is {_value(symbol, symbols)})")
        for symbol, value in kconfig.items()
    )


def _value(symbol: str, symbols: frozenset[str]) -> str:
    return "y" if symbol.removeprefix("CONFIG_") in symbols else "n"
