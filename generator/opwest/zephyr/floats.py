# SPDX-License-Identifier: Apache-2.0
"""The FPU of a board: the options that a model's operators need, and notes about floating point in software."""

from __future__ import annotations

from collections.abc import Sequence

from opwest.base.diagnostics import Diagnostics
from opwest.model.types.builds import Target, TargetBuild
from opwest.model.types.model import Model
from opwest.zephyr.processors import fits_processor, has_options_of_fpu, processor_symbols, simulated_symbols
from opwest.zephyr.workspace import Workspace

_OPTIONS = ("CONFIG_FPU", "CONFIG_FP_HARDABI", "CONFIG_FP_SOFTABI", "CONFIG_FLOAT_HARD")
"""The options of floating point in the conditions of targets; all others are properties of the processor."""
_WITH_FPU = "CPU_HAS_FPU && !ARCH_POSIX"
"""Threads of a host have their own registers; Zephyr 3.4 does not link native_posix with the option FPU_SHARING."""
_LISTED = 8


def has_floats(model: Model) -> bool:
    """Return whether an operator has floating-point arguments."""
    return any(arg.type.dtype.kind == "float" for operator in model.operators for arg in operator.args)


def fpu_conditions(model: Model) -> list[str]:
    """Return the conditions in Kconfig, joined by or, under which the model's operators use the FPU of a processor."""
    conditions = []
    for build in model.builds:
        if build.target is None:
            conditions += [_WITH_FPU] if has_floats(model) else []
        elif _uses_fpu(build.target) and _needs_it(model, build):
            own = [(s.removeprefix("CONFIG_"), value) for s, value in build.target.kconfig if s not in _OPTIONS]
            conditions.append(" && ".join([_WITH_FPU, *(s if value == "y" else f"!{s}" for s, value in own)]))
    return list(dict.fromkeys(conditions))


def board_options(models: Sequence[Model], board: str) -> dict[str, str]:
    """Return the options of floating point for a board; empty if the models or the processor need none.

    Only processors in opwest's own table are used: the files of a project do not depend on a workspace. RISC-V needs
    no options: the model's Kconfig implies FPU, and FLOAT_HARD is the default.
    """
    symbols = simulated_symbols(board)
    if symbols is None or "CPU_HAS_FPU" not in symbols or "RISCV" in symbols:
        return {}
    options: dict[str, str] = {}
    for model in _usable(models, symbols):
        builds = [build for build in model.builds if build.target is None or fits_processor(build.target, symbols)]
        targets = [build.target for build in builds if build.target is not None and _needs_it(model, build)]
        used = [target for target in targets if _uses_fpu(target)]
        if used:
            options |= dict(_floats(used[0]))
        elif not targets and builds and has_floats(model):
            arm = "64BIT" not in symbols and any(symbol.startswith("CPU_CORTEX") for symbol in symbols)
            options |= {"CONFIG_FPU": "y"} | ({"CONFIG_FP_HARDABI": "y"} if arm else {})
        elif any(dict(target.kconfig).get("CONFIG_FPU") == "n" for target in targets):
            options.setdefault("CONFIG_FPU", "n")
    if options.get("CONFIG_FPU") == "y":
        options["CONFIG_FPU_SHARING"] = "y"
    return options


def check_floats(models: Sequence[Model], board: str, workspace: Workspace | None, faults: Diagnostics) -> None:
    """Report operators that compute with software floating point on a board, and the functions of libm."""
    symbols = processor_symbols(board, workspace)
    if symbols is None or "ARCH_POSIX" in symbols or not has_options_of_fpu(symbols):
        return
    for model in _usable(models, symbols):
        builds = [build for build in model.builds if build.target is None or fits_processor(build.target, symbols)]
        used = [build for build in builds if build.target is not None and _uses_fpu(build.target)]
        if not builds:
            continue  # the build reports that no target matches
        chosen = used or builds
        in_c = any(build.target is None for build in builds) and has_floats(model)
        called = listed(sorted({name for build in chosen for name in build.soft_float}), _LISTED)
        if "CPU_HAS_FPU" not in symbols and (called or in_c):
            faults.note(
                f"board {board!r} has no FPU: operators of model {model.name!r} use software floating point",
                model.location,
                hint=f"called: {called}" if called else "the compiler adds the functions, because they are in C",
            )
        elif "CPU_HAS_FPU" in symbols and not used and any(build.target for build in builds) and has_floats(model):
            faults.note(
                f"objects of model {model.name!r} do not use the FPU of board {board!r}: software floating point",
                model.location,
                hint=f"compile for a target with an FPU; called: {called or 'none'}",
            )
        elif called:
            faults.note(
                f"operators of model {model.name!r} call software floating point on board {board!r}: {called}",
                model.location,
                hint="the FPU lacks these operations; an FPU of single precision has none for double",
            )
        math = listed(sorted({name for build in chosen for name in build.libm}), _LISTED)
        if math:
            faults.note(f"operators of model {model.name!r} call functions of libm: {math}", model.location)


def _usable(models: Sequence[Model], symbols: frozenset[str]) -> list[Model]:
    """Return the models without the variants of other processors."""
    return [
        model
        for model in models
        if model.variant is None or any(fits_processor(target, symbols) for target in model.variant.targets)
    ]


def listed(names: Sequence[str], most: int) -> str:
    """Return names, at most `most` of them, with the number of the others."""
    rest = f" and {len(names) - most} others" if len(names) > most else ""
    return ", ".join(names[:most]) + rest


def _needs_it(model: Model, build: TargetBuild) -> bool:
    """Whether the operators of a build depend on the options of floating point: objects do, C sources with floats do.

    A model with only C sources has targets for its metadata, which exists for every float ABI.
    """
    return bool(build.objects) or not build.sources or has_floats(model)


def _uses_fpu(target: Target) -> bool:
    """Whether the firmware of a target has the FPU. The ABI of AArch64 requires it."""
    return dict(target.kconfig).get("CONFIG_FPU") == "y" or target.machine == "aarch64"


def _floats(target: Target) -> list[tuple[str, str]]:
    given = [(symbol, value) for symbol, value in target.kconfig if symbol in _OPTIONS]
    return given if ("CONFIG_FPU", "y") in given else [("CONFIG_FPU", "y")]
