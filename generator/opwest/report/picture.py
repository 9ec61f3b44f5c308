# SPDX-License-Identifier: Apache-2.0
"""The picture: memory maps and schedules as one standalone SVG, with the colour scheme of the viewer."""

from __future__ import annotations

from typing import Any, Final

from markupsafe import Markup

from opwest.report import data, page, words
from opwest.report.figures import LANE, LANE_GAP, map_row, timeline_row
from opwest.report.files import DATA_ID, to_json
from opwest.report.page import asset, environment

WIDTH: Final = 1200
MARGIN: Final = 32
GUTTER: Final = 92
_TITLE, _HEADING, _GAP, _LEGEND = 56, 30, 22, 30


def picture(report: data.Report) -> str:
    """Return the picture of a report, including its data."""
    plot = {"all": float(WIDTH - 2 * MARGIN - GUTTER)}
    y = MARGIN
    models = []
    for model in report.models:
        parts: list[dict[str, Any]] = []
        top, y = y, y + _TITLE
        for pool in model.pools:
            row = map_row(model, pool, plot)
            what = f"Pool {pool.name}: {words.counted(pool.planned, 'byte')}"
            parts.append({"kind": "map", "title": what, "y": y, "row": row, "live_y": y + _HEADING + row["total"] + 8})
            y += _HEADING + row["total"] + 8 + row["live_height"] + _LEGEND + _GAP
        time = timeline_row(model, None, plot)
        parts.append({"kind": "schedule", "title": "Schedule", "y": y, "row": time})
        y += _HEADING + time["total"] + _LEGEND + _GAP
        for part in parts:
            row = part["row"]
            part["legend_y"] = part["y"] + _HEADING + row["total"] + 18
            part["legend_y"] += row["live_height"] + 8 if part["kind"] == "map" else 0
            part["legend"] = _legend([*row["legend"], *row.get("marks_legend", [])])
        models.append({"name": model.name, "description": model.description, "y": top, "parts": parts})
    light, dark = page.variables(dark=False), page.variables(dark=True)
    schemes = f":root{{{light}}}@media (prefers-color-scheme:dark){{:root{{{dark}}}}}"
    style = f"{schemes}{page.classes()}{asset('figures.css')}"
    return (
        environment()
        .get_template("picture.svg.jinja")
        .render(
            title=", ".join(model.name for model in report.models),
            format=data.FORMAT,
            style=Markup(style),
            width=WIDTH,
            height=y - _GAP + MARGIN // 2,
            margin=MARGIN,
            gutter=GUTTER,
            plot=WIDTH - 2 * MARGIN - GUTTER,
            heading=_HEADING,
            lane=LANE + LANE_GAP,
            models=models,
            data_id=DATA_ID,
            data=to_json(report),
        )
    )


def _legend(rows: list[dict[str, str]]) -> list[dict[str, Any]]:
    """Return the entries of a legend with their positions, in order."""
    x, placed = 0, []
    for row in rows:
        placed.append({**row, "x": x})
        x += 34 + 7 * len(row["label"])
    return placed
