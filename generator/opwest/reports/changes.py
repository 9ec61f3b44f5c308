# SPDX-License-Identifier: Apache-2.0
"""The differences between two reports, as rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any, Literal

from opwest.base.frozen_dataclass import dataclass
from opwest.reports import data, words
from opwest.reports.timeline import measured_name

_NEUTRAL = ("schedule", "tensors")
"""Groups in which a smaller number is no improvement."""
Verdict = Literal["better", "worse", "different"]


@dataclass(frozen=True, slots=True)
class Change:
    """One difference: its texts, and whether it is an improvement, if known."""

    model: str
    group: str
    name: str
    before: str
    after: str
    difference: str
    verdict: Verdict
    numbers: tuple[float | None, float | None] = (None, None)
    """Before and after; None for a text."""

    def as_json(self) -> dict[str, Any]:
        """Return the value for JSON output, with numbers instead of their texts."""
        old, new = self.numbers
        row = {"model": self.model, "group": self.group, "name": self.name, "verdict": self.verdict}
        before, after = self.before or None, self.after or None
        return row | {"before": before if old is None else old, "after": after if new is None else new}


def compare(before: data.Report, after: data.Report) -> tuple[Change, ...]:
    """Return all differences by model, the most important first."""
    old, new = ({model.name: model for model in report.models} for report in (before, after))
    changes: list[Change] = []
    for name in new | old:
        if name not in old or name not in new:
            difference = "new" if name in new else "gone"
            changes.append(Change(name, "model", name, "", "", difference, "different"))
        else:
            changes += _of_model(old[name], new[name])
    return tuple(changes)


def _of_model(old: data.Model, new: data.Model) -> Iterator[Change]:
    yield from _rows(new.name, "model", _variant(old), _variant(new))
    yield from _rows(new.name, "RAM", _ram(old), _ram(new))
    yield from _rows(new.name, "flash", _flash(old), _flash(new))
    yield from _rows(new.name, "measured", _measured(old, new), _measured(new, old))
    yield from _rows(new.name, "schedule", _schedule(old), _schedule(new))
    yield from _rows(new.name, "operators", _operators(old, new), _operators(new, old))
    yield from _rows(new.name, "objects", _objects(old), _objects(new))
    yield from _rows(new.name, "tensors", _buffers(old), _buffers(new))
    yield from _rows(new.name, "inputs", _inputs(old), _inputs(new))


def _rows(model: str, group: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    """Compare figures and texts by name: smaller figures are better."""
    for name in dict.fromkeys((*new, *old)):
        before, after = old.get(name), new.get(name)
        if before == after:
            continue
        difference = ""
        verdict: Verdict = "different"
        if name not in old or name not in new:
            difference = "new" if name in new else "gone"
        elif isinstance(before, int | float) and isinstance(after, int | float):
            difference = words.change(before, after)
            if group not in _NEUTRAL:
                verdict = "better" if after < before else "worse"
        numbers = (_number(before), _number(after))
        yield Change(model, group, name, _shown(before), _shown(after), difference, verdict, numbers)


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) else None


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.6g}"
    return words.number(value) if isinstance(value, int) else str(value)


def _variant(model: data.Model) -> dict[str, str]:
    return {"variant": model.variant or "base"}


def _ram(model: data.Model) -> dict[str, Any]:
    figures: dict[str, Any] = {f"pool {pool.name}, bytes": pool.planned for pool in model.pools}
    figures |= {f"pool {pool.name}, lower bound": pool.lower_bound for pool in model.pools}
    for image in model.images:
        figures[f"the model in {image.source} ({image.machine}), RAM bytes"] = image.model_ram
        if image.ram is not None:
            figures[f"{image.source} ({image.machine}), RAM bytes"] = image.ram
    return figures | {f"state of objects for {target}, bytes": size for target, size in model.totals("state").items()}


def _flash(model: data.Model) -> dict[str, Any]:
    figures: dict[str, Any] = {"constants, bytes": sum(constant.bytes for constant in model.constants)}
    for image in model.images:
        figures[f"the model in {image.source} ({image.machine}), bytes"] = image.model_flash
        if image.flash is not None:
            figures[f"{image.source} ({image.machine}), flash bytes"] = image.flash
        figures |= {
            f"{item.name} in {image.source}, bytes": item.bytes for item in image.items if item.kind != "constant"
        }
    figures |= {f"code for {target}, bytes": size for target, size in model.totals("code").items()}
    figures |= {f"constant {constant.name}, bytes": constant.bytes for constant in model.constants}
    return figures | {f"program {program.name}, bytes": program.bytes for program in model.programs}


def _schedule(model: data.Model) -> dict[str, Any]:
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
    figures: dict[str, Any] = {}
    profiled = {profile.where for profile in other.profiles}
    boards = {results.board for results in other.results}
    for profile in model.profiles:
        if profile.where not in profiled:
            figures[f"profile of {profile.where}"] = f"{profile.run.mean:,.0f} {profile.unit}"
            continue
        where = f"{profile.where}, {profile.unit}"
        figures[f"run on {where}"] = profile.run.mean
        for point in profile.points:
            figures[f"{measured_name(point)}, on {where}"] = point.mean
    for results in model.results:
        where = results.board or "this machine"
        if results.board not in boards:
            figures[f"outputs on {where}"] = words.counted(len(results.errors), "output")
            continue
        if results.latency_ns:
            figures[f"latency on {where}, ns"] = float(median(results.latency_ns))
        for error in results.errors:
            figures[f"elements of {error.name} that differ, on {where}"] = error.differing
            if error.largest is not None:
                figures[f"largest error of {error.name}, on {where}"] = error.largest
    return figures


def _operators(model: data.Model, other: data.Model) -> dict[str, Any]:
    """Return code and stack for the targets of both: an added or removed one is reported once, as code in flash."""
    both = {item.target for item in model.objects} & {item.target for item in other.objects}
    operators: dict[str, Any] = {}
    for operator in model.operators:
        operators |= {f"{operator.name}, code for {t}, bytes": size for t, size in operator.code.items() if t in both}
        operators |= {f"{operator.name}, stack on {t}, bytes": size for t, size in operator.stack.items() if t in both}
    return operators


def _objects(model: data.Model) -> dict[str, str]:
    return {f"{item.name} for {item.target}": f"exportable: {item.exportable}" for item in model.objects}


def _inputs(model: data.Model) -> dict[str, str]:
    return {item.name: f"SHA-256 {item.sha256[:12]}…" for item in model.inputs}


def _buffers(model: data.Model) -> dict[str, Any]:
    """Return the properties of tensors that the user sets, without those from the planner."""
    tensors: dict[str, Any] = {
        f"{t.role} {t.name}": f"{words.tensor(t.dtype, t.shape)}, {'in the workspace' if t.placed else 'of the caller'}"
        for t in model.tensors
    }
    return tensors | {f"buffer {buffer.name}, bytes": buffer.reserved for buffer in model.buffers}
