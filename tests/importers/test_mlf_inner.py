# SPDX-License-Identifier: Apache-2.0
"""Functions that main calls with packed arguments: in the registry with the recorded shapes, or listed."""

import contextlib
import time

import mlf_made as made
import numpy as np
import pytest
from importers_support import generated, linked, output_of, planned
from mlf_made import LIB0, LIB1, changed, imported
from opwest.base.diagnostics import OpwestError
from opwest.model.types.conventions import PACKED

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
    assert [o.name for o in model.operators] == ["whole_model", "fused_dense_relu", "fused_dense"]
    assert not any("not in the registry" in r for r in done.remarks)
    for operator, (data, result) in zip(model.operators[1:], shapes, strict=True):
        assert operator.convention is PACKED
        found = [(a.type.dtype.name, a.type.shape, a.direction) for a in operator.args]
        assert found == [("float32", data, "in"), ("float32", result, "out")]


@pytest.mark.needs("cc")
@pytest.mark.parametrize("variant", SHAPES)
def test_packed_inner_operators_are_called_by_name(variant, tmp_path):
    imported(SHAPES[variant][0], tmp_path)
    y = [float(word) for word in output_of(linked(generated(tmp_path), CALLS)).split()]
    np.testing.assert_allclose(y, made.reference(np.array([[1, -2, 3, 0.5]], np.float32)).ravel(), rtol=1e-6)


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
	printf("%.9g %.9g", y[0], y[1]);
	return 0;
}
"""


def test_information_missing_in_packed_calls_is_named(tmp_path):
    """An operator that reads its elements only in helpers has no element type, and neither has its main."""
    files = changed(made.packed(shapes=False), ("#include <math.h>", "#define AS_FLOAT(p) ((float *)(p))"))
    start, first, rest = files[LIB1].partition(b"tvmgen_default_fused_dense(")
    files[LIB1] = start + first + rest.replace(b"((float*)p0)", b"AS_FLOAT(p0)")
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
        ("[1].dtype.bits) = (uint8_t)32", "[1].dtype.bits) = (uint8_t)64"),  # more bytes than the allocation has
        ("((int64_t*)stack_shape)[3] = (int64_t)3", "((int64_t*)stack_shape)[3] = (int64_t)4"),
        ("(((DLTensor*)stack_array) + 1)", "stack_elsewhere"),
    ],
)
def test_impossible_packed_calls_are_ignored(seen, written, tmp_path):
    done, _ = imported(changed(made.packed(), (seen, written), count=1), tmp_path)
    assert any("not in the registry" in r and "tvmgen_default_fused_dense_relu" in r for r in done.remarks)


IN_MAIN = [
    "1" * 200_000,
    "w" * 200_000,
    "(" * 200_000,
    "tvmgen_default_fused_dense(" + "(" * 200_000,
    "void* x = " + " " * 200_000 + "!",
    "void* arg_p0 = (" + "\n" * 200_000 + "(DLTensor*) x)",
]
BETWEEN_FUNCTIONS = [
    "static struct " + "w" * 100_000 + " {",
    "static float" + " " * 100_000 + "x;",
    "int32_t f(" + "w" * 19_000 + "!) {\n}",
    "static const struct a {\n  float w[2] __attribute__" + "\n" * 100_000 + "!;\n} a = {\n};",
    *(
        text * (200_000 // len(text)) + "x"
        for text in ("static struct a {", "static uint8_t x[", "return f(", "((((", "/*", '#include "', "a =")
    ),
    "TVM_DLL int32_t f(" * 11_000 + "x",
]


@pytest.mark.parametrize("text", IN_MAIN, ids=lambda text: text[:20])
def test_long_texts_in_main_take_no_time(text, tmp_path):
    """Minutes, if a pattern starts again at each character."""
    start = time.process_time()
    done, _ = imported(changed(made.packed(), ("  TVMValue ret_val_0;", f"  {text};\n  TVMValue ret_val_0;")), tmp_path)
    assert done.operators >= 1
    assert time.process_time() - start < 10


@pytest.mark.parametrize("text", BETWEEN_FUNCTIONS, ids=lambda text: text[:20])
def test_long_texts_between_functions_take_no_time(text, tmp_path):
    files = made.usmp()
    files[LIB0] += f"\n{text}\n".encode()
    start = time.process_time()
    with contextlib.suppress(OpwestError):
        imported(files, tmp_path)
    assert time.process_time() - start < 3.5
