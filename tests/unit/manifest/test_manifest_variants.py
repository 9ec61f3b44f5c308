# SPDX-License-Identifier: Apache-2.0
"""Variants as trees, and the text that the writer gives them."""

from __future__ import annotations

from opwest.diagnostics import Diagnostics, Location
from opwest.manifest import writer
from opwest.manifest.variants import split_variants
from opwest.manifest.yaml_reader import read_yaml

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


def test_keys_are_replaced_and_others_kept() -> None:
    manifest, base, (dsp, mve) = split()
    assert "variants" in manifest and "variants" not in base
    assert dsp.manifest["run"] == {"inputs": {}, "order": "any", "steps": [{"call": "two", "args": []}]}
    assert base["run"]["steps"] == [{"call": "one", "args": []}]
    assert mve.manifest["objects"] == [{"files": ["mve.c"]}]
    assert dsp.manifest["operators"] is base["operators"]


def test_objects_belong_to_the_variant_of_their_target() -> None:
    _, base, (dsp, _) = split()
    ir = {"files": ["ir.ll"]}
    assert base["objects"] == [{"target": "x86-64", "files": ["host.o"]}, ir | {"targets": ["cortex-m0"]}]
    assert dsp.manifest["objects"] == [{"target": "cortex-m4", "files": ["dsp.o"]}, ir | {"targets": ["cortex-m4"]}]


def test_positions_are_those_of_the_file() -> None:
    _, base, (dsp, _) = split()
    assert dsp.manifest["run"].value_location("steps") == Location("m.yaml", 15, 14)
    assert base["run"].value_location("steps") == Location("m.yaml", 10, 10)
    assert dsp.manifest["objects"].item_location(0) == Location("m.yaml", 4, 5)


def test_an_entry_contains_its_own_lines() -> None:
    _, _, (dsp, mve) = split()
    assert [line for line in range(1, 20) if dsp.contains(Location("m.yaml", line, 5))] == [12, 13, 14, 15]
    assert [line for line in range(1, 20) if mve.contains(Location("m.yaml", line, 5))] == [16, 17, 18]
    assert not dsp.contains(None) and not dsp.contains(Location("other.yaml", 13, 5))


def test_writer_indents_the_sections_of_a_variant() -> None:
    lines = writer.variant("dsp", ["cortex-m4"], ["objects:", *writer.object_entry(["dsp.c"])])
    assert list(lines) == [
        "  dsp:",
        "    targets: [cortex-m4]",
        "    objects:",
        "      - files: [dsp.c]",
    ]
