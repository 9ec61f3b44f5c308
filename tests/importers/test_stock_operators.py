# SPDX-License-Identifier: Apache-2.0
"""Operators that TVM builds by default, C and LLVM, with and without assertions, and a plain one in one image."""

import numpy as np
import pytest
from importers_support import Built, need_tvm
from opwest.cli.main import main
from requirements_support import need_x86_64
from stock_project import VARIANTS, expected, inputs, write_project

need_tvm()
need_x86_64()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The operators, built once, and the manifest that names all of them."""
    folder = tmp_path_factory.mktemp("stock")
    write_project(folder)
    return folder


def agree(built, variants):
    cases = [inputs(seed) for seed in range(20)]
    for case, found in zip(cases, built.run(cases), strict=True):
        sums, halves = expected(*case)
        for index in range(len(variants)):
            np.testing.assert_array_equal(found[index], sums)
            np.testing.assert_allclose(found[len(variants) + index], halves, rtol=0, atol=2e-4)


@pytest.mark.parametrize("metadata", ["c", "llvm"])
def test_every_variant_in_one_image(folder, metadata, tmp_path):
    agree(Built(folder, tmp_path, metadata), VARIANTS)


def test_as_llvm_ir(folder, tmp_path):
    variants = ("llvm_on", "llvm_off")
    write_project(folder, variants=variants, ir=True)
    agree(Built(folder, tmp_path), variants)
    write_project(folder)


def test_workspace_too_small(folder, tmp_path):
    write_project(folder, workspace="1KiB")
    built = Built(folder, tmp_path)
    with pytest.raises(
        AssertionError, match="`workspace` in the manifest is too small\nopwest: stock: step 2 returned -12"
    ):
        built.run([inputs(0)])
    write_project(folder)


def test_missing_workspace(folder, capsys):
    manifest = write_project(folder)
    text = manifest.read_text()
    manifest.write_text(text.replace("    workspace: 4KiB\n", ""))
    assert main(["check", str(manifest)]) == 1
    manifest.write_text(text)
    faults = capsys.readouterr().err
    for file in ("c_on.c", "c_off.c", "llvm_on.o", "llvm_off.o"):
        assert f"error: {file} calls TVMBackendAllocWorkspace, but no operator has a workspace" in faults


def test_different_convention_is_reported(folder, capsys):
    manifest = write_project(folder)
    text = manifest.read_text()
    manifest.write_text(
        text.replace("    symbol: __tvm_ffi_add_c_on\n    convention: ffi\n", "    symbol: __tvm_ffi_add_c_on\n", 1)
    )
    assert main(["check", str(manifest)]) == 1
    manifest.write_text(text)
    faults = capsys.readouterr().err
    assert "function '__tvm_ffi_add_c_on' has 4 parameters, operator 'add_c_on' has 3 arguments" in faults
    assert "hint: for a function compiled by TVM, declare convention: ffi" in faults
