# SPDX-License-Identifier: Apache-2.0
"""Limits on the figures of a report, absolute or since an earlier report: `opwest report --fail-on`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

from opwest.base.diagnostics import Diagnostics, Location, nearest
from opwest.base.frozen_dataclass import dataclass
from opwest.reports import clocks, data

_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_FORM = re.compile(
    r"(?P<figure>[a-z]+)=(?P<sign>\+?)(?P<number>[0-9]{1,15}(?:\.[0-9]{1,6})?) ?(?P<unit>%|[A-Za-z]{1,4}|)"
)
_EXPECTED = (
    "FIGURE=+PERCENT%, FIGURE=+NUMBER (since --compare) or FIGURE=NUMBER (at most); "
    "bytes with B, KB (1000), KiB (1024), MB, MiB, GB or GiB, such as ram=16KiB"
)

Values = Mapping[str, float]
"""The values of a figure of one model, by the target, image or board that they belong to."""


@dataclass(frozen=True)
class Limit:
    """A limit on one figure of every model."""

    figure: str
    number: float
    """Without its unit: in bytes, percent, or the unit of the figure."""
    relative: bool
    """Whether the number is an increase since the earlier report."""
    percent: bool
    text: str
    """The limit as it was given."""

    def __str__(self) -> str:
        return self.text

    def most(self, before: float) -> float:
        """Return the largest value that is permitted after `before`."""
        if not self.relative:
            return self.number
        return before + (before * self.number / 100 if self.percent else self.number)


@dataclass(frozen=True)
class Exceeded:
    """A figure above its limit."""

    model: str
    figure: str
    where: str
    before: float | None
    after: float
    limit: str


def _constants(model: data.Model) -> Values:
    if model.images:
        return _image(model, lambda image: image.flash_of("constant"))
    return {"": sum(constant.bytes for constant in model.constants)}


def _code(model: data.Model) -> Values:
    if model.images:
        return _image(model, lambda image: image.flash_of("code", "kernel"))
    return {f"for {target}": size for target, size in model.totals("code").items()}


def _state(model: data.Model) -> Values:
    if model.images:
        return _image(model, lambda image: sum(item.bytes for item in image.memory if item.kind == "state"))
    return {f"for {target}": size for target, size in model.totals("state").items()}


def _image(model: data.Model, size: Callable[[data.Image], int | None]) -> Values:
    sizes = ((f"in {image.source}", size(image)) for image in model.images)
    return {where: value for where, value in sizes if value is not None}


def _time(model: data.Model) -> Values:
    return _largest((f"on {profile.where} in {profile.unit}", profile.run.mean) for profile in model.profiles)


def _latency(model: data.Model) -> Values:
    return _largest(
        (f"on {result.board or 'this machine'}", float(median(result.latency_ns)))
        for result in model.results
        if result.latency_ns
    )


def _varying_times(model: data.Model) -> Mapping[str, str]:
    return _reasons((f"on {profile.where} in {profile.unit}", profile.clock) for profile in model.profiles)


def _varying_latencies(model: data.Model) -> Mapping[str, str]:
    return _reasons((f"on {result.board or 'this machine'}", result.clock) for result in model.results)


def _reasons(clocked: Iterable[tuple[str, str | None]]) -> Mapping[str, str]:
    reasons = ((place, clocks.varying(clock)) for place, clock in clocked)
    return {place: reason for place, reason in reasons if reason is not None}


def _largest(measured: Iterable[tuple[str, float]]) -> Values:
    """Return the largest value of each place: several measurements of a board must all be within the limit."""
    largest: dict[str, float] = {}
    for where, value in measured:
        largest[where] = max(value, largest.get(where, value))
    return largest


@dataclass(frozen=True)
class _Figure:
    unit: str
    values: Callable[[data.Model], Values]
    source: str | None = None
    """How a report gets the figure, if not always."""
    varying: Callable[[data.Model], Mapping[str, str]] = lambda _: {}
    """The places whose values vary between runs of one image, each with the reason."""


_REPEATABLE = "measure on a board, or a profile in QEMU where the instructions are counted (docs/report.md)"
_FIRMWARE = "give the image of each report with --firmware"
_COMPILED = "only images and linked objects have it: give an image with --firmware"
_FIGURES = {
    "arena": _Figure("bytes", lambda model: {"": sum(pool.planned for pool in model.pools)}),
    "constants": _Figure("bytes", _constants, _FIRMWARE),
    "code": _Figure("bytes", _code, _COMPILED),
    "state": _Figure("bytes", _state, _COMPILED),
    "footprint": _Figure("bytes", lambda model: _image(model, lambda image: image.model_flash), _FIRMWARE),
    "flash": _Figure("bytes", lambda model: _image(model, lambda i: i.flash), _FIRMWARE),
    "ram": _Figure("bytes", lambda model: _image(model, lambda i: i.ram), _FIRMWARE),
    "time": _Figure("", _time, "give the measurements of each report with --profile", _varying_times),
    "latency": _Figure("ns", _latency, "give the results of each run on a board with --profile", _varying_latencies),
}


def parse_limits(texts: Sequence[str], faults: Diagnostics, *, has_baseline: bool) -> tuple[Limit, ...]:
    """Return the limits of the options; report invalid ones."""
    limits = []
    for text in (part.strip() for whole in texts for part in whole.split(",")):
        match = _FORM.fullmatch(text)
        unit = match["unit"] if match is not None else ""
        if match is None or (unit == "%" and not match["sign"]) or unit not in ("", "%", *_UNITS):
            faults.error(f"invalid --fail-on '{text}'", expected=_EXPECTED)
            continue
        if match["figure"] not in _FIGURES:
            hint = nearest(match["figure"], _FIGURES)
            faults.error(f"unknown figure '{match['figure']}' of --fail-on", expected=", ".join(_FIGURES), hint=hint)
            continue
        if match["sign"] and not has_baseline:
            faults.error(f"--fail-on '{text}' requires --compare", hint="a limit without + needs no earlier report")
            continue
        if unit in _UNITS and _FIGURES[match["figure"]].unit != "bytes":
            hint = "of time: ns, or the unit of the profile"
            faults.error(f"--fail-on '{text}': '{match['figure']}' is no number of bytes", hint=hint)
            continue
        number = float(match["number"]) * _UNITS.get(unit, 1)
        limits.append(Limit(match["figure"], number, bool(match["sign"]), unit == "%", text.partition("=")[2]))
    return tuple(limits)


def check_limits(
    limits: Sequence[Limit], before: data.Report | None, after: data.Report, baseline: Path | None, faults: Diagnostics
) -> tuple[Exceeded, ...]:
    """Return the figures above their limits, and report each as an error.

    A relative limit of a figure that a report lacks is an error, so that a check never passes without a comparison. A
    model that the earlier report lacks is not checked against relative limits: a note names it.
    """
    old = {model.name: model for model in before.models} if before is not None else {}
    exceeded: list[Exceeded] = []
    for model in after.models:
        if model.name not in old and any(limit.relative for limit in limits):
            faults.note(f"model '{model.name}' is not in '{baseline}': its limits of --fail-on with + have no effect")
        for limit in limits:
            if limit.relative and model.name not in old:
                continue
            exceeded += _exceeded(limit, old.get(model.name), model, baseline, faults)
    for name in old:
        if limits and all(model.name != name for model in after.models):
            faults.warning(f"model '{name}' of '{baseline}' is not in the report: it is not compared")
    return tuple(exceeded)


def _exceeded(
    limit: Limit, old: data.Model | None, new: data.Model, baseline: Path | None, faults: Diagnostics
) -> Iterator[Exceeded]:
    figure = _FIGURES[limit.figure]
    current = figure.values(new)
    earlier = figure.values(old) if limit.relative and old is not None else {}
    where = Location(str(baseline)) if limit.relative else None
    if not current:
        faults.error(f"model '{new.name}' has no figure '{limit.figure}' for --fail-on", hint=figure.source)
        return
    varying = {**(figure.varying(old) if limit.relative and old is not None else {}), **figure.varying(new)}
    for place, value in current.items():
        if place in varying:
            text = f"{limit.figure} of model '{new.name}' {place} cannot have a limit: {varying[place]}"
            faults.error(text, hint=_REPEATABLE)
            continue
        if limit.relative and place not in earlier:
            what = " ".join(word for word in (limit.figure, place) if word)
            faults.error(f"the earlier report has no figure '{what}' of model '{new.name}'", where, hint=figure.source)
            continue
        previous = earlier.get(place)
        if value <= limit.most(previous or 0):
            continue
        faults.error(_message(limit, figure, new.name, place, previous, value))
        yield Exceeded(new.name, limit.figure, place, previous, value, str(limit))


def _message(limit: Limit, figure: _Figure, model: str, place: str, before: float | None, after: float) -> str:
    named = " ".join(word for word in (f"{limit.figure} of model '{model}'", place) if word)
    unit = f" {figure.unit}" if figure.unit else ""
    if before is None:
        return f"{named} is {_exact(after)}{unit}, above the limit of {limit}"
    share = f", {(after - before) / before * 100:+.1f}%" if before else ""
    growth = f"(+{_exact(after - before)}{share})"
    return f"{named} grew from {_exact(before)} to {_exact(after)}{unit} {growth}, limit {limit}"


def _exact(number: float) -> str:
    return str(int(number)) if number == int(number) else f"{number:.6g}"
