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
from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar

from opwest.base.diagnostics import Diagnostic, Location, OpwestError
from opwest.project import disk
from opwest.project.disk import system_faults
from opwest.report import data

T = TypeVar("T")


def encode(value: Any) -> Any:
    """Return a dataclass as dictionaries and lists."""
    return asdict(value)


def decode(kind: type[T], value: object, place: str = "") -> T:
    """Return the dataclass for a value of `encode`; unknown keys are ignored.

    Raises ValueError with the place of the first missing or invalid field.
    """
    if not isinstance(value, dict):
        raise ValueError(f"{place or 'the value'} is not an object")
    hints = _hints(kind)  # type: ignore[arg-type]  # every type is hashable
    found = {}
    for field in fields(kind):  # type: ignore[arg-type]
        where = f"{place}.{field.name}".lstrip(".")
        if field.name in value:
            found[field.name] = _field(hints[field.name], value[field.name], where)
        elif field.default is MISSING and field.default_factory is MISSING:
            raise ValueError(f"missing {where!r}")
    return kind(**found)


@cache
def _hints(kind: type) -> dict[str, Any]:
    """Return the types of a dataclass's fields: evaluating them takes longer than reading a buffer."""
    return typing.get_type_hints(kind)


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
        value = _real(value, where)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{where} is {value}, expected a finite number")
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        raise ValueError(f"{where} is {value!r:.40}, expected {_WORDS[hint]}")
    if hint is int and not 0 <= typing.cast(int, value) < 1 << 63:
        raise ValueError(f"{where} is {value}, expected a size or count")
    return value


def _real(value: int, where: str) -> float:
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{where} is {str(value)[:20]}…, expected a finite number") from None


_WORDS = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


DATA_ID: Final = "opwest-report-data"
_MAX_BYTES: Final = 1 << 28
_EMBEDDED = re.compile(
    rf'<(?P<tag>script|metadata)\b[^>]*\bid="{DATA_ID}"[^>]*>(?P<json>.*?)</(?P=tag)>'.encode(), re.DOTALL
)
_EXPECTED = "a report written by 'opwest report': HTML, SVG or JSON"


def to_json(report: data.Report, *, indent: int | None = None) -> str:
    """Return a report as JSON, on one line without `indent`."""
    value = {"format": data.FORMAT, "schema": data.SCHEMA, **encode(report)}
    separators = (",", ":") if indent is None else None
    return json.dumps(value, indent=indent, separators=separators, allow_nan=False)


def read_report(path: Path) -> data.Report:
    """Return an earlier report of any format. Raises OpwestError."""
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise ValueError(f"more than {_MAX_BYTES} bytes")
        content = path.read_bytes()
        return _parse(content)
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from None
    except (ValueError, RecursionError) as error:
        raise _unreadable(path, str(error)) from None


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
    write_own(path, content, "report", "reports of 'opwest report'", is_report)


def write_own(path: Path, content: str, what: str, overwritten: str, is_own: Callable[[Path], bool]) -> None:
    """Write a file; replace an earlier one of the same kind. Raises OpwestError if the file is another one."""
    with system_faults(path, f"cannot write the {what}"):
        if os.path.lexists(path) and not is_own(path):
            hint = f"choose another file: only {overwritten} are overwritten"
            message = f"the file exists and is not a {what}"
            raise OpwestError([Diagnostic("error", message, Location(str(path)), hint=hint)])
        path.parent.mkdir(parents=True, exist_ok=True)
        target = Path(os.path.realpath(path))
        draft = target.with_name(f".{target.name}.opwest-draft")
        if os.path.lexists(draft):  # from an interrupted run
            disk.remove(draft)
        disk.write(draft, content.encode("utf-8"), mode_of=target if target.exists() else None)
        disk.replace(draft, target)


def is_report(path: Path) -> bool:
    """Whether a file is empty or a report of any version."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        start = file.read(4096)
    return not start.strip() or data.FORMAT.encode() in start


def _unreadable(path: Path, reason: str) -> OpwestError:
    return OpwestError(
        [Diagnostic("error", f"cannot read the report for --compare: {reason}", Location(str(path)), _EXPECTED)]
    )
