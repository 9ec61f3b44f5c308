# SPDX-License-Identifier: Apache-2.0
"""Functions in a draft: from debug information, C sources and LLVM IR, and without any of these; marks."""

import re
import subprocess
from pathlib import Path, PurePosixPath

import pytest
from drafting_support import SOURCE, UNFIT, arguments, draft, drafted
from objects_factory import compile_object, make_archive
from opwest.base.diagnostics import Diagnostics, OpwestError
from opwest.drafting.files import Given, Unit
from opwest.drafting.selection import select
from opwest.drafting.sources import from_source
from opwest.manifest.load import load_manifest
from opwest.objects.c_source import read_c_source
from opwest.objects.facts import CSource
from requirements_support import need
from scaling import check_linear

MACHINES = [
    ("gcc", ["-g"]),
    ("gcc", ["-g", "-m32"]),
    ("gcc", ["-g", "-O0", "-gdwarf-4"]),
    ("clang", ["-g"]),
    ("arm-none-eabi-gcc", ["-g", "-mcpu=cortex-m3", "-mthumb"]),
    ("riscv64-unknown-elf-gcc", ["-g", "-march=rv32imac", "-mabi=ilp32"]),
]
needs_llvmlite = pytest.mark.needs("llvmlite")


def check_all(manifest):
    assert list(manifest["operators"]) == ["conv", "scale", "npu", "vendor", "relu"]
    assert arguments(manifest, "conv") == ["image int8 in", "weight int8 in", "features int8 out"]
    assert arguments(manifest, "scale") == [
        "features uint16 in",
        "arg1 uint16 out",
        "factor float32 scalar",
        "fast bool scalar",
    ]
    assert arguments(manifest, "npu") == arguments(manifest, "vendor") == ["x int8 in", "y int8 out"]
    assert arguments(manifest, "relu") == ["data float32 FILL_IN"]
    returns = {name: entry.get("returns") for name, entry in manifest["operators"].items()}
    assert returns == {"conv": None, "npu": None, "vendor": None, "scale": "void", "relu": "void"}
    assert manifest["operators"]["npu"]["device"] == {}
    assert manifest["operators"]["vendor"]["device"] == {"handle": "struct npu_handle *"}
    assert manifest["devices"] == {
        "accelerator": {"devicetree": {"nodelabel": "FILL_IN"}},
        "npu_handle": {"handle": {"type": "struct npu_handle *", "header": "FILL_IN", "expression": "FILL_IN"}},
    }


def ordered(manifest):
    """Return a manifest with operators in the order of SOURCE, which differs from that of symbol tables."""
    wanted = ["conv", "scale", "npu", "vendor", "relu"]
    manifest["operators"] = {name: manifest["operators"][name] for name in wanted if name in manifest["operators"]}
    return manifest


@pytest.mark.parametrize(("compiler", "flags"), MACHINES, ids=lambda v: v if isinstance(v, str) else "".join(v))
def test_debug_information(tmp_path, compiler, flags):
    path = compile_object(tmp_path, SOURCE, compiler, flags)
    check_all(ordered(drafted(path)))


def test_class(tmp_path):
    """A pointer to an object of a class is a context, like that to a structure."""
    need("g++")
    source = "class Biquad { public: double z; float a; };\n"
    source += 'extern "C" int step(Biquad *state, const float *x, float *y) { return !(state->a + x[0] + y[0]); }\n'
    path = compile_object(tmp_path, source, "g++", ["-g", "-x", "c++"])
    draft = drafted(path)
    found = {"name": "state", "dtype": "uint8", "shape": [16], "direction": "inout", "align": 8, "struct": "Biquad"}
    assert draft["operators"]["step"]["args"][0] == found
    assert draft["run"]["state"] == {"step_state": {"dtype": "uint8", "shape": [16]}}


def test_source(tmp_path):
    path = tmp_path / "operators.c"
    path.write_text(SOURCE)
    check_all(drafted(path))


@needs_llvmlite
def test_ir_with_debug_information(tmp_path):
    need("clang")
    (tmp_path / "operators.c").write_text(SOURCE)
    for name, flags in (("o.ll", ["-S"]), ("o.bc", [])):
        command = ["clang", "-g", "-O1", "-c", "-emit-llvm", *flags, "operators.c", "-o", name]
        subprocess.run(command, cwd=tmp_path, check=True)
        check_all(drafted(tmp_path / name))


IR = """
define i32 @f(ptr readonly %x, ptr writeonly %y, i16 %n, float %s, ptr %data, ptr %dev) {
  %a = load i8, ptr %x
  %b = getelementptr inbounds float, ptr %y, i32 %0
  store float 1.0, ptr %y
  store i64 1, ptr %data
  ret i32 0
}
define void @g(ptr %0, ptr %1) {
  %3 = load double, ptr %1
  ret void
}
define internal void @hidden(ptr %x) {
  ret void
}
"""


@needs_llvmlite
def test_ir_without_debug_information(tmp_path):
    path = tmp_path / "operators.ll"
    path.write_text(IR.replace("i32 %0\n", "i32 0\n"))
    manifest = drafted(path)
    assert arguments(manifest, "f") == [
        "x FILL_IN in", "y float32 out", "n FILL_IN scalar", "s float32 scalar", "data FILL_IN FILL_IN",
    ]  # fmt: skip
    assert manifest["operators"]["f"]["device"] == {}
    assert arguments(manifest, "g") == ["arg0 FILL_IN FILL_IN", "arg1 float64 FILL_IN"]
    assert manifest["operators"]["g"]["returns"] == "void"
    text = draft(path)
    assert "# dtype: int8 or uint8?\n" in text and "# dtype: int16 or uint16\n" in text
    assert "# direction: in, out, inout or scratch; dtype: int64 or uint64?\n" in text


@needs_llvmlite
def test_functions_of_ir_that_are_not_operators(tmp_path):
    path = tmp_path / "operators.ll"
    path.write_text("define i64 @f(ptr %x) { ret i64 0 }\ndefine i32 @g(ptr %x, i128 %n) { ret i32 0 }\n")
    with pytest.raises(OpwestError) as caught:
        draft(path)
    assert caught.value.diagnostics[0].hint == (
        "f: it returns an integer of 64 bits, expected i32, float, double or void; "
        "g: parameter 2 is an integer of 128 bits"
    )


def test_draft_without_debug_information_has_marks_only(tmp_path):
    manifest = drafted(compile_object(tmp_path, "int f(const int *x, int *y) { return *y = *x; }"))
    assert manifest["operators"] == {"f": {"returns": "FILL_IN", "args": ["FILL_IN"]}}
    assert manifest["run"]["inputs"] == {"FILL_IN": {"dtype": "FILL_IN", "shape": "FILL_IN"}}
    assert manifest["run"]["steps"] == [{"call": "f", "args": ["FILL_IN"]}]


def test_directions_by_name(tmp_path):
    """Of pointers without const, where no other argument is read only: as in the output of m2cgen."""
    path = tmp_path / "score.c"
    path.write_text(
        "void score(double * input, double * output) {}\nvoid f(float *src, float *data, float *y_out) {}\n"
    )
    manifest = drafted(path)
    assert arguments(manifest, "score") == ["input float64 in", "output float64 out"]
    assert arguments(manifest, "f") == ["src float32 in", "data float32 FILL_IN", "y_out float32 out"]


def test_stripped_object_gets_signatures_from_its_source(tmp_path):
    path = compile_object(tmp_path, SOURCE)
    manifest = ordered(drafted(path, path.with_suffix(".c")))
    check_all(manifest)
    assert manifest["objects"] == [{"target": "x86-64", "files": ["operators.o"]}]
    assert manifest["signatures"] == ["operators.c"]


def test_stripped_object_gets_signatures_from_its_header(tmp_path):
    """The draft is that of debug information, with the shapes and the directions of the header."""
    header, body = CONTEXT.split("struct npu;\n")
    comment = "/** @param[in,out] y smoothed\n * @param x  text */\n"
    header += "struct npu;\n" + comment + "".join(f"{one};\n" for one in re.findall(r"^int32_t.*?\)", body, re.M))
    (tmp_path / "ops.h").write_text(header + "int32_t gone(float *x);\nstatic inline int one(void) { return 1; }\n")
    body += "int32_t inner(const float *x, float *y) { y[0] = x[0]; return 0; }\n"
    debug = compile_object(tmp_path / "debug", CONTEXT, flags=["-g"])
    path = compile_object(tmp_path, f'#include "ops.h"\n{body}')
    found, expected = drafted(path, tmp_path / "ops.h"), drafted(debug)
    assert found.pop("signatures") == ["ops.h"]
    assert found["operators"]["biquad"]["args"][3].pop("direction") == "inout"
    expected["operators"]["biquad"]["args"][3].pop("direction")
    assert found["operators"] == expected["operators"] and found["objects"][0]["files"] == ["operators.o"]
    text = draft(path, tmp_path / "ops.h")
    assert "# in the source: smoothed" in text and "# - inner: not declared in ops.h" in text


def test_directories_of_headers_are_guessed(tmp_path):
    prototype = "int f(const acme_t *x, acme_t *y)"
    files = {"include/acme/types.h": "typedef signed char acme_t;\n", "src/f.c": f"{prototype} {{ return *x + *y; }}\n"}
    for name, text in {**files, "include/acme/ops.h": f"{prototype};\n"}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(("" if "types" in name else "#include <acme/types.h>\n") + text)
    path = compile_object(tmp_path, (tmp_path / "src/f.c").read_text(), flags=["-Iinclude"])
    source = drafted(tmp_path / "src/f.c", folder=tmp_path)
    header = drafted(path, tmp_path / "include/acme/ops.h", folder=tmp_path)
    assert source["objects"] == [{"files": ["src/f.c"], "include_dirs": ["include"]}]
    assert header["signatures"] == [{"files": ["include/acme/ops.h"], "include_dirs": ["include"]}]
    for manifest in (source, header):
        assert arguments(manifest, "f") == ["x int8 in", "y int8 out"]


def test_archives(tmp_path):
    one = compile_object(tmp_path, "int one(const int *x, int *y) { return *y = *x; }", flags=["-g"], name="one.o")
    two = compile_object(tmp_path, "int two(const int *x, int *y) { return *y = *x; }", flags=["-g"], name="two.o")
    path = make_archive(tmp_path / "lib.a", [one, two])
    text = draft(path)
    assert "  one:  # from the debug information of lib.a(one.o)\n" in text
    assert drafted(path)["objects"] == [{"target": "x86-64", "files": ["lib.a"]}]
    assert set(drafted(path)["operators"]) == {"one", "two"}


@pytest.mark.parametrize("source", UNFIT)
def test_functions_that_are_not_operators(tmp_path, source):
    for path in (compile_object(tmp_path, source, flags=["-g"]), tmp_path / "operators.c"):
        with pytest.raises(OpwestError) as caught:
            draft(path)
        (fault,) = caught.value.diagnostics
        assert fault.message == "no operator found in the files"
        assert fault.hint and UNFIT[source] in fault.hint


VALUES = """
float score(const short *x, int n) { return x[n]; }
double mean(double *x) { return *x; }
int label(const short *x) { return x[0]; }
unsigned char place(const short *x, short *y) { *y = *x; return 200; }
int status(const short *x, short *y) { *y = *x; return 0; }
"""


@pytest.mark.parametrize("kind", ["debug information", "C"])
def test_values_that_functions_return(tmp_path, kind):
    path = compile_object(tmp_path, VALUES, flags=["-g"])
    path = path if kind == "debug information" else tmp_path / "operators.c"
    operators = drafted(path)["operators"]
    assert {name: operator.get("returns") for name, operator in operators.items()} == {
        "score": {"name": "result", "dtype": "float32"},
        "mean": {"name": "result", "dtype": "float64"},
        "label": {"name": "result", "dtype": "int32"},
        "place": {"name": "result", "dtype": "uint8"},
        "status": None,
    }
    assert "dtype: int32}  # guessed: no argument is written" in draft(path)
    assert arguments(drafted(path), "mean") == ["x float64 in"]


def test_types_that_differ_between_targets(tmp_path):
    source = "#include <stddef.h>\nvoid f(const long *x, float *y, size_t n, void *p, unsigned char *c) { }"
    path = compile_object(tmp_path, source, flags=["-g"])
    assert arguments(drafted(path), "f") == [
        "x int64 in", "y float32 out", "n uint64 scalar", "p FILL_IN out", "c uint8 out",
    ]  # fmt: skip
    assert "# size_t in C: the size depends on the target" in draft(path)
    path = tmp_path / "operators.c"
    assert arguments(drafted(path), "f") == [
        "x FILL_IN in", "y float32 out", "n FILL_IN scalar", "p FILL_IN out", "c uint8 out",
    ]  # fmt: skip
    assert "# size_t in C" in draft(path)


def test_shapes_and_comments_of_a_source(tmp_path):
    path = tmp_path / "f.c"
    path.write_text(
        "#include <stdint.h>\n#define N 4\n"
        "/** Another function's.\n * @param a wrong\n */\nint other(void);\n"
        '/**\n * Text.\n * @param[in] a  int16 [3, 4]: "rows" # columns\n * \\param b one\n'
        " *   line more\n * @return 0\n */\n"
        "int32_t f(const int16_t a[3][4], int16_t b[N], int8_t c[static 2], float (*d)[8]) { return 0; }\n"
        "int32_t g(const int16_t *a, int16_t *b) { return 0; }\n"
        "struct device;\nint32_t h(const int16_t *a, int16_t *b, struct device *dev) { return 0; }\n"
    )
    operators = drafted(path)["operators"]
    assert operators["h"]["device"] == {}
    args = operators["f"]["args"]
    assert [a["shape"] for a in args] == [[3, 4], [4], [2], "FILL_IN"]
    text = draft(path)
    assert '# in the source: int16 [3, 4]: "rows" # columns\n' in text
    assert "in the source: one line more" in text
    assert text.count("in the source") == 2


def test_names_that_are_invalid_in_c(tmp_path):
    source = "void _New(const int *, int *, int *class) { }"
    path = tmp_path / "f.c"
    path.write_text(source)
    manifest = drafted(path)
    assert manifest["operators"]["op__New"]["symbol"] == "_New"
    assert arguments(manifest, "op__New") == ["arg0 int32 in", "arg1 int32 out", "arg2 int32 out"]


CONTEXT = """#include <stdint.h>
struct gains { float b[3]; };
struct biquad_state { double z[2]; uint8_t primed; };
typedef struct { int32_t n; } counter_t;
struct npu;
int32_t biquad(struct biquad_state *s, const struct gains *g, const float *x, float *y)
{ s->z[0] += x[0]; y[0] = g->b[0] * s->z[0]; return 0; }
int32_t count(const float *x, float *y, counter_t *counter) { y[0] = x[0] + counter->n++; return 0; }
int32_t remote(const float *x, float *y, struct npu *handle) { y[0] = x[0] + !handle; return 0; }
"""


def test_context_structures(tmp_path):
    """Structures are bytes with size and alignment; written ones are state, opaque ones devices."""
    path = compile_object(tmp_path, CONTEXT, flags=["-g"])
    found = drafted(path)
    context, gains = found["operators"]["biquad"]["args"][:2]
    assert context == {
        "name": "s", "dtype": "uint8", "shape": [24], "direction": "inout", "align": 8, "struct": "biquad_state",
    }  # fmt: skip
    assert gains == {"name": "g", "dtype": "uint8", "shape": [12], "align": 4, "struct": "gains"}
    counter = found["operators"]["count"]["args"][2]
    assert (counter["shape"], counter["align"], counter["struct"]) == ([4], 4, "counter_t")
    assert found["operators"]["remote"]["device"] == {"handle": "struct npu *"}
    assert found["run"]["state"] == {
        "biquad_s": {"dtype": "uint8", "shape": [24]}, "count_counter": {"dtype": "uint8", "shape": [4]},
    }  # fmt: skip
    assert found["constants"] == {"biquad_g": {"file": "FILL_IN"}}
    assert drafted(tmp_path / "operators.c") == {**found, "objects": [{"files": ["operators.c"]}]}
    # The size of a pointer depends on the target.
    (tmp_path / "operators.c").write_text(CONTEXT.replace("double z[2]", "double *z"))
    source = drafted(tmp_path / "operators.c")
    assert source["operators"]["biquad"]["args"][0]["shape"] == "FILL_IN"
    assert source["operators"]["biquad"]["args"][1] == gains
    assert source["run"]["state"].keys() == {"biquad_s", "count_counter"}


# --- Marks in a manifest: each is reported with its position and the expected value, and generation fails

GOOD = """\
version: 1
model: m
objects: [{files: [f.c]}]
operators:
  f: {args: [{name: x, dtype: int8, shape: [4]}, {name: y, dtype: int8, shape: [4], direction: out}]}
run:
  inputs: {x: {dtype: int8, shape: [4]}}
  outputs: {y: {dtype: int8, shape: [4]}}
  steps:
    - {call: f, args: [x, y]}
"""


SHAPE = "'operators.f.args[0].shape' is not filled in"
MARKS = {
    "none": ([], []),
    "words that contain the mark": (
        [("model: m", 'model: m\ndescription: "not FILL_IN"'), ("f.c", "my_FILL_IN.c")],
        [],
    ),
    "in place of a list": ([("shape: [4]", "shape: FILL_IN")], [f"5:44: error: {SHAPE}"]),
    "accepted by the schema as values": (
        [("model: m", "model: FILL_IN"), ("[x, y]", "[FILL_IN_x, y]"), ("inputs: {x", "inputs: {FILL_IN")],
        [
            "2:8: error: 'model' is not filled in",
            "7:12: error: the name 'FILL_IN' in 'run.inputs' is not filled in",
            "10:24: error: 'run.steps[0].args[0]' (FILL_IN_x) is not filled in",
        ],
    ),
    "beside other faults": (
        [("shape: [4]", "shape: FILL_IN"), ("shape: [4]}}", "shape: [0], alin: 4}}")],
        [
            f"5:44: error: {SHAPE}",
            "7:37: error: 'run.inputs.x.shape[0]' is the integer 0",
            "7:41: error: unknown key 'alin' in 'run.inputs.x'",
        ],
    ),
    "shared by an alias": (
        [("shape: [4]", "shape: &s [FILL_IN]"), ("shape: [4]", "shape: *s")],
        ["5:48: error: 'operators.f.args[0].shape[0]' is not filled in"],
    ),
    "in one list": (
        [("shape: [4]", "shape: [FILL_IN, 2, FILL_IN]")],
        ["5:45: error: 'operators.f.args[0].shape[0]' is not filled in, and 1 other (line 5)"],
    ),
    # Marks with the same key and the same expected value are grouped; aliases of a mark are the same mark.
    "of one kind": (
        [
            ("shape: [4]", "shape: &s FILL_IN"),
            ("shape: [4], dir", "shape: FILL_IN, dir"),
            ("shape: [4]", "shape: *s"),
        ],
        [f"5:44: error: {SHAPE}, and 1 other (line 5)"],
    ),
}


@pytest.mark.parametrize("case", MARKS)
def test_marks_are_reported(tmp_path, case):
    changes, expected = MARKS[case]
    text = GOOD
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    (tmp_path / "m.yaml").write_text(text)
    faults = Diagnostics()
    assert (load_manifest(tmp_path / "m.yaml", faults) is None) == bool(expected)
    found = [str(one).splitlines() for one in faults.in_order()]
    assert [lines[0] for lines in found] == [f"{tmp_path}/m.yaml:{line}" for line in expected]
    if case == "in place of a list":
        wanted = "a list, at most 16 items (The dimensions. Required unless `scalar` is true or a constant has them)"
        assert found[0][1:] == [f"  expected: {wanted}"]


# --- The time for a draft is proportional to the size of its files


def test_comments_and_structures_of_sources():
    def use(count):
        text = "".join(
            f"struct s{n} {{ int a; }};\n/** Convolve.\n * @param x image {n}\n */\n"
            f"int f{n}(const struct s{n} *x, int *y) {{ return 0; }} int g{n}(const int *x, int *y) {{ return 0; }}\n"
            for n in range(count)
        )
        source = read_c_source(Path("f.c"), text.encode())

        def check():
            found = from_source(PurePosixPath("f.c"), source, lambda header: None)
            assert len(found) == 2 * count
            for n in (0, count - 1):
                first, second = (found[f"{name}{n}"].parameters[0] for name in "fg")
                assert (first.struct, first.comment) == (f"s{n}", f"image {n}")
                assert (second.struct, second.comment) == (None, f"image {n}")

        return check

    check_linear(use(100), use(800))


def test_selection_of_operators():
    """Neither the operators chosen before nor the undefined symbols of the file are searched for each operator."""

    def use(count):
        source = CSource(Path("f.c"), b"", (), (), (), ())
        functions, needs = dict.fromkeys(f"f{n}" for n in range(count)), frozenset(f"u{n}" for n in range(count))
        one = Given("f.c", source, [Unit("f.c", functions, needs, certain_needs=False)])

        def check():
            assert len(select([one], (), (), Diagnostics()).operators) == count

        return check

    check_linear(use(500), use(4000))
