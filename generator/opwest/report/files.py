# SPDX-License-Identifier: Apache-2.0
"""Report files: recognise and read an earlier report; write without overwriting other files."""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from opwest.diagnostics import Diagnostic, Location, OpwestError
from opwest.report import data
from opwest.report.codec import decode, encode
from opwest.write import disk
from opwest.write.faults import system_faults

DATA_ID: Final = "opwest-report-data"
_LARGEST: Final = 1 << 28
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
        if path.stat().st_size > _LARGEST:
            raise ValueError(f"more than {_LARGEST} bytes")
        content = path.read_bytes()
        return _parse(content)
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from None
    except (ValueError, RecursionError) as error:
        raise _unreadable(path, str(error)) from None


def _parse(content: bytes) -> data.Report:
    found = _EMBEDDED.search(content)
    text = content if found is None else found["json"]
    if found is not None and found["tag"] == b"metadata":
        text = html.unescape(text.decode("utf-8")).encode()
    try:
        value: Any = json.loads(text)
    except ValueError as error:
        where = "no report found" if found is None else "invalid JSON"
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
