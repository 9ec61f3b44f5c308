# SPDX-License-Identifier: Apache-2.0
"""The arrays of public projects, equal to their own .tflite files.

OPWEST_C_ARRAYS=DIR:DIR... are trees of projects with models in C arrays, for example of mlcommons/tiny,
espressif/esp-tflite-micro and tensorflow/tflite-micro-arduino-examples. OPWEST_C_ARRAYS_FILES=DIR:DIR... are further
trees with their .tflite files: of the last two, tensorflow/tflite-micro. Each project has an array that is a file.
"""

import os
from pathlib import Path

import pytest
from in_process import succeed
from requirements_support import need, skip_here

need("tflite")
if "OPWEST_C_ARRAYS" not in os.environ:
    skip_here("OPWEST_C_ARRAYS has no directories of projects with models in C arrays")

from opwest.frontends.read import read_model  # noqa: E402
from opwest.objects.c_arrays import c_arrays, may_have_arrays  # noqa: E402
from opwest.objects.facts import ObjectError  # noqa: E402
from opwest.objects.model_files import SUFFIXES  # noqa: E402
from opwest.objects.model_kinds import kind_of_content  # noqa: E402

PROJECTS = [Path(tree) for tree in os.environ["OPWEST_C_ARRAYS"].split(os.pathsep)]
OTHERS = [Path(tree) for tree in os.environ.get("OPWEST_C_ARRAYS_FILES", "").split(os.pathsep) if tree]


@pytest.fixture(scope="module")
def files():
    return {path.read_bytes(): path for tree in (*PROJECTS, *OTHERS) for path in tree.rglob("*.tflite")}


def models_of(tree):
    """Return the arrays with a model by their source and name."""
    found = {}
    for path in sorted(path for path in tree.rglob("*") if path.suffix in SUFFIXES and path.is_file()):
        content = path.read_bytes()
        try:
            arrays = c_arrays(content) if may_have_arrays(content) else []
        except ObjectError:
            continue
        found.update({(path, array.name): array for array in arrays if kind_of_content(array.content) is not None})
    return found


@pytest.mark.parametrize("tree", PROJECTS, ids=lambda tree: tree.name)
def test_arrays_of_a_project(tree, files, tmp_path, record_property):
    found = models_of(tree)
    equal = {key: files.get(array.content) for key, array in found.items()}
    for (path, name), file in equal.items():
        array = found[path, name]
        print(f"{path.relative_to(tree)}: {name}: {len(array.content)} bytes, {file or 'no file'}")
        assert array.problem is None and read_model(array.content, str(path))
    record_property("arrays", len(found))
    assert any(equal.values()), f"none of {len(found)} arrays is a file of the trees"
    (path, name), _ = min(found.items(), key=lambda item: len(item[1].content))
    succeed("import", path, "-o", tmp_path / "m", "--array", name, "--kernels", "portable", "--vectors", "1")
