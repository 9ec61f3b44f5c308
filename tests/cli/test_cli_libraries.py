# SPDX-License-Identifier: Apache-2.0
"""The Kconfig of a model selects libraries only for archive members that are linked."""

import subprocess

import pytest
from requirements_support import need

SCALE = "void scale(const float *x, float *y) { *y = *x * 2.0f; }\n"
ROOT = "float sqrtf(float); void root(const float *x, float *y) { *y = sqrtf(*x); }\n"
TVM = "void *TVMBackendAllocWorkspace(int, int, unsigned long, int, int);\n"
TVM += "void *more(void) { return TVMBackendAllocWorkspace(1, 0, 4, 0, 8); }\n"
MANIFEST = """version: 1
model: parts
objects:
  - {{files: [libparts.a], target: x86-64}}
operators:
  {name}:
    args:
      - {{name: x, dtype: float32, shape: [1], direction: in}}
      - {{name: y, dtype: float32, shape: [1], direction: out}}
run:
  inputs: {{x: {{dtype: float32, shape: [1]}}}}
  outputs: {{y: {{dtype: float32, shape: [1]}}}}
  steps:
    - {{call: {name}, args: [x, y]}}
"""


@pytest.mark.parametrize(("name", "selected"), [("scale", False), ("root", True)])
def test_unlinked_members_select_no_library(opwest, tmp_path, name, selected):
    need("gcc", "ar")
    for part, text in (("scale", SCALE), ("root", ROOT), ("more", TVM)):
        (tmp_path / f"{part}.c").write_text(text)
        command = ["gcc", "-c", "-O2", "-fno-builtin", f"{part}.c"]
        subprocess.run(command, cwd=tmp_path, check=True)
    subprocess.run(["ar", "rc", "libparts.a", "scale.o", "root.o", "more.o"], cwd=tmp_path, check=True)
    (tmp_path / "m.yaml").write_text(MANIFEST.format(name=name))
    done = opwest("generate", tmp_path / "m.yaml", "-o", tmp_path / "app")
    assert done.code == 0, done.err
    kconfig = (tmp_path / "app/models/parts/Kconfig").read_text()
    assert ("select REQUIRES_FULL_LIBC\n" in kconfig) == selected
    assert "OPWEST_TVM" not in kconfig
