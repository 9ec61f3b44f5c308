# SPDX-License-Identifier: Apache-2.0
"""The hash of a model changes with its behaviour only."""

import re

import projects
import pytest
from opwest.diagnostics import Diagnostics
from opwest.model.fingerprint import model_hash

OPERATORS = """
#include <stdint.h>
int32_t scale(const int8_t *x, int32_t by, const int8_t *table, int8_t *y)
{
	y[0] = (int8_t)(x[0] * by + table[0]);
	return 0;
}
"""
MANIFEST = """
version: 1
model: hashed
description: A description
objects: [{files: [operators.c]}]
memory: {sram: {align: 8}}
operators:
  scale:
    args:
      - {name: x, dtype: int8, shape: [1]}
      - {name: by, dtype: int32, scalar: true}
      - {name: table, dtype: int8, shape: [1]}
      - {name: y, dtype: int8, shape: [1], direction: out}
constants: {table: {file: table.raw, dtype: int8, shape: [1]}}
run:
  inputs: {x: {dtype: int8, shape: [1]}}
  outputs: {y: {dtype: int8, shape: [1]}}
  steps:
    - {call: scale, args: [x, 3, table, a]}
    - {call: scale, args: [a, 5, table, y]}
"""


def hash_of(folder, manifest=MANIFEST, operators=OPERATORS, table=b"\7"):
    folder.mkdir()
    (folder / "table.raw").write_bytes(table)
    (folder / "operators.c").write_text(operators)
    (folder / "manifest.yaml").write_text(manifest)
    ((model, _),) = projects.check([folder / "manifest.yaml"], Diagnostics())
    return model_hash(model)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("A description", "Another description"),
        ("version: 1", "# A comment\nversion: 1"),
        ("[x, 3, table, a]", "[x,    3, table, a]"),
    ],
)
def test_texts_do_not_change_the_hash(tmp_path, old, new):
    assert hash_of(tmp_path / "a") == hash_of(tmp_path / "b", MANIFEST.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[x, 3, table, a]", "[x, 4, table, a]"),
        ("outputs: {y: {dtype: int8, shape: [1]}}", "outputs: {y: {dtype: int8, shape: [1], align: 4}}"),
        ("model: hashed", "model: other"),
        ("align: 8", "align: 16"),
    ],
)
def test_behaviour_changes_the_hash(tmp_path, old, new):
    assert hash_of(tmp_path / "a") != hash_of(tmp_path / "b", MANIFEST.replace(old, new))


def test_operators_and_constants_change_the_hash(tmp_path):
    first = hash_of(tmp_path / "a")
    assert first != hash_of(tmp_path / "b", operators=OPERATORS.replace("* by", "- by"))
    assert first != hash_of(tmp_path / "c", table=b"\10")
    assert re.fullmatch("[0-9a-f]{64}", first)


DEVICES = """
version: 1
model: hashed
objects: [{files: [operators.c]}]
devices: {npu: {devicetree: {nodelabel: npu}, program: p.bin}}
operators:
  conv:
    device: {}
    args:
      - {name: x, dtype: int8, shape: [1]}
      - {name: y, dtype: int8, shape: [1], direction: out}
run:
  inputs: {x: {dtype: int8, shape: [1]}}
  outputs: {y: {dtype: int8, shape: [1]}}
  steps: [{call: conv, device: npu, args: [x, y]}]
"""
CONV = "#include <stdint.h>\nstruct device;\nint32_t conv(const int8_t *x, int8_t *y, const struct device *dev)\n"
CONV += "{\n\ty[0] = x[0];\n\treturn dev == 0;\n}\n"


def hash_with_devices(folder, *pairs):
    folder.mkdir()
    for name in "pq":
        (folder / f"{name}.bin").write_text(name)
    (folder / "operators.c").write_text(CONV)
    text = DEVICES
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    (folder / "manifest.yaml").write_text(text)
    ((model, _),) = projects.check([folder / "manifest.yaml"], Diagnostics())
    return model_hash(model)


@pytest.mark.parametrize(
    "pair",
    [
        ("p.bin}", "p.bin, switching: load, power: open}"),
        ("device: {}", "device: {}\n    cycles: 7"),
        ("device: npu, args", "device: npu, cycles: 5, program: p.bin, args"),
    ],
)
def test_defaults_and_cycles_do_not_change_the_hash(tmp_path, pair):
    assert hash_with_devices(tmp_path / "a") == hash_with_devices(tmp_path / "b", pair)


@pytest.mark.parametrize(
    "pair",
    [
        ("p.bin}", "q.bin}"),
        ("p.bin}", "p.bin, queue_depth: 2}"),
        ("p.bin}", "p.bin, switching: free}"),
        ("p.bin}", "p.bin, own_timeout_ms: 5}"),
        ("p.bin}", "p.bin, power: run}"),
        ("device: {}", "device: {}\n    program: q.bin"),
        ("device: npu, args", "device: npu, program: q.bin, args"),
    ],
)
def test_programs_and_rules_of_devices_change_the_hash(tmp_path, pair):
    assert hash_with_devices(tmp_path / "a") != hash_with_devices(tmp_path / "b", pair)
