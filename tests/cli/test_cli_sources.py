# SPDX-License-Identifier: Apache-2.0
"""Sources with options of their own, and headers with functions, on the host."""

import json
import os

import numpy as np
import pytest

MANIFEST = """
version: 1
model: sources
objects:
  - files: [code/model.h]
    include_dirs: [include, include/deep]
    defines: [LIMIT=100]
    cflags: [-O3, -fno-math-errno]
  - files: [code/named.c]
    defines: [ENTRY=shift, "OFFSET=(1 + 2)", 'TEXT="a b"', UNUSED]
  - files: [code/twice.cpp]
    include_dirs: [include]
operators:
  classify:
    args:
      - {name: features, dtype: int16, shape: [4]}
      - {name: label, dtype: int32, shape: [1], direction: out}
  score:
    args:
      - {name: label, dtype: int32, shape: [1]}
      - {name: score, dtype: int32, shape: [1], direction: out}
  shift:
    args:
      - {name: a, dtype: int32, shape: [1]}
      - {name: b, dtype: int32, shape: [1], direction: out}
  twice:
    args:
      - {name: a, dtype: int32, shape: [1]}
      - {name: b, dtype: int32, shape: [1], direction: out}
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
def test_answer_with_options_and_headers(opwest, manifest, tmp_path, metadata):
    target = ["--target", "x86-64"] if metadata == "llvm" else []
    done = opwest("generate", manifest, "-o", tmp_path / "app", "--metadata", metadata, *target)
    assert (done.code, done.err) == (0, "")
    np.save(tmp_path / "x.npy", np.array([1, 2, 3, 4], np.int16))
    done = opwest("run", tmp_path / "app", "--host", "--input", f"x={tmp_path / 'x.npy'}", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["result"]["outputs"]["y"] == [2 * (-(7 + 1 + 4 + 9 + 16) + 3 + 4)]


def test_headers_are_copied_and_watched(opwest, manifest, tmp_path):
    app = tmp_path / "app"
    assert opwest("generate", manifest, "-o", app, "--inputs", tmp_path / "inputs").code == 0
    copied = app / "models/sources/objects/any"
    headers = ["include/weights.h", "include/deep/part.h", "include/twice.hpp"]
    assert all((copied / name).read_text() == FILES[name] for name in headers)
    listed = (tmp_path / "inputs").read_text().splitlines()
    assert {os.path.relpath(path, tmp_path) for path in listed} >= {*headers, "include", "include/deep"}
    assert opwest("update", app, "--check").code == 0
    (tmp_path / "include/deep/part.h").write_text("#define PART 8\n")
    assert opwest("update", app, "--check").code == 1
    assert opwest("update", app).code == 0
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


def test_options_in_the_lock_are_verified(opwest, manifest, tmp_path):
    app = tmp_path / "app"
    assert opwest("generate", manifest, "-o", app).code == 0
    lock = app / ".opwest/lock.json"
    good = json.loads(lock.read_text())
    for found, wrong, fault in (
        ("objects/any/include/deep", "../include", "'../include' is not a path in the project"),
        ("-fno-math-errno", "x.c", "invalid flag 'x.c'"),
    ):
        record = json.loads(json.dumps(good["record"]).replace(found, wrong))
        lock.write_text(json.dumps({**good, "record": record}))
        done = opwest("run", app, "--host")
        assert done.code == 1 and f"the lock is damaged: {fault}" in done.err, done.err
