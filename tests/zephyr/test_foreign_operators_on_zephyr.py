# SPDX-License-Identifier: Apache-2.0
"""The operators of all tools of docs/compilers in one image, compared with the tools' answers."""

import pytest
from cover import configured
from foreign_project import foreign_project
from requirements_support import need

pytestmark = pytest.mark.zephyr

# A header that needs the options of its entry; `defines` and `cflags` are not on the page.
HEADER = """
#include <stdint.h>
#include <tree.h>
#if !defined(LEAVES) || !defined(__OPTIMIZE__)
#error "options of the manifest"
#endif
static int32_t helper(int32_t x) { return x * 2; }
static int32_t never(int32_t x) { return x; }
static inline uint8_t label(const int32_t *flower) { return helper(flower[0]) > LIMIT ? LEAVES : 1; }
"""
OPTIONS = {"include_dirs": ["include"], "defines": ["LEAVES=200", 'T="a b"'], "cflags": ["-O2", "-fno-math-errno"]}
LABEL = {"returns": {"name": "label", "dtype": "uint8"}, "args": [{"name": "flower", "dtype": "int32", "shape": [1]}]}
CASES = 20
LIBM = {"mlp.h": "mlp_predict", "oscillator.c": "oscillator", "echo.c": "computemydsp", "forest.c": "forest"}
"""Operators whose sources include <math.h>: on a board, libm would be the module picolibc, about 1,000 files."""


@configured("board, back_end", [("mps2/an385", "llvm"), ("native_sim/native/64", "c")])
def test_foreign_operators_in_one_image(workspace, opwest, tmp_path, board, back_end):
    need("arm-none-eabi-gcc", "llvmlite", "sklearn", "emlearn")
    project = foreign_project()
    manifest, run = project.manifest, project.manifest["run"]
    for name, text in (("code/model.h", HEADER), ("include/tree.h", "#define LIMIT 3\n")):
        (project.folder / name).parent.mkdir(exist_ok=True)
        (project.folder / name).write_text(text)
    manifest["objects"].append({"files": ["code/model.h"], **OPTIONS})
    manifest["operators"]["label"] = LABEL
    run["outputs"]["label"] = {"dtype": "uint8", "shape": [1]}
    run["steps"].append({"call": "label", "args": ["trees_class", "label"]})
    project.arrays["label"] = (project.arrays["trees_class"] * 2 > 3) * 199 + 1
    if board == "mps2/an385":
        manifest["objects"] = [one for one in manifest["objects"] if one["files"][0] not in LIBM]
        manifest["operators"] = {n: one for n, one in manifest["operators"].items() if n not in LIBM.values()}
        run["steps"] = [one for one in run["steps"] if one["call"] not in LIBM.values()]
        used = {argument for step in run["steps"] for argument in step["args"]}
        for key in ("inputs", "outputs", "state"):
            run[key] = {name: one for name, one in run[key].items() if name in used}
    name = board.replace("/", "_")
    manifest |= {"boards": [board], "tests": project.write_vectors(f"{name}.npz", CASES)}
    opwest("generate", project.write(f"{name}.yaml"), "-o", tmp_path / "app", f"--metadata={back_end}")
    built = workspace.build(tmp_path / "app" / "tests" / "foreign", board)
    console = built.run(r"^PROJECT EXECUTION (SUCCESSFUL|FAILED)")
    assert f"foreign: {CASES} of {CASES} cases match the vectors" in console
    assert "PROJECT EXECUTION SUCCESSFUL" in console
