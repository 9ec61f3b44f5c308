# SPDX-License-Identifier: Apache-2.0
"""Instructions of objects that the processor of a board can lack although its target matches.

The DSP extension is optional on Armv8-M. The named targets leave it open, and Zephyr compiles for a core without
`CONFIG_ARMV8_M_DSP` with +nodsp (cmake/gcc-m-cpu.cmake), but its linker accepts objects that use the extension.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence

from opwest.base.diagnostics import Diagnostics
from opwest.base.frozen_dataclass import dataclass
from opwest.model.types.builds import Target, TargetBuild
from opwest.model.types.model import Model, bases, variants_of
from opwest.objects.attributes import abi_of
from opwest.objects.elf import parse_elf
from opwest.zephyr.configuration import selects_no_processor
from opwest.zephyr.floats import board_options, fpu_conditions, listed
from opwest.zephyr.processors import architecture, fits_processor, known_configuration, selected_targets
from opwest.zephyr.workspace import Workspace

_DSP = "ARMV8_M_DSP"


def check_instructions(
    models: Sequence[Model], board: str, target: str, workspace: Workspace | None, faults: Diagnostics
) -> None:
    """Warn of objects with DSP instructions for a board whose configuration does not select them.

    It is no error: the SoC files of some boards do not select an extension that the processor has (RP2350).
    """
    configuration = known_configuration(board, workspace) if workspace is not None else None
    if configuration is None or _DSP in configuration.true():
        return
    for model in models:
        for build in model.builds:
            named = _with_dsp(build) if build.target is not None and build.target.name == target else []
            if named:
                faults.warning(
                    f"objects of model {model.name!r} for target {target!r} use DSP instructions, which the "
                    f"configuration of board {board!r} does not select: {', '.join(named[:4])}"
                    + (", …" if len(named) > 4 else ""),
                    model.location,
                    expected=f"CONFIG_{_DSP}=y, or objects without DSP instructions",
                    hint="if the processor lacks the extension, as the nRF5340's network core does, compile with "
                    "+nodsp appended to -mcpu; otherwise ignore this warning",
                )


def _with_dsp(build: TargetBuild) -> list[str]:
    """Return the objects of a build for Armv8-M whose attributes name the DSP extension."""
    target = build.target
    if target is None or target.arch != "v8-M.mainline" or target.dsp is not None:
        return []
    return [item.origin for item in build.objects if abi_of(parse_elf(item.content)).dsp]


C_SOURCES = "C sources"
_LISTED = 6


@dataclass(frozen=True, slots=True)
class Choice:
    """The target of a model on a board."""

    processor: str
    """Such as Cortex-M4, RISC-V rv32imac, Xtensa."""
    target: str | None
    """The name of a target, or C_SOURCES of a model without objects; None if the build would have no target."""
    reason: str = ""
    """Of no target: what was found."""
    expected: str = ""
    hint: str = ""


def choose_target(models: Sequence[Model], board: str, workspace: Workspace | None) -> Choice | None:
    """Return the target that a board's firmware selects of one model and its variants; None for an unknown processor.

    `opwest_select_target()` in zephyr_module/cmake compares the same conditions with the configuration of the build.
    """
    configuration = known_configuration(board, workspace) or known_configuration(board, None)
    if configuration is None:
        return None
    conditions = [condition for model in models for condition in fpu_conditions(model)]
    symbols = configuration.true(_options(models, board), conditions)
    processor = architecture(symbols)
    if processor is None:
        return None
    targets = {build.target.name: build.target for model in models for build in model.builds if build.target}
    if "BIG_ENDIAN" in symbols:
        return Choice(processor, None, f"{processor} with big-endian data", "a little-endian processor")
    if not targets:
        return Choice(processor, C_SOURCES)
    matching = [target for target in targets.values() if _matches(target, symbols)]
    if len(matching) == 1:
        return Choice(processor, matching[0].name)
    if matching:
        names = " and ".join(target.name for target in matching)
        return Choice(processor, None, f"{processor} matches {len(matching)} targets: {names}", "objects for one")
    return _without_target(processor, board, targets, symbols, workspace)


def variant_of_board(models: Sequence[Model], board: str, workspace: Workspace | None) -> Model | None:
    """Return the base or the variant that a board's firmware selects; None for an unknown processor.

    `models` are the base and its variants. `opwest_select_variant()` in zephyr_module/cmake compares the same
    conditions with the configuration of the build.
    """
    configuration = known_configuration(board, workspace) or known_configuration(board, None)
    if configuration is None:
        return None
    conditions = [condition for model in models for condition in fpu_conditions(model)]
    symbols = configuration.true(_options(models, board), conditions)
    if architecture(symbols) is None:
        return None
    for model in models:
        if model.variant is not None and any(_matches(target, symbols) for target in model.variant.targets):
            return model
    return models[0]


def check_targets(models: Sequence[Model], board: str, workspace: Workspace | None, faults: Diagnostics) -> None:
    """Report models without a target on a board, and instructions that its processor can lack."""
    for model in bases(models):
        choice = choose_target([model, *variants_of(model, models)], board, workspace)
        if choice is not None and choice.target is None:
            faults.warning(
                f"model {model.name!r} has no target on board {board!r}: {choice.reason}",
                model.location,
                expected=choice.expected,
                hint=choice.hint or None,
            )
        elif choice is not None and choice.target is not None:
            check_instructions([model, *variants_of(model, models)], board, choice.target, workspace, faults)
        elif choice is None and workspace is not None and selects_no_processor(board, workspace):
            faults.warning(
                f"unknown processor of board {board!r}: its Kconfig files select none",
                expected="a board target with an SoC",
                hint=f"targets of the board: {listed(_full_names(board, workspace), _LISTED)}",
            )
            return


def _full_names(board: str, workspace: Workspace) -> list[str]:
    full = workspace.boards.get(board.partition("/")[0].partition("@")[0], frozenset())
    return sorted(name for name in full if "/" in name and "//" not in name and "*" not in name)


def _without_target(
    processor: str, board: str, targets: Mapping[str, Target], symbols: frozenset[str], workspace: Workspace | None
) -> Choice:
    """Return why no target of a model matches a processor."""
    near = [target for target in targets.values() if fits_processor(target, symbols)]
    if near:
        wrong = ", ".join(f"{symbol}={_value(symbol, symbols)}" for symbol, _ in _mismatches(near[0], symbols))
        needed = ", ".join(f"{symbol}={value}" for symbol, value in _mismatches(near[0], symbols))
        reason, expected = f"its configuration has {wrong}", f"{needed}, for the objects of {near[0].name}"
        hint = "set options under `application: kconfig:` in the manifest, or add objects for the target of the board"
        return Choice(processor, None, reason, expected, hint)
    usual, given = selected_targets(board, workspace), listed(list(targets), _LISTED)
    if usual:
        return Choice(processor, None, processor, f"objects for {listed(usual, _LISTED)}", f"found: {given}")
    reason = f"{processor}, without a named target"
    expected = "C sources only, or a target under `targets:` in the manifest"
    return Choice(processor, None, reason, expected, f"found objects for: {given}")


def _options(models: Sequence[Model], board: str) -> dict[str, bool]:
    """Return the options of the application: those of manifests, and those of the board's FPU."""
    given = {name: str(value) for model in models for name, value in model.application.kconfig}
    given |= board_options(models, board)
    return {name.removeprefix("CONFIG_"): value == "y" for name, value in given.items() if value in ("y", "n")}


def _matches(target: Target, symbols: frozenset[str]) -> bool:
    """Whether a target matches the configuration; a target of hosts matches only on such a host."""
    if target.host and platform.machine() not in target.host:
        return False
    return fits_processor(target, symbols) and not _mismatches(target, symbols)


def _mismatches(target: Target, symbols: frozenset[str]) -> list[tuple[str, str]]:
    return [(symbol, value) for symbol, value in target.kconfig if _value(symbol, symbols) != value]


def _value(symbol: str, symbols: frozenset[str]) -> str:
    return "y" if symbol.removeprefix("CONFIG_") in symbols else "n"
