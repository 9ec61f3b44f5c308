# SPDX-License-Identifier: Apache-2.0
"""Operators that TVM builds by default, C and LLVM, with and without assertions, and a plain one in one image."""

import numpy as np
import pytest
from importers_support import Built, need_tvm
from in_process import fail
from requirements_support import need_x86_64
from stock_project import VARIANTS, expected, inputs, write_project

need_tvm()
need_x86_64()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The operators are built once; each test writes its manifest."""
    return tmp_path_factory.mktemp("stock")


def agree(built, variants):
    cases = [inputs(seed) for seed in range(20)]
    for case, found in zip(cases, built.run(cases), strict=True):
        sums, halves = expected(*case)
        for index in range(len(variants)):
            np.testing.assert_array_equal(found[index], sums)
            np.testing.assert_allclose(found[len(variants) + index], halves, rtol=0, atol=2e-4)


@pytest.mark.parametrize("metadata", ["c", "llvm"])
def test_every_variant_in_one_image(folder, metadata, tmp_path):
    write_project(folder)
    agree(Built(folder, tmp_path, metadata), VARIANTS)


def test_as_llvm_ir(folder, tmp_path):
    variants = ("llvm_on", "llvm_off")
    write_project(folder, variants=variants, ir=True)
    agree(Built(folder, tmp_path), variants)


def test_workspace_too_small(folder, tmp_path):
    write_project(folder, workspace="1KiB")
    message = "`workspace` in the manifest is too small\nopwest: stock: step 2 returned -12"
    with pytest.raises(AssertionError, match=message):
        Built(folder, tmp_path).run([inputs(0)])


NO_WORKSPACE = "error: {} calls TVMBackendAllocWorkspace, but no operator has a workspace"


@pytest.mark.parametrize(
    ("text", "removed", "faults"),
    [
        (
            *("    workspace: 4KiB\n", "    workspace: 4KiB\n"),
            [NO_WORKSPACE.format(file) for file in ("c_on.c", "c_off.c", "llvm_on.o", "llvm_off.o")],
        ),
        (
            *("    symbol: __tvm_ffi_add_c_on\n    convention: ffi\n", "    convention: ffi\n"),
            [
                "function '__tvm_ffi_add_c_on' has 4 parameters, operator 'add_c_on' has 3 arguments",
                "hint: for a function compiled by TVM, declare convention: ffi",
            ],
        ),
    ],
    ids=["workspace", "convention"],
)
def test_missing_keys_are_reported(folder, text, removed, faults):
    manifest = write_project(folder)
    manifest.write_text(manifest.read_text().replace(text, text.replace(removed, "")))
    messages = fail("check", manifest).stderr
    for fault in faults:
        assert fault in messages
