# SPDX-License-Identifier: Apache-2.0
"""The measurements of a model's steps, read by `opwest run --profile` from an image or a host program."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opwest.base.diagnostics import fail
from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted, table_lines
from opwest.render.tables.layout import NO_DEVICE, NO_STEP

if TYPE_CHECKING:
    from opwest.runs.options import ImageOptions

FORMAT = 1
"""Version of the JSON format, see docs/report.md."""
UNKNOWN_VARIANT = ""
"""The variant of a model of an application that opwest did not generate. None is the base."""
_NANOSECONDS = 1_000_000_000


@dataclass(frozen=True)
class Measure:
    """A measured point of a run: struct opwest_point and struct opwest_measure of the runtime."""

    kind: str
    name: str
    step: int | None
    device: int | None
    runs: int
    last: int
    min: int
    max: int
    total: int
    cycles: int | None = None
    """Modelled cycles of a run, of counted instructions; None without a model of the processor."""

    @property
    def mean(self) -> float:
        """The mean over all runs; 0 without a run."""
        return self.total / self.runs if self.runs else 0.0


@dataclass(frozen=True)
class Profile:
    """All points of one model, in execution order."""

    frequency: int
    """Cycles per second; 0 if unknown."""
    stack_used: int
    """Stack used by the thread that ran the model, in bytes; 0 if not measured."""
    stack_size: int
    measures: tuple[Measure, ...]
    model: str = ""
    where: str = "host"
    clock: str = "host"
    devices: tuple[str, ...] = ()
    variant: str | None = UNKNOWN_VARIANT
    instructions: bool = False
    """Whether the numbers are instructions, which a plugin of QEMU counted."""
    processor: str | None = None
    """The processor of the modelled cycles."""

    def labelled(
        self, model: str, where: str, clock: str, devices: Sequence[str], variant: str | None = UNKNOWN_VARIANT
    ) -> Profile:
        """Return a copy with the data that the image does not transfer; `devices` in the order of the context."""
        return replace(self, model=model, where=where, clock=clock, devices=tuple(devices), variant=variant)

    @property
    def unit(self) -> str:
        """The unit of the numbers: instructions, ns, ticks of QEMU's timer, or cycles."""
        if self.instructions:
            return "instructions"
        if self.frequency == _NANOSECONDS:
            return "ns"
        return "ticks" if self.clock == "emulated" else "cycles"

    def as_json(self) -> dict[str, Any]:
        """Return the JSON value described in docs/report.md."""
        launched: dict[int | None, list[int]] = {}
        points = []
        for index, measure in enumerate(self.measures):
            steps = [measure.step] if measure.step is not None else []
            if measure.kind == "launch" and measure.step is not None:
                launched.setdefault(measure.device, []).append(measure.step)
            elif measure.kind == "wait":
                steps = launched.pop(measure.device, steps)
            is_call = measure.kind in ("step", "launch")
            points.append(
                {
                    "kind": measure.kind,
                    "index": index,
                    "step": measure.step if is_call or measure.kind == "cache" else None,
                    "steps": steps,
                    "operator": measure.name if is_call or measure.kind == "cache" else None,
                    "device": self._device(measure),
                    **{key: getattr(measure, key) for key in ("runs", "last", "min", "max", "total", "mean")},
                    "modelled_cycles": measure.cycles if self.processor else None,
                }
            )
        return {
            "format": FORMAT,
            "kind": "opwest-profile",
            "model": self.model,
            **({} if self.variant == UNKNOWN_VARIANT else {"variant": self.variant}),
            "where": self.where,
            "clock": self.clock,
            "unit": self.unit,
            "frequency_hz": self.frequency,
            "modelled_processor": self.processor,
            "points": points,
            "stack": {"used": self.stack_used, "size": self.stack_size} if self.stack_size else None,
        }

    def _device(self, measure: Measure) -> str | None:
        if measure.kind == "wait":
            return measure.name
        if measure.device is None:
            return None
        return self.devices[measure.device] if measure.device < len(self.devices) else str(measure.device)

    def as_text(self) -> list[str]:
        """Return a table of all points, with the share of each in the whole run."""
        whole = self.measures[0].total
        speed = f", {self.frequency} Hz" if self.unit in ("cycles", "ticks") and self.frequency else ""
        modelled = ["cycles"] if self.processor else []
        rows = [["step", "what", "name", "device", "last", "min", "max", "mean", "share", *modelled]]
        for measure in self.measures:
            device = self._device(measure)
            rows.append(
                [
                    str(measure.step) if measure.kind in ("step", "launch") else "",
                    measure.kind,
                    measure.name,
                    device if device is not None and measure.kind != "wait" else "",
                    *(str(value) for value in (measure.last, measure.min, measure.max, round(measure.mean))),
                    f"{100 * measure.total / whole:.1f} %" if whole else "",
                    *([str(measure.cycles)] if self.processor else []),
                ]
            )
        count = self.measures[0].runs
        lines = [f"profile: {count} run{'' if count == 1 else 's'}, {unit_text(self.unit, self.clock)}{speed}"]
        lines += [f"  {line}" for line in table_lines(rows, right=(0, 4, 5, 6, 7, 8, 9))]
        if self.processor:
            lines.append(f"cycles: modelled for a {self.processor} without caches and wait states")
        if self.stack_size:
            lines.append(
                f"stack: {self.stack_used} of {counted(self.stack_size, 'byte')} used by the thread that ran the model"
            )
        return lines


def unit_text(unit: str, clock: str) -> str:
    """Return a unit with what counts it, as reports show it."""
    if unit == "instructions":
        return f"{unit} ({'counted in QEMU' if clock == 'counted' else 'of several threads in QEMU: they vary'})"
    remarks = {"host": "host time: it varies", "emulated": "timer of QEMU: it varies", "board": "of the board"}
    return f"{unit} ({remarks[clock]})" if clock in remarks else unit


def is_profiled(options: ImageOptions) -> bool:
    """Whether the options of `opwest run` request measurements."""
    return options.profile or options.output_profile is not None


def parse_measures(lines: Iterable[str]) -> Profile | None:
    """Parse the response to `opwest measures`, lines without @opwest; return None if a line is lost or invalid."""
    head: list[int] = []
    measures: list[Measure] = []
    try:
        for line in lines:
            verb, *words = line.split() or [""]
            if verb == "measures":
                head = [int(word) for word in words]
                measures = []
            elif verb == "point":
                index, kind, name, step, device, *numbers = words
                if int(index) != len(measures) or len(numbers) != 5:
                    return None
                measures.append(make_measure(kind, name, int(step), int(device), *map(int, numbers)))
        if len(head) != 4 or head[0] != len(measures):
            return None
        return make_profile(head[1], head[2], head[3], measures)
    except ValueError:
        return None


def make_profile(frequency: int, stack_used: int, stack_size: int, measures: Sequence[Measure]) -> Profile:
    """Return a profile from the values of the runtime. Raises ValueError for invalid values."""
    _check_counts(frequency, stack_used, stack_size)
    if not measures or measures[0].kind != "run":
        raise ValueError("the first point is not the whole run")
    return Profile(frequency, stack_used, stack_size, tuple(measures))


def make_measure(kind: str, name: str, step: int, device: int, *numbers: int) -> Measure:
    """Return a point; `numbers` are runs, last, min, max, total. Raises ValueError for invalid values."""
    _check_counts(step, device, *numbers)
    if not (kind.isprintable() and name.isprintable()):
        raise ValueError(f"invalid name: {kind!r:.20} {name!r:.60}")
    known_step = None if step == NO_STEP.value else step
    known_device = None if device == NO_DEVICE.value else device
    return Measure(kind, name, known_step, known_device, *numbers)


def _check_counts(*numbers: int) -> None:
    """Raise ValueError for a number that is not an unsigned 64-bit integer, the widest type of the runtime."""
    for number in numbers:
        if not 0 <= number < 1 << 64:
            raise ValueError(f"a count is {number:.6g}" if abs(number) < 1 << 1000 else "a count is infinite")


def keep_profile(profile: Profile, path: Path | None) -> None:
    """Write a profile as JSON to `path`, if given."""
    if path is not None:
        try:
            path.write_text(json.dumps(profile.as_json(), indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            raise fail(f"cannot write the profile: {error.strerror}", path) from error
