# SPDX-License-Identifier: Apache-2.0
"""`--metadata=llvm`: the metadata module of every model, compiled to one object per target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from opwest.base.diagnostics import Diagnostics, nearest
from opwest.model.inputs.targets import make_target
from opwest.model.readers.tvmgen import system_library
from opwest.model.types.builds import Target
from opwest.model.types.model import Model, bases, variants_of
from opwest.objects.targets import named_targets
from opwest.project.request import Request
from opwest.render.application import DEFAULT_BOARD, Planned
from opwest.zephyr.processors import selected_targets

MetadataObjects = Mapping[tuple[str, str], bytes]
"""The object of each model and target, by their names."""


def compile_metadata(planned: Sequence[Planned], faults: Diagnostics) -> MetadataObjects:
    """Return the metadata objects; report why one cannot be generated."""
    from opwest.objects.llvm.api import compile_many, is_available, missing
    from opwest.objects.llvm.facts import CompileJob, LlvmError
    from opwest.render.llvm.module import render_ir

    if not is_available():
        fault = missing()
        faults.error("--metadata=llvm: " + fault.message, expected=fault.expected, hint=fault.hint)
        return {}
    keys: list[tuple[str, str]] = []
    jobs: list[CompileJob] = []
    library = system_library([model for model, _ in planned])
    for model, plan in planned:
        for build in model.builds:
            if build.target is None:
                continue  # with_metadata_targets reported it
            if build.target.llvm is None:
                faults.error(
                    f"--metadata=llvm: target {build.target.name!r} has no parameters for LLVM",
                    model.location,
                    expected="llvm: {triple: ..., cpu: ...} in the target",
                )
            else:
                keys.append((model.name, build.target.name))
                text = render_ir(model, plan, build.target, library)
                jobs.append(CompileJob(text.encode(), build.target.llvm, name=f"the metadata of {model.name}"))
    objects = {}
    for key, result in zip(keys, compile_many(jobs), strict=True):
        if isinstance(result, LlvmError):
            faults.error(
                f"--metadata=llvm: target {key[1]!r}: {result.message}", expected=result.expected, hint=result.hint
            )
        else:
            objects[key] = result
    return objects


def with_metadata_targets(models: Sequence[Model], request: Request, faults: Diagnostics) -> list[Model]:
    """Return the models, those with C sources only with one build for each target of their metadata.

    The targets are those of the command line. Without any, they are those that the manifest declares and those of the
    boards: all that differ only in options of the firmware, such as the FPU. Its build selects one. A variant has all
    targets that it names, and its base has the others.
    """
    prepared = []
    for model in models:
        if any(build.target for build in model.builds) or not model.builds:
            prepared.append(model)
            continue
        targets = model.variant.targets if model.variant else _of_base(model, models, request, faults)
        (sources,) = model.builds
        builds = tuple(replace(sources, target=t, libc="host" if t.host else sources.libc) for t in targets)
        prepared.append(replace(model, builds=builds or model.builds))
    if request.targets and all(before is after for before, after in zip(bases(models), bases(prepared), strict=True)):
        faults.error(
            "--target has no effect: the objects of every model name their targets",
            hint="use it for models that have only C sources",
        )
    return prepared


def _of_base(model: Model, models: Sequence[Model], request: Request, faults: Diagnostics) -> list[Target]:
    """Return the targets of a model without those of its variants; report a base without any."""
    named = _requested(model, request, faults) if request.targets else _of_boards(model, request, faults)
    variants = [other.variant for other in variants_of(model, models) if other.variant]
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
