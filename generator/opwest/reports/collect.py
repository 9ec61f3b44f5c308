# SPDX-License-Identifier: Apache-2.0
"""Conversion of the pipeline's result for a manifest to the data of a report."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from opwest import __version__, pipeline
from opwest.base.diagnostics import Diagnostics, Location, OpwestError, fail
from opwest.model.checks.exportability import ObjectRow, exportability
from opwest.model.types.c_names import CNames
from opwest.model.types.model import Model, Step
from opwest.objects.library_symbols import float_calls
from opwest.plan.fixed import block_of
from opwest.plan.memory import MemoryPlan
from opwest.project.lock import to_json
from opwest.project.origin import ORIGIN, missing_manifests, read_origin
from opwest.project.request import Examination, Request
from opwest.render.devices import device_origin
from opwest.render.project_files import project_record as record_of
from opwest.render.tensors import manifest_name, quantization_words
from opwest.reports import data, words
from opwest.reports.images import LinkedImage
from opwest.reports.layers import with_layers
from opwest.reports.measured import add_measured
from opwest.reports.memory_map import live_bytes
from opwest.reports.sizes import add_images
from opwest.reports.variants import Selection, choose
from opwest.runs.project_data import project_record
from opwest.zephyr.workspace import ZephyrOptions


def collect(examination: Examination, variants: Mapping[str, tuple[str, ...]] | None = None) -> data.Model:
    """Return the data of a model without measurements; `variants` are all of the model, with their targets."""
    model, plan = examination.model, examination.plan
    rows = exportability(model, examination.objects)
    calls = {
        (examined.name, examined.target): float_calls(examined.member.undefined)
        for examined in examination.objects
        if examined.member
    }
    pools, buffers = _memory(model, plan)
    return data.Model(
        name=model.name,
        description=model.description,
        manifest=manifest_name(model),
        boards=model.boards,
        reorder=model.reorder,
        pools=pools,
        buffers=buffers,
        steps=tuple(
            data.Step(
                s.index,
                s.operator.name,
                s.device,
                s.operator.is_async and s.device is not None,
                s.location.line,
                *_tensors_of(s),
                s.program.name if s.program else None,
            )
            for s in plan.schedule.steps
        ),
        waits=tuple(
            data.Wait(sync.device, before, sync.steps, sync.leave)
            for before, syncs in enumerate(plan.schedule.syncs)
            for sync in syncs
        ),
        devices=tuple(
            data.Device(d.name, device_origin(d), d.program.name if d.program else None) for d in model.devices
        ),
        tensors=tuple(
            data.Tensor(
                t.name,
                role,
                t.type.dtype.name,
                t.type.shape,
                t.type.size,
                t.placed,
                quantization_words(t.info.quantization) if t.info.quantization else None,
            )
            for role, tensors in (("input", model.inputs), ("output", model.outputs))
            for t in tensors
        ),
        constants=_constants(model),
        programs=tuple(data.Program(p.name, CNames.program(p.content), len(p.content)) for p in model.programs),
        operators=_operators(examination, rows),
        objects=tuple(_object(row, calls.get((row.object, row.target), ())) for row in rows),
        inputs=tuple(data.Input(name, digest) for name, digest in model.inputs_read),
        latency_cycles=plan.schedule.latency.cycles,
        variant=model.variant.name if model.variant else None,
        variants={} if variants is None else variants,
    )


def _tensors_of(step: Step) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the tensors that a step reads, and those that it writes."""
    pairs = [
        (argument, binding.name)
        for argument, binding in zip(step.operator.args, step.bindings, strict=True)
        if binding.role != "scalar" and argument.direction != "scratch"
    ]
    reads = (name for argument, name in pairs if argument.is_read)
    writes = (name for argument, name in pairs if argument.is_written)
    return tuple(dict.fromkeys(reads)), tuple(dict.fromkeys(writes))


def _memory(model: Model, plan: MemoryPlan) -> tuple[tuple[data.Pool, ...], tuple[data.Buffer, ...]]:
    """Return the pools with buffers, and every buffer at its place in the plan."""
    declared = {pool.name: pool for pool in model.pools}
    writers: dict[str, list[int]] = defaultdict(list)
    readers: dict[str, list[int]] = defaultdict(list)
    for step in plan.schedule.steps:
        for argument, binding in zip(step.operator.args, step.bindings, strict=True):
            if binding.role == "buffer":
                if argument.is_written or argument.direction == "scratch":
                    writers[binding.name].append(step.index)
                if argument.is_read or argument.direction == "scratch":
                    readers[binding.name].append(step.index)
    buffers = []
    for buffer in model.planned:
        pool, offset = plan.place(buffer.name)
        life = plan.schedule.lives[buffer.name]
        buffers.append(
            data.Buffer(
                name=buffer.name,
                role=buffer.role,
                dtype=buffer.type.dtype.name,
                shape=buffer.type.shape,
                bytes=buffer.type.size,
                reserved=block_of(declared[pool], buffer, plan.schedule).size,
                pool=pool,
                offset=offset,
                first=life.first,
                last=life.last,
                writers=tuple(dict.fromkeys(writers[buffer.name])),
                readers=tuple(dict.fromkeys(readers[buffer.name])),
            )
        )
    buffers = take_over(buffers)
    pools = []
    for name, planned in plan.pools.items():
        live = live_bytes([buffer for buffer in buffers if buffer.pool == name], max(len(model.steps), 1))
        most = data.Peak(live.index(max(live)), max(live))
        limit = declared[name].size
        pools.append(data.Pool(name, planned.size, planned.lower_bound, planned.align, limit, most))
    return tuple(pools), tuple(buffers)


def take_over(buffers: Sequence[data.Buffer]) -> list[data.Buffer]:
    """Return buffers with the buffer that they overwrite: one that ends in their first step, in the same memory."""
    ending: dict[tuple[str, int], list[data.Buffer]] = defaultdict(list)
    for buffer in buffers:
        ending[buffer.pool, buffer.last].append(buffer)
    results = []
    for buffer in buffers:
        overwritten = [
            other.name
            for other in ending[buffer.pool, buffer.first]
            if other.first < buffer.first
            and other.offset < buffer.offset + buffer.reserved
            and buffer.offset < other.offset + other.reserved
        ]
        results.append(replace(buffer, takes_over=overwritten[0]) if overwritten else buffer)
    return results


def _constants(model: Model) -> tuple[data.Constant, ...]:
    users: dict[str, dict[str, None]] = defaultdict(dict)
    for step in model.steps:
        for binding in step.bindings:
            users[binding.name][step.operator.name] = None
    return tuple(
        data.Constant(
            name=constant.name,
            dtype=constant.type.dtype.name,
            shape=constant.type.shape,
            bytes=len(constant.content),
            pool=constant.pool,
            operators=tuple(users[constant.name]),
        )
        for constant in model.constants
    )


def _operators(examination: Examination, rows: list[ObjectRow]) -> tuple[data.Operator, ...]:
    """Return the operators with the sizes of their functions, without the functions that they call."""
    steps: dict[str, list[int]] = defaultdict(list)
    for step in examination.plan.schedule.steps:
        steps[step.operator.name].append(step.index)
    code: dict[str, dict[str, int]] = defaultdict(dict)
    for examined in examination.objects:
        if examined.linked and examined.member:
            for name, symbol in examined.member.defined.items():
                if symbol.section == "code" and symbol.size:
                    code[name][examined.target] = symbol.size
    stack: dict[str, dict[str, int]] = defaultdict(dict)
    for row in rows:
        for operator, size in row.stack.items():
            if size is not None:
                stack[operator][row.target] = size
    return tuple(
        data.Operator(o.name, o.symbol, tuple(steps[o.name]), dict(code[o.symbol]), dict(stack[o.name]), o.permits)
        for o in examination.model.operators
    )


def _object(row: ObjectRow, float_calls: tuple[str, ...]) -> data.Object:
    fields = {key: getattr(row, key) for key in ("kind", "target", "exportable", "code", "constant", "state")}
    return data.Object(name=row.object, reasons=row.reasons, stack=row.stack_text, float_calls=float_calls, **fields)


BASE: Final = Selection()
"""No option selects a variant."""


class Inputs(NamedTuple):
    """What a command of reports describes."""

    project: Path | None
    """The directory of the project; None for manifests."""
    examinations: Sequence[Examination]
    stale: tuple[data.Stale, ...]


def read_inputs(paths: Sequence[Path], faults: Diagnostics) -> Inputs:
    """Return the models of one project or of manifests; warn about an outdated project.

    Raises OpwestError with every fault.
    """
    folders = [path for path in paths if path.is_dir()]
    if not folders:
        return Inputs(None, _examined(paths, ZephyrOptions(), faults), ())
    project = folders[0]
    if len(paths) > 1:
        raise fail("several directories given", project, expected="one project, or manifests")
    record = project_record(project)
    if record is None:
        hint = "generate one with 'opwest generate MANIFEST -o DIR', or run 'opwest report MANIFEST'"
        raise fail("not a directory generated by opwest", project, hint=hint)
    origin = read_origin(project)
    if origin is None:
        hint = "generate the report from the manifest: opwest report MANIFEST"
        message = "the project does not record the path of its manifest"
        raise fail(message, project, expected=str(ORIGIN), hint=hint)
    if fault := missing_manifests(origin.manifests, project):
        raise OpwestError([fault])
    examinations = _examined(origin.manifests, ZephyrOptions(origin.boards), faults)
    return Inputs(project, examinations, _stale(project, record, examinations, faults))


def _examined(manifests: Sequence[Path], zephyr: ZephyrOptions, faults: Diagnostics) -> Sequence[Examination]:
    examinations = pipeline.run(Request(tuple(manifests), zephyr=zephyr), faults, "plan").examinations
    faults.raise_if_errors()
    return examinations


def report_of(
    inputs: Inputs,
    measured: Sequence[Path],
    faults: Diagnostics,
    images: Sequence[LinkedImage] = (),
    selection: Selection = BASE,
) -> data.Report:
    """Return the report with measurements and sizes in images. Raises OpwestError with every fault.

    Without a selection, images select the variants of the models; without both, the report is of the base.
    """
    models = []
    for examination in choose(inputs.examinations, selection, images, faults):
        variants = {
            other.variant.name: tuple(target.name for target in other.variant.targets)
            for other in (item.model for item in inputs.examinations)
            if other.variant is not None and other.name == examination.model.name
        }
        models.append(collect(examination, variants))
    models = with_layers(
        add_images(add_measured(models, measured, faults), images, faults), inputs.examinations, faults
    )
    faults.raise_if_errors()
    return data.Report(__version__, tuple(models), inputs.stale)


def _stale(
    project: Path, record: dict[str, Any], examinations: Sequence[Examination], faults: Diagnostics
) -> tuple[data.Stale, ...]:
    """Return the inputs that changed since the project was generated; warn about them."""
    known = record.get("models")
    before = {
        model["name"]: model
        for model in (known if isinstance(known, list) else [])
        if isinstance(model, dict) and isinstance(model.get("name"), str)
    }
    current = record_of([(examination.model, examination.plan) for examination in examinations], vendored=True)
    now = {model["name"]: model for model in json.loads(to_json(current))["models"]}
    stale = []
    for name in [*before, *(name for name in now if name not in before)]:
        old, new = (side.get(name, {}).get("inputs", {}) for side in (before, now))
        old = old if isinstance(old, dict) else {}
        for file in sorted({*old, *new}):
            if old.get(file) != new.get(file):
                state = "gone" if file not in new else "new" if file not in old else "changed"
                stale.append(data.Stale(name, file, state))
        if old == new and before.get(name) != now.get(name):
            stale.append(data.Stale(name, "", "opwest"))
    if stale:
        files = [f"{item.file} ({item.state})" for item in stale if item.state != "opwest"]
        outdated = f"the project is out of date: {words.listed(files, 5)}"
        what = outdated if files else "the project was generated by another version of opwest"
        hint = f"run 'opwest update {project}'"
        faults.warning(f"{what}; the report describes the current inputs", Location(str(project)), hint=hint)
    return tuple(stale)
