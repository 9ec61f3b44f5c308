# SPDX-License-Identifier: Apache-2.0
"""Sources with options of their own, headers with functions, C++, and libraries that members of archives need."""

import json
import os
import re

import numpy as np
import pytest
from cpp_project import write_models
from objects_factory import compile_object, make_archive
from requirements_support import need
from small_models import generated, given, one_operator

MANIFEST = """
version: 1
model: sources
objects:
  - files: [code/model.h]
    include_dirs: [include, include/deep]
    defines: [LIMIT=100]
    cflags: [-O3, -fno-math-errno]
  - files: [code/named.c]
    optimize: size
    defines: [ENTRY=shift, "OFFSET=(1 + 2)", 'TEXT="a b"', UNUSED]
  - files: [code/twice.cpp]
    include_dirs: [include]
operators:
  classify:
    args:
      - {name: features, dtype: int16, shape: [4]}
      - {name: label, dtype: int32, shape: [1], direction: out}
  score:
    args: &args
      - {name: a, dtype: int32, shape: [1]}
      - {name: b, dtype: int32, shape: [1], direction: out}
  shift: {args: *args}
  twice: {args: *args}
run:
  inputs: {x: {dtype: int16, shape: [4]}}
  outputs: {y: {dtype: int32, shape: [1]}}
  steps:
    - {call: classify, args: [x, label]}
    - {call: score, args: [label, scored]}
    - {call: shift, args: [scored, shifted]}
    - {call: twice, args: [shifted, y]}
"""
FILES = {
    # Like the output of emlearn and m2cgen: static and global functions, a helper that nothing calls.
    "code/model.h": """
#ifndef MODEL_H
#define MODEL_H
#include <stdint.h>
#include <weights.h>
#include "part.h"
static inline int32_t limited(int32_t x) { return x > LIMIT ? LIMIT : x; }
static int32_t never(int32_t x) { return x; }
static inline int32_t classify(const int16_t *features, int32_t *label)
{
	int32_t sum = PART;

	for (int i = 0; i < 4; i++) {
		sum += features[i] * weights[i];
	}
	*label = limited(sum);
	return 0;
}
int32_t score(const int32_t *label, int32_t *score) { *score = -*label; return 0; }
#endif
""",
    "code/named.c": """
#include <stdint.h>
int32_t ENTRY(const int32_t *a, int32_t *b) { *b = *a + OFFSET + (int32_t)sizeof(TEXT); return 0; }
""",
    "code/twice.cpp": """
#include <twice.hpp>
int32_t twice(const int32_t *a, int32_t *b) { *b = factor * *a; return 0; }
""",
    "include/weights.h": "static const int16_t weights[4] = {1, 2, 3, 4};\n",
    "include/deep/part.h": "#define PART 7\n",
    "include/twice.hpp": """
#include <stdint.h>
const int32_t factor = 2;
extern "C" int32_t twice(const int32_t *, int32_t *);
""",
}


@pytest.fixture
def manifest(tmp_path):
    for name, text in {**FILES, "manifest.yaml": MANIFEST}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path / "manifest.yaml"


@pytest.mark.needs("cc", "g++", "llvmlite")
@pytest.mark.parametrize("metadata", ["c", pytest.param("llvm", marks=pytest.mark.slow)])
def test_answer_with_options_and_headers(opwest, succeed, manifest, tmp_path, metadata):
    target = ["--target", "x86-64"] if metadata == "llvm" else []
    done = opwest("generate", manifest, "-o", tmp_path / "app", "--metadata", metadata, *target)
    assert (done.code, done.err) == (0, "")
    x = given(tmp_path, x=np.array([1, 2, 3, 4], np.int16))
    done = succeed("run", tmp_path / "app", "--host", *x, "--json")
    assert json.loads(done.out)["result"]["outputs"]["y"] == [2 * (-(7 + 1 + 4 + 9 + 16) + 3 + 4)]


def test_headers_are_copied_and_watched(succeed, fail, manifest, tmp_path):
    app = tmp_path / "app"
    succeed("generate", manifest, "-o", app, "--inputs", tmp_path / "inputs")
    copied = app / "models/sources/objects/any"
    headers = ["include/weights.h", "include/deep/part.h", "include/twice.hpp"]
    assert all((copied / name).read_text() == FILES[name] for name in headers)
    listed = (tmp_path / "inputs").read_text().splitlines()
    assert {os.path.relpath(path, tmp_path) for path in listed} >= {*headers, "include", "include/deep"}
    succeed("update", app, "--check")
    (tmp_path / "include/deep/part.h").write_text("#define PART 8\n")
    fail("update", app, "--check")
    succeed("update", app)
    assert (copied / "include/deep/part.h").read_text() == "#define PART 8\n"


def test_static_helpers_of_two_headers_do_not_clash(opwest, manifest, tmp_path):
    (tmp_path / "code/more.h").write_text(FILES["code/model.h"].replace("classify", "more").replace("score", "rank"))
    text = MANIFEST.replace("files: [code/model.h]", "files: [code/model.h, code/more.h]")
    manifest.write_text(text.replace("MODEL_H", "MORE_H"))
    done = opwest("check", manifest)
    assert (done.code, done.err) == (0, "")
    (tmp_path / "code/more.h").write_text(FILES["code/model.h"].replace("score", "rank"))
    done = opwest("check", manifest)
    assert "multiple definitions of symbol 'classify': in code/model.h and code/more.h" in done.err


def test_options_in_the_lock_are_verified(succeed, fail, manifest, tmp_path):
    app = tmp_path / "app"
    succeed("generate", manifest, "-o", app)
    lock = app / ".opwest/lock.json"
    good = json.loads(lock.read_text())
    flags = [row["flags"] for row in good["record"]["models"][0]["builds"][0]["options"]]
    assert [("-Os" in words, "-O3" in words) for words in flags] == [(False, True), (True, False), (False, False)]
    for found, wrong, fault in (
        ("objects/any/include/deep", "../include", "'../include' is not a path in the project"),
        ("-fno-math-errno", "x.c", "invalid flag 'x.c'"),
    ):
        record = json.loads(json.dumps(good["record"]).replace(found, wrong))
        lock.write_text(json.dumps({**good, "record": record}))
        assert f"the lock is damaged: {fault}" in fail("run", app, "--host").err


SCALE = "void scale(const float *x, float *y) { *y = *x * 2.0f; }\n"
ROOT = "float sqrtf(float); void root(const float *x, float *y) { *y = sqrtf(*x); }\n"
TVM = "void *TVMBackendAllocWorkspace(int, int, unsigned long, int, int);\n"
TVM += "void *more(void) { return TVMBackendAllocWorkspace(1, 0, 4, 0, 8); }\n"


@pytest.mark.parametrize(("name", "selected"), [("scale", False), ("root", True)])
def test_unlinked_members_select_no_library(succeed, tmp_path, name, selected):
    need("gcc", "ar")
    parts = [
        compile_object(tmp_path, text, flags=["-fno-builtin"], name=f"{part}.o")
        for part, text in (("scale", SCALE), ("root", ROOT), ("more", TVM))
    ]
    make_archive(tmp_path / "libparts.a", parts)
    manifest = one_operator(name, "[{files: [libparts.a], target: x86-64}]", dtype="float32", shape="[1]")
    kconfig = (generated(succeed, tmp_path, manifest, {}) / "models/tiny/Kconfig").read_text()
    assert ("select REQUIRES_FULL_LIBC\n" in kconfig) == selected
    assert "OPWEST_TVM" not in kconfig


# --- Operators and applications in C++

NEEDS_CXX = pytest.mark.needs("cc", "g++")


@pytest.fixture(scope="module")
def manifests(tmp_path_factory):
    return write_models(tmp_path_factory.mktemp("cpp"))


@pytest.fixture
def app(succeed, manifests, tmp_path):
    succeed("generate", *manifests, "-o", tmp_path / "app")
    return tmp_path / "app"


@NEEDS_CXX
def test_application_in_cpp(succeed, app):
    done = succeed("run", app, "--host", "--json")
    assert json.loads(done.out)["result"]["stdout"] == "times_two: -2 4 -6 8\ntimes_five: -5 10 -15 20\n"
    lines = (app / "CMakeLists.txt").read_text()
    assert "src/main.cpp" in lines and "src/labels.cc" in lines and "src/main.c\n" not in lines
    assert "CONFIG_CPP=y" in (app / "prj.conf").read_text()


def test_names_get_the_prefix_of_the_model(app):
    header = (app / "models/times_two/objects/any/rename.h").read_text()
    common, cpp = header.split("#ifdef __cplusplus")
    for names, text in ((("copy", "negate", "scale"), common), (("Tile", "kernels", "shared_name"), cpp)):
        for name in names:
            assert re.search(rf"^#define {name} +times_two__{name}$", text, re.MULTILINE)
    assert "KERNEL" not in header
    assert "select CPP\n" in (app / "models/times_two/Kconfig").read_text()
    assert "REQUIRES_FULL_LIBCPP" not in (app / "models/times_two/Kconfig").read_text()


def test_full_library_is_selected(succeed, manifests, tmp_path):
    folder = manifests[1].parent
    text = (folder / "ops.h").read_text()
    (folder / "ops.h").write_text(text.replace("#include <stdint.h>", "#include <algorithm>"))
    try:
        succeed("generate", manifests[1], "-o", tmp_path / "app")
    finally:
        (folder / "ops.h").write_text(text)
    assert "select REQUIRES_FULL_LIBCPP\n" in (tmp_path / "app/models/times_five/Kconfig").read_text()


@NEEDS_CXX
@pytest.mark.slow
def test_standard_of_the_configuration(succeed, fail, app):
    labels = app / "src/labels.cc"
    labels.write_text(labels.read_text() + 'static_assert(__cplusplus == 201703L, "C++17");\n')
    assert "C++17" in fail("run", app, "--host").err
    (app / "prj.conf").write_text((app / "prj.conf").read_text() + "CONFIG_STD_CPP17=y\n")
    succeed("run", app, "--host")


def test_missing_compiler(fail, app, monkeypatch):
    need("cc")
    monkeypatch.setenv("CXX", "no-such-compiler")
    message = "error: C++ compiler 'no-such-compiler' not found\n  hint: install g++ or clang++, or set CXX\n"
    assert message in fail("run", app, "--host").err


def test_check_and_inspect_show_the_language_and_linkage(succeed, manifests):
    done = succeed("check", *manifests)
    assert (done.out.count("C++ source"), done.err) == (4, "")
    source = manifests[0].parent / "ops.cpp"
    text = succeed("inspect", source).out
    assert "C++ source, compiled with the firmware" in text
    assert re.search(r"^.* shared_name .* argument.*C\+\+ linkage", text, re.M)
    assert not re.search(r"^.* scale .* argument.*C\+\+ linkage", text, re.M)
    (report,) = json.loads(succeed("inspect", "--json", source).out)["result"]
    assert report["kind"] == "c++"
    assert {f["name"]: f["mangled"] for f in report["functions"]} == {"scale": False, "shared_name": True}


def test_draft_of_a_cpp_source(succeed, manifests, tmp_path):
    for name in ("ops.cpp", "ops.h"):
        (tmp_path / name).write_bytes((manifests[0].parent / name).read_bytes())
    succeed("init", tmp_path / "ops.cpp", "-o", tmp_path / "manifest.yaml")
    text = (tmp_path / "manifest.yaml").read_text()
    assert "  scale:" in text and "ops.cpp" in text and "shared_name" not in text
