# SPDX-License-Identifier: Apache-2.0
"""Resolve a manifest that conforms to the schema to a checked `Model`."""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from opwest.base.diagnostics import Diagnostics, Location
from opwest.base.files import with_lf
from opwest.manifest.located import Mapping
from opwest.model.checks.link import cpp_needs, needs_full_libc, needs_halide, needs_tvm, resolve_builds
from opwest.model.checks.stack_need import stack_needs
from opwest.model.inputs.context import Context, located_items
from opwest.model.inputs.files import Files
from opwest.model.inputs.headers import normal, places
from opwest.model.readers import declarations, hardware
from opwest.model.readers.constants import constants
from opwest.model.readers.dataflow import Dataflow
from opwest.model.readers.licences import model_licence
from opwest.model.readers.programs import Programs
from opwest.model.readers.run_keys import fixed_plan, memory_planner, states, streams
from opwest.model.readers.steps import Names, check_step_count, constant_types, slices
from opwest.model.readers.tvmgen import table_of, tvmgen
from opwest.model.readers.vectors import suite
from opwest.model.readers.views import Views, declared_types, interface_views
from opwest.model.readers.workspace import Placing
from opwest.model.types.builds import permitted_effects
from opwest.model.types.c_names import check_name, check_names
from opwest.model.types.model import Checks, Constant, MemoryPlanner, Model
from opwest.model.types.sections import Application, ApplicationFile
from opwest.objects.facts import HEADER_SUFFIXES, SOURCE_SUFFIXES

_MAX_COUNT = 65534


def check_counts(model: Model, faults: Diagnostics) -> None:
    """Report tables of the metadata with too many elements."""
    values = {repr(binding.value) for step in model.steps for binding in step.bindings if binding.role == "scalar"}
    counts = {
        "inputs, outputs and tensors in the workspace": len(model.inputs) + len(model.outputs) + len(model.buffers),
        "constants": len(model.constants),
        "different values of scalars": len(values),
    }
    for what, count in counts.items():
        if count > _MAX_COUNT:
            faults.error(f"model {model.name!r} has {count} {what}", model.location, expected=f"at most {_MAX_COUNT}")


def declared_names(context: Context) -> tuple[Names, list[Constant]]:
    """Return the names that a step may use, and the constants with the initial contents of states."""
    programs = Programs(context)
    devices = hardware.devices(context, programs)
    operators = declarations.operators(context, programs)
    inputs = declarations.interface(context, "inputs")
    outputs = declarations.interface(context, "outputs")
    known = constants(context, constant_types(context, operators))
    lasting, initials = states(context)
    types = {t.name: t.type for named in (inputs, outputs, known, lasting) for t in named.values()}
    types |= declared_types(context)
    parts = Views(context, types, interface_views(context, types)).resolve()
    check_step_count(context)
    names = Names(
        programs=programs,
        operators=operators,
        devices=devices,
        pools=hardware.pools(context, devices),
        inputs=inputs,
        outputs=outputs,
        constants=known,
        declared_constants=context.section("constants"),
        states=lasting,
        views=parts | slices(context, types, parts),
    )
    return names, initials


APPLICATION_SUFFIXES = (*SOURCE_SUFFIXES, *HEADER_SUFFIXES, ".S", ".inc")


def resolve(context: Context, files: Files, boards: Sequence[str] = (), planner: MemoryPlanner | None = None) -> Model:
    """Return the model. It is valid only if `context.faults` has no errors afterwards.

    `files` holds the inspected objects; `boards` are added to those of the manifest; `planner` replaces its planner.
    """
    manifest = context.manifest
    name = manifest["model"]
    check_name("model", name, manifest.value_location("model"), context.faults)

    if "flash" in manifest:
        from opwest.model.readers.flash import read_flash

        read_flash(manifest, context.faults)
    names, initials = declared_names(context)
    inherited = files.effects_of({o.symbol for o in names.operators.values()})
    affected = {name: operator for name, operator in names.operators.items() if inherited[operator.symbol]}
    names.operators.update({n: replace(o, object_effects=inherited[o.symbol]) for n, o in affected.items()})
    externals = declarations.externals(context)
    flow = Dataflow(context, names, files).resolve()
    workspace = Placing(context, names, flow).place()
    planner = memory_planner(context, planner)

    if files.modules:
        from opwest.model.inputs.ir import check_signatures

        check_signatures(context, files.modules, names.operators)
    fixed = fixed_plan(context, names.pools) if planner == "fixed" else None
    builds = resolve_builds(context, files, names.operators, externals)

    application = _application(context)
    operators = names.operators.values()
    effects = {effect for o in operators for effect in o.permits}
    effects = effects.union(*(permitted_effects(entry) for entry in context.items("objects")))
    stateful = "state" in effects
    tests = suite(context, names.inputs, names.outputs, repeatable=effects <= {"heap"})
    model = Model(
        name=name,
        description=manifest.get("description"),
        manifest=manifest.file,
        boards=tuple(dict.fromkeys([*context.items("boards"), *boards])),
        operators=tuple(names.operators.values()),
        devices=tuple(names.devices.values()),
        pools=tuple(names.pools.values()),
        constants=(
            *(replace(c, align=max(c.align, flow.alignments.get(c.name, 1))) for c in names.constants.values()),
            *initials,
        ),
        inputs=workspace.inputs,
        outputs=workspace.outputs,
        buffers=workspace.buffers,
        states=workspace.states,
        views=tuple(view for view in names.views.values() if view.name in flow.views),
        steps=workspace.steps,
        reorder=context.run.get("order") == "any",
        memory_planner=planner,
        builds=tuple(builds),
        declared_targets=files.declared,
        externals=tuple(externals.values()),
        needs_full_libc=needs_full_libc(files),
        cpp=cpp_needs(files),
        needs_tvm=needs_tvm(files) or any(o.uses_tvm for o in names.operators.values()),
        needs_halide=needs_halide(files) or any(o.convention.feature == "halide" for o in names.operators.values()),
        stateful=stateful,
        application=application,
        suite=tests,
        compat=table_of(manifest),
        tvmgen=tvmgen(context, name, workspace.inputs, workspace.outputs, tuple(names.devices.values())),
        inputs_read=_hashes(context),
        location=manifest.value_location("model"),
        fixed=fixed,
        board_locations=tuple(located_items(context.items("boards"))),
        licence=model_licence(context),
        variant=context.variant,
        streams=streams(context, workspace.steps, names.devices, planner),
        checks=_checks(context),
    )
    check_names(model, context.faults)
    if model.devices:
        from opwest.model.readers.npu_programs import check_npu_programs

        check_npu_programs(context, model.devices, model.steps)
    check_counts(model, context.faults)
    return replace(model, stack=stack_needs(model, context.examined, context.faults))


def _checks(context: Context) -> Checks:
    section = context.section("checks", context.run)
    return Checks(busy=section.get("busy", True), buffers=section.get("buffers", True))


def _hashes(context: Context) -> tuple[tuple[str, str], ...]:
    names = {Path(context.manifest.file).name, *context.files}
    hashes = []
    for name in sorted(names):
        path = context.folder / name
        try:
            if path.is_file():
                hashes.append((name, hashlib.sha256(with_lf(path.read_bytes())).hexdigest()))
        except OSError:
            if not context.faults.has_errors:  # otherwise its reader reported it
                raise
    return tuple(hashes)


def _application(context: Context) -> Application:
    section = context.section("application")
    contents: dict[str, tuple[bytes, Location]] = {}
    for file, at in located_items(context.items("sources", section)):
        path = context.regular_file(file, at, "a C or C++ file, or a header")
        if path is None:
            continue
        if path.suffix not in APPLICATION_SUFFIXES:
            context.faults.error(
                f"application source {file!r} is not a C or C++ file",
                at,
                expected=" or ".join(APPLICATION_SUFFIXES),
            )
        else:
            contents.setdefault(normal(PurePosixPath(file)), (with_lf(path.read_bytes()), at))
    files: dict[str, ApplicationFile] = {}
    every = places({file: content for file, (content, _) in contents.items()})
    for file, place in ((file, place) for file, copies in every.items() for place in copies):
        content, at = contents[file]
        if place in files:
            what = f"application source {PurePosixPath(place).name!r}"
            context.duplicate(what, at, files[place].location, "unique file names")
        else:
            files[place] = ApplicationFile(place, content, at)
    console = located_items(context.items("console", section))
    for expression, at in console:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # FutureWarning: syntax reserved for later versions of Python
                re.compile(expression)
        except (re.error, OverflowError, RecursionError) as error:
            context.faults.error(
                f"invalid regular expression {expression!r}: {error}",
                at,
                expected="a regular expression of Python's re, as in twister's console harness",
                hint="escape literal ( ) [ ] { } . * + ? with a backslash",
            )
    kconfig = context.section("kconfig", section)
    return Application(
        files=tuple(files.values()),
        overlays=_overlays(context, section),
        kconfig=tuple(kconfig.items()),
        kconfig_places=tuple((symbol, kconfig.key_location(symbol)) for symbol in kconfig),
        console=tuple(expression for expression, _ in console),
    )


def _overlays(context: Context, section: Mapping) -> tuple[tuple[str, ApplicationFile], ...]:
    files = []
    overlays = context.section("overlays", section)
    for board, file in overlays.items():
        at = overlays.value_location(board)
        path = context.regular_file(file, at, "a devicetree overlay")
        if path is not None:
            files.append((board, ApplicationFile(file, with_lf(path.read_bytes()), at)))
    return tuple(files)
