# SPDX-License-Identifier: Apache-2.0
"""A faulty value is the only fault that is reported of an otherwise valid manifest, and it hides no other fault.

The manifests are those of the golden projects. Each of their values that the schema restricts is made invalid in the
text, one at a time; values of one kind (the same keys, in lists at any index) are made invalid once.
"""

import contextlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from opwest.base.diagnostics import Diagnostic, Diagnostics, OpwestError
from opwest.manifest.located import Items, Mapping
from opwest.manifest.yaml_reader import read_yaml
from opwest.pipeline import run
from opwest.project.request import Request

sys.path.insert(0, str(Path(__file__).parents[1] / "golden"))

from golden_support import PROJECTS, copy_project
from tracing import untraced

pytestmark = pytest.mark.usefixtures("read_once")
MANIFESTS = [(project, manifest) for project, manifests in PROJECTS.items() for manifest in manifests]
RESTRICTED = {"dtype", "direction", "convention", "scalar", "driver", "switching", "power", "async", "latency_us"}
RESTRICTED |= {"memory_planner", "order", "queue_depth", "returns", "coherent", "bits", "machine", "cycles", "repeat"}
RESTRICTED |= {"offset", "pitch", "pointer", "reads_flash", "timeout_ms"}


class Value(NamedTuple):
    kind: tuple[str, ...]
    line: int
    column: int
    text: str


def values(tree: Any, path: tuple[str, ...] = ()) -> Iterator[Value]:
    """Yield the scalars, with the keys that lead to them; names of operators and tensors are no part of a kind."""
    if isinstance(tree, Mapping):
        for key, value in tree.items():
            kind = (*path, key) if path[-1:] not in [("operators",), ("inputs",), ("outputs",)] else (*path, "*")
            at = tree.value_location(key)
            if isinstance(value, (Mapping, Items)):
                yield from values(value, kind)
            elif isinstance(value, (str, int)):
                yield Value(kind, at.line, at.column, str(value).lower() if isinstance(value, bool) else str(value))
    elif isinstance(tree, Items):
        for index, value in enumerate(tree):
            at = tree.item_location(index)
            if isinstance(value, (Mapping, Items)):
                yield from values(value, path)
            elif isinstance(value, (str, int)) and path[-1:] == ("shape",):
                yield Value(path, at.line, at.column, str(value))


def errors(manifests: list[Path]) -> list[Diagnostic]:
    faults = Diagnostics()
    with contextlib.suppress(OpwestError):
        run(Request(tuple(manifests)), faults, last="plan")
    return [fault for fault in faults if fault.severity == "error"]


def spoilt(text: str, value: Value) -> str | None:
    """Return the text with an invalid value in place of a value, None if it is spelled in another way."""
    lines = text.split("\n")
    line = lines[value.line - 1]
    start = value.column - 1
    if not re.match(rf"{re.escape(value.text)}(?=[\s,\]}}]|$)", line[start:]):
        return None
    lines[value.line - 1] = line[:start] + "-no-such-value" + line[start + len(value.text) :]
    return "\n".join(lines)


@pytest.fixture(params=MANIFESTS, ids=["/".join(one) for one in MANIFESTS])
def copied(request, tmp_path: Path) -> tuple[list[Path], Path, str, list[Value]]:
    project, manifest = request.param
    manifests = copy_project(project, tmp_path / "source")
    path = next(one for one in manifests if one.as_posix().endswith(manifest))
    text = path.read_text()
    return manifests, path, text, list(values(read_yaml(text.encode(), str(path), Diagnostics())))


def test_faulty_value_has_no_consequences(copied) -> None:
    manifests, path, text, found_values = copied
    assert errors(manifests) == []

    tried: dict[tuple[str, ...], tuple[int, list[tuple[str, int]]]] = {}
    for value in found_values:
        last = value.kind[-1]
        if value.kind not in tried and (last in RESTRICTED or last == "shape"):
            changed = spoilt(text, value)
            if changed is not None:
                path.write_text(changed)
                with untraced() if tried else contextlib.nullcontext():  # the first fault reaches the same code
                    faults = errors(manifests)
                found = [(fault.message, fault.location.line if fault.location else 0) for fault in faults]
                tried[value.kind] = (value.line, found)
    # An alias repeats a fault, at the place of its anchor.
    wrong = {kind: found for kind, (line, found) in tried.items() if {at for _, at in found} != {line}}
    assert wrong == {}
    assert len(tried) >= 3


def test_faulty_values_do_not_hide_an_undefined_operator(copied) -> None:
    manifests, path, text, found_values = copied
    dtype = next(value for value in found_values if value.kind[-1] == "dtype")
    call = [value for value in found_values if value.kind[-1] == "call"][-1]
    for value in (dtype, call):
        text = spoilt(text, value) or text
    path.write_text(text)

    found = {(fault.message, fault.location.line) for fault in errors(manifests) if fault.location}

    assert any(line == dtype.line and "dtype' is the string '-no-such-value'" in message for message, line in found)
    assert ("undefined operator '-no-such-value'", call.line) in found
