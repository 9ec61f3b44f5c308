# SPDX-License-Identifier: Apache-2.0
"""Warnings and notes of `check` for valid manifests, and manifests without any."""

from pathlib import Path

import pytest
from opwest.cli.main import main

SOURCE = """\
#include <stdint.h>
int32_t relu(const void *a, void *b) { *(char *)b = *(const char *)a; return 0; } /* of any dtype */
struct device;
int32_t npu(const void *a, void *b, const struct device *dev) { *(char *)b = *(const char *)a; return dev == 0; }
"""
MANIFEST = """\
version: 1
model: tiny
objects:
  - {files: [relu.c]}
operators:
  relu:
    args:
      - {name: data, dtype: int8, shape: [4]}
      - {name: result, dtype: int8, shape: [4], direction: out}
run:
  inputs: {image: {dtype: int8, shape: [4]}}
  outputs: {scores: {dtype: int8, shape: [4]}}
  steps:
    - {call: relu, args: [image, scores]}
"""
INPUT = "image: {dtype: int8, shape: [4]}"
STEP = "    - {call: relu, args: [image, scores]}\n"


@pytest.fixture(autouse=True)
def _in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "relu.c").write_text(SOURCE)
    (tmp_path / "weight.bin").write_bytes(bytes(4))


def remarks(capsys, *edits):
    text = MANIFEST
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    Path("m.yaml").write_text(text)
    status = main(["check", "m.yaml"])
    printed = capsys.readouterr().err
    assert status == 0, printed
    return printed


NO_REMARKS = {
    "unchanged": [],
    "program of a device": [
        ("operators:\n", "devices:\n  npu0: {devicetree: {nodelabel: npu0}, program: weight.bin}\noperators:\n"),
        ("  relu:\n", "  npu:\n    device: {program: weight}\n"),
        ("call: relu", "call: npu, device: npu0"),
    ],
    "shared shapes": [
        (INPUT, "image: {dtype: int8, shape: &vector [4]}"),
        ("scores: {dtype: int8, shape: [4]}", "scores: {dtype: int8, shape: *vector}"),
    ],
}
# Names that YAML 1.1 takes for booleans.
NO_REMARKS |= {
    f"operator {name}": [("  relu:\n", f"  {name}:\n    symbol: relu\n"), ("call: relu", f"call: {name}")]
    for name in ("on", "no", "y", "off")
}
NO_REMARKS |= {
    f"{dtype} without zero point": [
        (INPUT, f"image: {{dtype: {dtype}, shape: [4], quantization: {{scale: 1e-3}}}}"),
        ("data, dtype: int8", f"data, dtype: {dtype}"),
    ]
    for dtype in ("float16", "float32", "float64", "bool", "int64", "uint32")
}


@pytest.mark.parametrize("edits", NO_REMARKS.values(), ids=NO_REMARKS)
def test_no_remarks(capsys, edits):
    assert remarks(capsys, *edits) == ""


def test_missing_optional_objects(capsys):
    entry = "  - {files: [relu.c]}\n"
    printed = remarks(capsys, (entry, entry + "  - {target: cortex-m3, files: [missing.o], optional: true}\n"))
    assert printed == "m.yaml:5:32: note: target 'cortex-m3' is skipped: 'missing.o' does not exist\n"


def test_whole_numbers_written_with_a_point_or_an_exponent(capsys):
    """In JSON Schema, 4.0 is an integer."""
    text = MANIFEST.replace("shape: [4]", "shape: [4.0]").replace("version: 1", "version: 1.0")
    text = text.replace("operators:\n", "memory:\n  sram: {size: 1e3, align: 16.0}\noperators:\n")
    text = text.replace(STEP, "    - {call: relu, args: [image, middle]}\n    - {call: relu, args: [middle, scores]}\n")
    Path("m.yaml").write_text(text)
    status = main(["check", "m.yaml"])
    out, err = capsys.readouterr()
    assert (status, err) == (0, "")
    assert "image: int8 [4], 4 bytes" in out
    assert "sram: 16 of 1000 bytes" in out
