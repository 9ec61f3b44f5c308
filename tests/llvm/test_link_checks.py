# SPDX-License-Identifier: Apache-2.0
"""Faults that are reported before a linker runs: debug information, relocations, constructors in IR."""

from pathlib import Path

import pytest
from objects_factory import compile_object
from opwest.cli.main import main
from requirements_support import need

MANIFEST = """
version: 1
model: m
objects: [{objects}]
operators:
  op:
    args:
      - {{name: data, dtype: {dtype}, shape: [4]}}
      - {{name: result, dtype: int8, shape: [4], direction: out}}
run:
  inputs: {{x: {{dtype: {dtype}, shape: [4]}}}}
  outputs: {{y: {{dtype: int8, shape: [4]}}}}
  steps: [{{call: op, args: [x, y]}}]
"""
OP = "#include <stdint.h>\nextern const int8_t table[4];\nconst int8_t table[4] = {1, 2, 3, 4};\n"
OP += "int32_t op(const int8_t *x, int8_t *y);\n"
OP += "int32_t op(const int8_t *x, int8_t *y) { for (int i = 0; i < 4; i++) { y[i] = x[i] + table[i]; } return 0; }\n"


def errors(folder: Path, objects: str, capsys: pytest.CaptureFixture[str], dtype: str = "int8") -> str:
    (folder / "manifest.yaml").write_text(MANIFEST.format(objects=objects, dtype=dtype))
    code = main(["check", str(folder / "manifest.yaml")])
    found = capsys.readouterr().err
    assert code == (1 if "error:" in found else 0)
    assert found.count("error:") <= 1
    return found


def test_debug_information_against_the_manifest(tmp_path, capsys):
    compile_object(tmp_path, OP, flags=["-m64", "-g", "-fPIC"], name="op.o")
    objects = "{target: x86-64, files: [op.o]}"
    assert "error:" not in errors(tmp_path, objects, capsys)
    found = errors(tmp_path, objects, capsys, dtype="float32")
    assert "manifest.yaml:6:3: error: op.o: function 'op' does not fit operator 'op': argument 1 'data'" in found
    assert "expected: int32_t (const float *, int8_t *)" in found


def test_signatures_are_not_compared_without_debug_information(tmp_path, capsys):
    compile_object(tmp_path, OP, flags=["-m64", "-fPIC"], name="op.o")
    assert "error:" not in errors(tmp_path, "{target: x86-64, files: [op.o]}", capsys, dtype="float32")


def test_position_independent_code_for_a_microcontroller(tmp_path, capsys):
    need("arm-none-eabi-gcc")
    flags = ["-mcpu=cortex-m3", "-mthumb", "-fPIC"]
    code = OP.replace("const int8_t table[4] = {1, 2, 3, 4};\n", "", 1)
    compile_object(tmp_path, code, compiler="arm-none-eabi-gcc", flags=flags, name="op.o")
    text = "const signed char table[4] = {1, 2, 3, 4};\n"
    compile_object(tmp_path, text, compiler="arm-none-eabi-gcc", flags=flags[:2], name="table.o")
    found = errors(tmp_path, "{target: cortex-m3, files: [op.o, table.o]}", capsys)
    assert "manifest.yaml:4:39: error: op.o: " in found and "(GOT)" in found and "-fno-pic" in found


@pytest.mark.needs("llvmlite")
def test_constructors_in_ir(tmp_path, capsys):
    (tmp_path / "op.ll").write_text(
        "@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 65535, ptr @start, "
        "ptr null }]\ndefine internal void @start() {\n  ret void\n}\n"
        "define i32 @op(ptr %x, ptr %y) {\n  ret i32 0\n}\n"
    )
    found = errors(tmp_path, "{files: [op.ll], targets: [x86-64]}", capsys)
    assert "manifest.yaml:4:20: error: op.ll: " in found and "constructor" in found


CONTEXT = """#include <stdint.h>
struct filter { double z[2]; uint8_t primed; };
int32_t op(struct filter *s, const int8_t *x, int8_t *y);
int32_t op(struct filter *s, const int8_t *x, int8_t *y) { s->primed = 1; y[0] = x[0]; return 0; }
"""


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ("shape: [24], align: 8, struct: filter", None),
        ("shape: [24], align: 16, struct: filter", None),
        ("shape: [20], align: 8, struct: filter", "with 20 bytes, it has 24 (shape: [24])"),
        ("shape: [32], align: 8, struct: filter", "with 32 bytes, it has 24 (shape: [24])"),
        ("shape: [24], align: 4, struct: filter", "aligned to 4, it requires align: 8"),
        ("shape: [24], struct: filter", "aligned to 1, it requires align: 8"),
        ("shape: [24], align: 8, struct: biquad", "the function takes struct filter *"),
        ("shape: [24], align: 8", "is uint8 tensor (uint8_t *), the function takes struct filter *"),
    ],
)
def test_structures(tmp_path: Path, capsys: pytest.CaptureFixture[str], given: str, fault: str | None) -> None:
    """Name, size and alignment of a structure are compared with the debug information, the name also with C."""
    compile_object(tmp_path, CONTEXT, flags=["-g"], name="op.o")
    argument = f"{{{{name: s, dtype: uint8, direction: scratch, {given}}}}}"
    text = MANIFEST.replace("    args:\n", f"    args:\n      - {argument}\n")
    for objects in ("{target: x86-64, files: [op.o]}", "{files: [op.c]}"):
        (tmp_path / "manifest.yaml").write_text(text.format(objects=objects, dtype="int8"))
        main(["check", str(tmp_path / "manifest.yaml")])
        found = capsys.readouterr().err
        if objects.endswith(".o]}") and fault:
            assert fault in found
        elif fault == "the function takes struct filter *":
            assert "has the parameter `struct filter *s`, operator 'op' passes `struct biquad *`" in found
        else:
            assert "error" not in found
