# SPDX-License-Identifier: Apache-2.0
"""The pipeline, as one can read it: load, check, plan, render, write. Each layer knows only the one below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from opwest.diagnostics import Diagnostics, Location
from opwest.manifest.load import load_manifest
from opwest.metadata_objects import compile_metadata
from opwest.model.c_names import check_names_together
from opwest.model.context import Context
from opwest.model.examined import Examined
from opwest.model.model import Model
from opwest.model.resolve import resolve
from opwest.model.stack_need import stack_needs
from opwest.plan.memory import MemoryPlan, plan_memory
from opwest.plan.schedule import plan_schedule
from opwest.render.application import Planned
from opwest.render.c.system_library import rows as system_library_rows
from opwest.render.project_files import project_record, render_project
from opwest.render.templates.environment import using
from opwest.render.templates.extra_files import extra_files
from opwest.render.templates.user import UserTemplates
from opwest.resources import resource
from opwest.runtime_files import vendored_files
from opwest.update.origin import Origin, warn_of_dropped_template
from opwest.update.remarks import report
from opwest.update.template_folder import read_templates
from opwest.write.writer import ProjectFile, WriteResult, refuse_nested, write_list, write_project
from opwest.zephyr.checks import check_zephyr
from opwest.zephyr.version import Version
from opwest.zephyr.workspace import Workspace

Metadata = Literal["c", "llvm"]
"""Where run, metadata and registry come from: C sources, or one object per target."""


Layout = Literal["application", "model"]
"""What is written: a whole application, or the models alone, for a build that has an application already."""


def generate(
    manifests: Sequence[Path],
    output: Path,
    *,
    vendored: bool,
    faults: Diagnostics,
    metadata: Metadata = "c",
    layout: Layout = "application",
    inputs: Path | None = None,
    zephyr: ZephyrOptions | None = None,
    template: Path | None = None,
) -> WriteResult:
    """Make one application of the models that the manifests declare. Raises OpwestError with every fault.

    `inputs` is a file that gets the absolute path of every file that was read, faults or not, one a line.
    `template` is a folder of templates of the user's own.
    """
    application = layout == "application"
    if application:
        refuse_nested(output)
    templates = None if template is None else read_templates(template, faults)
    made = make(
        manifests,
        vendored=vendored,
        faults=faults,
        metadata=metadata,
        layout=layout,
        inputs=inputs,
        zephyr=zephyr,
        templates=templates,
    )
    files = made.files
    if application:
        version = None if zephyr is None or zephyr.version is None else str(zephyr.version)
        origin = Origin(tuple(manifests), template, () if zephyr is None else zephyr.boards, version)
        warn_of_dropped_template(origin, output, faults)
        files = [*files, origin.file(output)]
    result = write_project(output, files, made.record)
    report(output, result.remarks, faults)
    return result


class Made(NamedTuple):
    """A project that is not written yet."""

    files: list[ProjectFile]
    record: dict[str, Any]


def make(
    manifests: Sequence[Path],
    *,
    vendored: bool,
    faults: Diagnostics,
    metadata: Metadata = "c",
    layout: Layout = "application",
    inputs: Path | None = None,
    zephyr: ZephyrOptions | None = None,
    templates: UserTemplates | None = None,
    texts: Mapping[Path, bytes] | None = None,
) -> Made:
    """Return the project of the models that the manifests declare. Raises OpwestError with every fault.

    `texts` stand in for the contents of manifests.
    """
    found = examine(manifests, faults, zephyr, texts)
    if inputs is not None:
        own = [] if templates is None else [Path(templates.folder) / name for name in templates.hashes]
        write_list(inputs, [*manifests, *(path for one in found for path in one.files), *own])
    with using(templates, faults) as user:
        if user is not None:
            user.check()
        faults.raise_if_errors()
        planned = [(one.model, one.plan) for one in found]
        objects = compile_metadata(planned, faults) if metadata == "llvm" else None
        faults.raise_if_errors()
        runtime = vendored_files([one.model for one in found]) if vendored else None
        files = render_project(planned, runtime, objects, layout=layout)
        if user is not None and layout == "application":
            files += extra_files(user, planned, files, vendored=vendored)
        faults.raise_if_errors()
    record = project_record(planned, vendored=vendored, metadata=metadata)
    if templates is not None:
        record["template"] = dict(templates.hashes)
    if layout != "application":
        record["layout"] = layout
    return Made(files, record)


def check(manifests: Sequence[Path], faults: Diagnostics) -> list[Planned]:
    """Return the checked and planned models. Raises OpwestError with every fault of every manifest."""
    found = examine(manifests, faults)
    faults.raise_if_errors()
    return [(one.model, one.plan) for one in found]


@dataclass(frozen=True, slots=True)
class ZephyrOptions:
    """What is known of the Zephyr that will build: boards asked for, its version, its workspace."""

    boards: tuple[str, ...] = ()
    version: Version | None = None
    workspace: Workspace | None = None


class Examination(NamedTuple):
    """What one manifest holds; good only where no fault was reported."""

    model: Model
    plan: MemoryPlan
    objects: tuple[Examined, ...]
    files: tuple[Path, ...]
    """What was read beside the manifest."""


def examine(
    manifests: Sequence[Path],
    faults: Diagnostics,
    zephyr: ZephyrOptions | None = None,
    texts: Mapping[Path, bytes] | None = None,
) -> list[Examination]:
    """Return what every manifest of the right shape holds; report every fault of every manifest."""
    zephyr = zephyr or ZephyrOptions()
    found = []
    for path in manifests:
        manifest = load_manifest(path, faults, (texts or {}).get(path))
        if manifest is None:
            continue
        context = Context(manifest, path.parent, faults)
        model = resolve(context)
        schedule = plan_schedule(model)
        boards = tuple(dict.fromkeys([*model.boards, *zephyr.boards]))
        stack = stack_needs(model, context.examined)
        model = replace(model, steps=schedule.steps, boards=boards, stack=stack)
        found.append(Examination(model, plan_memory(model, schedule, faults), tuple(context.examined), _files(context)))
    models = [one.model for one in found]
    check_names_together(models, faults)
    if zephyr.workspace is not None or zephyr.version is not None:
        runtime = [resource("zephyr_module")]
        check_zephyr(models, zephyr.boards, zephyr.version, zephyr.workspace, runtime, faults)
    _check_applications(models, faults)
    _check_options(models, faults)
    _check_system_library(models, faults)
    return found


def _files(context: Context) -> tuple[Path, ...]:
    return tuple(context.folder / name for name in sorted(context.files))


def _check_applications(models: Sequence[Model], faults: Diagnostics) -> None:
    """Only one model of an application can bring a file of a name."""
    first: dict[str, tuple[Model, Location]] = {}
    for model in models:
        for file in model.application.files:
            other, at = first.setdefault(file.name, (model, file.location))
            if other is not model:
                faults.error(
                    f"models {other.name!r} and {model.name!r} both bring {file.name!r} for src/",
                    file.location,
                    expected="file names of their own",
                    hint=f"the other is at {at}",
                )


def _check_options(models: Sequence[Model], faults: Diagnostics) -> None:
    """One prj.conf has one value for an option."""
    first: dict[str, tuple[Model, str | int]] = {}
    for model in models:
        for key, value in model.application.kconfig:
            other, known = first.setdefault(key, (model, value))
            if known != value:
                faults.error(
                    f"models {other.name!r} and {model.name!r} set {key} to {known} and to {value}",
                    model.location,
                    expected="one value",
                )


def _check_system_library(models: Sequence[Model], faults: Diagnostics) -> None:
    """One table of an image has each name once, and at least one."""
    first: dict[str, Model] = {}
    for model in models:
        named = system_library_rows(model) if model.compat else []
        if model.compat and not named:
            faults.error(
                f"model {model.name!r} asks for {model.compat}, but no operator is packed",
                model.location,
                expected="operators with convention: packed",
                hint="compat: tvm-crt-all has the others too, through adapters",
            )
        for row in named:
            other = first.setdefault(row.name, model)
            if other is not model:
                faults.error(
                    f"models {other.name!r} and {model.name!r} both have {row.name!r} in the table of {model.compat}",
                    model.location,
                    expected="names of their own: one image has one table",
                    hint="leave `compat` out of one of them",
                )
