# SPDX-License-Identifier: Apache-2.0
"""The differences between two reports, as rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any, Literal

from opwest.base.frozen_dataclass import dataclass
from opwest.report import data, words
from opwest.report.timeline import measured_name

_NEUTRAL = ("schedule", "tensors")
"""Groups in which a smaller number is no improvement."""


@dataclass(frozen=True, slots=True)
class Change:
    """One difference: its texts, and whether it is an improvement, if known."""

    model: str
    group: str
    name: str
    before: str
    after: str
    difference: str
    verdict: Literal["better", "worse", "different"]


def compare(before: data.Report, after: data.Report) -> tuple[Change, ...]:
    """Return all differences by model, the most important first."""
    old, new = ({model.name: model for model in report.models} for report in (before, after))
    changes: list[Change] = []
    for name in [*new, *(name for name in old if name not in new)]:
        if name not in old or name not in new:
            changes.append(_appeared(name, "model", name, present=name in new))
        else:
            changes += _of_model(old[name], new[name])
    return tuple(changes)


def _of_model(old: data.Model, new: data.Model) -> Iterator[Change]:
    for group, parts in (
        ("RAM", _ram),
        ("flash", _flash),
        ("measured", _measured),
        ("schedule", _schedule),
        ("operators", _operators),
        ("objects", _objects),
        ("tensors", _buffers),
        ("inputs", _inputs),
    ):
        yield from _rows(new.name, group, parts(old, new), parts(new, old))


def _rows(model: str, group: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    """Compare figures and texts by name: smaller figures are better."""
    for name in [*new, *(name for name in old if name not in new)]:
        if name not in old or name not in new:
            yield _appeared(model, group, name, present=name in new, value=new.get(name, old.get(name)))
        elif old[name] != new[name]:
            yield _changed(model, group, name, old[name], new[name])


def _changed(model: str, group: str, name: str, old: Any, new: Any) -> Change:
    if isinstance(old, int | float) and isinstance(new, int | float):
        verdict: Literal["better", "worse", "different"] = "better" if new < old else "worse"
        if group in _NEUTRAL:
            verdict = "different"
        difference = words.change(old, new)
        return Change(model, group, name, _shown(old), _shown(new), difference, verdict)
    return Change(model, group, name, _shown(old), _shown(new), "", "different")


def _appeared(model: str, group: str, name: str, *, present: bool, value: Any = "") -> Change:
    before, after = ("", _shown(value)) if present else (_shown(value), "")
    return Change(model, group, name, before, after, "new" if present else "gone", "different")


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.6g}"
    return words.number(value) if isinstance(value, int) else str(value)


def _ram(model: data.Model, _: data.Model) -> dict[str, Any]:
    found: dict[str, Any] = {f"pool {pool.name}, bytes": pool.planned for pool in model.pools}
    found |= {f"pool {pool.name}, lower bound": pool.lower_bound for pool in model.pools}
    found |= {f"{i.source} ({i.machine}), RAM bytes": i.ram for i in model.images if i.ram is not None}
    return found | _totals(model.objects, "state", "state of objects")


def _flash(model: data.Model, _: data.Model) -> dict[str, Any]:
    found: dict[str, Any] = {"constants, bytes": sum(constant.bytes for constant in model.constants)}
    for image in model.images:
        found[f"the model in {image.source} ({image.machine}), bytes"] = sum(item.bytes for item in image.items)
        if image.flash is not None:
            found[f"{image.source} ({image.machine}), flash bytes"] = image.flash
        found |= {
            f"{item.name} in {image.source}, bytes": item.bytes for item in image.items if item.kind != "constant"
        }
    found |= _totals(model.objects, "code", "code")
    found |= {f"constant {constant.name}, bytes": constant.bytes for constant in model.constants}
    return found | {f"program {program.name}, bytes": program.bytes for program in model.programs}


def _totals(objects: Sequence[data.Object], kind: str, what: str) -> dict[str, int]:
    """Return the sums of a column of the objects by target, if known."""
    totals: dict[str, int] = {}
    for one in objects:
        size = getattr(one, kind)
        if size is not None:
            key = f"{what} for {one.target}, bytes"
            totals[key] = totals.get(key, 0) + size
    return totals


def _schedule(model: data.Model, _: data.Model) -> dict[str, Any]:
    order = ", ".join(f"{step.operator}{f' on {step.device}' if step.device else ''}" for step in model.steps)
    return {
        "steps": len(model.steps),
        "waits": len(model.waits),
        **({} if model.latency_cycles is None else {"latency bound, cycles": model.latency_cycles}),
        "order of the steps": order if len(order) <= 200 else f"{order[:200]}…",
        **{f"calls of {operator.name}": len(operator.steps) for operator in model.operators},
    }


def _measured(model: data.Model, other: data.Model) -> dict[str, Any]:
    """Return the differences of measurements in both reports, and the names of those in only one."""
    found: dict[str, Any] = {}
    profiled, run = {one.where for one in other.profiles}, {result.board for result in other.results}
    for profile in model.profiles:
        if profile.where not in profiled:
            found[f"profile of {profile.where}"] = f"{profile.run.mean:,.0f} {profile.unit}"
            continue
        where = f"{profile.where}, {profile.unit}"
        found[f"run on {where}"] = profile.run.mean
        for point in profile.points:
            found[f"{measured_name(point)}, on {where}"] = point.mean
    for results in model.results:
        where = results.board or "this machine"
        if results.board not in run:
            found[f"outputs on {where}"] = words.counted(len(results.errors), "output")
            continue
        if results.latency_ns:
            found[f"latency on {where}, ns"] = float(median(results.latency_ns))
        for error in results.errors:
            found[f"elements of {error.name} that differ, on {where}"] = error.differing
            if error.largest is not None:
                found[f"largest error of {error.name}, on {where}"] = error.largest
    return found


def _operators(model: data.Model, other: data.Model) -> dict[str, Any]:
    """Return code and stack for the targets of both: an added or removed one is reported once, as code in flash."""
    both = {one.target for one in model.objects} & {one.target for one in other.objects}
    operators: dict[str, Any] = {}
    for operator in model.operators:
        operators |= {f"{operator.name}, code for {t}, bytes": size for t, size in operator.code.items() if t in both}
        operators |= {f"{operator.name}, stack on {t}, bytes": size for t, size in operator.stack.items() if t in both}
    return operators


def _objects(model: data.Model, _: data.Model) -> dict[str, Any]:
    return {f"{one.name} for {one.target}": f"exportable: {one.exportable}" for one in model.objects}


def _buffers(model: data.Model, _: data.Model) -> dict[str, Any]:
    """Return the properties of tensors that the user sets, without those from the planner."""
    found: dict[str, Any] = {
        f"{t.role} {t.name}": f"{words.tensor(t.dtype, t.shape)}, {'in the workspace' if t.placed else 'of the caller'}"
        for t in model.tensors
    }
    return found | {f"buffer {buffer.name}, bytes": buffer.reserved for buffer in model.buffers}


def _inputs(model: data.Model, _: data.Model) -> dict[str, Any]:
    return {one.name: f"SHA-256 {one.sha256[:12]}…" for one in model.inputs}
