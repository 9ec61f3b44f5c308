# SPDX-License-Identifier: Apache-2.0
"""Report files: recognise and read an earlier report; write without overwriting other files."""

from __future__ import annotations

import html
import json
import math
import os
import re
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar

from opwest.base.diagnostics import fail
from opwest.project import disk
from opwest.project.disk import system_faults
from opwest.reports import data

T = TypeVar("T")


def decode(kind: type[T], value: object, place: str = "") -> T:
    """Return the dataclass for its JSON; unknown keys are ignored.

    Raises ValueError with the place of the first missing or invalid field.
    """
    if not isinstance(value, dict):
        raise ValueError(f"{place or 'the value'} is not an object")
    hints = _hints(kind)  # type: ignore[arg-type]  # every type is hashable
    values = {}
    for field in fields(kind):  # type: ignore[arg-type]
        where = f"{place}.{field.name}".lstrip(".")
        if field.name in value:
            values[field.name] = _field(hints[field.name], value[field.name], where)
        elif field.default is MISSING and field.default_factory is MISSING:
            raise ValueError(f"missing {where!r}")
    return kind(**values)


_hints = cache(typing.get_type_hints)
"""The types of a dataclass's fields: evaluating them takes longer than reading a buffer."""


def _field(hint: Any, value: object, where: str) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        if value is None and type(None) in arguments:
            return None
        return _field(next(a for a in arguments if a is not type(None)), value, where)
    if origin is tuple:
        if not isinstance(value, list):
            raise ValueError(f"{where} is not a list")
        return tuple(_field(arguments[0], item, f"{where}[{index}]") for index, item in enumerate(value))
    if origin is Mapping:
        if not isinstance(value, dict):
            raise ValueError(f"{where} is not an object")
        return {key: _field(arguments[1], item, f"{where}[{key!r}]") for key, item in value.items()}
    if is_dataclass(hint):
        return decode(hint, value, where)  # type: ignore[arg-type]
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        try:
            value = float(value)
        except OverflowError:
            raise ValueError(f"{where} is {str(value)[:20]}…, expected a finite number") from None
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{where} is {value}, expected a finite number")
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        raise ValueError(f"{where} is {value!r:.40}, expected {_WORDS[hint]}")
    if hint is int and not 0 <= typing.cast(int, value) < 1 << 63:
        raise ValueError(f"{where} is {value}, expected a size or count")
    return value


_WORDS = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
MARKS: Final = (data.FORMAT.encode(),)
"""What every report contains near its start."""
DATA_ID: Final = "opwest-report-data"
_MAX_BYTES: Final = 1 << 28
_EMBEDDED = re.compile(
    rf'<(?P<tag>script|metadata)\b[^>]*\bid="{DATA_ID}"[^>]*>(?P<json>.*?)</(?P=tag)>'.encode(), re.DOTALL
)
_EXPECTED = "a report written by 'opwest report': HTML, SVG or JSON"


def to_value(report: data.Report) -> dict[str, Any]:
    """Return a report as JSON values."""
    return {"format": data.FORMAT, "schema": data.SCHEMA, **asdict(report)}


def to_json(report: data.Report) -> str:
    """Return a report as JSON in one line."""
    return json.dumps(to_value(report), separators=(",", ":"), allow_nan=False)


def read_limited(path: Path, limit: int) -> bytes:
    """Return the content of a file. Raises ValueError if it is unreadable, or has more than `limit` bytes."""
    try:
        if path.stat().st_size > limit:
            raise ValueError(f"more than {limit} bytes")
        return path.read_bytes()
    except OSError as error:
        raise ValueError(error.strerror or str(error)) from None


def read_report(path: Path) -> data.Report:
    """Return an earlier report of any format. Raises OpwestError."""
    try:
        return _parse(read_limited(path, _MAX_BYTES))
    except (ValueError, RecursionError) as error:
        raise fail(f"cannot read the report for --compare: {error}", path, expected=_EXPECTED) from None


def _parse(content: bytes) -> data.Report:
    match = _EMBEDDED.search(content)
    text = content if match is None else match["json"]
    if match is not None and match["tag"] == b"metadata":
        text = html.unescape(text.decode("utf-8")).encode()
    try:
        value: Any = json.loads(text)
    except ValueError as error:
        where = "no report found" if match is None else "invalid JSON"
        raise ValueError(f"{where} ({error})") from None
    if not isinstance(value, dict) or value.get("format") != data.FORMAT:
        raise ValueError("no report found")
    if value.get("schema") != data.SCHEMA:
        raise ValueError(f"schema {value.get('schema')!r}, expected {data.SCHEMA}")
    return decode(data.Report, value)


def write_report(path: Path, content: str) -> None:
    """Write a report; replace an earlier one. Raises OpwestError if the file is not a report."""
    write_own(path, content, "report", "reports of 'opwest report'", MARKS)


def write_own(path: Path, content: str, what: str, overwritten: str, marks: Sequence[bytes]) -> None:
    """Write a file; replace an earlier one with the same marks. Raises OpwestError if the file is another one."""
    with system_faults(path, f"cannot write the {what}"):
        if os.path.lexists(path) and not is_own(path, marks):
            hint = f"choose another file: only {overwritten} are overwritten"
            raise fail(f"the file exists and is not a {what}", path, hint=hint)
        path.parent.mkdir(parents=True, exist_ok=True)
        target = Path(os.path.realpath(path))
        draft = target.with_name(f".{target.name}.opwest-draft")
        if os.path.lexists(draft):  # from an interrupted run
            disk.remove(draft)
        disk.write(draft, content.encode("utf-8"), mode_of=target if target.exists() else None)
        disk.replace(draft, target)


def is_own(path: Path, marks: Sequence[bytes]) -> bool:
    """Whether a path is a file that is empty, or has all marks near its start."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        start = file.read(4096)
    return not start.strip() or all(mark in start for mark in marks)
