# SPDX-License-Identifier: Apache-2.0
"""All files of a project as {path: bytes}, and the owner of each file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from opwest.base.files import ProjectFile
from opwest.base.paths import folded
from opwest.model.readers.tvmgen import Library, adapted, system_library
from opwest.model.types.builds import NO_OPTIONS, SOURCES, TargetBuild
from opwest.model.types.c_names import CNames
from opwest.model.types.dtypes import TensorType
from opwest.model.types.model import Model, bases, variants_of
from opwest.plan.memory import MemoryPlan
from opwest.render.application import Planned, application_files, application_name
from opwest.render.arguments import argument_row, operator_rows
from opwest.render.breakpoints import stops
from opwest.render.devices import device_rows
from opwest.render.model_files import model_files, rename_header, target_folder
from opwest.render.suite import suite_files
from opwest.render.tables.arrays import has_bridges
from opwest.render.tables.tensors import used_pools
from opwest.render.templates.files import EXTRA, SUFFIX, is_extra
from opwest.render.templates.renderer import Renderer
from opwest.render.tensors import interface_rows, manifest_name, type_row
from opwest.render.variants import variant_folder, without_shared
from opwest.zephyr.version import SEPARATE, TwisterFiles

if TYPE_CHECKING:
    from opwest.render.templates.user import UserRenderer


_OPWESTS = ("models", "modules", ".opwest")


def extra_files(
    renderer: UserRenderer, models: Sequence[Model], others: Iterable[ProjectFile], *, vendored: bool
) -> list[ProjectFile]:
    """Return the files rendered from extra/; report paths that conflict with `others`."""
    user = renderer.user
    rows = _rows(models, vendored=vendored)
    contents = {name: content for name, content in user.copies.items() if is_extra(name)}
    contents |= {name: renderer.render(name, rows) for name in user.templates if is_extra(name)}
    taken = _Taken(others)
    files = []
    for name in sorted(contents):
        path = name.removeprefix(EXTRA)
        if name in user.templates:
            path = path.removesuffix(SUFFIX)
        if path.split("/")[0] in _OPWESTS:
            what = f"'{path.split('/')[0]}/' is owned by opwest: templates cannot add files to it"
            renderer.faults.error(what, user.place(name), expected="a path in another directory")
        elif clash := taken.clash(path):
            known = f"{path}{SUFFIX}" in renderer.known
            renderer.faults.error(
                f"path {path!r} conflicts with {clash}",
                user.place(name),
                expected="a unique path",
                hint=f"to replace that file, name the template {path}{SUFFIX}" if known else None,
            )
        else:
            taken.add(path)
            files.append(ProjectFile(PurePosixPath(path), contents[name], "user"))
    return files


class _Taken:
    """The paths of a project, compared as on a case-insensitive file system."""

    def __init__(self, files: Iterable[ProjectFile]) -> None:
        self._files: dict[str, str] = {}
        self._folders: dict[str, str] = {}
        for file in files:
            self.add(str(file.path))

    def add(self, path: str) -> None:
        self._files[folded(path)] = path
        for parent in _parents(path):
            self._folders.setdefault(folded(parent), parent)

    def clash(self, path: str) -> str | None:
        """Return the existing path that conflicts with a path or with one of its directories."""
        for place in (path, *_parents(path)):
            if file := self._files.get(folded(place)):
                return f"file {file!r}"
            folder = self._folders.get(folded(place))
            if folder is not None and (place == path or folder != place):
                return f"directory {folder!r}"
        return None


def _parents(path: str) -> list[str]:
    return [str(parent) for parent in PurePosixPath(path).parents][:-1]


def _rows(models: Sequence[Model], *, vendored: bool) -> dict[str, Any]:
    """Return the project's values for templates of extra/."""
    return {
        "application": application_name(models),
        "vendored": vendored,
        "boards": list(dict.fromkeys(board for model in models for board in model.boards)),
        "models": [
            {
                "name": model.name,
                "description": model.description,
                "macro": CNames(model.name).macro,
                "kconfig": CNames(model.name).kconfig,
                "boards": list(model.boards),
            }
            for model in models
        ],
    }


_SERVICE = PurePosixPath("src/service.c")
"""The file of a runtime that lets hosts run models."""
_RUNNER = PurePosixPath("include/opwest/runner.h")
"""The file of a runtime that lets user threads run models."""


def render_project(
    render: Renderer,
    planned: Sequence[Planned],
    runtime: dict[PurePosixPath, bytes] | None,
    objects: Mapping[tuple[str, str], bytes] | None = None,
    *,
    layout: str = "application",
    twister: TwisterFiles = SEPARATE,
) -> list[ProjectFile]:
    """Return every file of the project. `planned` contains each model and after it its variants.

    `runtime` holds the files of a vendored runtime, `objects` the compiled metadata module of each model
    and target, None where it is C.
    """
    own: dict[str, bytes] = {}
    if layout == "application":
        own = application_files(render, planned, vendored=runtime is not None, twister=twister)
    copies = {file.name for model, _ in planned for file in model.application.files}
    files = [
        ProjectFile(PurePosixPath(path), content, "copy" if path in copies else "user") for path, content in own.items()
    ]
    models = [model for model, _ in planned]
    library = system_library(bases(models))
    service, runner = (runtime is None or file in runtime for file in (_SERVICE, _RUNNER))
    of_base: dict[PurePosixPath, bytes] = {}
    for model, plan in planned:
        root = PurePosixPath("models") / model.name / variant_folder(model)
        variants = () if model.variant else variants_of(model, models)
        of_model = model_files(
            *(render, model, plan, objects, library),
            service=service,
            runner=runner,
            in_place=layout == "model",
            variants=variants,
        )
        if layout == "application":
            of_model |= suite_files(render, model, plan)
            if model.variant is None:
                of_base = of_model
            else:
                of_model = without_shared(model, of_model, of_base)
        files += [ProjectFile(root / path, content, "generator") for path, content in of_model.items()]
    for path, content in (runtime or {}).items():
        files.append(ProjectFile(PurePosixPath("modules/opwest") / path, content, "generator"))
    if render.user is not None and layout == "application":
        files += extra_files(render.user, bases(models), files, vendored=runtime is not None)
    return files


def project_record(
    planned: Sequence[Planned],
    template: Mapping[str, str] | None = None,
    *,
    vendored: bool,
    metadata: str = "c",
    layout: str = "application",
    twister: TwisterFiles = SEPARATE,
) -> dict[str, Any]:
    """Return the record of a project for later commands.

    `template` holds the SHA-256 of every file of the user's template directory.
    """
    library = system_library(bases(model for model, _ in planned))
    record: dict[str, Any] = {
        "runtime": "vendored" if vendored else "module",
        "metadata": metadata,
        "models": [],
    }
    for model, plan in planned:
        row = _model_record(model, plan, library)
        if model.variant is None:
            record["models"].append(row)
        else:
            base = next(known for known in record["models"] if known["name"] == model.name)
            base.setdefault("variants", []).append(row | {"variant": model.variant.name})
            base["inputs"] |= row["inputs"]
    if template is not None:
        record["template"] = dict(template)
    if layout != "application":
        record["layout"] = layout
    elif twister != SEPARATE:
        record["twister"] = list(twister)
    return record


def _model_record(model: Model, plan: MemoryPlan, library: Library | None) -> dict[str, Any]:
    tolerances = [
        {"output": tolerance.output, "absolute": tolerance.absolute, "relative": tolerance.relative}
        for tolerance in model.suite.tolerances
    ]
    kept = "name member role dtype shape size align c_type macro buffer elements placed reached labels".split()
    return {
        "name": model.name,
        "macro": CNames(model.name).macro,
        "manifest": manifest_name(model),
        "inputs": dict(model.inputs_read),
        "tensors": [{key: tensor[key] for key in kept} for tensor in interface_rows(model)],
        "devices": [d["name"] for d in device_rows(model)],
        "emulated": any(d.host_latency_us is not None for d in model.devices),
        "constants": bool(model.constants or model.programs),
        "bridges": has_bridges(model),
        "tvm_crt": library is not None and (library.lead == model.name or bool(adapted(model))),
        "tvmgen": model.tvmgen is not None,
        **({"stream": True} if model.streams else {}),
        "state_bytes": sum(state.type.size for state in model.states),
        "full_libc": model.needs_full_libc,
        "steps": [step.operator.name for step in model.steps],
        "pools": [pool.member for pool in used_pools(model, plan)],
        **_check_record(model, plan),
        **({"tolerances": tolerances} if tolerances else {}),
        "operators": operator_rows(model),
        "arguments": argument_row(model),
        "memory": {
            "planner": model.memory_planner,
            "pools": {name: {"size": p.size, "lower_bound": p.lower_bound} for name, p in plan.pools.items()},
        },
        "builds": [_build_record(build) for build in model.builds],
    }


def _check_record(model: Model, plan: MemoryPlan) -> dict[str, Any]:
    """Return the part for `opwest run --check-steps`: the stops, and the results of steps in the workspace."""
    breakpoints = stops(model, plan)
    written = {tensor for stop in breakpoints for tensor, _ in stop.writes}
    views = [view for view in model.views if view.name in written]
    shown = written | {view.root for view in views}
    results = [
        {**_typed(buffer.name, buffer.type), "buffer": index}
        for index, buffer in enumerate(model.buffers)
        if buffer.inside is None and buffer.name in shown
    ]
    return {
        "results": results,
        "views": [{**_typed(view.name, view.type), "root": view.root, "offset": view.offset} for view in views],
        "stops": [
            {"point": stop.point, "writes": [{"tensor": tensor, "step": step} for tensor, step in stop.writes]}
            for stop in breakpoints
        ],
    }


def _typed(name: str, type_: TensorType) -> dict[str, Any]:
    pitch = {"pitch": type_.pitch} if type_.pitch else {}
    return {**type_row(name, type_), **pitch}


def _build_record(build: TargetBuild) -> dict[str, Any]:
    folder = target_folder(build)
    sources = [source for source in build.sources if source.compiled]
    options = [
        {
            "source": str(source.unit),
            "include_dirs": [str(SOURCES / folder) for folder in source.options.include_dirs],
            # A host's program is compiled with -O2.
            "flags": [
                *(f"-D{define}" for define in source.options.defines),
                *(["-Os"] if source.options.optimize == "size" else []),
                *source.options.flags,
            ],
        }
        for source in sources
        if source.options != NO_OPTIONS
    ]
    return {
        "target": build.target.name if build.target else None,
        "bits": build.target.bits if build.target else None,
        "host": list(build.target.host) if build.target else [],
        "objects": [f"objects/{folder}/{o.path}" for o in build.objects],
        "sources": [str(s.unit) for s in sources],
        "places": [{"line": s.line, "column": s.column} for s in sources],
        "permits": [list(s.permits) for s in sources],
        **({"options": options} if options else {}),
        "rename": rename_header(build) if build.sources else None,
    }
