# SPDX-License-Identifier: Apache-2.0
"""Functions of TVM's conventions against the manifest: by debug information, by IR, by C source."""

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
    convention: {convention}
    args:
      - {{name: data, dtype: int8, shape: [4]}}
      - {{name: result, dtype: int8, shape: [4], direction: out}}
run:
  inputs: {{x: {{dtype: int8, shape: [4]}}}}
  outputs: {{y: {{dtype: int8, shape: [4]}}}}
  steps: [{{call: op, args: [x, y]}}]
"""
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


def errors(folder, objects, convention, capsys):
    (folder / "manifest.yaml").write_text(MANIFEST.format(objects=objects, convention=convention))
    code = main(["check", str(folder / "manifest.yaml")])
    found = capsys.readouterr().err
    assert code == (1 if "error:" in found else 0)
    return found


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
            found = errors(tmp_path, objects, convention, capsys)
            assert found.count("error:") == (other != convention), found
            if other != convention:
                assert "'op'" in found and "manifest.yaml:6:3: error: " in found


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
    found = errors(tmp_path, "{target: x86-64, files: [op.o]}", "packed", capsys)
    assert found.count("error:") == 1 and said in found
    assert "expected: int32_t (void *, int32_t *, int32_t, void *, int32_t *, void *)" in found
