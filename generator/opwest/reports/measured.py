# SPDX-License-Identifier: Apache-2.0
"""Read the measurements of `opwest run`: a profile, or the output of `opwest run --json`."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from opwest.base import path_suggestions
from opwest.base.diagnostics import Diagnostics, Location, fail, nearest
from opwest.reports import data
from opwest.reports.files import read_limited
from opwest.runs.profile import UNKNOWN_VARIANT

PROFILE: Final = "opwest-profile"
PROFILE_FORMAT: Final = 1
_EXPECTED: Final = "a file written by 'opwest run' with --json or --output-profile"
_MAX_BYTES: Final = 1 << 26


def add_measured(models: Sequence[data.Model], files: Sequence[Path], faults: Diagnostics) -> list[data.Model]:
    """Return the models with their measurements; report every unusable file."""
    known = {model.name: model for model in models}
    for path in files:
        at = Location(str(path))
        try:
            name, profile, results, variant = _read(path)
        except ValueError as error:
            hint = path_suggestions.hint_for(path)
            faults.error(f"cannot read the measurements: {error}", at, expected=_EXPECTED, hint=hint)
            continue
        model = known.get(name)
        if model is None:
            faults.error(f"measurements of unknown model {name!r}", at, hint=nearest(name, known))
            continue
        if variant not in (UNKNOWN_VARIANT, model.variant):
            here, there = (f"variant '{one}'" if one else "the base" for one in (model.variant, variant))
            faults.error(
                f"the measurements are of {there} of model '{name}', the report is of {here}",
                at,
                expected=f"measurements of {here}",
                hint="measure the image of the report, or select the variant: --variant, --target or --firmware",
            )
            continue
        if profile is not None:
            _check_steps(model, profile, at, faults)
            model = replace(model, profiles=(*model.profiles, profile))
        if results is not None:
            model = replace(model, results=(*model.results, results))
        known[name] = model
    return list(known.values())


def read_profile(path: Path, faults: Diagnostics) -> tuple[str, data.Profile]:
    """Return the model's name and its profile. Raises OpwestError for other files."""
    try:
        name, profile, _, _ = _read(path)
    except ValueError as error:
        hint = path_suggestions.hint_for(path)
        raise fail(f"cannot read the profile: {error}", path, expected=_EXPECTED, hint=hint) from None
    if profile is None:
        hint = "measure with 'opwest run --profile --json'"
        raise fail(f"the result of model {name!r} has no profile", path, hint=hint)
    return name, profile


def _read(path: Path) -> tuple[str, data.Profile | None, data.Results | None, str | None]:
    """Return the model's name, its measurements, and its variant. Raises ValueError for another file."""
    content = read_limited(path, _MAX_BYTES)
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON ({error})") from None
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    if value.get("kind") == PROFILE:
        return _text(value, "model"), _profile(value, path.name), None, _variant(value)
    result = value.get("result")
    if not isinstance(result, dict) or "outputs" not in result:
        raise ValueError(f"neither a profile (kind: {PROFILE}) nor the result of a successful run")
    profile = result.get("profile")
    measured = _profile(profile, path.name) if isinstance(profile, dict) else None
    return _text(result, "model"), measured, _results(result, path.name), _variant(result)


def _variant(value: Mapping[str, Any]) -> str | None:
    """Return the variant that was measured: None for the base, UNKNOWN_VARIANT if the file does not contain it."""
    variant = value.get("variant", UNKNOWN_VARIANT)
    if variant is not None and not isinstance(variant, str):
        raise ValueError(f"'variant' is not text: {variant!r:.40}")
    return variant


def _profile(value: Mapping[str, Any], source: str) -> data.Profile:
    if value.get("format") != PROFILE_FORMAT:
        raise ValueError(f"profile format {value.get('format')!r}, expected {PROFILE_FORMAT}")
    rows = value.get("points")
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise ValueError("'points' is not a list of measurements")
    points = [_point(row) for row in rows]
    if points[0].kind != "run":
        raise ValueError("the first of 'points' is not the whole run")
    stack = value.get("stack")
    used, size = (_count(stack, "used"), _count(stack, "size")) if isinstance(stack, dict) else (None, None)
    return data.Profile(
        source=source,
        where=_text(value, "where"),
        clock=_text(value, "clock"),
        unit=_text(value, "unit"),
        frequency_hz=_count(value, "frequency_hz"),
        run=points[0],
        points=tuple(points[1:]),
        stack_used=used,
        stack_size=size,
        modelled_processor=_text(value, "modelled_processor") if value.get("modelled_processor") is not None else None,
    )


def _point(row: Mapping[str, Any]) -> data.Point:
    steps = row.get("steps", [])
    if not isinstance(steps, list) or not all(_is_count(step) for step in steps):
        raise ValueError("'steps' of a point is not a list of steps")
    step, operator, device = row.get("step"), row.get("operator"), row.get("device")
    if row.get("kind") in ("launch", "wait") and not (isinstance(device, str) and device):
        raise ValueError(f"'device' of a {row['kind']} is empty or not text")
    return data.Point(
        kind=_text(row, "kind"),
        step=step if _is_count(step) else None,
        steps=tuple(steps),
        operator=operator if isinstance(operator, str) else None,
        device=device if isinstance(device, str) else None,
        runs=_count(row, "runs"),
        min=_time(row, "min"),
        max=_time(row, "max"),
        mean=_time(row, "mean"),
        modelled_cycles=_count(row, "modelled_cycles") if row.get("modelled_cycles") is not None else None,
    )


def _results(result: Mapping[str, Any], source: str) -> data.Results:
    errors, latency = result.get("errors", {}), result.get("latency_ns", [])
    if not isinstance(errors, dict) or not all(isinstance(error, dict) for error in errors.values()):
        raise ValueError("'errors' is not an object of the errors of outputs")
    if not isinstance(latency, list) or not all(map(_is_count, latency)):
        raise ValueError("'latency_ns' is not a list of times")
    board, clock = result.get("board"), result.get("clock")
    return data.Results(
        source=source,
        board=board if isinstance(board, str) else None,
        clock=clock if isinstance(clock, str) else None,
        latency_ns=tuple(latency),
        errors=tuple(
            data.OutputError(
                name=name,
                elements=_count(error, "elements"),
                differing=_count(error, "differing"),
                largest=_finite(error.get("largest_error")),
                mean=_finite(error.get("mean_error")),
            )
            for name, error in errors.items()
        ),
    )


def _check_steps(model: data.Model, profile: data.Profile, at: Location, faults: Diagnostics) -> None:
    """Warn if a profile was measured with other steps than the current ones."""
    names = [step.operator for step in model.steps]
    for point in profile.points:
        if point.step is not None and (point.step >= len(names) or names[point.step] != (point.operator or "")):
            known = point.step < len(names)
            there = f"step {point.step} is {names[point.step]}" if known else "the model has no such step"
            message = f"the profile is from another version of model {model.name!r}: "
            message += f"it has step {point.step} ({point.operator}), but {there}"
            faults.warning(message, at, hint="measure again with 'opwest run --profile'")
            return


def _text(value: Mapping[str, Any], key: str) -> str:
    text = value.get(key)
    if not isinstance(text, str):
        raise ValueError(f"{key!r} is {'missing' if key not in value else 'not text'}")
    return text


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63


def _count(value: Mapping[str, Any], key: str) -> int:
    number = value.get(key)
    if not isinstance(number, int) or not _is_count(number):
        raise ValueError(f"{key!r} is not a count: {number!r:.40}")
    return number


def _time(value: Mapping[str, Any], key: str) -> float:
    time = _finite(value.get(key))
    if time is None or not 0 <= time < 1e18:
        raise ValueError(f"{key!r} is not a time: {value.get(key)!r:.40}")
    return time


def _finite(value: object) -> float | None:
    """Return a finite number, None for other values: `--json` writes infinities as text."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:  # an integer of hundreds of digits
        return None
    return number if math.isfinite(number) else None
