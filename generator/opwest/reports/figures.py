# SPDX-License-Identifier: Apache-2.0
"""Convert layouts to rows for the templates: numbers as SVG text, names with labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from opwest.base.frozen_dataclass import dataclass
from opwest.reports import data, memory_map, timeline, words
from opwest.reports.memory_map import MAX_BUFFERS, Rectangle
from opwest.reports.words import visible


def squarify(sizes: Sequence[int], width: float, height: float) -> list[Rectangle]:
    """Return a rectangle per size (above 0, the largest first) in an area with a size in pixels, as fractions of 1."""
    total = sum(sizes)
    if not total or width <= 0 or height <= 0:
        return []
    areas = [size / total * width * height for size in sizes]
    rectangles: list[Rectangle] = []
    x = y = 0.0
    left, free_width, free_height = 0, width, height
    while left < len(areas):
        side = min(free_width, free_height)
        count = _row(areas, left, side)
        row = areas[left : left + count]
        thickness = sum(row) / side
        along = 0.0
        for area in row:
            length = area / thickness
            if free_width >= free_height:
                rectangles.append(Rectangle(x / width, (y + along) / height, thickness / width, length / height))
            else:
                rectangles.append(Rectangle((x + along) / width, y / height, length / width, thickness / height))
            along += length
        if free_width >= free_height:
            x, free_width = x + thickness, free_width - thickness
        else:
            y, free_height = y + thickness, free_height - thickness
        left += count
    return rectangles


def _row(areas: Sequence[float], start: int, side: float) -> int:
    """Return the number of areas in the row with the best worst ratio of sides."""
    count, best = 1, _worst(areas[start : start + 1], side)
    while start + count < len(areas):
        worst = _worst(areas[start : start + count + 1], side)
        if worst > best:
            break
        count, best = count + 1, worst
    return count


def _worst(row: Sequence[float], side: float) -> float:
    """Return the worst ratio of sides in a row along a side."""
    thickness = sum(row) / side
    return max(max(area / thickness**2, thickness**2 / area) for area in row)


ADVANCE: Final = 6.7
"""Pixels of one character at 11 pixels, rounded up."""
LINE: Final = 14
PAD: Final = 10
MIN_LETTERS: Final = 7
"""The minimum number of characters of a shortened name."""

TIERS: Final = {"t0": 210.0, "t1": 250.0, "t2": 430.0, "t3": 700.0, "t4": 1000.0}
"""The narrowest plot, in pixels, on screens below 360 (from 320), 600, 900 and 1,200 pixels, and on wider ones."""
TIERS_FULL: Final = {"t0": 266.0, "t1": 306.0, "t2": 506.0, "t3": 806.0, "t4": 1106.0}
"""The same for plots without an axis."""


@dataclass(frozen=True, slots=True)
class Label:
    """A text and the classes of widths in which it is shown."""

    text: str
    classes: str
    vertical: bool
    second: str | None = None
    """A second line."""


def labels(
    name: str, second: str, width: float, height: float, tiers: Mapping[str, float] = TIERS
) -> tuple[Label, ...]:
    """Return labels for a rectangle: width as a fraction of the plot's, height in pixels."""
    name = visible(name)
    chosen: dict[tuple[str, bool, str | None], list[str]] = {}
    for tier, plot in tiers.items():
        if fitting := _fitting(name, second, width * plot, height):
            chosen.setdefault(fitting, []).append(tier)
    return tuple(Label(text, " ".join(names), vertical, more) for (text, vertical, more), names in chosen.items())


def _fitting(name: str, second: str, width: float, height: float) -> tuple[str, bool, str | None] | None:
    horizontal = int((width - PAD) / ADVANCE)
    if len(name) <= horizontal and height >= LINE:
        more = second if height >= 2 * LINE + 4 and len(second) <= horizontal else None
        return name, False, more
    vertical = int((height - PAD) / ADVANCE)
    if len(name) <= vertical and width >= LINE + 2:
        return name, True, None
    if horizontal >= MIN_LETTERS and height >= LINE:
        return shortened(name, horizontal), False, None
    if vertical >= MIN_LETTERS and width >= LINE + 2:
        return shortened(name, vertical), True, None
    return None


def shortened(name: str, most: int) -> str:
    """Return a name with limited length; a long name is cut in the middle, since names differ at their ends."""
    name = visible(name)
    if len(name) <= most:
        return name
    tail = (most - 1) // 2
    return f"{name[: most - 1 - tail]}…{name[len(name) - tail :]}"


def part(value: float) -> str:
    """Return a fraction of 1 as SVG text: `12.5%`."""
    return f"{value * 100:.4f}".rstrip("0").rstrip(".") + "%"


def pixels(value: float) -> str:
    """Return pixels as SVG text, rounded to hundredths."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def path(rectangles: Sequence[Rectangle]) -> str:
    """Return rectangles as one SVG path in a square of UNITS."""
    parts = []
    for place in rectangles:
        width, height = max(round(place.width * UNITS), 1), max(round(place.height * UNITS), 1)
        parts.append(f"M{round(place.x * UNITS)} {round(place.y * UNITS)}h{width}v{height}h-{width}z")
    return "".join(parts)


def _box(place: Rectangle, height: int, top: int = 0) -> dict[str, str]:
    """Return a rectangle as SVG text, in a plot of the given height in pixels."""
    return {
        "x": part(place.x),
        "y": pixels(top + place.y * height),
        "width": part(place.width),
        "height": pixels(place.height * height),
    }


MAP_HEIGHT: Final = 340
"""The height of the map in pixels, without the axis and the label of the peak."""
HEAD: Final = 24
FOOT: Final = 20
LIVE_HEIGHT: Final = 44
LANE: Final = 32
LANE_TALL: Final = 96
"""The height on phones, with vertical names."""
LANE_GAP: Final = 14
UNITS: Final = 10_000
THIN: Final = 5
"""Rectangles below this height in pixels have a larger pointer area."""
ROLES: Final = {
    "input": "input",
    "output": "output",
    "intermediate": "intermediate",
    "scratch": "scratch",
    "state": "state, kept between runs",
    "constant": "constant, copied to memory",
}


def map_row(model: data.Model, pool: data.Pool, tiers: Mapping[str, float] = TIERS) -> dict[str, Any]:
    """Return the figure of one pool."""
    layout = memory_map.lay_out(model, pool)
    covered = {buffer.takes_over for buffer in model.buffers}
    roles = {buffer.role for buffer, _ in layout.buffers} | {role for role, _ in layout.others}
    peak = layout.peak
    return {
        "pool": pool,
        "height": MAP_HEIGHT,
        "total": HEAD + MAP_HEIGHT + FOOT,
        "head": HEAD,
        "bottom": HEAD + MAP_HEIGHT,
        "items": [
            _buffer_row(model, buffer, place, 1 / layout.steps if buffer.name in covered else 0, tiers)
            for buffer, place in layout.buffers
        ],
        "others": [
            {"kind": role, "path": path(places)}
            for role in ROLES
            if (places := [place for other, place in layout.others if other == role])
        ],
        "others_count": len(layout.others),
        "most": MAX_BUFFERS,
        "units": UNITS,
        "peak": {
            "x": part(peak.x),
            "width": part(peak.width),
            "anchor": "start" if peak.x < 0.25 else "end" if peak.x + peak.width > 0.75 else "middle",
            "at": part(peak.x if peak.x < 0.25 else peak.x + peak.width / (1 if peak.x + peak.width > 0.75 else 2)),
            "label": f"peak {words.size(pool.peak.bytes)}, step {pool.peak.step:,}",
            "bytes": words.number(pool.peak.bytes),
        },
        "bound": pixels(HEAD + layout.bound * MAP_HEIGHT) if pool.lower_bound < pool.planned else None,
        "sizes": [{"y": pixels(HEAD + tick.at * MAP_HEIGHT), "label": tick.label} for tick in layout.sizes],
        "times": [
            {"x": part(tick.at), "label": tick.label, "peak": tick.label == words.number(pool.peak.step)}
            for tick in layout.times
        ],
        "top": words.short_size(pool.planned),
        "live": [_box(place, LIVE_HEIGHT) for place in layout.live],
        "peak_live": _box(peak, LIVE_HEIGHT),
        "live_height": LIVE_HEIGHT,
        "legend": [{"kind": kind, "label": label} for kind, label in ROLES.items() if kind in roles],
        "steps": layout.steps,
    }


def _buffer_row(
    model: data.Model, buffer: data.Buffer, place: Rectangle, covered: float, tiers: Mapping[str, float]
) -> dict[str, Any]:
    """Return a buffer; its label is in the part that no other buffer overwrites in its last step."""
    free = replace(place, width=place.width - covered)
    height = place.height * MAP_HEIGHT
    name = model.titles.get(buffer.name, buffer.name)
    return {
        "kind": buffer.role,
        "name": name,
        "text": words.buffer(model, buffer),
        **_box(place, MAP_HEIGHT, HEAD),
        "thin": height < THIN,
        "labels": _label_rows(
            labels(name, words.size(buffer.reserved), free.width, height, tiers),
            free,
            HEAD + (place.y + place.height / 2) * MAP_HEIGHT,
        ),
    }


def _label_rows(shown: Sequence[Label], place: Rectangle, middle: float) -> list[dict[str, Any]]:
    """Return labels in the middle of a rectangle, one line or two."""
    rows = []
    for label in shown:
        text, second = label.text, label.second
        lines = [(text, middle)] if second is None else [(text, middle - 7), (second, middle + 7)]
        rows += [
            {
                "text": text,
                "classes": label.classes + (" v" if label.vertical else "") + (" second" if index else ""),
                "x": part(place.x + place.width / 2),
                "y": pixels(y),
            }
            for index, (text, y) in enumerate(lines)
        ]
    return rows


def timeline_rows(model: data.Model, profile: data.Profile | None = None) -> list[dict[str, Any]]:
    """Return the schedule of a model, or a measured run: one figure, or one for wide screens and one for phones.

    Phones have a separate figure if it has more named bars.
    """
    wide = timeline_row(model, profile)
    phones = {tier: TIERS[tier] for tier in ("t0", "t1")}
    tall = timeline_row(model, profile, phones, LANE_TALL)
    if _named(tall) <= _named(wide):
        return [{**wide, "classes": ""}]
    others = {tier: plot for tier, plot in TIERS.items() if tier not in phones}
    return [{**timeline_row(model, profile, others), "classes": "wide"}, {**tall, "classes": "narrow"}]


def _named(row: dict[str, Any]) -> int:
    """Return the number of bars with a name on phones."""
    return sum(any("t1" in label["classes"] for label in bar["labels"]) for bar in row["bars"])


def timeline_row(
    model: data.Model, profile: data.Profile | None = None, tiers: Mapping[str, float] = TIERS, lane: int = LANE
) -> dict[str, Any]:
    """Return the schedule of a model or of a measured run; lanes have the given height in pixels."""
    layout = timeline.lay_out(model) if profile is None else timeline.lay_out_measured(model, profile)
    legend = _BARS if profile is None else _MEASURED_BARS
    kinds = {bar.kind for bar in layout.bars}
    marks = {mark.kind for mark in layout.marks}
    height = len(layout.lanes) * (lane + LANE_GAP)
    return {
        "lanes": [
            {
                "name": name,
                "short": shortened(name, 8),
                "long": shortened(name, 12),
                "y": _lane_top(index, lane),
                "middle": _lane_top(index, lane) + lane // 2,
            }
            for index, name in enumerate(layout.lanes)
        ],
        "lane": lane,
        "height": height,
        "total": height + FOOT,
        "bars": [_bar_row(bar, layout.length, tiers, lane) for bar in layout.bars],
        "marks": [
            {
                "kind": mark.kind,
                "text": mark.text,
                "x": part(mark.at / layout.length),
                "from": _lane_top(0, lane) + (lane if mark.kind == "wait" else lane // 2),
                "to": _lane_top(mark.lane, lane) + (0 if mark.kind == "launch" else lane // 2),
            }
            for mark in layout.marks
        ],
        "times": _times(model, profile, layout),
        "legend": [{"kind": kind, "label": label} for kind, label in legend.items() if kind in kinds],
        "marks_legend": [{"kind": kind, "label": label} for kind, label in _MARKS.items() if kind in marks],
        "binned": layout.binned,
        "measured": profile is not None,
    }


_BARS = {"run": "runs", "launched": "launched", "pending": "may still run", "blocked": "the processor waits"}
_MEASURED_BARS = {"run": "runs", "pending": "possibly busy", "blocked": "the processor waits"}
"""Without launches, which are too short to be visible; their marks are drawn."""
_MARKS = {"launch": "launch", "wait": "wait for a device"}


def _lane_top(index: int, lane: int) -> int:
    return index * (lane + LANE_GAP) + LANE_GAP // 2


def _times(model: data.Model, profile: data.Profile | None, layout: timeline.Timeline) -> list[dict[str, str]]:
    if profile is None:
        return [{"x": part(tick.at), "label": tick.label} for tick in memory_map.step_ticks(max(len(model.steps), 1))]
    anchors = {0.0: "start", 0.25: "middle spare", 0.5: "middle", 0.75: "middle spare", 1.0: "end"}
    scale = 1.0 if profile.unit == "ns" else 1e9 / profile.frequency_hz if profile.frequency_hz else None
    return [
        {
            "x": part(at),
            "label": f"{at * layout.length:,.0f}" if scale is None else words.seconds(at * layout.length * scale),
            "anchor": anchor,
        }
        for at, anchor in anchors.items()
    ]


def _bar_row(bar: timeline.Bar, length: float, tiers: Mapping[str, float], lane: int) -> dict[str, Any]:
    place = Rectangle(bar.first / length, 0, (bar.end - bar.first) / length, 1)
    y = _lane_top(bar.lane, lane)
    shown = labels(bar.label, "", place.width, lane - 4, tiers) if bar.label else ()
    return {
        "kind": bar.kind,
        "name": bar.text.split(";")[0],
        "text": bar.text.partition("; ")[2],
        "x": part(place.x),
        "width": part(place.width),
        "y": y,
        "labels": _label_rows(shown, place, y + lane / 2),
    }


def treemap_row(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a treemap of items (name, kind, bytes; the largest first) for wide screens, and one for phones."""
    sizes = [item["bytes"] for item in items]
    rows = []
    for classes, width, height, tiers in (
        ("wide", 900.0, 230, {key: TIERS_FULL[key] for key in ("t2", "t3", "t4")}),
        ("narrow", 330.0, 320, {key: TIERS_FULL[key] for key in ("t0", "t1")}),
    ):
        places = squarify(sizes, width, height)
        rows.append(
            {
                "classes": classes,
                "height": height,
                "items": [
                    {
                        **item,
                        **_box(place, height),
                        "labels": _label_rows(
                            labels(item["name"], words.size(item["bytes"]), place.width, place.height * height, tiers),
                            place,
                            (place.y + place.height / 2) * height,
                        ),
                    }
                    for item, place in zip(items, places, strict=False)
                ],
            }
        )
    return rows
