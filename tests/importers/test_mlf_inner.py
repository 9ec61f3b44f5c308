# SPDX-License-Identifier: Apache-2.0
"""Functions that main calls with packed arguments: in the registry with the recorded shapes, or listed."""

import contextlib
import json
import subprocess
import time

import mlf_made as made
import numpy as np
import pytest
from importers_support import planned
from opwest.diagnostics import Diagnostics, OpwestError
from opwest.host.compile import HostCompiler, build_program
from opwest.importers.mlf import Options, import_mlf
from opwest.model.conventions import PACKED
from opwest.write.writer import read_record
from projects import generate


def imported(files, folder):
    tar = folder / "mine.tar"
    tar.write_bytes(made.tar_of(files))
    done = import_mlf(tar, folder / "mine", Options(model="mine"))
    return done, (folder / "mine" / "manifest.yaml").read_text()


SHAPES = {
    # Main initializes its tensors, or sets only the data, where only the size of the allocation is known.
    "filled in": (made.packed(), [(1, 4), (1, 3)], [(1, 3), (1, 2)]),
    "checked": (made.packed(checked=True), [(1, 4), (1, 3)], [(1, 3), (1, 2)]),
    "data alone": (made.packed(shapes=False), [(1, 4), (3,)], [(3,), (1, 2)]),
}


@pytest.mark.parametrize("variant", SHAPES)
def test_packed_inner_operators_are_in_the_registry(variant, tmp_path):
    files, *shapes = SHAPES[variant]
    done, _ = imported(files, tmp_path)
    model, _ = planned(tmp_path / "mine")
    found = {o.name: o for o in model.operators}
    assert list(found) == ["whole_model", "fused_dense_relu", "fused_dense"]
    assert not any("not in the registry" in r for r in done.remarks)
    for name, wanted in zip(("fused_dense_relu", "fused_dense"), shapes, strict=True):
        assert found[name].convention is PACKED
        assert [(a.type.dtype.name, a.type.shape, a.direction) for a in found[name].args] == [
            ("float32", wanted[0], "in"),
            ("float32", wanted[1], "out"),
        ]


@pytest.mark.needs("cc")
@pytest.mark.parametrize("variant", SHAPES)
def test_packed_inner_operators_are_called_by_name(variant, tmp_path):
    imported(SHAPES[variant][0], tmp_path)
    [y] = called(tmp_path, CALLS)
    np.testing.assert_allclose(y, made.reference(np.array([[1, -2, 3, 0.5]], np.float32)).ravel(), rtol=1e-6)


def called(folder, driver):
    """Return the rows that a program prints; it is linked with the import `mine`."""
    app = folder / "app"
    generate([folder / "mine" / "manifest.yaml"], app, vendored=True, faults=Diagnostics())
    (folder / "driver.c").write_text(driver)
    (folder / "objects").mkdir()
    compiler = HostCompiler(folder / "objects", None)
    build_program(app, read_record(app), compiler, [folder / "driver.c"], folder / "driver")
    done = subprocess.run([folder / "driver"], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout
    return json.loads(done.stdout)


CALLS = """\
#include <stdio.h>
#include <mine.h>
#include <opwest/registry.h>

int main(void)
{
	static const float x[4] = {1, -2, 3, 0.5f};
	static float t[3], y[2];
	const struct opwest_value first[] = {opwest_in(OPWEST_FLOAT32, x, sizeof(x)),
					     opwest_out(OPWEST_FLOAT32, t, sizeof(t))};
	const struct opwest_value second[] = {opwest_in(OPWEST_FLOAT32, t, sizeof(t)),
					      opwest_out(OPWEST_FLOAT32, y, sizeof(y))};

	if (opwest_call(opwest_find(&mine_registry, "fused_dense_relu"), first, 2, NULL) != 0 ||
	    opwest_call(opwest_find(&mine_registry, "fused_dense"), second, 2, NULL) != 0) {
		return 1;
	}
	printf("[[%.9g, %.9g]]", y[0], y[1]);
	return 0;
}
"""


def test_information_missing_in_packed_calls_is_named(tmp_path):
    """An operator that reads its elements only in helpers has no element type, and neither has its main."""
    files = made.packed(shapes=False)
    name = "codegen/host/src/default_lib1.c"
    start, first, rest = files[name].partition(b"tvmgen_default_fused_dense(")
    files[name] = start + first + rest.replace(b"((float*)p0)", b"AS_FLOAT(p0)")
    files[name] = files[name].replace(b"#include <math.h>", b"#define AS_FLOAT(p) ((float *)(p))", 1)
    # The size of the allocation alone does not determine its content.
    done, text = imported(files, tmp_path)
    assert (
        "not in the registry, because the size or the element type of an argument is unknown: "
        "tvmgen_default_fused_dense" in done.remarks
    )
    assert "  fused_dense_relu:" in text and "  fused_dense:" not in text
    planned(tmp_path / "mine")


@pytest.mark.parametrize(
    ("seen", "written"),
    [
        (b"[1].dtype.bits) = (uint8_t)32", b"[1].dtype.bits) = (uint8_t)64"),  # more bytes than the allocation has
        (b"((int64_t*)stack_shape)[3] = (int64_t)3", b"((int64_t*)stack_shape)[3] = (int64_t)4"),
        (b"(((DLTensor*)stack_array) + 1)", b"stack_elsewhere"),
    ],
)
def test_impossible_packed_calls_are_ignored(seen, written, tmp_path):
    files = made.packed()
    name = "codegen/host/src/default_lib1.c"
    assert seen in files[name]
    files[name] = files[name].replace(seen, written, 1)
    done, _ = imported(files, tmp_path)
    assert any("not in the registry" in r and "tvmgen_default_fused_dense_relu" in r for r in done.remarks)


@pytest.mark.parametrize(
    "junk",
    [
        b"1" * 200_000,
        b"w" * 200_000,
        b"(" * 200_000,
        b"tvmgen_default_fused_dense(" + b"(" * 200_000,
        b"void* x = " + b" " * 200_000 + b"!",
        b"void* arg_p0 = (" + b"\n" * 200_000 + b"(DLTensor*) x)",
    ],
)
def test_long_runs_of_characters_in_main_take_no_time(junk, tmp_path):
    files = made.packed()
    name = "codegen/host/src/default_lib1.c"
    files[name] = files[name].replace(b"  TVMValue ret_val_0;", b"  " + junk + b";\n  TVMValue ret_val_0;", 1)
    start = time.process_time()
    done, _ = imported(files, tmp_path)
    assert done.operators >= 1
    assert time.process_time() - start < 10  # minutes, if a pattern starts again at each character


@pytest.mark.parametrize(
    "junk",
    [
        b"static struct " + b"w" * 100_000 + b" {",
        b"static float" + b" " * 100_000 + b"x;",
        b"int32_t f(" + b"w" * 19_000 + b"!) {\n}",
        b"static const struct a {\n  float w[2] __attribute__" + b"\n" * 100_000 + b"!;\n} a = {\n};",
    ],
)
def test_long_runs_of_characters_between_functions_take_no_time(junk, tmp_path):
    files = made.usmp()
    name = "codegen/host/src/default_lib0.c"
    files[name] = files[name] + b"\n" + junk + b"\n"
    tar = tmp_path / "mine.tar"
    tar.write_bytes(made.tar_of(files))
    start = time.process_time()
    with contextlib.suppress(OpwestError):
        import_mlf(tar, tmp_path / "mine", Options(model="mine"))
    assert time.process_time() - start < 10
