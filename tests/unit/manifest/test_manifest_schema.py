# SPDX-License-Identifier: Apache-2.0
"""The schema of manifests, variants, readings, and C types."""

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from manifest_support import ROOT, read
from opwest.base.diagnostics import Diagnostics, Location
from opwest.cli.main import main
from opwest.manifest import writer
from opwest.manifest.error_recovery import READINGS, readings_of
from opwest.manifest.located import lookup
from opwest.manifest.schema import OF_C, check_schema, check_version, schema_path, violations
from opwest.manifest.yaml_reader import read_yaml
from opwest.model.inputs.context import size_in_bytes
from opwest.model.readers.variants import split_variants
from opwest.model.types.dtypes import DTYPES, dtype_of_c
from opwest.objects.targets import named_targets

# --- The JSON Schema and the messages for its findings

SCHEMA: dict[str, Any] = json.loads((ROOT / "schemas/device-manifest.schema.json").read_text(encoding="utf-8"))


def objects(value, path=""):
    """Yield every mapping of the schema with its path."""
    if isinstance(value, dict):
        yield path, value
        for key, below in value.items():
            yield from objects(below, f"{path}/{key}")
    elif isinstance(value, list):
        for index, below in enumerate(value):
            yield from objects(below, f"{path}/{index}")


def test_package_uses_this_schema():
    assert json.loads(Path(schema_path()).read_text(encoding="utf-8")) == SCHEMA


def test_valid_2020_12():
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema_rs.meta.validate(SCHEMA)


def test_every_key_is_described():
    silent = [
        f"{path}/properties/{key}"
        for path, schema in objects(SCHEMA)
        if isinstance(schema.get("properties"), dict)
        for key, entry in schema["properties"].items()
        if not entry.get("description", "").endswith(".")
    ]
    assert silent == []
    assert [name for name, entry in SCHEMA["$defs"].items() if not entry.get("description")] == []


def test_no_mapping_takes_unknown_keys():
    loose = [
        path
        for path, schema in objects(SCHEMA)
        if schema.get("type") == "object" and "additionalProperties" not in schema and not path.endswith("/if")
    ]
    assert loose == []


def test_every_definition_is_referenced():
    used = {schema["$ref"] for _, schema in objects(SCHEMA) if "$ref" in schema}
    of_keys = {name for name in used if name.startswith("#/properties/")}  # keys that variants replace
    assert {name.removeprefix("#/$defs/") for name in used - of_keys} == set(SCHEMA["$defs"])


def test_named_targets_fit_the_schema():
    validator = jsonschema_rs.Draft202012Validator({**SCHEMA, "required": [], "type": "object"})
    validator.validate({"targets": named_targets()})


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("512", 512),
        ("1", 1),
        ("0x400", 1024),
        ("1B", 1),
        ("64KiB", 65536),
        ("64 KiB", 65536),
        ("'2MiB'", 2 << 20),
        ("1GiB", 1 << 30),
    ],
)
def test_sizes(text, size):
    manifest = minimal(f"memory: {{sram: {{size: {text}}}}}\n")
    assert faults_of_shape(manifest) == []
    assert size_in_bytes(manifest["memory"]["sram"]["size"]) == size


@pytest.mark.parametrize(
    "text", ["0", "-1", "1.5", "64KB", "64kib", "KiB", "064KiB", "'64  KiB'", "1TiB", "''", "[1]", "~", "'512'"]
)
def test_invalid_sizes(text):
    (fault,) = faults_of_shape(minimal(f"memory: {{sram: {{size: {text}}}}}\n"))
    assert "'memory.sram.size' is " in fault


def test_size_in_bytes_rejects_other_text():
    with pytest.raises(ValueError, match="invalid size"):
        size_in_bytes("plenty")


def test_faults_of_independent_keys_do_not_hide_others():
    manifest = minimal("boards: 1\nlibc: musl\ndescription: []\n")
    faults = Diagnostics()
    assert check_schema(manifest, faults)
    assert len(faults) == 3
    assert not manifest.keys() & {"boards", "libc", "description"}


def test_other_schema_faults_stop_the_check():
    faults = Diagnostics()
    assert not check_schema(minimal("memory: 1\n"), faults)
    assert len(faults) == 1


def completed(rule):
    """Return the keys that yaml-language-server 1.25 offers in an empty mapping: of a rule and of its alternatives.

    Of a condition it offers the first branch.
    """
    if "$ref" in rule:
        found: Any = SCHEMA
        for part in rule["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        return completed(found) | completed({k: v for k, v in rule.items() if k != "$ref"})
    below = [part for key in ("anyOf", "oneOf", "allOf") for part in rule.get(key, ())]
    if "then" in rule:
        below.append(rule["then"])
    return set(rule.get("properties", {})).union(*map(completed, below))


def test_editors_complete_every_key_of_a_step():
    assert completed(SCHEMA["properties"]["run"]["properties"]["steps"]["items"]) == {
        *("call", "device", "program", "cycles", "args"),
        *("repeat", "over", "steps"),
    }


def test_alternatives_are_no_conditions():
    """Editors evaluate conditions without the keys that are missing."""
    assert [path for path, rule in objects(SCHEMA) if not {"if", "then", "else", "oneOf"}.isdisjoint(rule)] == []


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("compat: tvm-ctr\n", "'compat' is the string 'tvm-ctr'\n  expected: tvm-crt, tvm-crt-all, tvmgen"),
        ("compat: {tabel: tvm-crt}\n", "unknown key 'tabel' in 'compat'\n  hint: did you mean 'table'?"),
    ],
)
def test_errors_are_those_of_one_alternative(more, expected):
    (fault,) = faults_of_shape(minimal(more))
    assert expected in fault


def minimal(more, operator="relu"):
    """Return a minimal manifest with more keys."""
    return read(
        f"""\
version: 1
model: tiny
objects: [{{files: [relu.c]}}]
operators:
  {operator}: {{args: [{{name: data, dtype: int8, shape: [4]}}]}}
run:
  inputs: {{}}
  outputs: {{scores: {{dtype: int8, shape: [4]}}}}
  steps: [{{call: {operator}, args: [scores]}}]
{more}"""
    )


def faults_of_shape(manifest):
    faults = Diagnostics()
    assert check_version(manifest, faults)
    check_schema(manifest, faults)
    return [str(f) for f in faults]


# --- Variants as trees, and the text that the writer gives them

MANIFEST = """\
model: m
objects:
  - {target: x86-64, files: [host.o]}
  - {target: cortex-m4, files: [dsp.o]}
  - {files: [ir.ll], targets: [cortex-m4, cortex-m0]}
operators: {one: {args: []}}
run:
  inputs: {}
  order: any
  steps: [{call: one, args: []}]
variants:
  dsp:
    targets: [cortex-m4]
    run:
      steps: [{call: two, args: []}]
  mve:
    targets: [cortex-m55]
    objects: [{files: [mve.c]}]
tests: {}
"""


def split():
    manifest = read_yaml(MANIFEST.encode(), "m.yaml", Diagnostics())
    assert manifest is not None
    return manifest, *split_variants(manifest)


def test_keys_are_replaced_and_others_kept():
    manifest, base, (dsp, mve) = split()
    assert "variants" in manifest and "variants" not in base
    assert dsp.manifest["run"] == {"inputs": {}, "order": "any", "steps": [{"call": "two", "args": []}]}
    assert base["run"]["steps"] == [{"call": "one", "args": []}]
    assert mve.manifest["objects"] == [{"files": ["mve.c"]}]
    assert dsp.manifest["operators"] is base["operators"]


def test_objects_belong_to_the_variant_of_their_target():
    _, base, (dsp, _) = split()
    ir = {"files": ["ir.ll"]}
    assert base["objects"] == [{"target": "x86-64", "files": ["host.o"]}, ir | {"targets": ["cortex-m0"]}]
    assert dsp.manifest["objects"] == [{"target": "cortex-m4", "files": ["dsp.o"]}, ir | {"targets": ["cortex-m4"]}]


def test_positions_are_those_of_the_file():
    _, base, (dsp, _) = split()
    assert dsp.manifest["run"].value_location("steps") == Location("m.yaml", 15, 14)
    assert base["run"].value_location("steps") == Location("m.yaml", 10, 10)
    assert dsp.manifest["objects"].item_location(0) == Location("m.yaml", 4, 5)


def test_an_entry_contains_its_own_lines():
    _, _, (dsp, mve) = split()
    assert [line for line in range(1, 20) if dsp.contains(Location("m.yaml", line, 5))] == [12, 13, 14, 15]
    assert [line for line in range(1, 20) if mve.contains(Location("m.yaml", line, 5))] == [16, 17, 18]
    assert not dsp.contains(None) and not dsp.contains(Location("other.yaml", 13, 5))


def test_writer_indents_the_sections_of_a_variant():
    lines = writer.variant("dsp", ["cortex-m4"], ["objects:", *writer.object_entry(["dsp.c"])])
    assert list(lines) == ["  dsp:", "    targets: [cortex-m4]", "    objects:", "      - files: [dsp.c]"]


# --- Readings of manifests, and C types

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


def readings(old, new):
    assert TEXT.count(old) >= 1
    manifest: Any = read(TEXT.replace(old, new, 1))
    assert not check_schema(manifest, Diagnostics())
    return readings_of(manifest)


@pytest.mark.parametrize(
    ("old", "new", "path", "expected"),
    [
        ("dtype: int8", "dtype: flaot32", "operators relu args 0 dtype", ["float32", "float8_e5m2", "int64"]),
        ("dtype: int8", "dtype: double", "operators relu args 0 dtype", ["float64", "float8_e5m2", "int64"]),
        ("dtype: int8, ", "", "operators relu args 0 dtype", ["int8", "float8_e5m2", "uint64"]),
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
def test_stand_ins(old, new, path, expected):
    keys = [int(part) if part.isdigit() else part for part in path.split()]
    found = readings(old, new)
    assert found is not None
    values = []
    for manifest in found:
        assert violations(manifest) == []
        values.append(lookup(manifest, keys))
    assert values == expected and len(values) == READINGS
    assert found.in_steps == ("steps" in path)


def test_missing_operator_arguments_have_several_counts():
    found = readings("{args: [{name: data, dtype: int8, shape: [4]}]}", "{}")
    assert found is not None
    assert [len(manifest["operators"]["relu"]["args"]) for manifest in found] == [1, 2, 3]


def test_locations_of_stand_ins():
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
def test_faults_without_stand_ins(old, new):
    assert readings(old, new) is None


# --- Names of C types in place of dtypes: the hint is the dtype of the type, not the nearest name

MANIFEST_OF_DTYPE = """\
version: 1
model: tiny
objects: [{{files: [f.c]}}]
operators: {{f: {{args: [{{name: y, dtype: {dtype}, shape: [1], direction: out}}]}}}}
run: {{inputs: {{}}, outputs: {{y: {{dtype: float32, shape: [1]}}}}, steps: [{{call: f, args: [y]}}]}}
"""


@pytest.mark.parametrize("name", OF_C)
def test_hint_is_the_dtype_of_the_type(tmp_path, capsys, name):
    (tmp_path / "f.c").write_text("void f(float *y)\n{\n\ty[0] = 0;\n}\n")
    (tmp_path / "manifest.yaml").write_text(MANIFEST_OF_DTYPE.format(dtype=name))
    assert main(["check", str(tmp_path / "manifest.yaml")]) == 1
    assert f"hint: did you mean '{OF_C[name]}'?\n" in capsys.readouterr().err


def test_names_agree_with_those_of_c_sources():
    assert set(OF_C.values()) <= DTYPES.keys()
    for name, dtype in OF_C.items():
        known = dtype_of_c(name)
        assert known is None or known.name == dtype, name
