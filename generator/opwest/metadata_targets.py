# SPDX-License-Identifier: Apache-2.0
"""The targets of `--metadata=llvm` for models that have only C sources, whose files name no target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from opwest.diagnostics import Diagnostics, nearest
from opwest.model.builds import Target, TargetBuild
from opwest.model.model import Model, bases, variants_of
from opwest.model.targets import make_target
from opwest.render.application import DEFAULT_BOARD
from opwest.request import Request
from opwest.targets import named_targets
from opwest.zephyr.processors import selected_targets


def with_metadata_targets(models: Sequence[Model], request: Request, faults: Diagnostics) -> list[Model]:
    """Return the models, those with C sources only with one build for each target of their metadata.

    The targets are those of the command line. Without any, they are those that the manifest declares and those of the
    boards: all that differ only in options of the firmware, such as the FPU. Its build selects one. A variant has all
    targets that it names, and its base has the others.
    """
    found = []
    for model in models:
        if any(build.target for build in model.builds) or not model.builds:
            found.append(model)
            continue
        targets = model.variant.targets if model.variant else _of_base(model, models, request, faults)
        (sources,) = model.builds
        builds = tuple(_build(sources, target) for target in targets)
        found.append(replace(model, builds=builds or model.builds))
    if request.targets and all(before is after for before, after in zip(bases(models), bases(found), strict=True)):
        faults.error(
            "--target has no effect: the objects of every model name their targets",
            hint="use it for models that have only C sources",
        )
    return found


def _build(sources: TargetBuild, target: Target) -> TargetBuild:
    return replace(sources, target=target, libc="host" if target.host else sources.libc)


def _of_base(model: Model, models: Sequence[Model], request: Request, faults: Diagnostics) -> list[Target]:
    """Return the targets of a model without those of its variants; report a base without any."""
    named = _requested(model, request, faults) if request.targets else _of_boards(model, request, faults)
    variants = [one.variant for one in variants_of(model, models) if one.variant]
    taken = {target.name for variant in variants for target in variant.targets}
    targets = [target for target in named if target.name not in taken]
    if named and not targets:
        faults.error(
            f"--metadata=llvm: no target for the base of model {model.name!r}",
            model.location,
            expected="--target NAME for a target without a variant, or a board that uses the base",
        )
    return targets


def _requested(model: Model, request: Request, faults: Diagnostics) -> list[Target]:
    """Return the targets of the command line; report unknown ones."""
    declared = {target.name: target for target in model.declared_targets}
    targets = []
    for name in request.targets:
        if name in declared:
            targets.append(declared[name])
        elif name in named_targets():
            targets.append(make_target(name, named_targets()[name]))
        else:
            known = [*named_targets(), *declared]
            faults.error(
                f"--target: unknown target {name!r}", hint=f"{nearest(name, known)} (`opwest targets` lists all)"
            )
    return targets


def _of_boards(model: Model, request: Request, faults: Diagnostics) -> list[Target]:
    """Return the declared targets and those of the boards; report boards with an unknown processor."""
    targets = {target.name: target for target in model.declared_targets}
    for board in model.boards or (DEFAULT_BOARD,):
        names = selected_targets(board, request.zephyr.workspace)
        if not names and not model.declared_targets:
            unknown = "no named target for" if request.zephyr.workspace else "unknown processor of"
            faults.error(
                f"--metadata=llvm: {unknown} board {board!r} of model {model.name!r}",
                model.board_location(board),
                expected="--target NAME for each target of its boards, or a target under 'targets' in the manifest",
                hint="`opwest targets` lists the targets"
                if request.zephyr.workspace
                else "set ZEPHYR_BASE or give --zephyr-base: the processor is read from Zephyr's tree",
            )
        for name in names:
            targets.setdefault(name, make_target(name, named_targets()[name]))
    return list(targets.values())
