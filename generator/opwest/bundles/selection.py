# SPDX-License-Identifier: Apache-2.0
"""The variant, the target and the toolchain of a bundle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from opwest.bundles.toolchain import Toolchain, toolchain_of
from opwest.diagnostics import Diagnostics, nearest
from opwest.model.builds import Target, TargetBuild
from opwest.model.targets import make_target
from opwest.request import Examination, of_variant
from opwest.targets import named_targets


class Selected(NamedTuple):
    """The model to bundle, its objects and its toolchain."""

    found: Examination
    build: TargetBuild
    chain: Toolchain


def select(
    found: Sequence[Examination],
    folder: Path | None,
    target: str | None,
    cc: str | None,
    variant: str | None,
    work: Path,
    faults: Diagnostics,
) -> Selected:
    """Return what to bundle. Raises OpwestError if it is not clear."""
    if folder is not None:
        from opwest.bundles.zephyr_build import build_toolchain, choose, configuration

        values = configuration(folder)
        one, build = choose(found, values, target, variant, faults)
        is_host = values.get("CONFIG_ARCH_POSIX") == "y"
        return Selected(one, build, build_toolchain(folder, cc, work, is_host=is_host))
    one = of_variant(found, variant, faults)[0]
    build, chosen = _build_for(one, target, faults)
    faults.raise_if_errors()
    return Selected(one, build, toolchain_of(chosen, cc, work))


def _build_for(one: Examination, name: str | None, faults: Diagnostics) -> tuple[TargetBuild, Target]:
    """Return the objects for a target, the only one of the model by default."""
    model = one.model
    own = {build.target.name: build for build in model.builds if build.target is not None}
    if own:
        if name is None and len(own) > 1:
            faults.error(
                f"model {model.label} has objects for several targets: {', '.join(own)}",
                model.location,
                expected="--target NAME, or --build DIR",
            )
        elif name is not None and name not in own:
            faults.error(f"--target: model {model.label} has no objects for {name!r}", hint=nearest(name, own))
        faults.raise_if_errors()
        build = own[name] if name is not None else next(iter(own.values()))
        if build.target is None:
            raise ValueError("a build of this table has a target")
        return build, build.target
    declared: Mapping[str, Target] = {target.name: target for target in model.declared_targets}
    if name is None:
        faults.error(
            f"the operators of model {model.label} are sources: the processor is not known",
            model.location,
            expected="--target NAME, or --build DIR",
            hint="'opwest targets' lists the names",
        )
    elif name not in declared and name not in named_targets():
        faults.error(f"--target: unknown target {name!r}", hint=nearest(name, [*declared, *named_targets()]))
    faults.raise_if_errors()
    known = str(name)
    return model.builds[0], declared.get(known) or make_target(known, named_targets()[known])
