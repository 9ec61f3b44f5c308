# SPDX-License-Identifier: Apache-2.0
"""Warnings and notes of `check` for valid manifests, and manifests without any."""

from pathlib import Path

import pytest
from opwest.cli.main import main

SOURCE = """\
#include <stdint.h>
typedef int8_t element; /* a name of its own: the dtype of some tests is another */
int32_t relu(const element *a, element *b) { b[0] = a[0]; return 0; }
struct device;
int32_t npu(const element *a, element *b, const struct device *dev) { b[0] = a[0]; return dev == 0; }
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
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "relu.c").write_text(SOURCE)
    (tmp_path / "weight.bin").write_bytes(bytes(4))


def remarks(capsys: pytest.CaptureFixture[str], *edits: tuple[str, str]) -> str:
    """Return the output for a valid manifest."""
    text = MANIFEST
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    Path("m.yaml").write_text(text)
    status = main(["check", "m.yaml"])
    printed = capsys.readouterr().err
    assert status == 0, printed
    return printed


def test_no_remarks(capsys: pytest.CaptureFixture[str]) -> None:
    assert remarks(capsys) == ""


def test_unused_input(capsys: pytest.CaptureFixture[str]) -> None:
    printed = remarks(capsys, (INPUT, f"{INPUT}, more: {{dtype: int8, shape: [4]}}"))
    assert printed == "m.yaml:11:46: warning: unused input 'more'\n"


def test_unused_constant_and_device(capsys: pytest.CaptureFixture[str]) -> None:
    more = (
        "constants:\n  weight: {file: weight.bin, dtype: int8, shape: [4]}\n"
        "devices:\n  npu0: {devicetree: {nodelabel: npu0}}\noperators:\n"
    )
    assert remarks(capsys, ("operators:\n", more)) == (
        "m.yaml:6:3: warning: unused constant 'weight'\nm.yaml:8:3: warning: unused device 'npu0'\n"
    )


def test_tensor_that_nothing_reads(capsys: pytest.CaptureFixture[str]) -> None:
    printed = remarks(capsys, (STEP, STEP + "    - {call: relu, args: [image, spare]}\n"))
    assert printed == "m.yaml:15:34: warning: tensor 'spare' is written but never read\n"


def test_program_of_a_device(capsys: pytest.CaptureFixture[str]) -> None:
    printed = remarks(
        capsys,
        ("operators:\n", "devices:\n  npu0: {devicetree: {nodelabel: npu0}, program: weight.bin}\noperators:\n"),
        ("  relu:\n", "  npu:\n    device: {program: weight}\n"),
        ("call: relu", "call: npu, device: npu0"),
    )
    assert printed == ""


def test_missing_optional_objects(capsys: pytest.CaptureFixture[str]) -> None:
    entry = "  - {files: [relu.c]}\n"
    printed = remarks(capsys, (entry, entry + "  - {target: cortex-m3, files: [missing.o], optional: true}\n"))
    assert printed == "m.yaml:5:32: note: target 'cortex-m3' is skipped: 'missing.o' does not exist\n"


@pytest.mark.parametrize("name", ["on", "no", "y", "off"])
def test_operators_with_names_that_yaml_1_1_takes_for_booleans(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    edits = (("  relu:\n", f"  {name}:\n    symbol: relu\n"), ("call: relu", f"call: {name}"))
    assert remarks(capsys, *edits) == ""


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bool", "int64", "uint32"])
def test_quantization_without_zero_point(dtype: str, capsys: pytest.CaptureFixture[str]) -> None:
    edits = (
        (INPUT, f"image: {{dtype: {dtype}, shape: [4], quantization: {{scale: 1e-3}}}}"),
        ("data, dtype: int8", f"data, dtype: {dtype}"),
    )
    assert remarks(capsys, *edits) == ""


def test_shared_shapes(capsys: pytest.CaptureFixture[str]) -> None:
    edits = (
        (INPUT, "image: {dtype: int8, shape: &vector [4]}"),
        ("scores: {dtype: int8, shape: [4]}", "scores: {dtype: int8, shape: *vector}"),
    )
    assert remarks(capsys, *edits) == ""


def test_whole_numbers_written_with_a_point_or_an_exponent(capsys: pytest.CaptureFixture[str]) -> None:
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
