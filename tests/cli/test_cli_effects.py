# SPDX-License-Identifier: Apache-2.0
"""Effects that a manifest permits, and calls that only the compiled object can decide."""

import json
import re

import pytest
from requirements_support import need_compiler

MANIFEST = """\
version: 1
model: m
boards: [native_sim/native/64]
objects:
  - {{{objects}}}
operators:
  f:
{keys}    args: &args
      - {{name: x, dtype: int32, shape: [8]}}
      - {{name: y, dtype: int32, shape: [8], direction: out}}
  g: {{args: *args}}
run:
  inputs: {{x: {{dtype: int32, shape: [8]}}}}
  outputs: {{y: {{dtype: int32, shape: [8]}}, z: {{dtype: int32, shape: [8]}}}}
  steps: [{{call: g, args: [x, z]}}, {{call: f, args: [x, y]}}]
"""
SOURCE = """\
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
{before}
int32_t g(const int32_t *x, int32_t *y) {{ y[0] = x[0] + 1; return 0; }}
int32_t f(const int32_t *x, int32_t *y)
{{
	y[0] = x[0] + 2;
	{call}
	return 0;
}}
"""
NOISY = 'int *volatile p = malloc(4);\n\tfree(p);\n\tprintf("noise %d\\n", (int)x[0]);'


def write(folder, call, *, before="", objects="files: [f.c]", keys=""):
    (folder / "f.c").write_text(SOURCE.format(before=before, call=call))
    path = folder / "m.yaml"
    path.write_text(MANIFEST.format(objects=objects, keys=keys))
    return path


def effects(succeed, manifest):
    done = succeed("report", manifest, "-o", "-", "--format", "json")
    return [one["effects"] for one in json.loads(done.out)["models"][0]["operators"]]


@pytest.mark.parametrize(
    ("objects", "keys"), [("files: [f.c], uses: [io, heap]", ""), ("files: [f.c]", "    uses: [heap, io]\n")]
)
def test_permitted_effects_are_recorded(objects, keys, tmp_path, succeed):
    need_compiler("gcc")
    manifest = write(tmp_path, NOISY, objects=objects, keys=keys)
    succeed("check", manifest)
    succeed("generate", manifest, "-o", tmp_path / "app")
    succeed("run", tmp_path / "app", "--host")
    metadata = (tmp_path / "app" / "models" / "m" / "src" / "m_metadata.c").read_text()
    flags = re.findall(r"\tOPWEST_OPERATOR\([^)]*\b(OPWEST_OPERATOR_STATUS[^)]*)\),", metadata)
    noisy = "OPWEST_OPERATOR_STATUS | OPWEST_OPERATOR_HEAP | OPWEST_OPERATOR_IO"
    assert [" ".join(text.split()) for text in flags] == [noisy, "OPWEST_OPERATOR_STATUS" if keys else noisy]
    assert effects(succeed, manifest) == [["heap", "io"], [] if keys else ["heap", "io"]]


@pytest.mark.parametrize(
    ("permitted", "left"), [("heap", ["printf"]), ("io", ["malloc", "free"]), ("control", ["malloc", "printf", "free"])]
)
def test_other_effects_stay_errors(permitted, left, tmp_path, fail):
    done = fail("check", write(tmp_path, NOISY, keys=f"    uses: [{permitted}]\n"))
    named = [line.split(" calls '")[1].split("'")[0] for line in done.err.splitlines() if " calls '" in line]
    assert sorted(named) == sorted(left)


UNCERTAIN = {
    "conditional": ("#ifdef NOISY\n\tprintf(\"x %d\", (int)x[0]);\n#endif\n\t(void)x;", ""),
    "macro": ("y[0] += rand();", "#undef rand\n#define rand() 1"),
    "header": ("y[0] += rand();", '#include "mine.h"'),
    "parameter": ("y[0] += apply(abs);", "static int apply(int (*rand)(int)) { return rand(-1); }"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("case", UNCERTAIN)
def test_uncertain_calls_are_judged_after_compilation(case, tmp_path, succeed, fail):
    """A name that is no call of the library passes; the same name that is one is an error of the compiled object."""
    need_compiler("gcc")
    call, before = UNCERTAIN[case]
    (tmp_path / "mine.h").write_text("#undef rand\n#define rand() 1\n")
    manifest = write(tmp_path, call, before=before, objects="files: [f.c, mine.h]")
    succeed("check", manifest)
    succeed("generate", manifest, "-o", tmp_path / "app")
    succeed("run", tmp_path / "app", "--host")
    if case == "conditional":
        (tmp_path / "f.c").write_text((tmp_path / "f.c").read_text().replace("#ifdef NOISY", "#ifndef NOISY"))
        used = "printf', which reads or writes files or devices"
    else:
        (tmp_path / "mine.h").write_text("/* rand is that of the library */\n")
        used = "rand', which keeps state in static data"
    if case in ("conditional", "header"):
        succeed("check", manifest)
        succeed("generate", manifest, "-o", tmp_path / "app")
        ran = fail("run", tmp_path / "app", "--host")
        assert f"m.yaml:5:14: error: objects/any/f.c calls '{used}" in ran.err


def test_effects_of_a_helper_are_those_of_every_operator(tmp_path, succeed):
    """A file without operators can be called by all; steps with effects then keep their order."""
    manifest = write(tmp_path, "y[0] += helper();", before="int helper(void);", objects="files: [f.c]")
    (tmp_path / "helper.c").write_text("#include <stdlib.h>\nint helper(void);\nint helper(void) { return rand(); }\n")
    text = manifest.read_text()
    manifest.write_text(text.replace("operators:\n", "  - {files: [helper.c], stateful: true}\noperators:\n", 1))
    assert effects(succeed, manifest) == [["state"], ["state"]]


def test_functions_of_the_library_in_externals_keep_their_effects(tmp_path, opwest):
    manifest = write(tmp_path, "y[0] += rand();")
    manifest.write_text(manifest.read_text() + "externals: [{symbol: rand, from: my library}]\n")
    done = opwest("check", manifest)
    assert (done.code, "f.c calls 'rand', which keeps state in static data" in done.err) == (1, True)
