# SPDX-License-Identifier: Apache-2.0
"""The roofline of a core: multiplications per cycle of each layer over its multiplications per byte.

The bytes of a layer are those of its data, its results and its constants, each once: the least that it can move. The
limits are those of the model that the cycles are from, and of processors where they differ. A limit that is not
known is left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from opwest.base.frozen_dataclass import dataclass
from opwest.reports import data
from opwest.reports.graph import group_of


@dataclass(frozen=True)
class Limit:
    """A limit of a core."""

    value: float
    """Multiplications, or bytes, per cycle."""
    reason: str
    of_model: bool = True
    """Whether it is that of the modelled cycles; otherwise of a processor only."""


_M4 = "SMLAD: 2 products of 16 bits in 1 cycle (Arm DDI 0439B, 3.3.1)"
_PLAIN = "a multiplication and an addition: 2 cycles"
_LOADS = "loads of 32 bits, 1 cycle each when they are pipelined or multiple"
PEAKS: Final[dict[tuple[str, str], tuple[Limit, ...]]] = {
    # By core and type of the data.
    ("rv32", "int8"): (Limit(0.5, f"{_PLAIN} in the model, which has 1 cycle for each instruction"),),
    ("cortex-m0plus", "int8"): (Limit(0.5, f"{_PLAIN} (MULS, ADDS; Arm DDI 0484C, 3.3)"),),
    ("cortex-m3", "int8"): (Limit(1, "MLA: 2 packed products in 2 cycles (Arm DDI 0337I, 3.3.1)"),),
    ("cortex-m3", "int16"): (Limit(0.5, "MLA: 2 cycles (Arm DDI 0337I, 3.3.1)"),),
    ("cortex-m4", "int8"): (Limit(2, _M4),),
    ("cortex-m4", "int16"): (Limit(2, _M4),),
    ("cortex-m7", "int8"): (Limit(2, f"{_M4}; the model is that of the Cortex-M4"),),
    ("cortex-m33", "int8"): (Limit(2, f"{_M4}; the model is that of the Cortex-M4"),),
    ("cortex-m55", "int8"): (
        Limit(16, "VMLADAV: 16 products of 8 bits; the model has 1 cycle for a vector instruction"),
        Limit(8, "processor: 2 beats of 32 bits in each cycle (Arm, Cortex-M55: 8 MACs of 8 bits per cycle)", False),
    ),
    ("cortex-m55", "int16"): (
        Limit(8, "VMLADAV: 8 products of 16 bits; the model has 1 cycle for a vector instruction"),
        Limit(4, "processor: 2 beats of 32 bits in each cycle (Arm, Cortex-M55: 4 MACs of 16 bits per cycle)", False),
    ),
}
"""The greatest multiplications per cycle. Loads are not counted: a limit that no layer reaches."""
BANDWIDTHS: Final = {
    "rv32": Limit(4, "loads of 32 bits, 1 cycle each in the model"),
    "cortex-m0plus": Limit(4, f"{_LOADS} in the model"),
    "cortex-m3": Limit(4, f"{_LOADS} (Arm DDI 0337I, 3.3.2)"),
    "cortex-m4": Limit(4, f"{_LOADS} (Arm DDI 0439B, 3.3.2)"),
}
"""The greatest bytes per cycle of loads from a memory without wait states. Absent: the model does not state it."""

WIDTH: Final = 640
HEIGHT: Final = 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 16, 14, 44
_MANY: Final = 3.0
"""The length of an axis, in powers of ten, from which on only these have marks."""


@dataclass(frozen=True)
class Point:
    """A layer."""

    layer: data.Layer
    intensity: float
    """Multiplications per byte."""
    speed: float
    """Multiplications per cycle."""
    source: str
    """modelled, estimated or measured."""


def bytes_of(layer: data.Layer) -> int:
    """Return the bytes of data, results and constants of a layer."""
    sizes = {"bool": 1, "float": 4, "double": 8}
    total = layer.constants
    for operand in (*layer.inputs, *layer.outputs):
        digits = "".join(filter(str.isdigit, operand.dtype.partition("_")[0]))
        width = int(digits) // 8 if digits else sizes.get(operand.dtype, 1)
        total += math.prod(operand.shape) * max(width, 1)
    return total


def points_of(layers: Sequence[data.Layer], core: str) -> list[Point]:
    """Return the points of layers with multiplications and cycles on a core, and of measurements on boards."""
    points = []
    for layer in layers:
        size = bytes_of(layer)
        if not layer.macs or not size:
            continue
        for cost in layer.costs:
            if cost.core == core and cost.cycles:
                source = {"measured": "modelled", "board": "measured"}.get(cost.origin, cost.origin)
                points.append(Point(layer, layer.macs / size, layer.macs / cost.cycles, source))
        for time in layer.times:
            if time.unit == "cycles" and time.clock == "board" and time.mean:
                points.append(Point(layer, layer.macs / size, layer.macs / time.mean, f"measured, {time.where}"))
    return points


def flash_bandwidth(flash: str) -> float | None:
    """Return the bytes per cycle of reads of a flash, in the form of --flash; None without wait states."""
    values = dict(part.split("=", 1) for part in flash.split(",") if "=" in part)
    if not all(values.get(name, "").isdigit() for name in ("wait_states", "line")) or values["wait_states"] == "0":
        return None
    return int(values["line"]) / (1 + int(values["wait_states"]))


def roofline_row(layers: Sequence[data.Layer], core: data.Core) -> dict[str, Any] | None:
    """Return the figure of a core; None without points."""
    points = points_of(layers, core.name)
    if not points:
        return None
    types = {point.layer.inputs[0].dtype for point in points if point.layer.inputs}
    dtype = next((name for name in ("int8", "uint8", "int16") if name in types), next(iter(types), ""))
    peaks = PEAKS.get((core.name, "int8" if dtype == "uint8" else dtype), ())
    band = BANDWIDTHS.get(core.name)
    flash = flash_bandwidth(core.flash)
    scale = _Scale(points, [peak.value for peak in peaks])
    slopes = [] if band is None else [("memory", band.value, f"{band.value:g} bytes per cycle: {band.reason}", False)]
    if flash is not None:
        slopes.append(("flash", flash, f"{flash:.3g} bytes per cycle: reads of lines of the flash {core.flash}", True))
    top = max((peak.value for peak in peaks if peak.of_model), default=None)
    missing = []
    if not peaks:
        missing.append(f"the greatest multiplications per cycle for {dtype or 'these types'}")
    if band is None:
        missing.append("the bandwidth of the memory")
    return {
        "core": core.name,
        "source": core.source,
        "width": WIDTH,
        "height": HEIGHT,
        "left": _LEFT,
        "right": WIDTH - _RIGHT,
        "top": _TOP,
        "bottom": HEIGHT - _BOTTOM,
        "points": [
            {
                "x": scale.x(point.intensity),
                "y": scale.y(point.speed),
                "step": point.layer.step,
                "kind": group_of(point.layer.kind)[0],
                "measured": point.source.startswith("measured"),
                "text": f"{point.layer.label}: {point.speed:.3g} MACs per cycle ({point.source}), "
                f"{point.intensity:.3g} MACs per byte",
            }
            for point in points
        ],
        "lines": [
            *(_level(scale, peak, [value for _, value, _, is_flash in slopes if not is_flash]) for peak in peaks),
            *(_slope(scale, name, value, top, is_flash=is_flash) for name, value, _, is_flash in slopes),
        ],
        "limits": [
            *({"text": f"{peak.value:g} MACs per cycle: {peak.reason}"} for peak in peaks),
            *({"text": text} for _, _, text, _ in slopes),
        ],
        "missing": " and ".join(missing),
        "sources": ", ".join(sorted({point.source for point in points})),
        "xs": [{"at": scale.x(value), "label": f"{value:g}"} for value in scale.marks(0)],
        "ys": [{"at": scale.y(value), "label": f"{value:g}"} for value in scale.marks(1)],
    }


class _Scale:
    """Logarithmic axes around the points and the limits."""

    def __init__(self, points: Sequence[Point], peaks: Sequence[float]) -> None:
        def room(values: Sequence[float]) -> tuple[float, float]:
            return math.log10(min(values) * 0.6), math.log10(max(values) * 1.6)

        speeds = [*(point.speed for point in points), *peaks]
        self.ends = room([point.intensity for point in points]), room(speeds)

    def _at(self, axis: int, value: float) -> float:
        low, high = self.ends[axis]
        return min(max((math.log10(value) - low) / (high - low), 0), 1)

    def x(self, value: float) -> float:
        """Return the horizontal position."""
        return round(_LEFT + self._at(0, value) * (WIDTH - _LEFT - _RIGHT), 1)

    def y(self, value: float) -> float:
        """Return the vertical position."""
        return round(_TOP + (1 - self._at(1, value)) * (HEIGHT - _TOP - _BOTTOM), 1)

    def marks(self, axis: int) -> list[float]:
        """Return numbers of the series 1, 2, 5; powers of ten alone on long axes."""
        low, high = self.ends[axis]
        series = (1, 2, 5) if high - low < _MANY else (1,)
        every = [by * 10.0**power for power in range(math.floor(low), math.ceil(high) + 1) for by in series]
        return [value for value in every if low <= math.log10(value) <= high]

    def cut(self, value: float, top: float | None) -> tuple[float, float] | None:
        """Return the first and the last intensity at which a slope is inside of the axes and below a limit."""
        (left, right), (low, high) = self.ends
        start = max(10.0**left, 10.0**low / value)
        end = min(10.0**right, (10.0**high if top is None else top) / value)
        return (start, end) if start < end else None


def _level(scale: _Scale, peak: Limit, bands: Sequence[float]) -> dict[str, Any]:
    """Return the line of a greatest speed: from the slope of the memory on."""
    start = max([10.0 ** scale.ends[0][0], *(peak.value / band for band in bands)])
    y, x = scale.y(peak.value), scale.x(start)
    path = f"M{x} {y}H{WIDTH - _RIGHT}" if x < WIDTH - _RIGHT else ""
    label = f"{peak.value:g} MACs/cycle{'' if peak.of_model else ' (processor)'}"
    return {
        "path": path,
        "label": label,
        "x": WIDTH - _RIGHT - 4,
        "y": y - 5,
        "anchor": "end",
        "dashed": not peak.of_model,
    }


def _slope(scale: _Scale, name: str, value: float, top: float | None, *, is_flash: bool) -> dict[str, Any]:
    """Return the line of a bandwidth: speed = intensity * bytes per cycle."""
    found = scale.cut(value, top)
    path, x, y = "", float(_LEFT), float(_TOP)
    if found is not None:
        (x, y), (right, upper) = ((scale.x(at), scale.y(at * value)) for at in found)
        path = f"M{x} {y}L{right} {upper}"
        x, y = (x + right) / 2, (y + upper) / 2
    label = f"{name}: {value:.3g} B/cycle" if path else ""
    return {
        "path": path,
        "label": label,
        "x": round(x + 8, 1),
        "y": round(y + 4, 1),
        "anchor": "start",
        "dashed": is_flash,
    }
