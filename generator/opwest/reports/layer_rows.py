# SPDX-License-Identifier: Apache-2.0
"""The tables of layers and of variants as rows for the templates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from opwest.reports import data, words
from opwest.reports.graph import group_of
from opwest.reports.layers import short
from opwest.reports.roofline import roofline_row
from opwest.reports.words import MAX_ROWS

_ORIGINS: Final = {"measured": "", "estimated": "estimated", "board": "counted on a board"}
STEADY: Final = ("board", "counted")
"""The clocks whose numbers do not depend on the load of a host; others have no cycles per multiplication."""
Clock = tuple[str, str, str]
"""The place, the unit and the clock of measurements."""
_MAX_SHAPES: Final = 3
BASE: Final = "base"
"""The name of the implementation without a variant."""


def layers_row(model: data.Model) -> dict[str, Any]:
    """Return the bars and the table of a model's layers, and the rooflines of its cores."""
    return {
        **layer_table(model.layers, model.cores),
        "bars": _bars(model),
        "rooflines": [row for core in model.cores if (row := roofline_row(model.layers[:MAX_ROWS], core))],
        "views": ", ".join(model.views),
    }


def layer_table(layers: Sequence[data.Layer], cores: Sequence[data.Core]) -> dict[str, Any]:
    """Return the table of layers with a row for the sums. A column in which no layer has a value is left out."""
    clocks = _clocks(layers)
    images = dict.fromkeys(source for layer in layers for source in layer.linked or ())
    macs = [layer.macs for layer in layers if layer.macs is not None]
    known = [layer for layer in layers if layer.costs]
    costs = [[cost for layer in known for cost in layer.costs if cost.core == core.name] for core in cores]
    return {
        "cores": [{"name": core.name, "source": core.source} for core in cores],
        "clocks": [
            {"where": where, "unit": unit, "clock": clock, "is_steady": clock in STEADY}
            for where, unit, clock in clocks
        ],
        "images": list(images),
        "imported": bool(macs),
        "rows": [_row(layer, [core.name for core in cores], clocks, list(images)) for layer in layers[:MAX_ROWS]],
        "left": max(len(layers) - MAX_ROWS, 0),
        "total": {
            "macs": words.number(sum(macs)) if macs else "",
            "cycles": [_cycles(core.cycles, sum(macs)) for core in cores],
            "times": [_cycles(_sum(layers, clock), sum(macs)) for clock in clocks],
            "flash": words.number(sum(cost.flash for cost in costs[0])) if costs else "",
            "linked": [words.number(sum((layer.linked or {}).get(image, 0) for layer in layers)) for image in images],
            "scratch": words.number(max((cost.scratch for cost in costs[0]), default=0)) if costs else "",
        },
    }


def _clocks(layers: Sequence[data.Layer]) -> list[Clock]:
    return list(dict.fromkeys(_clock(time) for layer in layers for time in layer.times))


def _clock(time: data.LayerTime) -> Clock:
    return time.where, time.unit, time.clock


def _sum(layers: Sequence[data.Layer], clock: Clock) -> float:
    return sum(time.mean for layer in layers for time in layer.times if _clock(time) == clock)


def _row(layer: data.Layer, cores: Sequence[str], clocks: Sequence[Clock], images: Sequence[str]) -> dict[str, Any]:
    by_core = {cost.core: cost for cost in layer.costs}
    by_clock = {_clock(time): time.mean for time in layer.times}
    first = by_core.get(cores[0]) if cores else None
    removed = layer.file_macs is not None and layer.macs is not None and layer.file_macs > layer.macs
    linked: Mapping[str, int] = layer.linked or {}
    return {
        "step": layer.step,
        "label": layer.label,
        "kind": layer.kind,
        "name": short(layer.name),
        "whole": layer.name,
        "colour": group_of(layer.kind)[0],
        "shapes": f"{_shapes(layer.inputs)} → {_shapes(layer.outputs)}",
        "types": "; ".join(filter(None, (_types(layer), layer.window))),
        "macs": words.number(layer.macs),
        "file_macs": f"{layer.file_macs:,} in the file" if removed else "",
        "weights": words.number(layer.weights),
        "kernel": layer.kernel or "",
        "why": first.reason if first is not None else "",
        "cycles": [
            _cycles(cost.cycles, layer.macs, _ORIGINS.get(cost.origin, cost.origin))
            if (cost := by_core.get(core)) is not None
            else _cycles(None, None)
            for core in cores
        ],
        "times": [_cycles(by_clock.get(clock), layer.macs) for clock in clocks],
        "constants": words.number(layer.constants),
        "flash": words.number(first.flash if first is not None else None),
        "scratch": words.number(first.scratch if first is not None else None),
        "linked": [words.number(linked.get(image)) for image in images],
    }


def _cycles(value: float | None, macs: int | None, note: str = "") -> dict[str, str]:
    """Return a number of cycles, and cycles per multiplication."""
    if value is None:
        return {"value": "–", "per_mac": "–", "note": ""}
    return {
        "value": f"{value:,.0f}",
        "per_mac": f"{value / macs:#.3g}".removesuffix(".") if macs else "–",
        "note": note,
    }


def _shapes(operands: Sequence[data.Operand]) -> str:
    """Return the shapes of operands, each once: `1×32×32×3`."""
    some = dict.fromkeys("×".join(map(str, one.shape)) or "scalar" for one in operands)
    return words.listed(list(some), _MAX_SHAPES) or "–"


def _types(layer: data.Layer) -> str:
    """Return the types of data and results: `int8`, `float32 → int8`."""
    sides = (", ".join(dict.fromkeys(one.dtype for one in side)) for side in (layer.inputs, layer.outputs))
    return " → ".join(dict.fromkeys(filter(None, sides)))


def _bars(model: data.Model) -> list[dict[str, Any]]:
    """Return a chart of the layers for each profile; for each core too, without a profile of a steady clock."""
    charts = []
    clocks = _clocks(model.layers)
    for clock in clocks:
        values = {layer.step: time.mean for layer in model.layers for time in layer.times if _clock(time) == clock}
        total = sum(values.values())
        charts.append(_chart(f"Measured, {clock[0]} ({clock[2]})", clock[1], "", model.layers, values, total))
    for core in model.cores if all(clock[2] not in STEADY for clock in clocks) else ():
        values = {layer.step: float(c.cycles) for layer in model.layers for c in layer.costs if c.core == core.name}
        charts.append(_chart(f"Modelled, {core.name}", "cycles", core.source, model.layers, values, core.cycles))
    return charts


def _chart(
    title: str, unit: str, source: str, layers: Sequence[data.Layer], values: Mapping[int, float], total: float
) -> dict[str, Any]:
    longest = max(values.values(), default=0)
    return {
        "title": title,
        "unit": unit,
        "source": source,
        "total": f"{total:,.0f}",
        "rows": [
            {
                "label": layer.label,
                "name": short(layer.name),
                "colour": group_of(layer.kind)[0],
                "step": layer.step,
                "value": f"{values[layer.step]:,.0f}",
                "share": f"{values[layer.step] / total:.1%}".replace("%", " %") if total else "",
                "bar": f"{values[layer.step] / longest * 100 if longest else 0:.2f}%",
            }
            for layer in layers[:MAX_ROWS]
            if layer.step in values
        ],
    }


def variants_row(model: data.Model) -> dict[str, Any] | None:
    """Return the table of the implementations of a model, this one first, and the layers of the others.

    None for a model without variants.
    """
    if not model.alternatives:
        return None
    constants = sum(constant.bytes for constant in model.constants)
    pools = {pool.name: pool.planned for pool in model.pools}
    rows = [_variant(model, model.variant, pools, constants, model.cores)]
    rows += [_variant(model, a.variant, a.pools, a.constants, a.cores) for a in model.alternatives]
    return {
        "rows": rows,
        "shown": model.variant or BASE,
        "others": [
            {"name": a.variant or BASE, **layer_table(a.layers, a.cores), "cycles_of": _sources(a.cores)}
            for a in model.alternatives
        ],
    }


def _sources(cores: Sequence[data.Core]) -> str:
    return "; ".join(core.source for core in cores)


def _variant(
    model: data.Model, name: str | None, pools: Mapping[str, int], constants: int, cores: Sequence[data.Core]
) -> dict[str, Any]:
    return {
        "name": name or BASE,
        "is_shown": name == model.variant,
        "targets": words.listed(model.variants.get(name, ()), 4) if name else "all other targets",
        "pools": words.number(sum(pools.values())),
        "constants": words.number(constants),
        "cycles": "; ".join(f"{core.cycles:,} ({core.name})" for core in cores) or "–",
    }
