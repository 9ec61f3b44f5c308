# SPDX-License-Identifier: Apache-2.0
"""The content of a draft: targets, files, operators, undefined symbols, and the guessed run."""

import pytest
import yaml
from drafting_support import draft, drafted
from objects_factory import compile_object, make_archive
from opwest.base.diagnostics import Diagnostics, OpwestError
from opwest.drafting.draft import draft_manifest
from opwest.model.inputs.targets import make_target
from opwest.objects.compat import abi_faults
from opwest.objects.inspect import inspect_object
from requirements_support import need
from scaling import check_linear

F = "int f(const int *x, int *y) { return *y = *x; }"
IR_WITH_EFFECTS = """declare ptr @malloc(i64)
declare void @free(ptr)
declare i32 @rand()
define i32 @f(ptr %x, ptr %y) {
  %p = call ptr @malloc(i64 8)
  %r = call i32 @rand()
  store i32 %r, ptr %y
  call void @free(ptr %p)
  ret i32 0
}
"""
ARM, RISCV = "arm-none-eabi-gcc", "riscv64-unknown-elf-gcc"
M4F = ["-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"]
TARGETS = [
    ("gcc", ["-m64"], "x86-64"),
    ("gcc", ["-m32"], "i386"),
    (ARM, ["-mcpu=cortex-m0plus", "-mthumb"], "cortex-m0"),
    (ARM, ["-mcpu=cortex-m3", "-mthumb"], "cortex-m3"),
    (ARM, ["-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=soft"], "cortex-m4"),
    (ARM, M4F, "cortex-m4f"),
    (ARM, ["-mcpu=cortex-m33", "-mthumb", "-mfloat-abi=soft"], "cortex-m33"),
    (RISCV, ["-march=rv32imac", "-mabi=ilp32"], "rv32imac"),
    (RISCV, ["-march=rv32imafc", "-mabi=ilp32f"], "rv32imafc"),
    (RISCV, ["-march=rv64gc", "-mabi=lp64d", "-mcmodel=medany"], "rv64gc"),
]


@pytest.mark.parametrize(("compiler", "flags", "target"), TARGETS, ids=[t[2] for t in TARGETS])
def test_most_basic_matching_target(tmp_path, compiler, flags, target):
    path = compile_object(tmp_path, F, compiler, flags)
    assert drafted(path)["objects"] == [{"target": target, "files": ["operators.o"]}]


def test_other_targets_are_named(tmp_path):
    text = draft(compile_object(tmp_path, F, ARM, M4F))
    assert "  # guessed; also compatible: cortex-m7f, " in text


def test_directory_with_a_target_name_selects_the_target(tmp_path):
    path = compile_object(
        tmp_path / "objects" / "cortex-m7", F, ARM, ["-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=soft"]
    )
    other = compile_object(tmp_path / "objects" / "x86-64", F, ARM, ["-mcpu=cortex-m3", "-mthumb"])
    assert drafted(path, other, folder=tmp_path)["objects"] == [
        {"target": "cortex-m7", "files": ["objects/cortex-m7/operators.o"]},
        {"target": "cortex-m3", "files": ["objects/x86-64/operators.o"]},
    ]


def test_two_sets_for_one_processor_get_two_targets(tmp_path):
    flags = ["-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=soft"]
    one, two = (compile_object(tmp_path / name, F, ARM, flags) for name in ("a", "b"))
    assert [e["target"] for e in drafted(one, two, folder=tmp_path)["objects"]] == ["cortex-m4", "cortex-m7"]


def test_given_target(tmp_path):
    path = compile_object(tmp_path, F, ARM, ["-mcpu=cortex-m3", "-mthumb"])
    assert drafted(path, targets=("cortex-m55",))["objects"][0]["target"] == "cortex-m55"
    assert "also compatible" not in draft(path, targets=("cortex-m55",))
    with pytest.raises(OpwestError, match=r"operators\.o: compiled for arm, 32 bits"):
        draft(path, targets=("x86-64",))
    with pytest.raises(OpwestError, match="unknown target 'cortex-m5'"):
        draft(path, targets=("cortex-m5",))


@pytest.mark.parametrize(
    ("compiler", "flags", "name"),
    [
        (ARM, ["-mcpu=cortex-a9", "-mfloat-abi=soft"], "arm-v7-A-soft"),
        (ARM, ["-mcpu=cortex-m3", "-mthumb", "-mbig-endian"], "arm-big-v7-M-soft"),
        (RISCV, ["-march=rv32im_zba", "-mabi=ilp32"], "riscv-rv32i_m_zba_zmmul-soft"),
    ],
)
def test_declared_target_matches(tmp_path, compiler, flags, name):
    path = compile_object(tmp_path, F, compiler, flags)
    manifest = drafted(path)
    ((declared, entry),) = manifest["targets"].items()
    assert manifest["objects"] == [{"target": declared, "files": ["operators.o"]}]
    assert declared.split("-")[0] == name.split("-")[0] and entry["kconfig"] == "FILL_IN"
    entry["kconfig"] = {}
    (member,) = inspect_object(path).members
    assert abi_faults(member.abi, make_target(declared, entry)) == []


@pytest.mark.needs("llvmlite")
def test_targets_of_ir(tmp_path):
    body = "define i32 @f(ptr readonly %x, ptr writeonly %y) { ret i32 0 }\n"
    plain, made = tmp_path / "plain.ll", tmp_path / "made.ll"
    plain.write_text(body)
    made.write_text(f'target triple = "thumbv7em-unknown-none-eabi"\n{body.replace("@f", "@g")}')
    assert drafted(plain)["objects"] == [{"files": ["plain.ll"], "targets": ["FILL_IN"]}]
    assert drafted(made)["objects"] == [{"files": ["made.ll"], "targets": ["cortex-m4"]}]
    both = drafted(plain, made, targets=("x86-64", "cortex-m3"))["objects"]
    assert both == [{"files": ["plain.ll", "made.ll"], "targets": ["x86-64", "cortex-m3"]}]
    beside = compile_object(tmp_path, F.replace("f(", "h("))
    assert drafted(plain, beside)["objects"][1] == {"files": ["plain.ll"]}


def test_helpers_libraries_and_programs_are_omitted(tmp_path):
    conv = "#include <math.h>\nint row(const int *, int *); int npu_submit(int);\n"
    conv += "int conv(const int *x, int *y) { *y = expf(*x); npu_submit(1); return row(x, y); }"
    one = compile_object(tmp_path, conv, flags=["-g"], name="conv.o")
    two = compile_object(
        tmp_path,
        "int row(const int *x, int *y) { return *y = *x; } void *memcpy(void *d, const void *s, unsigned long n) "
        "{ return d; } int __tvm_ffi_conv(void *self, void *args, int n, void *result) { return n; } "
        "int unused(const int *x, int *y) { return *y = *x; }",
        flags=["-g", "-fno-builtin"],
        name="row.o",
    )
    main = tmp_path / "main.c"
    main.write_text("int conv(const int *, int *); int main(void) { return conv(0, 0); }\n")
    text, manifest = draft(one, two, main), drafted(one, two, main)
    assert set(manifest["operators"]) == {"conv", "unused", "conv_ffi"}
    assert manifest["operators"]["conv_ffi"] == {"symbol": "__tvm_ffi_conv", "convention": "ffi", "args": ["FILL_IN"]}
    assert "# - row: a helper, called by conv.o\n" in text
    assert "# - memcpy: a function of the C library\n" in text
    assert "# - main.c: a program: it defines main(); C sources can be listed in 'application'\n" in text
    assert manifest["objects"] == [{"target": "x86-64", "files": ["conv.o", "row.o"]}]
    assert manifest["externals"] == [{"symbol": "npu_submit", "from": "FILL_IN"}]
    assert "# for conv.o\n" in text
    faults = Diagnostics()
    draft_manifest([one, two, main], tmp_path / "manifest.yaml", None, [], faults)
    assert [str(fault).removeprefix("opwest: note: skipped ") for fault in faults] == [
        "function row: a helper, called by conv.o",
        "function memcpy: a function of the C library",
        "file main.c: a program: it defines main(); C sources can be listed in 'application'",
    ]


def test_unlinked_members_need_no_symbols(tmp_path):
    one = compile_object(tmp_path, F, flags=["-g"], name="one.o")
    two = compile_object(tmp_path, "int absent(void); int two(void) { return absent(); }", flags=["-g"], name="two.o")
    manifest = drafted(make_archive(tmp_path / "lib.a", [one, two]))
    assert list(manifest["operators"]) == ["f"] and "externals" not in manifest


def test_state_requires_a_decision(tmp_path):
    path = compile_object(tmp_path, "static int calls;\nint f(const int *x, int *y) { return *y = *x + calls++; }")
    assert drafted(path)["objects"][0]["stateful"] == "FILL_IN"
    assert "true if the state is intended: calls; else remove it" in draft(path)


@pytest.mark.parametrize("suffix", ["o", "c", "ll"])
def test_effects_require_a_decision(tmp_path, suffix):
    text = (
        "#include <stdlib.h>\nint f(const int *x, int *y);\n"
        "int f(const int *x, int *y) { int *volatile p = malloc(8); *p = *x; *y = *p + rand(); free(p); return 0; }\n"
    )
    if suffix == "ll":
        need("llvmlite")
    path = tmp_path / f"f.{suffix}"
    if suffix == "o":
        path = compile_object(tmp_path, text)
    else:
        path.write_text(text if suffix == "c" else IR_WITH_EFFECTS)
    entry = drafted(path)["objects"][0]
    assert (entry["stateful"], entry["uses"]) == ("FILL_IN", "FILL_IN")
    shown = draft(path)
    assert "true if the state is intended: rand; else remove it" in shown
    assert "[heap] if these effects are intended: " in shown
    assert "malloc" in shown and "free" in shown


def test_functions_that_a_target_lacks(tmp_path):
    one = compile_object(tmp_path, F, name="one.o")
    two = compile_object(tmp_path, F.replace("f(", "g("), "gcc", ["-m32"], name="two.o")
    assert "  f:  # in one.o; not in the files for i386\n" in draft(one, two)


def test_unlinkable_object_causes_a_warning(tmp_path):
    path = compile_object(tmp_path, f"{F}\n__thread int t; int *g(void) {{ return &t; }}")
    faults = Diagnostics()
    draft_manifest([path], tmp_path / "manifest.yaml", None, [], faults)
    (fault,) = faults
    assert fault.severity == "warning" and "thread-local" in fault.message


CHAIN = """#include <stdint.h>
int32_t last(const int32_t *scores, int32_t *label) { return 0; }
int32_t dense(const int8_t *pooled, const int8_t *weight, const int32_t *bias, int32_t *scores) { return 0; }
int32_t pool(const int8_t *image, int8_t *pooled, int32_t stride) { return 0; }
"""


def test_run_is_drafted_from_names(tmp_path):
    path = tmp_path / "chain.c"
    path.write_text(CHAIN)
    run = drafted(path)["run"]
    assert run == {
        "inputs": {"image": {"dtype": "int8", "shape": "FILL_IN"}},
        "outputs": {"label": {"dtype": "int32", "shape": "FILL_IN"}},
        "steps": [
            {"call": "pool", "args": ["image", "pooled", "FILL_IN_stride"]},
            {"call": "dense", "args": ["pooled", "dense_weight", "dense_bias", "scores"]},
            {"call": "last", "args": ["scores", "label"]},
        ],
    }
    assert drafted(path)["constants"] == {
        "dense_weight": {"file": "FILL_IN", "key": "dense_weight"},
        "dense_bias": {"file": "FILL_IN", "key": "dense_bias"},
    }


def test_results_can_have_names_of_constants(tmp_path):
    """With `const` on other arguments, a mean without it is a result; a weight without it is a constant."""
    path = tmp_path / "mean.c"
    path.write_text(
        "#include <stdint.h>\n"
        "void average(const float x[4], float weights[4], float mean[1]) {}\n"
        "void push(const float mean[1], float history[8]) {}\n"
    )
    draft = drafted(path)
    assert [a.get("direction", "in") for a in draft["operators"]["average"]["args"]] == ["in", "in", "out"]
    assert [step["args"] for step in draft["run"]["steps"]] == [["x", "average_weights", "mean"], ["mean", "history"]]
    assert list(draft["constants"]) == ["average_weights"]


def test_outputs_take_no_names_of_other_tensors(tmp_path):
    path = tmp_path / "chain.c"
    path.write_text(
        "#include <stdint.h>\n"
        "int f1(const int8_t *x, float *y) { return 0; }\n"
        "int f2(const float *y, float *z) { return 0; }\n"
        "int f3(const float *z, int8_t *y) { return 0; }\n"
        "float f4(const float *value, const float *result, int returned, int *z) { return 0; }\n"
    )
    draft = drafted(path)
    assert draft["operators"]["f4"]["returns"] == {"name": "result_2", "dtype": "float32"}
    assert [step["args"][1] for step in draft["run"]["steps"][:3]] == ["y", "z", "f3_y"]


@pytest.mark.slow
def test_time_is_linear_in_the_functions(tmp_path):
    def use(count):
        path = tmp_path / f"f{count}.c"
        text = (
            "struct s@ { int v; };\n/** @param x the @ */\nint f@(const signed char *x, struct s@ *s) { return 0; }\n"
        )
        path.write_text("".join(text.replace("@", str(n)) for n in range(count)))

        def draft():
            assert len(drafted(path)["operators"]) == count

        return draft

    check_linear(use(50), use(400))


@pytest.mark.parametrize(
    "source",
    [
        "int f(const int *a, int *b) { return 0; } int g(const int *b, int *a) { return 0; }",  # a ring
        "int f(const int *a, int *a2) { return 0; } int g(const int *a2, int *a2x, int *a) { return 0; }",
        "int f(const int *x, int *y) { return 0; } int g(const float *x, float *y) { return 0; }",
        "int f(int *x) { return 0; }",
        "int f(const int *x, int *x_) { return 0; } int f_x(const int *x_, int *x) { return 0; }",
    ],
)
def test_runs_are_drafted_from_any_signatures(tmp_path, source):
    path = tmp_path / "f.c"
    path.write_text(source)
    run = drafted(path)["run"]
    assert len(run["steps"]) == len(drafted(path)["operators"])
    written = [name for step in run["steps"] for name in step["args"] if not name.startswith("FILL_IN")]
    assert run["inputs"] and run["outputs"] and written is not None


def test_file_names_that_yaml_would_not_read_as_strings(tmp_path):
    for index, name in enumerate(["a b.c", "# x.c", "x: y.c", "[x].c", "1.c", "ü.c", "'q\".c"]):
        path = tmp_path / name
        path.write_text(F.replace("f(", f"f{index}("))
        assert drafted(path)["objects"] == [{"files": [name]}]


def test_files_outside_the_directory(tmp_path):
    path = compile_object(tmp_path / "a", F)
    with pytest.raises(OpwestError, match="outside the manifest's directory"):
        draft(path, folder=tmp_path / "b")
    assert drafted(path, folder=tmp_path)["objects"][0]["files"] == ["a/operators.o"]


def test_drafts_are_reproducible_without_absolute_paths(tmp_path):
    path = compile_object(tmp_path / "model_x", CHAIN, flags=["-g"])
    text = draft(path)
    assert text == draft(path) and str(tmp_path) not in text
    assert drafted(path)["model"] == "model_x"
    assert drafted(path, model="other")["model"] == "other"
    assert all(len(line) <= 160 for line in text.splitlines())


RUST_MEMBERS = {
    "librs.scale.3fb74cfc5629368c-cgu.0.rcgu.o": "int rust_scale(const char *x, char *y) { *y = *x; return 0; }\n"
    "int rust_shift(const char *x, char *y) { *y = *x + 1; return 0; }\n"
    "int _ZN5scale5inner5clamp17hfca962caeb46e163E(const char *x, char *y) { return rust_scale(x, y); }\n"
    "void rust_begin_unwind(char *info) { *info = 0; }\n",
    "core-120cbae4e86ec454.core.c1f1a4ba060b9bfa-cgu.0.rcgu.o": "int core_counter;\n"
    "int core_scale(const char *x, char *y) { *y = *x; return ++core_counter; }\n",
    "std-d1237ef7159db0a2.std.e28293b1aa0f68bd-cgu.0.rcgu.o": "_Thread_local int panics;\n"
    "int std_scale(const char *x, char *y) { *y = *x; return ++panics; }\n",
    "45c91108d938afe8-muldi3.o": "int builtin(const char *x, char *y) { *y = *x; return 0; }\n",
    "mycrate-120cbae4e86ec454.mycrate.c1f1a4ba060b9bfa-cgu.0.rcgu.o": "int dependency(const char *x, char *y);\n"
    "int dependency(const char *x, char *y) { *y = *x; return 0; }\n",
}


def rust_archive(folder, extra=""):
    """Return an archive with the members of a staticlib of rustc; `extra` is C of the user's crate."""
    members = []
    for name, text in RUST_MEMBERS.items():
        text += extra if name.startswith("librs") else ""
        members.append(compile_object(folder / "members", text, flags=["-g"], name=name))
    return make_archive(folder / "librs.a", members)


def test_staticlib_of_rust(tmp_path):
    """Of a staticlib, only the exported functions of the user's crates become operators."""
    found = draft(rust_archive(tmp_path))
    assert list(yaml.safe_load(found)["operators"]) == ["rust_scale", "rust_shift", "dependency"]
    assert "rust_begin_unwind: a function of the system" in found
    assert "_ZN5scale" not in found
    assert "stateful" not in found  # no operator needs core_counter
    one = draft(rust_archive(tmp_path), patterns=["*_shift"])
    assert list(yaml.safe_load(one)["operators"]) == ["rust_shift"]


def test_symbols_select_helpers(tmp_path):
    """--symbols also selects functions that others call; a pattern without a function is an error."""
    text = "int low(const char *x, char *y);\nint high(const char *x, char *y) { return low(x, y); }\n"
    high = compile_object(tmp_path, text, flags=["-g"], name="high.o")
    low = compile_object(tmp_path, text.split(";")[0] + " { *y = *x; return 0; }\n", flags=["-g"], name="low.o")
    assert list(yaml.safe_load(draft(high, low))["operators"]) == ["high"]
    assert list(yaml.safe_load(draft(high, low, patterns=["low", "h*"]))["operators"]) == ["high", "low"]
    with pytest.raises(OpwestError) as caught:
        draft(high, low, patterns=["lov", "h*"])
    fault = caught.value.diagnostics[0]
    assert fault.message == "no function matches --symbols 'lov'"
    assert fault.hint == "did you mean 'low'?"


FOREIGN = {
    "halide": "int scale(void *x, void *y) { return x == y; } int scale_argv(void **a) { return !a; }"
    "const void *scale_metadata(void) { return 0; }",
    "mlir": "void relu(float *a, float *b, long c, long d, long e) { *a = *b; }"
    "void _mlir_ciface_relu(void *x) { (void)x; }",
    "tvm": "int add(void *a, int *b, int n, void *r, int *c, void *h) { extern void TVMAPISetLastError(const char *);"
    'TVMAPISetLastError("assert fail"); return -1; }',
    "iree": "const void **mul_library_query(int v, void *e) { return e ? 0 : (const void **)e + v; }"
    "int plain(const int *x, int *y) { return *y = *x; }",
}


def test_functions_of_known_compilers(tmp_path):
    """Functions of Halide, MLIR and TVM are drafted with their convention, those of IREE are left out."""
    made = [compile_object(tmp_path, text, flags=["-g"], name=f"{name}.o") for name, text in FOREIGN.items()]
    text, manifest = draft(*made), drafted(*made)
    assert manifest["operators"].keys() == {"scale", "relu", "add", "plain"}
    assert manifest["operators"]["scale"] == {"convention": "halide", "args": ["FILL_IN"]}
    relu = {"symbol": "_mlir_ciface_relu", "convention": "memref", "returns": "void", "args": ["FILL_IN"]}
    assert manifest["operators"]["relu"] == relu
    assert manifest["operators"]["add"] == {"convention": "packed", "args": ["FILL_IN"]}
    assert "# Halide: the object defines 'scale_argv' and 'scale_metadata'" in text
    assert "- relu: a part of MLIR's '_mlir_ciface_relu', which is the operator" in text
    assert "only IREE's runtime can call it" in text


def test_names_of_operators_are_distinct(tmp_path):
    """A function without its compiler's prefix has not the name of another operator; nor has a reserved name."""
    sources = {
        "mlir": "void _mlir_ciface_conv(void *x) { (void)x; }",
        "tvm": "int __tvm_ffi_conv(void *self, void *args, int n, void *result) { return n; }",
        "more": F.replace("f(", "conv_memref(") + F.replace("f(", "op__New(") + F.replace("f(", "_New("),
        "plain": F.replace("f(", "conv("),
    }
    made = [compile_object(tmp_path, text, flags=["-g"], name=f"{name}.o") for name, text in sources.items()]
    expected = {
        "conv_memref_2": "_mlir_ciface_conv",
        "conv_ffi": "__tvm_ffi_conv",
        "conv_memref": "conv_memref",
        "op__New": "op__New",
        "op__New_2": "_New",
        "conv": "conv",
    }
    for files in (made, made[::-1]):
        operators = drafted(*files)["operators"]
        assert {name: one.get("symbol", name) for name, one in operators.items()} == expected
        assert draft(*files).count("\n  conv:") == 1


def test_symbols_without_the_prefix_of_a_compiler(tmp_path):
    """--symbols also matches the names of MLIR's and TVM's functions in their sources."""
    mlir = compile_object(tmp_path, FOREIGN["mlir"], name="mlir.o")
    ffi = "int __tvm_ffi_add(void *self, void *args, int n, void *result) { return n; }"
    tvm = compile_object(tmp_path, ffi, name="tvm.o")
    for symbol, *patterns in (("_mlir_ciface_relu", "relu", "re*", "_mlir_*"), ("__tvm_ffi_add", "add", "__tvm*")):
        for pattern in patterns:
            (operator,) = drafted(mlir, tvm, patterns=[pattern])["operators"].values()
            assert operator["symbol"] == symbol
    with pytest.raises(OpwestError, match="no function matches --symbols 'ad'") as caught:
        draft(tvm, patterns=["ad"])
    assert caught.value.diagnostics[0].hint == "did you mean 'add'?"
