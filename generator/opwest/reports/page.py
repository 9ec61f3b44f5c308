# SPDX-License-Identifier: Apache-2.0
"""A report as one self-contained HTML file, as a standalone SVG of its memory maps and schedules, or as JSON."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, Final

import jinja2
from markupsafe import Markup

from opwest.reports import clocks, data, sizes, words
from opwest.reports.changes import Change
from opwest.reports.figures import LANE, LANE_GAP, map_row, timeline_row, timeline_rows, treemap_row
from opwest.reports.files import DATA_ID, to_json, to_value
from opwest.reports.graph import MAX_STEPS, graph_row
from opwest.reports.layer_rows import layers_row, variants_row
from opwest.reports.timeline import measured_name, measured_time
from opwest.reports.words import MAX_ROWS

COLOURS: Final = {
    # name: light, dark
    "ground": ("#f4f5f8", "#0e1116"),
    "card": ("#ffffff", "#161a21"),
    "ink": ("#191d26", "#e8ebf1"),
    "soft": ("#545d6d", "#a3adbd"),
    "line": ("#dde1e8", "#2b323d"),
    "grid": ("#e9ecf1", "#232932"),
    "accent": ("#1f56c4", "#86aeff"),
    "better": ("#0f6b3d", "#62cf98"),
    "worse": ("#b3261e", "#ff8f86"),
    "warn": ("#fff3d6", "#3b2d08"),
    "warn-ink": ("#5c3d00", "#ffe3a3"),
    "band": ("#eef1f6", "#1d222b"),
}
KINDS: Final = {
    # kind: fill, edge and text; light, then dark
    "intermediate": (("#cfe0fb", "#3a70cc", "#12305e"), ("#1c3964", "#6b9dec", "#dce8ff")),
    "input": (("#c9edda", "#22855a", "#0c3c26"), ("#16442e", "#52bb88", "#d8f6e6")),
    "output": (("#fce4b6", "#a86f0c", "#492f00"), ("#523b0f", "#dba640", "#ffedcd")),
    "scratch": (("#e4dafb", "#7853c6", "#2e1962"), ("#392968", "#a98aee", "#ece4ff")),
    "constant": (("#f9d6df", "#bd3e67", "#571428"), ("#591e34", "#e97ca0", "#ffe2eb")),
    "kernel": (("#e2f1dd", "#4d8a3b", "#1c3a13"), ("#22421b", "#86c473", "#e3f6dd")),
    "table": (("#f3e6cf", "#94723a", "#402d0c"), ("#45361a", "#c9a468", "#f8ecd6")),
    "library": (("#e4dafb", "#7853c6", "#2e1962"), ("#392968", "#a98aee", "#ece4ff")),
    "runtime": (("#cfe0fb", "#3a70cc", "#12305e"), ("#1c3964", "#6b9dec", "#dce8ff")),
    "alignment": (("#eef0f4", "#78818f", "#2a303a"), ("#20252e", "#868f9e", "#e3e6ec")),
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


def _variables(dark: bool) -> str:
    """Return the declarations of one scheme."""
    plain = {name: colours[dark] for name, colours in COLOURS.items()}
    kinds = {
        f"{kind}-{part}": colour
        for kind, schemes in KINDS.items()
        for part, colour in zip(("fill", "edge", "ink"), schemes[dark], strict=True)
    }
    return "".join(f"--{name}:{colour};" for name, colour in {**plain, **kinds}.items())


def _classes() -> str:
    """Return the rules with the colours of each kind of shape."""
    return "".join(
        f".k-{kind}{{--fill:var(--{kind}-fill);--edge:var(--{kind}-edge);--on:var(--{kind}-ink)}}" for kind in KINDS
    )


_FEW_CHANGES: Final = 12
"""The number of differences shown initially; improvements and regressions precede others."""
_TEMPLATES = Path(__file__).parent / "templates"


@cache
def _environment() -> jinja2.Environment:
    """Return the environment of the report's templates: text is escaped, undefined names are errors."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(number=words.number, size=words.size, finite=_finite, tensor=_tensor)
    environment.globals.update(counted=words.counted)
    return environment


def _visible(value: object) -> object:
    return words.visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _finite(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.6g}"


def _tensor(tensor: data.Buffer | data.Tensor) -> str:
    return words.tensor(tensor.dtype, tensor.shape)


def page(report: data.Report, changes: Sequence[Change] | None = None, against: str | None = None) -> str:
    """Return the page; `changes` are the differences from the report `against`, None without a comparison."""
    script = _asset("script.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    template = _environment().get_template("page.html.jinja")
    return template.render(
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
        data=Markup(_in_script(to_json(report))),
    )


def _in_script(text: str) -> str:
    """Return JSON for a script element, escaped so that it cannot end the element."""
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


@cache
def _asset(name: str) -> str:
    """Return the text of a file that is embedded in pages."""
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _style() -> str:
    light, dark = _variables(dark=False), _variables(dark=True)
    return (
        f":root{{color-scheme:light;{light}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{:root:not([data-theme=light]){{color-scheme:dark;{dark}}}}}\n"
        f"@media screen{{:root[data-theme=dark]{{color-scheme:dark;{dark}}}}}\n"
        f"{_classes()}\n{_asset('figures.css')}{_asset('style.css')}"
    )


def _model(model: data.Model) -> dict[str, Any]:
    ram = sizes.ram_rows(model)
    flash = sizes.flash_rows(model)
    return _row(model) | {
        "cards": _cards(model),
        "shown_variant": _variant(model),
        "maps": [map_row(model, pool) for pool in model.pools],
        "buffers": _limited(sorted(model.buffers, key=lambda b: (-b.reserved, b.first, b.name))),
        "tensors": _limited(model.tensors),
        "graph": graph_row(model),
        "layers": layers_row(model),
        "variants": variants_row(model),
        "float_code": _float_code(model),
        "timelines": timeline_rows(model),
        "steps": _limited(_step_rows(model)),
        "devices": [
            _row(device) | {"programs": ", ".join(words.programs_of(model, device))} for device in model.devices
        ],
        "flash": [{**row, "maps": treemap_row(row["items"])} for row in _named(model, flash)],
        "code_known": bool(model.totals("code") or model.images),
        "ram": ram,
        "ram_bars": any(row["bar"] for row in ram),
        "profiles": [_profile(model, profile) for profile in model.profiles],
        "results": [_results(results) for results in model.results],
        "objects": _limited(model.objects),
        "inputs": _limited(model.inputs),
    }


def _named(model: data.Model, flash: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows of flash with the layers in place of operators of an import, which have numbered names."""
    layers: dict[str, list[str]] = {}
    for layer in model.layers:
        if layer.name:
            layers.setdefault(model.steps[layer.step].operator, []).append(layer.label)

    def named(item: dict[str, Any]) -> dict[str, Any]:
        shown = [label for name in item["name"].split(", ") for label in layers.get(name, ())]
        what = f"{item['what']} {item['name']}"
        if item["kind"] != "code" or not shown:
            return item
        return {**item, "name": words.listed(shown, 3), "what": what, "text": f"{item['text']} {item['name']}"}

    return [{**row, "items": list(map(named, row["items"])), "rows": list(map(named, row["rows"]))} for row in flash]


def _row(item: Any) -> dict[str, Any]:
    """Return the fields of a dataclass as a row, to which columns can be added."""
    return {field.name: getattr(item, field.name) for field in fields(item)}


def _limited(rows: Sequence[Any]) -> dict[str, Any]:
    return {"rows": rows[:MAX_ROWS], "left": max(len(rows) - MAX_ROWS, 0)}


def _variant(model: data.Model) -> dict[str, Any] | None:
    """Return the variant of the page, why it is shown, and the others; None for a model without variants."""
    if not model.variants:
        return None
    others = [
        {"name": name, "targets": words.listed(targets, 4)}
        for name, targets in model.variants.items()
        if name != model.variant
    ]
    if model.variant is not None:
        others.append({"name": "base", "targets": "all other targets"})
    own = model.variants.get(model.variant or "", ())
    return {
        "name": model.variant or "base",
        "targets": words.listed(own, 4) if own else "targets without a variant",
        "images": ", ".join(image.source for image in model.images),
        "others": others,
    }


def _cards(model: data.Model) -> list[dict[str, str]]:
    """Return the key figures."""
    cards = []
    for pool in model.pools:
        spare = pool.planned - pool.lower_bound
        note = "optimal" if not spare else f"{words.size(spare)} above the lower bound"
        of = f"of {words.size(pool.limit)}" if pool.limit is not None else ""
        meter = f"{min(pool.planned / pool.limit, 1) * 100:.2f}%" if pool.limit else ""
        cards.append(_card(f"pool {pool.name}", words.size(pool.planned), note, of, meter))
    if not model.pools:
        cards.append(_card("workspace", "0 bytes", "no buffers"))
    constants = sum(constant.bytes for constant in model.constants)
    cards.append(_card("constants", words.size(constants), f"{words.counted(len(model.constants), 'array')} in flash"))
    for image in model.images[:2]:
        functions = words.size(image.flash_of("code", "kernel"))
        cards.append(_card("operators", functions, f"code in {image.source}"))
        cards.append(_card("flash", words.size(image.model_flash), f"all of the model in {image.source}"))
    if not model.images:
        for target, code in list(model.totals("code").items())[:2]:
            cards.append(_card("operators", words.size(code), f"code for {target}"))
    launches = sum(step.launched for step in model.steps)
    devices = f", {words.counted(len(model.devices), 'device')}" if model.devices else ""
    count = "1 launch" if launches == 1 else f"{launches:,} launches"
    waits = f"; {count}, {words.counted(len(model.waits), 'wait')}" if launches else ""
    operators = words.counted(len(model.operators), "operator")
    cards.append(_card("schedule", words.counted(len(model.steps), "step"), f"{operators}{devices}{waits}"))
    for profile in model.profiles[:2]:
        cards.append(_card(f"run, {profile.where}", _short_time(profile), clocks.profile_text(profile)))
    for results in model.results[:1]:
        worst = max((error.differing for error in results.errors), default=None)
        if worst is not None:
            value = "equal" if not worst else f"{words.counted(worst, 'element')} differ"
            cards.append(_card("outputs", value, "compared with the reference"))
    return cards


def _card(title: str, value: str, note: str, of: str = "", meter: str = "") -> dict[str, str]:
    return {"title": title, "value": value, "of": of, "note": note, "meter": meter}


def _short_time(profile: data.Profile) -> str:
    if profile.unit == "ns":
        return words.seconds(profile.run.mean)
    if profile.frequency_hz:
        return words.seconds(profile.run.mean * 1e9 / profile.frequency_hz)
    return f"{profile.run.mean:,.0f} {profile.unit}"


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
        empty = dict.fromkeys(("index", "device", "how", "reads", "writes", "line"), "")
        rows.append({**empty, "operator": "end of the run", "waits": ", ".join(at_end)})
    return rows


def _float_code(model: data.Model) -> dict[str, Any]:
    """Return the functions of libm and of soft float: those that objects call, and those in images with their sizes."""
    called = [
        {"where": f"called by {item.name}", "target": item.target, "names": ", ".join(item.float_calls), "bytes": ""}
        for item in model.objects
        if item.float_calls
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
            "name": measured_name(point, model.layers),
            "kind": {"step": "run", "launch": "launched", "wait": "blocked"}.get(point.kind, "other"),
            "mean": measured_time(profile, point.mean),
            "range": f"{point.min:,.0f} to {point.max:,.0f}" if point.runs > 1 else "",
            "share": f"{point.mean / profile.run.mean * 100:.1f} %" if profile.run.mean else "",
            "bar": f"{point.mean / longest * 100 if longest else 0:.2f}%",
        }
        for point in profile.points
    ]
    outside = max(profile.run.mean - inside, 0.0)
    stack = f"{words.number(profile.stack_used)} of {words.counted(profile.stack_size or 0, 'byte')}"
    return _row(profile) | {
        "clock": "; ".join(filter(None, (clocks.profile_text(profile), clocks.modelled_text(profile)))),
        "run": measured_time(profile, profile.run.mean),
        "range": f"{profile.run.min:,.0f} to {profile.run.max:,.0f} {profile.unit}" if profile.run.runs > 1 else "",
        "runs": words.counted(profile.run.runs, "run"),
        "outside": measured_time(profile, outside),
        "stack": None if profile.stack_used is None else stack,
        "rows": _limited(rows),
        "timelines": timeline_rows(model, profile) if inside else [],
    }


def _results(results: data.Results) -> dict[str, Any]:
    latency = results.latency_ns
    return _row(results) | {
        "where": results.board or "this machine",
        "clock": clocks.latency_text(results.clock),
        "latency": words.seconds(median(latency)) if any(latency) else None,
        "range": f"{words.seconds(min(latency))} to {words.seconds(max(latency))}" if len(latency) > 1 else "",
        "runs": words.counted(len(latency), "run"),
    }


def _stale(report: data.Report) -> dict[str, Any] | None:
    if not report.stale:
        return None
    files = [stale for stale in report.stale if stale.state != "opwest"]
    return {"files": _limited(files)}


def _changes(changes: Sequence[Change], against: str) -> dict[str, Any]:
    signs = {"better": "▼", "worse": "▲", "different": ""}
    rows = [
        _row(change) | {"before": change.before or "–", "after": change.after or "–", "sign": signs[change.verdict]}
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


_WIDTH: Final = 1200
_MARGIN: Final = 32
_GUTTER: Final = 92
_TITLE, _HEADING, _GAP, _LEGEND = 56, 30, 22, 30


def picture(report: data.Report) -> str:
    """Return the picture of a report, including its data."""
    plot = {"all": float(_WIDTH - 2 * _MARGIN - _GUTTER)}
    y = _MARGIN
    models = []
    for model in report.models:
        parts = []
        top, y = y, y + _TITLE
        for pool in model.pools:
            row = map_row(model, pool, plot)
            what = f"Pool {pool.name}: {words.counted(pool.planned, 'byte')}"
            live_y = y + _HEADING + row["total"] + 8
            end = live_y + row["live_height"]
            part = {"kind": "map", "title": what, "y": y, "row": row, "live_y": live_y}
            parts.append(part | _legend(row["legend"], end))
            y = end + _LEGEND + _GAP
        row = timeline_row(model, None, plot)
        end = y + _HEADING + row["total"]
        part = {"kind": "schedule", "title": "Schedule", "y": y, "row": row}
        parts.append(part | _legend([*row["legend"], *row["marks_legend"]], end))
        y = end + _LEGEND + _GAP
        models.append({"name": model.name, "description": model.description, "y": top, "parts": parts})
    light, dark = _variables(dark=False), _variables(dark=True)
    schemes = f":root{{{light}}}@media (prefers-color-scheme:dark){{:root{{{dark}}}}}"
    style = f"{schemes}{_classes()}{_asset('figures.css')}"
    template = _environment().get_template("picture.svg.jinja")
    return template.render(
        title=", ".join(model.name for model in report.models),
        format=data.FORMAT,
        style=Markup(style),
        width=_WIDTH,
        height=y - _GAP + _MARGIN // 2,
        margin=_MARGIN,
        gutter=_GUTTER,
        plot=_WIDTH - 2 * _MARGIN - _GUTTER,
        heading=_HEADING,
        lane=LANE + LANE_GAP,
        models=models,
        data_id=DATA_ID,
        data=to_json(report),
    )


def _legend(rows: list[dict[str, str]], y: int) -> dict[str, Any]:
    """Return the entries of a legend below `y` with their positions, in order."""
    x, placed = 0, []
    for row in rows:
        placed.append({**row, "x": x})
        x += 34 + 7 * len(row["label"])
    return {"legend_y": y + 18, "legend": placed}


def pretty_json(report: data.Report, changes: Sequence[Change] | None) -> str:
    """Return the report as JSON, with the changes if there is a comparison."""
    value = to_value(report)
    if changes is not None:
        rows = [_row(change) for change in changes]
        hidden = ("difference", "numbers")  # texts only
        value["changes"] = [{key: item for key, item in row.items() if key not in hidden} for row in rows]
    return json.dumps(value, indent=2, allow_nan=False) + "\n"
