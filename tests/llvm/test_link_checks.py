# SPDX-License-Identifier: Apache-2.0
"""Faults that are reported before a linker runs: signatures, debug information, relocations, constructors in IR."""

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
{convention}    args:
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


def errors(folder, objects, capsys, *, dtype="int8", convention=""):
    convention = convention and f"    convention: {convention}\n"
    (folder / "manifest.yaml").write_text(MANIFEST.format(objects=objects, dtype=dtype, convention=convention))
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
    assert "expected: int32_t (const int8_t *, int8_t *)" in found


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
def test_structures(tmp_path, capsys, given, fault):
    """Name, size and alignment of a structure are compared with the debug information, and with C that can be read."""
    compile_object(tmp_path, CONTEXT, flags=["-g"], name="op.o")
    argument = f"{{{{name: s, dtype: uint8, direction: scratch, {given}}}}}"
    text = MANIFEST.replace("    args:\n", f"    args:\n      - {argument}\n")
    for objects in ("{target: x86-64, files: [op.o]}", "{files: [op.c]}"):
        (tmp_path / "manifest.yaml").write_text(text.format(objects=objects, dtype="int8", convention=""))
        main(["check", str(tmp_path / "manifest.yaml")])
        found = capsys.readouterr().err
        if fault and (objects.endswith(".o]}") or fault.startswith(("with 20", "aligned"))):
            assert fault in found
        elif fault == "the function takes struct filter *":
            assert "has the parameter `struct filter *s`, operator 'op' passes `struct biquad *`" in found
        else:
            assert "error" not in found


# --- Functions of TVM's conventions against the manifest: by debug information, by IR, by C source

# As C programmers write them, and as TVM does.
HEAD = "#include <stdint.h>\ntypedef union { int64_t v_int64; void *v_handle; } TVMValue;\n"
HEAD += "typedef struct { int32_t type_index; int64_t v_int64; } TVMFFIAny;\n"
FITTING = {
    "packed": (
        "int op(TVMValue *args, int *type_codes, int num_args, TVMValue *ret, int *ret_code, void *resource)",
        "int32_t op(void* args, int32_t* type_codes, int32_t num_args, void* ret, int32_t* ret_code, void* resource)",
    ),
    "ffi": (
        "int op(void *self, const TVMFFIAny *args, int32_t num_args, TVMFFIAny *result)",
        "int32_t op(void* self_handle, void* args, int32_t num_args, void* result)",
    ),
    "unpacked": ("int32_t op(const int8_t *data, int8_t *result)",),
}
IR = {
    "packed": "define i32 @op(ptr %a, ptr %c, i32 %n, ptr %r, ptr %rc, ptr %h)",
    "ffi": "define i32 @op(ptr %s, ptr %a, i32 %n, ptr %r)",
    "unpacked": "define i32 @op(ptr %x, ptr %y)",
}
CONVENTIONS = tuple(FITTING)


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("made", ["object", "source", "ir"])
def test_every_convention_against_every_function(made, convention, tmp_path, capsys):
    if made == "ir":
        need("llvmlite")
    for other in CONVENTIONS:
        for prototype in FITTING[other] if made != "ir" else [IR[other]]:
            text = f"{HEAD}{prototype};\n{prototype} {{ return 0; }}\n"
            if made == "object":
                compile_object(tmp_path, text, flags=["-m64", "-g", "-fPIC"], name="op.o")
                objects = "{target: x86-64, files: [op.o]}"
            elif made == "source":
                (tmp_path / "op.c").write_text(text)
                objects = "{files: [op.c]}"
            else:
                (tmp_path / "op.ll").write_text(f"{prototype} {{\n  ret i32 0\n}}\n")
                objects = "{target: x86-64, files: [op.ll]}"
            found = errors(tmp_path, objects, capsys, convention=convention)
            assert found.count("error:") == (other != convention), found
            if other != convention:
                assert "'op'" in found and "manifest.yaml:6:3: error: " in found


@pytest.mark.parametrize(
    ("prototype", "said"),
    [
        ("int32_t op(const int8_t **in, int8_t **out)", None),
        ("int32_t op(const int8_t *const *in, int8_t *const *out)", None),
        ("int32_t op(int8_t **in, int8_t *out[])", None),
        ("int32_t op(const void **in, void **out)", None),
        ("int32_t op(const int8_t **in, int16_t **out)", "int16_t **"),
        ("int32_t op(const int8_t *in, int8_t **out)", "const int8_t *"),
        ("int32_t op(const int8_t **in, int8_t **out, int n)", "3"),
    ],
)
@pytest.mark.parametrize("made", ["object", "source"])
def test_tables_of_pointers(made, prototype, said, tmp_path, capsys):
    compile_object(tmp_path, f"{HEAD}{prototype};\n{prototype} {{ return 0; }}\n", flags=["-m64", "-g"], name="op.o")
    text = MANIFEST.replace("[4]}}\n      -", "[4], table: in}}\n      -").replace(
        "out}}\nrun", "out, table: out}}\nrun"
    )
    objects = "{target: x86-64, files: [op.o]}" if made == "object" else "{files: [op.c]}"
    convention = "    convention: pointer-tables\n"
    (tmp_path / "manifest.yaml").write_text(text.format(objects=objects, dtype="int8", convention=convention))
    main(["check", str(tmp_path / "manifest.yaml")])
    found = capsys.readouterr().err
    assert found.count("error:") == (said is not None), found
    if said is not None:
        assert said in found and "  expected: " in found


def test_functions_of_casadi_have_tables(tmp_path, capsys):
    """A part of the function, such as f_work, can be an operator of its own."""
    text = f"{OP}int op_work(void);\nint op_work(void) {{ return 0; }}\nint op_sparsity_in(void);\n"
    compile_object(tmp_path, f"{text}int op_sparsity_in(void) {{ return 0; }}\n", flags=["-m64"], name="op.o")
    found = errors(tmp_path, "{target: x86-64, files: [op.o]}", capsys)
    assert "op.o: operator 'op' is unpacked, but CasADi compiled the function 'op'" in found
    assert "expected: convention: pointer-tables\n  hint: the object defines 'op_work' and 'op_sparsity_in'" in found


@pytest.mark.parametrize(
    ("prototype", "said"),
    [
        (
            "int op(TVMValue *args, int *type_codes, int64_t num_args, TVMValue *ret, int *ret_code, void *resource)",
            "argument 3 'num_args' is int32_t, the function takes",
        ),
        (
            "int op(TVMValue *args, float *type_codes, int num_args, TVMValue *ret, int *ret_code, void *resource)",
            "argument 2 'type_codes' is int32_t *, the function takes",
        ),
        (
            "void op(TVMValue *args, int *type_codes, int num_args, TVMValue *ret, int *ret_code, void *resource)",
            "declared to return a status (int32_t), the function returns void",
        ),
    ],
)
def test_debug_information_of_a_packed_function(prototype, said, tmp_path, capsys):
    body = "{ }" if prototype.startswith("void") else "{ return 0; }"
    compile_object(tmp_path, f"{HEAD}{prototype};\n{prototype} {body}\n", flags=["-m64", "-g", "-fPIC"], name="op.o")
    found = errors(tmp_path, "{target: x86-64, files: [op.o]}", capsys, convention="packed")
    assert found.count("error:") == 1 and said in found
    assert "expected: int32_t (void *, int32_t *, int32_t, void *, int32_t *, void *)" in found
