# SPDX-License-Identifier: Apache-2.0
"""The page: a report as one self-contained HTML file, rendered without side effects."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, Final

import jinja2
from markupsafe import Markup

from opwest.report import data, sizes, words
from opwest.report.changes import Change
from opwest.report.figures import map_row, timeline_rows, treemap_row
from opwest.report.files import DATA_ID, to_json
from opwest.report.timeline import MAX_STEPS, graph_row, measured_name, measured_time

LIGHT: Final = {
    "ground": "#f4f5f8",
    "card": "#ffffff",
    "ink": "#191d26",
    "soft": "#545d6d",
    "line": "#dde1e8",
    "grid": "#e9ecf1",
    "accent": "#1f56c4",
    "better": "#0f6b3d",
    "worse": "#b3261e",
    "warn": "#fff3d6",
    "warn-ink": "#5c3d00",
    "band": "#eef1f6",
}
DARK: Final = {
    "ground": "#0e1116",
    "card": "#161a21",
    "ink": "#e8ebf1",
    "soft": "#a3adbd",
    "line": "#2b323d",
    "grid": "#232932",
    "accent": "#86aeff",
    "better": "#62cf98",
    "worse": "#ff8f86",
    "warn": "#3b2d08",
    "warn-ink": "#ffe3a3",
    "band": "#1d222b",
}

KINDS: Final = {
    # kind: fill, edge and text; light, then dark
    "intermediate": (("#cfe0fb", "#3a70cc", "#12305e"), ("#1c3964", "#6b9dec", "#dce8ff")),
    "input": (("#c9edda", "#22855a", "#0c3c26"), ("#16442e", "#52bb88", "#d8f6e6")),
    "output": (("#fce4b6", "#a86f0c", "#492f00"), ("#523b0f", "#dba640", "#ffedcd")),
    "scratch": (("#e4dafb", "#7853c6", "#2e1962"), ("#392968", "#a98aee", "#ece4ff")),
    "constant": (("#f9d6df", "#bd3e67", "#571428"), ("#591e34", "#e97ca0", "#ffe2eb")),
    "state": (("#cdeaf0", "#1c7f92", "#083a44"), ("#12414b", "#4fb6c9", "#d5f3f8")),
    "code": (("#cdeaf0", "#1c7f92", "#083a44"), ("#12414b", "#4fb6c9", "#d5f3f8")),
    "program": (("#e4dafb", "#7853c6", "#2e1962"), ("#392968", "#a98aee", "#ece4ff")),
    "other": (("#e3e6ec", "#78818f", "#2a303a"), ("#2a303a", "#868f9e", "#e3e6ec")),
    # the schedule
    "run": (("#cfe0fb", "#3a70cc", "#12305e"), ("#1c3964", "#6b9dec", "#dce8ff")),
    "launched": (("#e4dafb", "#7853c6", "#2e1962"), ("#392968", "#a98aee", "#ece4ff")),
    "pending": (("#f3eefd", "#b49fe0", "#2e1962"), ("#241c3d", "#6d58a3", "#ece4ff")),
    "blocked": (("#eef0f4", "#b3bac6", "#2a303a"), ("#20252e", "#525b69", "#e3e6ec")),
}


def variables(dark: bool) -> str:
    """Return the declarations of one scheme."""
    plain = DARK if dark else LIGHT
    kinds = {
        f"{kind}-{part}": colour
        for kind, schemes in KINDS.items()
        for part, colour in zip(("fill", "edge", "ink"), schemes[dark], strict=True)
    }
    return "".join(f"--{name}:{colour};" for name, colour in {**plain, **kinds}.items())


def classes() -> str:
    """Return the rules with the colours of each kind of shape."""
    return "".join(
        f".k-{kind}{{--fill:var(--{kind}-fill);--edge:var(--{kind}-edge);--on:var(--{kind}-ink)}}" for kind in KINDS
    )


MAX_ROWS: Final = 200
"""The maximum number of rows of a table; the JSON contains all."""
_FEW_CHANGES: Final = 12
"""The number of differences shown initially; improvements and regressions precede others."""
_TEMPLATES = Path(__file__).parent / "templates"


@cache
def environment() -> jinja2.Environment:
    """Return the environment of the report's templates: text is escaped, undefined names are errors."""
    found = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters.update(number=words.number, size=words.size)
    found.globals.update(counted=words.counted, kind_names=_kind_names)
    return found


def _visible(value: object) -> object:
    return words.visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _kind_names(kinds: Sequence[str]) -> list[dict[str, str]]:
    """Return the labels of the kinds in a treemap."""
    names = {"constant": "constant", "program": "program", "code": "code of an operator", "other": "other"}
    return [{"kind": kind, "label": names.get(kind, kind)} for kind in kinds]


def page(report: data.Report, changes: Sequence[Change] | None = None, against: str | None = None) -> str:
    """Return the page; `changes` are the differences from the report `against`, None without a comparison."""
    script = asset("script.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    return (
        environment()
        .get_template("page.html.jinja")
        .render(
            format=data.FORMAT,
            schema=data.SCHEMA,
            opwest=report.opwest,
            title=", ".join(model.name for model in report.models),
            style=Markup(_style()),
            script=Markup(script),
            script_digest=digest,
            stale=_stale(report),
            changes=None if changes is None else _changes(changes, against or ""),
            several=len(report.models) > 1,
            models=[_model(model) for model in report.models],
            most_steps=MAX_STEPS,
            data_id=DATA_ID,
            data=Markup(in_script(to_json(report))),
        )
    )


def in_script(text: str) -> str:
    """Return JSON for a script element, escaped so that it cannot end the element."""
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


@cache
def asset(name: str) -> str:
    """Return the text of a file that is embedded in pages."""
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _style() -> str:
    light, dark = variables(dark=False), variables(dark=True)
    return (
        f":root{{color-scheme:light;{light}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{:root:not([data-theme=light]){{color-scheme:dark;{dark}}}}}\n"
        f"@media screen{{:root[data-theme=dark]{{color-scheme:dark;{dark}}}}}\n"
        f"{classes()}\n{asset('figures.css')}{asset('style.css')}"
    )


def _model(model: data.Model) -> dict[str, Any]:
    ram = sizes.ram_rows(model)
    flash = sizes.flash_rows(model)
    return {
        "name": model.name,
        "description": model.description,
        "manifest": model.manifest,
        "boards": model.boards,
        "reorder": model.reorder,
        "cards": _cards(model),
        "maps": [map_row(model, pool) for pool in model.pools],
        "buffers": _limited(
            [
                {
                    "name": buffer.name,
                    "role": buffer.role,
                    "type": words.tensor(buffer.dtype, buffer.shape),
                    "pool": buffer.pool,
                    "offset": words.number(buffer.offset),
                    "bytes": words.number(buffer.reserved),
                    "first": buffer.first,
                    "last": buffer.last,
                }
                for buffer in sorted(model.buffers, key=lambda b: (-b.reserved, b.first, b.name))
            ]
        ),
        "tensors": _limited([_tensor(tensor) for tensor in model.tensors]),
        "graph": graph_row(model),
        "float_code": _float_code(model),
        "several_pools": len(model.pools) > 1,
        "timelines": timeline_rows(model),
        "steps": _limited(_step_rows(model)),
        "devices": [
            {"name": device.name, "origin": device.origin, "programs": ", ".join(words.programs_of(model, device))}
            for device in model.devices
        ],
        "flash": [{**row, "maps": treemap_row(row["items"])} for row in flash],
        "linked": bool(model.images),
        "code_known": bool(sizes.targets(model) or model.images),
        "ram": ram,
        "ram_bars": any(row["bar"] for row in ram),
        "profiles": [_profile(model, profile) for profile in model.profiles],
        "results": [_results(results) for results in model.results],
        "objects": _limited([_object(one) for one in model.objects]),
        "inputs": _limited([{"name": one.name, "sha256": one.sha256} for one in model.inputs]),
    }


def _limited(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {"rows": rows[:MAX_ROWS], "left": max(len(rows) - MAX_ROWS, 0)}


def _cards(model: data.Model) -> list[dict[str, str]]:
    """Return the key figures."""
    cards = []
    for pool in model.pools:
        spare = pool.planned - pool.lower_bound
        note = "optimal" if not spare else f"{words.size(spare)} above the lower bound"
        of = f"of {words.size(pool.limit)}" if pool.limit is not None else ""
        meter = f"{min(pool.planned / pool.limit, 1) * 100:.2f}%" if pool.limit else ""
        cards.append(_card(f"pool {pool.name}", words.size(pool.planned), of, note, meter))
    if not model.pools:
        cards.append(_card("workspace", "0 bytes", "", "no buffers"))
    constants = sum(constant.bytes for constant in model.constants)
    cards.append(
        _card("constants", words.size(constants), "", f"{words.counted(len(model.constants), 'array')} in flash")
    )
    for image in model.images[:2]:
        total = sum(item.bytes for item in image.items if item.kind == "code")
        cards.append(_card("operators", words.size(total), "", f"code in {image.source}"))
    for target in () if model.images else sizes.targets(model)[:2]:
        code = sum(one.code or 0 for one in model.objects if one.target == target)
        cards.append(_card("operators", words.size(code), "", f"code for {target}"))
    launches = sum(step.launched for step in model.steps)
    devices = f", {words.counted(len(model.devices), 'device')}" if model.devices else ""
    waits = f"; {words.counted(launches, 'launch')}, {words.counted(len(model.waits), 'wait')}" if launches else ""
    waits = waits.replace("launchs", "launches")
    operators = words.counted(len(model.operators), "operator")
    cards.append(_card("schedule", words.counted(len(model.steps), "step"), "", f"{operators}{devices}{waits}"))
    for profile in model.profiles[:2]:
        cards.append(_card(f"run, {profile.where}", _short_time(profile), "", _clock(profile.clock)))
    for results in model.results[:1]:
        worst = max((error.differing for error in results.errors), default=None)
        if worst is not None:
            value = "equal" if not worst else f"{words.counted(worst, 'element')} differ"
            cards.append(_card("outputs", value, "", "compared with the reference"))
    return cards


def _card(title: str, value: str, of: str, note: str, meter: str = "") -> dict[str, str]:
    return {"title": title, "value": value, "of": of, "note": note, "meter": meter}


def _short_time(profile: data.Profile) -> str:
    if profile.unit == "ns":
        return words.seconds(profile.run.mean)
    if profile.frequency_hz:
        return words.seconds(profile.run.mean * 1e9 / profile.frequency_hz)
    return f"{profile.run.mean:,.0f} {profile.unit}"


def _clock(clock: str | None) -> str:
    return {
        "host": "measured on the host, not on a board",
        "simulated": "simulated time, without code execution",
        "emulated": "emulated time: it differs from the time on the board",
        "board": "measured on the board",
    }.get(clock or "", clock or "")


def _step_rows(model: data.Model) -> list[dict[str, Any]]:
    waits: dict[int, list[str]] = {}
    for wait in model.waits:
        waits.setdefault(wait.before, []).append(f"{wait.device} ({', '.join(map(str, wait.steps))})")
    effects = {operator.name: operator.effects for operator in model.operators}
    several = {device.name for device in model.devices if len(words.programs_of(model, device)) > 1}
    rows = [
        {
            "index": step.index,
            "operator": step.operator,
            "device": f"{step.device} ({step.program or 'any program'})"
            if step.device in several
            else step.device or "cpu",
            "how": ", ".join(["launched" if step.launched else "runs", *effects.get(step.operator, ())]),
            "reads": ", ".join(step.reads),
            "writes": ", ".join(step.writes),
            "waits": ", ".join(waits.get(step.index, ())),
            "line": step.line,
        }
        for step in model.steps
    ]
    if at_end := waits.get(len(model.steps)):
        rows.append(
            {
                "index": "",
                "operator": "end of the run",
                "device": "",
                "how": "",
                "reads": "",
                "writes": "",
                "waits": ", ".join(at_end),
                "line": "",
            }
        )
    return rows


def _tensor(tensor: data.Tensor) -> dict[str, str]:
    return {
        "name": tensor.name,
        "role": tensor.role,
        "type": words.tensor(tensor.dtype, tensor.shape),
        "bytes": words.number(tensor.bytes),
        "memory": "in the workspace" if tensor.placed else "of the caller",
        "quantization": tensor.quantization or "–",
    }


def _float_code(model: data.Model) -> dict[str, Any]:
    """Return the functions of libm and of soft float: those that objects call, and those in images with their sizes."""
    called = [
        {"where": f"called by {one.name}", "target": one.target, "names": ", ".join(one.float_calls), "bytes": ""}
        for one in model.objects
        if one.float_calls
    ]
    linked = [
        {
            "where": "in the whole image",
            "target": image.source,
            "names": ", ".join(item.name for item in image.float_code),
            "bytes": words.number(sum(item.bytes for item in image.float_code)),
        }
        for image in model.images
        if image.float_code
    ]
    return _limited(called + linked)


def _profile(model: data.Model, profile: data.Profile) -> dict[str, Any]:
    longest = max((point.mean for point in profile.points), default=0.0)
    inside = sum(point.mean for point in profile.points)
    rows = [
        {
            "name": measured_name(point),
            "kind": {"step": "run", "launch": "launched", "wait": "blocked"}.get(point.kind, "other"),
            "mean": measured_time(profile, point.mean),
            "range": f"{point.min:,.0f} to {point.max:,.0f}" if point.runs > 1 else "",
            "share": f"{point.mean / profile.run.mean * 100:.1f} %" if profile.run.mean else "",
            "bar": f"{point.mean / longest * 100 if longest else 0:.2f}%",
        }
        for point in profile.points
    ]
    outside = max(profile.run.mean - inside, 0.0)
    return {
        "where": profile.where,
        "source": profile.source,
        "clock": _clock(profile.clock),
        "unit": profile.unit,
        "run": measured_time(profile, profile.run.mean),
        "range": f"{profile.run.min:,.0f} to {profile.run.max:,.0f} {profile.unit}" if profile.run.runs > 1 else "",
        "runs": words.counted(profile.run.runs, "run"),
        "outside": measured_time(profile, outside),
        "stack": None
        if profile.stack_used is None
        else f"{words.number(profile.stack_used)} of {words.counted(profile.stack_size or 0, 'byte')}",
        "rows": _limited(rows),
        "timelines": timeline_rows(model, profile) if inside else [],
    }


def _results(results: data.Results) -> dict[str, Any]:
    latency = results.latency_ns
    return {
        "where": results.board or "this machine",
        "source": results.source,
        "clock": _clock(results.clock),
        "latency": words.seconds(median(latency)) if any(latency) else None,
        "range": f"{words.seconds(min(latency))} to {words.seconds(max(latency))}" if len(latency) > 1 else "",
        "runs": words.counted(len(latency), "run"),
        "errors": [
            {
                "name": error.name,
                "elements": words.number(error.elements),
                "differing": words.number(error.differing),
                "largest": "not finite" if error.largest is None else f"{error.largest:.6g}",
                "mean": "not finite" if error.mean is None else f"{error.mean:.6g}",
                "equal": not error.differing,
            }
            for error in results.errors
        ],
    }


def _object(one: data.Object) -> dict[str, Any]:
    def shown(count: int | None) -> str:
        return "–" if count is None else words.number(count)

    return {
        "name": one.name,
        "kind": one.kind,
        "target": one.target,
        "exportable": one.exportable,
        "state_of": "no" if one.reasons else "later" if one.code is None else "yes",
        "reasons": one.reasons,
        "code": shown(one.code),
        "constant": shown(one.constant),
        "state": shown(one.state),
        "stack": one.stack,
    }


def _stale(report: data.Report) -> dict[str, Any] | None:
    if not report.stale:
        return None
    files = [stale for stale in report.stale if stale.state != "opwest"]
    return {"files": _limited([{"name": file.file, "model": file.model, "state": file.state} for file in files])}


def _changes(changes: Sequence[Change], against: str) -> dict[str, Any]:
    signs = {"better": "▼", "worse": "▲", "different": ""}
    rows = [
        {
            "model": change.model,
            "group": change.group,
            "name": change.name,
            "before": change.before or "–",
            "after": change.after or "–",
            "difference": change.difference,
            "verdict": change.verdict,
            "sign": signs[change.verdict],
        }
        for change in changes
    ]
    first = [row for row in rows if row["verdict"] != "different"]
    others = [row for row in rows if row["verdict"] == "different"] if len(rows) > _FEW_CHANGES else []
    if not first:
        first, others = rows[:_FEW_CHANGES], rows[_FEW_CHANGES:]
    return {
        "rows": _limited(first if others else rows),
        "others": _limited(others),
        "against": against,
        "count": words.counted(len(rows), "difference"),
    }


def pretty_json(report: data.Report, changes: Sequence[Change] | None) -> str:
    """Return the report as JSON, with the changes if there is a comparison."""
    text = to_json(report, indent=2)
    if changes is None:
        return text + "\n"
    value = json.loads(text)
    value["changes"] = [
        {"model": c.model, "group": c.group, "name": c.name, "before": c.before, "after": c.after, "verdict": c.verdict}
        for c in changes
    ]
    return json.dumps(value, indent=2) + "\n"
