# SPDX-License-Identifier: Apache-2.0
"""The bars of the schedule: a lane for the processor and one per device, by step as in the memory map.

A plan contains the order of steps, not their durations. A bar from a launch to the next one on the same device, or to
the wait for the device, shows the steps during which the work can be in progress.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final, Literal

from opwest.base.frozen_dataclass import dataclass
from opwest.reports import data, words

PROCESSOR: Final = "cpu"
MAX_BARS: Final = 300
"""The maximum number of bars; longer schedules are drawn in bins, without marks for launches and waits."""

Kind = Literal["run", "launched", "pending", "blocked"]


@dataclass(frozen=True, slots=True)
class Bar:
    """From `first` to `end`: starts of steps, or times."""

    lane: int
    first: float
    end: float
    kind: Kind
    label: str
    text: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A line between the processor's lane and a device's."""

    kind: Literal["launch", "wait"]
    lane: int
    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """The schedule of one model, or a measured run."""

    lanes: tuple[str, ...]
    length: float
    """The full width: in steps, or as time in the unit of a profile."""
    bars: tuple[Bar, ...]
    marks: tuple[Mark, ...]
    binned: int
    """The minimum number of steps per bar."""


def lay_out(model: data.Model) -> Timeline:
    """Return the timeline of a model."""
    lanes = (PROCESSOR, *(device.name for device in model.devices))
    place = {name: index for index, name in enumerate(lanes)}
    steps = max(len(model.steps), 1)
    bars = _bars(model, place)
    if len(model.steps) <= MAX_BARS:
        return Timeline(lanes, steps, tuple(bars), tuple(_marks(model, place)), 1)
    width = -(-steps // MAX_BARS)
    return Timeline(lanes, steps, tuple(_binned(bars, width, steps)), (), width)


def lay_out_measured(model: data.Model, profile: data.Profile) -> Timeline:
    """Return a measured run: the work of the processor in order, and the longest possible work of each device."""
    devices = [device.name for device in model.devices]
    names = dict.fromkeys([PROCESSOR, *devices, *(point.device for point in profile.points if point.device)])
    place = {name: index for index, name in enumerate(names)}
    bars: list[Bar] = []
    marks: list[Mark] = []
    begun: dict[str, float] = {}
    now = 0.0
    for point in profile.points:
        end = now + point.mean
        label = _label(model.layers, point.step, point.operator or "")
        text = f"{measured_name(point, model.layers)}: {measured_time(profile, point.mean)}"
        lane = place[point.device] if point.device else 0
        if point.kind == "wait":
            bars.append(Bar(0, now, end, "blocked", "", text))
            bars.append(Bar(lane, begun.pop(point.device or "", now), end, "pending", "", text))
            marks.append(Mark("wait", lane, end, text))
        elif point.kind == "launch":
            bars.append(Bar(0, now, end, "launched", label, text))
            marks.append(Mark("launch", lane, now, text))
            begun.setdefault(point.device or "", end)
        else:
            bars.append(Bar(lane, now, end, "run", label, text))
            if lane:
                bars.append(Bar(0, now, end, "blocked", "", text))
        now = end
    length = max(profile.run.mean, now) or 1.0
    bars += [Bar(place[device], since, length, "pending", "", f"{device} may run") for device, since in begun.items()]
    if len(bars) > MAX_BARS:
        bars, marks = sorted(bars, key=lambda bar: bar.first - bar.end)[:MAX_BARS], []
    return Timeline(tuple(names), length, tuple(bar for bar in bars if bar.end > bar.first), tuple(marks), 1)


def _label(layers: Sequence[data.Layer], step: int | None, operator: str) -> str:
    """Return the name of a step's layer, or its operator."""
    return layers[step].label if step is not None and step < len(layers) else operator


def measured_name(point: data.Point, layers: Sequence[data.Layer] = ()) -> str:
    """Return the description of a profile's point: `step 3: conv`, `wait for npu0 (steps 1, 2)`.

    `layers`: those whose names replace those of the operators.
    """
    if point.kind == "wait":
        return f"wait for {point.device} ({', '.join(map(str, point.steps))})"
    what = {"step": "", "launch": "launch of ", "cache": "cache maintenance for "}.get(point.kind, f"{point.kind} of ")
    where = f" on {point.device}" if point.device else ""
    return f"step {point.step}: {what}{_label(layers, point.step, point.operator or '')}{where}"


def measured_time(profile: data.Profile, value: float) -> str:
    """Return a measured value as time if the counter's frequency is known, with the cycles."""
    if profile.unit == "ns":
        return words.seconds(value)
    cycles = f"{value:,.0f} {profile.unit}"
    return f"{cycles} ({words.seconds(value * 1e9 / profile.frequency_hz)})" if profile.frequency_hz else cycles


def _bars(model: data.Model, place: dict[str, int]) -> list[Bar]:
    bars: list[Bar] = []
    ends = _ends(model)
    labels = {layer.step: layer.label for layer in model.layers}
    for step in model.steps:
        index, name = step.index, labels.get(step.index, step.operator)
        where = f"step {index}: {name}"
        if step.device is None:
            bars.append(Bar(0, index, index + 1, "run", name, f"{where}; runs on the processor"))
            continue
        lane = place[step.device]
        if not step.launched:
            bars.append(Bar(lane, index, index + 1, "run", name, f"{where}; runs on {step.device}"))
            bars.append(Bar(0, index, index + 1, "blocked", "", f"{where}; the processor waits for {step.device}"))
            continue
        end, waited = ends[index]
        until = "waited for at the end" if waited >= len(model.steps) else f"waited for before step {waited}"
        text = f"{where}; launched on {step.device}, {until}"
        bars.append(Bar(lane, index, index + 1, "launched", name, text))
        if end > index + 1:
            bars.append(Bar(lane, index + 1, end, "pending", "", f"{text}; it may still run"))
    return bars


def _ends(model: data.Model) -> dict[int, tuple[int, int]]:
    """Return for every launch the end of its bar, and the step after the wait for its device."""
    launches: dict[str, list[int]] = defaultdict(list)
    for step in model.steps:
        if step.launched and step.device is not None:
            launches[step.device].append(step.index)
    following = {index: after for indexes in launches.values() for index, after in pairwise(indexes)}
    last = len(model.steps)
    ends: dict[int, tuple[int, int]] = defaultdict(lambda: (last, last))
    for wait in model.waits:
        for index in wait.steps:
            ends[index] = (min(following.get(index, wait.before), wait.before), wait.before)
    return ends


def _marks(model: data.Model, place: dict[str, int]) -> list[Mark]:
    marks = [
        Mark("launch", place[s.device], s.index, f"step {s.index}: {s.operator} is launched on {s.device}")
        for s in model.steps
        if s.launched and s.device is not None
    ]
    for wait in model.waits:
        where = "at the end" if wait.before >= len(model.steps) else f"before step {wait.before}"
        text = f"{where}: wait for {wait.device}; done: {words.steps_of(model, wait.steps)}"
        marks.append(Mark("wait", place[wait.device], wait.before, text))
    return marks


def _binned(bars: list[Bar], width: int, steps: int) -> list[Bar]:
    """Return one bar per lane and bin that is not idle; adjacent bars of one kind are joined."""
    order = list(_WORDS).index
    busy: dict[tuple[int, int], Kind] = {}
    for bar in bars:
        for bin_ in range(int(bar.first) // width, (int(bar.end) - 1) // width + 1):
            place = bar.lane, bin_
            busy[place] = max(busy.get(place, bar.kind), bar.kind, key=order)
    joined: list[Bar] = []
    for (lane, bin_), kind in sorted(busy.items()):
        first, end = bin_ * width, min((bin_ + 1) * width, steps)
        if joined and (joined[-1].lane, joined[-1].end, joined[-1].kind) == (lane, first, kind):
            joined[-1] = replace(joined[-1], end=end)
        else:
            joined.append(Bar(lane, first, end, kind, "", ""))
    return [replace(bar, text=f"{words.span(int(bar.first), int(bar.end) - 1)}: {_WORDS[bar.kind]}") for bar in joined]


_WORDS: dict[Kind, str] = {
    "pending": "launched steps may still run",
    "blocked": "the processor waits for a device",
    "launched": "launched steps",
    "run": "running steps",
}
"""A bin shows the last of these kinds that is in it."""
