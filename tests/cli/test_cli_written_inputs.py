# SPDX-License-Identifier: Apache-2.0
"""Operators that write their inputs: a warning of `check`, an error of `opwest run --host`."""

import subprocess

import numpy as np
import pytest
from golden_support import PROJECTS, copy_project
from requirements_support import need, need_compiler
from small_models import generated, given

MANIFEST = """\
version: 1
model: m
boards: [native_sim/native/64]
objects:
  - {objects}
operators:
  f:
    args:
      - {{name: x, dtype: int32, shape: [8]}}
      - {{name: y, dtype: int32, shape: [8], direction: out}}
run:
  inputs: {{x: {{dtype: int32, shape: [8]}}}}
  outputs: {{y: {{dtype: int32, shape: [8]}}, z: {{dtype: int32, shape: [8]}}}}
  steps: [{{call: f, args: [x, y]}}, {{call: f, args: [x, z]}}]
"""
WRITES = """\
#include <stdint.h>
int32_t f(int32_t *x, int32_t *y) { for (int i = 0; i < 8; i++) y[i] = x[i]++ * 2; return 0; }
"""
WARNING = (
    "function 'f' can write the input 'x': its parameter is a pointer to a type without const\n"
    "  expected: int32_t (const int32_t *, int32_t *)\n"
    "  hint: add const, or declare direction: out or inout\n"
)
WRITES_INPUT = "function 'f' writes the input 'x'\n  expected: direction: "
WARNINGS = {
    "source": f"f.c:2: {WRITES_INPUT}inout\n",
    "object": f"f.o: {WARNING}",
    "ir": f"f.ll: {WRITES_INPUT}out, or inout if the operator also reads it\n",
}
ERROR = (
    "error: step 0 (f) wrote its input 'x': element 0 was 5, is 6\n"
    "  expected: an operator that writes only arguments with direction: out, inout or scratch\n"
    "  hint: declare the argument with direction: out, or inout if the operator also reads it; or do not write it\n"
)
FIVES = np.arange(5, 13, dtype=np.int32)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["source", "sanitized", "object", "ir"])
def test_input_is_written(kind, tmp_path, opwest, succeed):
    need_compiler("gcc", ("-fsanitize=address,undefined",), link=True)
    objects = "{files: [f.c]}"
    (tmp_path / "f.c").write_text(WRITES)
    if kind == "object":
        objects = "{target: x86-64, files: [f.o]}"
        subprocess.run(["gcc", "-O1", "-g", "-c", "f.c", "-o", "f.o"], cwd=tmp_path, check=True)
    if kind == "ir":
        need("llvmlite")
        need("clang")
        objects = "{target: x86-64, files: [f.ll]}"
        subprocess.run(["clang", "-O1", "-S", "-emit-llvm", "f.c", "-o", "f.ll"], cwd=tmp_path, check=True)
    app = generated(succeed, tmp_path, MANIFEST.format(objects=objects), {"f.c": WRITES})
    done = opwest("check", tmp_path / "manifest.yaml")
    warning = f"{tmp_path}/manifest.yaml:9:16: warning: {WARNINGS.get(kind, WARNINGS['source'])}"
    assert done.err.count("warning: ") == 1 and warning in done.err, done.err
    sanitize = ["--sanitize"] if kind == "sanitized" else []
    done = opwest("run", app, "--host", *given(tmp_path, x=FIVES), *sanitize)
    assert (done.code, done.err.endswith(ERROR)) == (1, True), done.err


def test_application_is_checked_and_measurements_are_not_disturbed(tmp_path, succeed, fail):
    need("cc")
    app = generated(succeed, tmp_path, MANIFEST.format(objects="{files: [f.c]}"), {"f.c": WRITES})
    done = fail("run", app, "--host")
    assert "error: step 0 (f) wrote its input 'x': element 0 was 0, is 1\n" in done.err
    assert "profile: 1 run" in succeed("run", app, "--host", "--profile", *given(tmp_path, x=FIVES)).out


TWO = """\
version: 1
model: m
boards: [native_sim/native/64]
objects:
  - {objects}
memory:
  sram: {{size: 4KiB}}
operators:
  f:
    args:
      - {{name: x, dtype: int16, shape: [4]}}
      - {{name: w, dtype: float32, shape: [2, 2]}}
      - {{name: y, dtype: int16, shape: [4], direction: out{extra}}}
constants:
  table: {{file: table.npy{pool}}}
run:
  inputs: {{x: {{dtype: int16, shape: [4]}}}}
  outputs: {{y: {{dtype: int16, shape: [4]}}}}
  steps:
    - {{call: f, args: [x, table, a]}}
    - {{call: f, args: [a, table, y]}}
"""
BODY = """\
#include <stdint.h>
int32_t f(const int16_t *x, const float *w, int16_t *y)
{{
	for (int i = 0; i < 4; i++)
		y[i] = (int16_t)(x[i] + w[i]);
	{}
	return 0;
}}
"""


CONSTANT, INTERMEDIATE = "((float *)w)[3] = 9.5f;", "if (x[2] == 10) ((int16_t *)x)[2] = -1;"
WROTE = "step {} (f) wrote its input {}"
CHANGES = {
    "constant": (CONSTANT, "", WROTE.format(0, "'w': element 3, which is 4.5, is in read-only memory")),
    "constant in RAM": (CONSTANT, ", pool: sram", WROTE.format(0, "'w': element 3 was 4.5, is 9.5")),
    "intermediate": (INTERMEDIATE, "", WROTE.format(1, "'x': element 2 was 10, is -1")),
    "none": ("", "", ""),
}


@pytest.mark.parametrize("metadata", ["c", pytest.param("llvm", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("body", "pool", "message"), CHANGES.values(), ids=CHANGES)
def test_constants_and_intermediates(body, pool, message, metadata, tmp_path, opwest, succeed):
    need("gcc")
    objects = "{files: [f.c]}"
    (tmp_path / "f.c").write_text(BODY.format(body))
    if metadata == "llvm":
        need("llvmlite")
        objects = "{target: x86-64, files: [f.o]}"
        subprocess.run(["gcc", "-O1", "-c", "f.c", "-o", "f.o"], cwd=tmp_path, check=True)
    np.save(tmp_path / "table.npy", np.array([[1.5, 2.5], [3.5, 4.5]], np.float32))
    manifest = TWO.format(objects=objects, pool=pool, extra="")
    app = generated(succeed, tmp_path, manifest, {"f.c": BODY.format(body)}, f"--metadata={metadata}")
    done = opwest("run", app, "--host", *given(tmp_path, x=np.array([5, 6, 7, 8], np.int16)))
    assert done.code == (1 if message else 0)
    assert f"error: {message}\n" in done.err if message else done.err == "", done.err


def test_result_in_place_is_no_change(tmp_path, succeed):
    """The planner puts the result of the second step over its input."""
    need("gcc")
    np.save(tmp_path / "table.npy", np.ones((2, 2), np.float32))
    manifest = TWO.format(objects="{files: [f.c]}", pool="", extra=", in_place: [x]")
    manifest = manifest.replace("[a, table, y]", "[a, table, b]")
    manifest += "    - {call: f, args: [b, table, y]}\n"
    app = generated(succeed, tmp_path, manifest, {"f.c": BODY.format("")})
    header = (app / "models" / "m" / "src" / "m_run.c").read_text()
    assert "OFFSET_A 0 " in header and "OFFSET_B 0 " in header
    done = succeed("run", app, "--host", *given(tmp_path, x=np.array([5, 6, 7, 8], np.int16)))
    assert "y: int16 [4]: [ 8  9 10 11]" in done.out


WRITABLE = ("int32_t *", "int32_t *const ", "void *", "volatile int32_t *", "number *", "eight *")
READ_ONLY = ("const int32_t *", "int32_t const *restrict ", "const void *", "fixed *", "const eight *", "pointer ")
PARAMETERS = {
    **{f"{text}x": True for text in WRITABLE},
    "int32_t x[8]": True,
    **{f"{text}x": False for text in READ_ONLY},
    "const int32_t x[8]": False,
    "fixed_again x[static 8]": False,
}
"""Whether `check` warns."""
TYPES = (
    "#include <stdint.h>\ntypedef int32_t number;\ntypedef const int32_t fixed;\ntypedef fixed fixed_again;\n"
    "typedef int32_t eight[8];\ntypedef const int32_t *pointer;\n"
)


@pytest.mark.parametrize("kind", ["c", "cpp", "object"])
def test_qualifiers(kind, tmp_path, succeed):
    objects = "{target: x86-64, files: [f.o]}" if kind == "object" else f"{{files: [f.{kind}]}}"
    (tmp_path / "m.yaml").write_text(MANIFEST.format(objects=objects))
    for parameter, warns in PARAMETERS.items():
        if kind == "object" and parameter == "const eight *x":
            continue  # GCC's debug information lacks the const of such a typedef
        source = f"{TYPES}int32_t f({parameter}, int32_t *y) {{ return y != (void *)x; }}\n"
        if kind == "cpp":
            source = source.replace("int32_t f(", 'extern "C" int32_t f(').replace("restrict", "__restrict")
            source = source.replace("[static 8]", "[8]")
        (tmp_path / f"f.{'cpp' if kind == 'cpp' else 'c'}").write_text(source)
        if kind == "object":
            need("gcc")
            subprocess.run(["gcc", "-g", "-c", "f.c", "-o", "f.o"], cwd=tmp_path, check=True)
        done = succeed("check", tmp_path / "m.yaml")
        assert ("can write the input 'x'" in done.err) == bool(warns), (parameter, done.err)


def test_structures(tmp_path, opwest):
    """A context that the operator only reads."""
    text = MANIFEST.format(objects="{files: [f.c]}").replace(
        "{name: x, dtype: int32, shape: [8]}", "{name: x, dtype: uint8, shape: [32], struct: context, align: 4}"
    )
    text = text.replace("x: {dtype: int32, shape: [8]}", "x: {dtype: uint8, shape: [32], align: 4}")
    (tmp_path / "m.yaml").write_text(text)
    struct = "struct context { int a[8]; };\n"
    for qualifier, count in (("", 1), ("const ", 0)):
        (tmp_path / "f.c").write_text(
            f"{struct}int f({qualifier}struct context *x, int *y) {{ return *y = x->a[0]; }}\n"
        )
        assert opwest("check", tmp_path / "m.yaml").err.count("can write the input 'x'") == count


FORGOTTEN = """\
#include <stdint.h>
int32_t f({}int32_t *x, int32_t *y) {{ for (int i = 0; i < 8; i++) y[i] = x[i]; return 0; }}
"""
HINTS = {
    # The kind of file, the compiler, its options; the hint for an output without direction: out.
    "source": ((), "'f' writes 'y': direction: out?"),
    "ir": (("clang", "-O1", "-S", "-emit-llvm"), "'f' writes 'y': direction: out?"),
    "-g": (("gcc", "-g", "-c"), "'f' has no const at 'y': direction: out?"),
    "object": (("gcc", "-c"), "known names: x; if 'f' writes 'y', declare direction: out"),
}


@pytest.mark.parametrize(("command", "hint"), HINTS.values(), ids=HINTS)
def test_forgotten_direction(command, hint, tmp_path, opwest):
    (tmp_path / "f.c").write_text(FORGOTTEN.format("const "))
    objects = "{files: [f.c]}"
    if command:
        need(command[0])
        objects = f"{{target: x86-64, files: [f{'.ll' if 'clang' in command else '.o'}]}}"
        if "clang" in command:
            need("llvmlite")
        subprocess.run([*command, "f.c", "-o", objects.split("[")[1][:-2]], cwd=tmp_path, check=True)
    text = MANIFEST.format(objects=objects).replace(", direction: out", "").replace("[x, y]}", "[x, middle]}")
    (tmp_path / "m.yaml").write_text(text.replace("[x, z]}", "[middle, z]}"))
    done = opwest("check", tmp_path / "m.yaml")
    assert done.code == 1 and "tensor 'middle' is read but never written\n" in done.err
    assert f"\n  hint: {hint}\n" in done.err, done.err


@pytest.mark.slow
def test_golden_manifests_declare_what_their_sources_do(tmp_path, succeed):
    for name in PROJECTS:
        found = succeed("check", *copy_project(name, tmp_path / name)).err
        assert "without const" not in found and "writes the input" not in found


def test_functions_that_tvm_generates(tmp_path, opwest):
    """Code that TVM generates has no `const`."""
    for symbol, count in (("tvmgen_default_fused_add", 0), ("default_fused_add", 1)):
        text = MANIFEST.format(objects="{files: [f.c]}").replace("  f:\n", f"  f:\n    symbol: {symbol}\n")
        (tmp_path / "m.yaml").write_text(text)
        source = f"#include <stdint.h>\nint32_t {symbol}(int32_t *x, int32_t *y) {{ return y != x; }}\n"
        (tmp_path / "f.c").write_text(source)
        done = opwest("check", tmp_path / "m.yaml")
        assert (done.code, done.err.count("can write the input 'x'")) == (0, count), done.err
