# SPDX-License-Identifier: Apache-2.0
"""The hash of a model changes with its behaviour only; the programs of steps."""

import re
from dataclasses import replace

import projects
import pytest
from opwest.base.diagnostics import Diagnostics
from opwest.model.readers.fingerprint import model_hash
from opwest.model.types.c_names import CNames
from opwest.model.types.sections import FOREVER, STRUCT_DEVICE, STRUCT_LAUNCH
from opwest.render.arguments import operator_rows
from opwest.render.note import note_record

OPERATORS = """
#include <stdint.h>
int32_t scale(const int8_t *x, int32_t by, const int8_t *table, int8_t *y)
{
	y[0] = (int8_t)(x[0] * by + table[0]);
	return 0;
}
struct device;
int32_t conv(const int8_t *x, int8_t *y, const struct device *dev)
{
	y[0] = x[0];
	return dev == 0;
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


def hash_of(folder, called="scale", *pairs, operators=OPERATORS, table=b"\7"):
    folder.mkdir()
    for name, content in {"p.bin": b"p", "q.bin": b"q", "table.raw": table, "operators.c": operators.encode()}.items():
        (folder / name).write_bytes(content)
    manifest = {"scale": MANIFEST, "conv": DEVICES}[called]
    for old, new in pairs:
        assert old in manifest
        manifest = manifest.replace(old, new)
    (folder / "manifest.yaml").write_text(manifest)
    ((model, _),) = projects.check([folder / "manifest.yaml"], Diagnostics())
    return model_hash(model)


def test_hashes_of_existing_projects_stay(tmp_path):
    assert hash_of(tmp_path / "a") == "a72fe07fde59552ebc8412772d82281b7edb1c0a9190b7a2e2bb4b4880369be5"


@pytest.mark.parametrize(
    ("called", "old", "new"),
    [
        ("scale", "A description", "Another description"),
        ("scale", "version: 1", "# A comment\nversion: 1"),
        ("scale", "[x, 3, table, a]", "[x,    3, table, a]"),
        ("conv", "p.bin}", "p.bin, switching: load, power: open}"),
        ("conv", "device: {}", "device: {}\n    cycles: 7"),
        ("conv", "device: npu, args", "device: npu, cycles: 5, program: p.bin, args"),
    ],
)
def test_texts_defaults_and_cycles_do_not_change_the_hash(tmp_path, called, old, new):
    assert hash_of(tmp_path / "a", called) == hash_of(tmp_path / "b", called, (old, new))


@pytest.mark.parametrize(
    ("called", "old", "new"),
    [
        ("scale", "[x, 3, table, a]", "[x, 4, table, a]"),
        ("scale", "outputs: {y: {dtype: int8, shape: [1]}}", "outputs: {y: {dtype: int8, shape: [1], align: 4}}"),
        ("scale", "model: hashed", "model: other"),
        ("scale", "align: 8", "align: 16"),
        ("conv", "p.bin}", "q.bin}"),
        ("conv", "p.bin}", "p.bin, queue_depth: 2}"),
        ("conv", "p.bin}", "p.bin, switching: free}"),
        ("conv", "p.bin}", "p.bin, own_timeout_ms: 5}"),
        ("conv", "p.bin}", "p.bin, power: run}"),
        ("conv", "device: {}", "device: {}\n    program: q.bin"),
        ("conv", "device: npu, args", "device: npu, program: q.bin, args"),
    ],
)
def test_behaviour_changes_the_hash(tmp_path, called, old, new):
    assert hash_of(tmp_path / "a", called) != hash_of(tmp_path / "b", called, (old, new))


def test_operators_and_constants_change_the_hash(tmp_path):
    first = hash_of(tmp_path / "a")
    assert first != hash_of(tmp_path / "b", operators=OPERATORS.replace("* by", "- by"))
    assert first != hash_of(tmp_path / "c", table=b"\10")
    assert re.fullmatch("[0-9a-f]{64}", first)


# --- The programs of steps: of the step, else of its operator, else of its device

PROGRAMS_OPERATORS = """
#include <stdint.h>
struct device;
struct opwest_launch;
int32_t plain(const int8_t *x, int8_t *y, const struct device *dev) { y[0] = x[0]; return dev == 0; }
int32_t own(const int8_t *x, int8_t *y, const struct opwest_launch *launch) { y[0] = x[0]; return launch == 0; }
int32_t cpu(const int8_t *x, int8_t *y) { y[0] = x[0]; return 0; }
"""
ARGS = """
    args:
      - {name: x, dtype: int8, shape: [1]}
      - {name: y, dtype: int8, shape: [1], direction: out}
"""
PROGRAMS_MANIFEST = f"""
version: 1
model: programs
objects: [{{files: [operators.c]}}]
devices:
  bare: {{devicetree: {{nodelabel: bare}}}}
  npu:
    devicetree: {{nodelabel: npu}}
    program: device.bin
    own_timeout_ms: 20
    queue_depth: 4
    switching: exclusive
    switch_cycles: 900
    power: run
operators:
  plain:
    device: {{}}{ARGS}  own:
    device: {{program: operator, launch: true}}
    async: true
    program: operator.bin
    cycles: 70
    launch_cycles: 6{ARGS}  cpu:
    cycles: 5{ARGS}run:
  stream: true
  inputs: {{x: {{dtype: int8, shape: [1]}}}}
  outputs: {{y: {{dtype: int8, shape: [1]}}}}
  steps:
    - {{call: plain, device: npu, args: [x, a]}}
    - {{call: own, device: npu, args: [a, b]}}
    - {{call: own, device: npu, program: copies/operator.bin, cycles: 80, args: [b, c]}}
    - {{call: plain, device: npu, program: step.bin, args: [c, d]}}
    - {{call: plain, device: bare, args: [d, e]}}
    - {{call: plain, device: bare, program: twin.bin, args: [e, f]}}
    - {{call: cpu, args: [f, y]}}
"""


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    (folder / "copies").mkdir()
    contents = {"device": "device", "operator": "operator", "copies/operator": "operator", "step": "step"}
    for name, content in {**contents, "twin": "step"}.items():
        (folder / f"{name}.bin").write_text(content)
    (folder / "operators.c").write_text(PROGRAMS_OPERATORS)
    (folder / "manifest.yaml").write_text(PROGRAMS_MANIFEST)
    return projects.check([folder / "manifest.yaml"], Diagnostics())[0]


@pytest.fixture(scope="module")
def model(planned):
    return planned[0]


def test_program_of_a_step(model):
    names = [step.program.name if step.program else None for step in model.steps]
    assert names == ["device", "operator", "operator", "step", None, "twin", None]


def test_each_content_is_stored_once_in_the_order_of_use(model):
    assert [program.name for program in model.programs] == ["device", "operator", "step"]


def test_cycles_of_a_step(model):
    assert [step.cycles for step in model.steps] == [None, 70, 80, None, None, None, 5]
    assert [operator.launch_cycles for operator in model.operators] == [0, 6, 0]


def test_last_argument(model):
    plain, own, _ = model.operators
    assert (plain.takes_launch, plain.handle) == (False, STRUCT_DEVICE)
    assert (own.takes_launch, own.handle) == (True, STRUCT_LAUNCH)
    assert own.prototype == "int32_t (const int8_t *, int8_t *, const struct opwest_launch *)"


def test_rules_of_devices(model):
    bare, npu = model.devices
    given = ("own_timeout_ms", "queue_depth", "switching", "switch_cycles", "power")
    assert [getattr(npu, name) for name in given] == [20, 4, "exclusive", 900, "run"]
    assert [getattr(bare, name) for name in given] == [FOREVER, None, "load", 0, "open"]
    assert model.streams


def test_note_has_the_programs_that_differ_from_those_of_devices(planned):
    steps = note_record(*planned)["steps"]
    assert [step.get("program") for step in steps] == [None, "operator", "operator", "step", None, "twin", None]
    assert [step.get("symbol") for step in steps][3::2] == [CNames.program(b"step")] * 2


def test_devices_that_an_operator_can_be_called_on(model):
    assert {row["name"]: row["devices"] for row in operator_rows(model)} == {
        "plain": ["bare", "npu"],
        "own": ["bare", "npu"],
        "cpu": [],
    }
    bare, npu = model.devices
    undriven = replace(model, devices=(replace(bare, has_hooks=False), npu))
    assert {row["name"]: row["devices"] for row in operator_rows(undriven)}["own"] == ["npu"]
