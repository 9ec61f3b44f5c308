# SPDX-License-Identifier: Apache-2.0
"""Report boards, modules and Kconfig symbols that the workspace lacks, before CMake runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from opwest.base.diagnostics import Diagnostics, Location
from opwest.base.resources import resource
from opwest.model.types.model import Model
from opwest.zephyr.floats import check_floats
from opwest.zephyr.processors import known_configuration
from opwest.zephyr.version import (
    OLDEST,
    TF_M,
    Version,
    board_fault,
    cortex_m,
    full_libc,
    is_board_name,
    of_externals,
    successors,
)
from opwest.zephyr.workspace import Workspace, ZephyrOptions


def check_zephyr(models: Sequence[Model], zephyr: ZephyrOptions, faults: Diagnostics) -> None:
    """Report missing boards, modules and Kconfig symbols, if the Zephyr of the build is known.

    A missing board is an error if the command line names it, and a warning if a manifest does, since another
    workspace can provide it.
    """
    for board in zephyr.boards:
        if not is_board_name(board):
            faults.error(f"invalid --board {board!r}", expected="a board with its qualifiers, such as mps2/an385")
    requested, workspace = [board for board in zephyr.boards if is_board_name(board)], zephyr.workspace
    if requested:
        from opwest.zephyr.board_targets import check_targets
    for board in requested:
        check_floats(models, board, workspace, faults)
    if workspace is None and zephyr.version is None:
        for board in requested:
            check_targets(models, board, None, faults)
        return
    version = zephyr.known_version
    if version is not None and version.pair < OLDEST:
        faults.warning(f"Zephyr {version} is older than {'.'.join(map(str, OLDEST))}, the oldest tested version")
    places: dict[str, Location | None] = dict.fromkeys(requested)
    for model in models:
        for board in model.boards:
            places.setdefault(board, model.board_location(board))
    for board, at in places.items():
        if _check_board(board, at, version, workspace, faults) and board in requested:
            check_targets(models, board, workspace, faults)
            if workspace is not None:
                _check_modules(board, models, version, workspace, faults)
    if workspace is not None:
        _check_symbols(models, workspace, [resource("zephyr_module")], faults)


def check_board(board: str, workspace: Workspace, faults: Diagnostics) -> None:
    """Report a missing board, and missing modules that it requires, before a build."""
    if _check_board(board, None, workspace.version, workspace, faults):
        _check_modules(board, (), workspace.version, workspace, faults)


def _check_board(
    board: str, at: Location | None, version: Version | None, workspace: Workspace | None, faults: Diagnostics
) -> bool:
    """Report a board that the workspace lacks; return whether builds for it are possible."""
    report = faults.error if at is None else faults.warning
    wrong = board_fault(board, version) if version is not None else None
    if wrong is not None:
        message, new = wrong
        report(f"board {board!r}: {message}", at, expected=new)
        return False
    if workspace is None or not workspace.boards:
        return True
    name = board.partition("/")[0].partition("@")[0]
    if name not in workspace.boards:
        near = _similar_boards(board, workspace)
        own = "`west boards` lists the boards; set BOARD_ROOT for your own"
        report(f"unknown board {board!r} in {workspace.base}", at, hint=_did_you_mean(near) if near else own)
        return False
    plain = board if "@" not in board else name + "".join(board.partition("/")[1:])
    full = workspace.boards[name]
    if plain not in full and not any(fnmatchcase(plain, known) for known in full):
        message = (
            f"unknown qualifiers of board {name!r}: {board!r}"
            if "/" in board
            else f"board {name!r} has several SoCs or CPU clusters: specify one"
        )
        from difflib import get_close_matches

        known = sorted(f for f in full if "*" not in f)
        near = get_close_matches(plain, known, n=1, cutoff=0.85) if "/" in board else []
        report(message, at, expected=" or ".join(known[:8]), hint=_did_you_mean(near) if near else None)
        return False
    return True


def _similar_boards(board: str, workspace: Workspace) -> list[str]:
    """Return the boards of a workspace that an unknown name may mean: its successors, else similar names."""
    from difflib import get_close_matches

    full = [name for names in workspace.boards.values() for name in names]
    found = successors(re.sub("@[^/]*", "", board), full, workspace.renamed_boards)[:4]
    return found or get_close_matches(board.partition("/")[0].partition("@")[0], workspace.boards, n=3, cutoff=0.75)


def _did_you_mean(names: Sequence[str]) -> str:
    return f"did you mean {' or '.join(map(repr, names))}?"


def _check_modules(
    board: str, models: Sequence[Model], version: Version | None, workspace: Workspace, faults: Diagnostics
) -> None:
    """Report missing modules that the board or a model requires, with the command that installs them."""
    needed: dict[str, str] = {}
    architecture = workspace.architecture(board)
    if architecture == "arm":
        needed[cortex_m(version)] = f"board {board}"
    hal = workspace.vendor_module(board)
    if hal is not None:
        needed[hal] = f"board {board}"
    configuration = known_configuration(board, workspace)
    if configuration is not None and "BUILD_WITH_TFM" in configuration.true():
        needed |= dict.fromkeys(TF_M, f"TF-M on board {board}")
    if architecture not in (None, "posix"):
        needed |= full_libc(models)
        _note_full_libc(models, workspace, faults)
    needed |= of_externals(models)
    missing = [name for name in needed if not workspace.has_module(name)]
    ways = workspace.ways_to_install(missing)
    for name in missing:
        faults.warning(
            f"missing module {name!r} in workspace {workspace.top}, required for {needed[name]}", hint=ways[name]
        )


def _note_full_libc(models: Sequence[Model], workspace: Workspace, faults: Diagnostics) -> None:
    """Report the size of the C library that <math.h> adds to a build, and the alternatives."""
    for model in models:
        if model.needs_full_libc and workspace.has_module("picolibc"):
            called = sorted({name for build in model.builds for name in build.libm})
            uses = f"calls {', '.join(called)}" if called else "includes <math.h>"
            faults.note(
                f"model {model.name!r} {uses}, which excludes Zephyr's minimal C library: builds compile the module "
                "picolibc, about 1,000 files, unless the toolchain contains picolibc",
                model.location,
                hint="use the Zephyr SDK, which contains it; set CONFIG_NEWLIB_LIBC=y; or remove <math.h> where only "
                "fabsf, sqrtf and the like are used, which are __builtin_fabsf, __builtin_sqrtf without a header, and "
                "set CONFIG_MINIMAL_LIBC=y",
            )
            return


def _check_symbols(
    models: Sequence[Model], workspace: Workspace, own_kconfig: Sequence[Path], faults: Diagnostics
) -> None:
    """Report options of externals and of the application that no Kconfig file defines."""
    required: dict[str, tuple[str, Location]] = {}
    for model in models:
        for symbol, at in model.application.kconfig_places:
            required.setdefault(symbol, (symbol, at))
        for external in model.externals:
            for option in external.kconfig:
                required.setdefault(option, (f"{option} of external {external.symbol!r}", external.location))
    for symbol, near in workspace.lacks_symbols(required, own_kconfig).items():
        what, at = required[symbol]
        mean = f"did you mean {near}? Otherwise " if near else ""
        faults.warning(
            f"{what} is not defined in the Kconfig files of {workspace.top}",
            at,
            expected="an option of an installed driver or module",
            hint=f"{mean}check with `west list` whether the module that defines it is missing",
        )
