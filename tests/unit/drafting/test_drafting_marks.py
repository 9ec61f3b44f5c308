# SPDX-License-Identifier: Apache-2.0
"""Marks in a manifest: each is reported with its position and the expected value, and generation fails."""

from __future__ import annotations

from pathlib import Path

from opwest.diagnostics import Diagnostics
from opwest.manifest.load import load_manifest

GOOD = """\
version: 1
model: m
objects: [{files: [f.c]}]
operators:
  f: {args: [{name: x, dtype: int8, shape: [4]}, {name: y, dtype: int8, shape: [4], direction: out}]}
run:
  inputs: {x: {dtype: int8, shape: [4]}}
  outputs: {y: {dtype: int8, shape: [4]}}
  steps:
    - {call: f, args: [x, y]}
"""


def load(tmp_path: Path, *changes: tuple[str, str]) -> tuple[bool, list[str]]:
    text = GOOD
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    path = tmp_path / "m.yaml"
    path.write_text(text)
    faults = Diagnostics()
    loaded = load_manifest(path, faults) is not None
    return loaded, [str(d).replace(f"{tmp_path}/", "") for d in faults.in_order()]


def test_without_marks(tmp_path: Path) -> None:
    assert load(tmp_path) == (True, [])


def test_mark_in_place_of_a_list(tmp_path: Path) -> None:
    assert load(tmp_path, ("shape: [4]", "shape: FILL_IN")) == (
        False,
        [
            "m.yaml:5:44: error: 'operators.f.args[0].shape' is not filled in\n"
            "  expected: a list, at most 16 items "
            "(The dimensions. Required unless `scalar` is true or a constant has them)"
        ],
    )


def test_marks_that_the_schema_accepts_as_values(tmp_path: Path) -> None:
    loaded, errors = load(
        tmp_path, ("model: m", "model: FILL_IN"), ("[x, y]", "[FILL_IN_x, y]"), ("inputs: {x", "inputs: {FILL_IN")
    )
    assert not loaded
    assert [line.splitlines()[0] for line in errors] == [
        "m.yaml:2:8: error: 'model' is not filled in",
        "m.yaml:7:12: error: the name 'FILL_IN' in 'run.inputs' is not filled in",
        "m.yaml:10:24: error: 'run.steps[0].args[0]' (FILL_IN_x) is not filled in",
    ]


def test_other_faults_are_reported_in_the_same_run(tmp_path: Path) -> None:
    loaded, errors = load(tmp_path, ("shape: [4]", "shape: FILL_IN"), ("shape: [4]}}", "shape: [0], alin: 4}}"))
    assert not loaded
    assert [line.split(": ", 2)[2].splitlines()[0] for line in errors] == [
        "'operators.f.args[0].shape' is not filled in",
        "'run.inputs.x.shape[0]' is the integer 0",
        "unknown key 'alin' in 'run.inputs.x'",
    ]


def test_words_containing_the_mark_are_not_marks(tmp_path: Path) -> None:
    assert load(tmp_path, ("model: m", 'model: m\ndescription: "not FILL_IN"'), ("f.c", "my_FILL_IN.c")) == (True, [])


def test_shared_mark_is_reported_once_per_position(tmp_path: Path) -> None:
    loaded, errors = load(tmp_path, ("shape: [4]", "shape: &s [FILL_IN]"), ("shape: [4]", "shape: *s"))
    assert not loaded and len(errors) == 1
    assert errors[0].startswith("m.yaml:5:48: error: 'operators.f.args[0].shape[0]' is not filled in\n")


def test_marks_of_one_kind_are_one_error(tmp_path: Path) -> None:
    """Marks with the same key and the same expected value are grouped; aliases of a mark are the same mark."""
    loaded, errors = load(
        tmp_path,
        ("shape: [4]", "shape: &s FILL_IN"),
        ("shape: [4], dir", "shape: FILL_IN, dir"),
        ("shape: [4]", "shape: *s"),
    )
    assert not loaded
    assert [line.splitlines()[0] for line in errors] == [
        "m.yaml:5:44: error: 'operators.f.args[0].shape' is not filled in, and 1 other (line 5)"
    ]
