# SPDX-License-Identifier: Apache-2.0
"""Readings of manifests, and C types."""

from pathlib import Path
from typing import Any

import pytest
from manifest_support import read
from opwest.cli.main import main
from opwest.diagnostics import Diagnostics, Location
from opwest.manifest.located import lookup
from opwest.manifest.readings import READINGS, Readings, readings_of
from opwest.manifest.schema import OF_C, check_schema, violations
from opwest.model.dtypes import DTYPES, dtype_of_c

TEXT = """\
version: 1
model: tiny
objects: [{files: [relu.c]}]
operators:
  relu: {args: [{name: data, dtype: int8, shape: [4]}]}
constants:
  weights: {file: w.npy}
run:
  inputs: {}
  outputs: {scores: {dtype: int8, shape: [4]}}
  steps: [{call: relu, args: [scores]}]
"""


def readings(old: str, new: str) -> Readings | None:
    assert TEXT.count(old) >= 1
    manifest: Any = read(TEXT.replace(old, new, 1))
    assert not check_schema(manifest, Diagnostics())
    return readings_of(manifest)


@pytest.mark.parametrize(
    ("old", "new", "path", "expected"),
    [
        ("dtype: int8", "dtype: flaot32", "operators relu args 0 dtype", ["float32", "bfloat16", "uint32"]),
        ("dtype: int8", "dtype: double", "operators relu args 0 dtype", ["float64", "bfloat16", "uint32"]),
        ("dtype: int8, ", "", "operators relu args 0 dtype", ["int8", "bfloat16", "int64"]),
        ("shape: [4]", "shape: [-4]", "operators relu args 0 shape 0", [1, 2, 3]),
        ("shape: [4]", "shape: ['7']", "operators relu args 0 shape 0", [7, 8, 9]),
        ("shape: [4]", "shape: [9000000000]", "operators relu args 0 shape 0", [2147483644, 2147483645, 2147483646]),
        ("shape: [4]", "shape: 4", "operators relu args 0 shape", [[4], [2], [3, 4]]),
        ("{file: w.npy}", "{}", "constants weights file", ["stand_in_0", "stand_in_1", "stand_in_2"]),
        (
            "[relu.c]",
            "relu.c",
            "objects 0 files",
            [["relu.c"], ["stand_in_1", "stand_in_2"], ["stand_in_2", "stand_in_3", "stand_in_4"]],
        ),
        ("[relu.c]", "[relu.c, b.c, relu.c]", "objects 0 files", [["relu.c", "b.c"]] * 3),
        ("call: relu, ", "", "run steps 0 call", ["stand_in_0", "stand_in_1", "stand_in_2"]),
        (", args: [scores]}", "}", "run steps 0 args", [[], ["stand_in_1"], ["stand_in_2", "stand_in_3"]]),
        ("model: tiny\n", "", "model", ["stand_in_0", "stand_in_1", "stand_in_2"]),
    ],
)
def test_stand_ins(old: str, new: str, path: str, expected: list[Any]) -> None:
    keys = [int(part) if part.isdigit() else part for part in path.split()]
    found = readings(old, new)
    assert found is not None
    values = []
    for manifest in found:
        assert violations(manifest) == []
        values.append(lookup(manifest, keys))
    assert values == expected and len(values) == READINGS
    assert found.in_steps == ("steps" in path)


def test_missing_operator_arguments_have_several_counts() -> None:
    found = readings("{args: [{name: data, dtype: int8, shape: [4]}]}", "{}")
    assert found is not None
    assert [len(manifest["operators"]["relu"]["args"]) for manifest in found] == [1, 2, 3]


def test_locations_of_stand_ins() -> None:
    found = readings("shape: [4]", "shape: [0]")
    assert found is not None
    assert {(at.line, at.column) for at in found.locations() if isinstance(at, Location)} == {(5, 51)}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  inputs: {}\n", ""),  # the names of inputs are unknown
        ("objects: [{files: [relu.c]}]\n", ""),  # no symbol would be defined
        ("inputs: {}", "inputs: []"),
        ("weights: {file: w.npy}", "weights: {<<: x, file: w.npy}"),
        ("steps: [{call: relu, args: [scores]}]", "steps: []"),
        ("model: tiny", "model: tiny\nmemory: {sram: ~}"),
    ],
)
def test_faults_without_stand_ins(old: str, new: str) -> None:
    assert readings(old, new) is None


# --- Names of C types in place of dtypes: the hint is the dtype of the type, not the nearest name

MANIFEST = """\
version: 1
model: tiny
objects: [{{files: [f.c]}}]
operators: {{f: {{args: [{{name: y, dtype: {dtype}, shape: [1], direction: out}}]}}}}
run: {{inputs: {{}}, outputs: {{y: {{dtype: float32, shape: [1]}}}}, steps: [{{call: f, args: [y]}}]}}
"""


@pytest.mark.parametrize("name", OF_C)
def test_hint_is_the_dtype_of_the_type(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    (tmp_path / "f.c").write_text("void f(float *y)\n{\n\ty[0] = 0;\n}\n")
    (tmp_path / "manifest.yaml").write_text(MANIFEST.format(dtype=name))
    assert main(["check", str(tmp_path / "manifest.yaml")]) == 1
    assert f"hint: did you mean '{OF_C[name]}'?\n" in capsys.readouterr().err


def test_names_agree_with_those_of_c_sources() -> None:
    assert set(OF_C.values()) <= DTYPES.keys()
    for name, dtype in OF_C.items():
        known = dtype_of_c(name)
        assert known is None or known.name == dtype, name
