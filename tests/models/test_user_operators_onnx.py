# SPDX-License-Identifier: Apache-2.0
"""`opwest import --operator` for ONNX: operators of other domains, missing and replaced ones, on the host."""

import numpy as np
import onnx
import pytest
from importers.importers_support import Built
from in_process import fail, opwest, succeed
from onnx import TensorProto, helper, numpy_helper
from requirements_support import need

need("cc", "onnx")


SOURCE = """\
#include <stdint.h>

int32_t shift_rows(const float *x, const int32_t *shifts, const float *table, int64_t rows, float *y, int32_t *count)
{
	for (int i = 0; i < rows; i++) {
		for (int k = 0; k < 4; k++) {
			y[4 * i + (k + shifts[i]) % 4] = x[4 * i + k] + table[k];
		}
	}
	*count = (int32_t)rows;
	return 0;
}
"""
SNIPPET = """\
objects:
  - files: [shift.c]
operators:
  shift_rows:
    args:
      - {name: x, dtype: float32}
      - {name: options_shifts, dtype: int32}
      - {name: options_table, dtype: float32}
      - {name: rows, dtype: int64, scalar: true}
      - {name: y, dtype: float32, shape: [3, 4], direction: out}
      - {name: count, dtype: int32, shape: [1], direction: out}
"""
TABLE = np.arange(4, dtype=np.float32) * 10


def custom(shape=(3, 4), domain="own"):
    """Return Relu, ShiftRows, Transpose; the file has the shape of the result, or not."""
    attributes = {"shifts": [1, 0, 6], "table": numpy_helper.from_array(TABLE), "rows": 3, "mode": "ring"}
    nodes = [
        helper.make_node("Relu", ["x"], ["positive"]),
        helper.make_node("ShiftRows", ["positive"], ["shifted", "count"], domain=domain, name="rows", **attributes),
        helper.make_node("Transpose", ["shifted"], ["y"], perm=[1, 0]),
    ]
    graph = helper.make_graph(
        nodes,
        "made",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 4])],
        [
            helper.make_tensor_value_info("y", TensorProto.FLOAT, None),
            helper.make_tensor_value_info("count", TensorProto.INT32, None),
        ],
        value_info=[helper.make_tensor_value_info("shifted", TensorProto.FLOAT, shape)] if shape else [],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(domain, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def given(folder, model, name, snippet=SNIPPET):
    folder.mkdir(exist_ok=True)
    onnx.save(model, folder / "m.onnx")
    (folder / "shift.c").write_text(SOURCE)
    (folder / "shift.yaml").write_text(snippet)
    return ["import", folder / "m.onnx", "-o", folder / "model", "--operator", f"{name}={folder / 'shift.yaml'}"]


@pytest.mark.parametrize(("name", "shape"), [("ShiftRows", (3, 4)), ("own.ShiftRows", None)])
def test_operator_of_another_domain(name, shape, tmp_path):
    succeed(*given(tmp_path, custom(shape), name))
    x = np.random.default_rng(4).standard_normal((3, 4)).astype(np.float32)
    [[found, count]] = Built(tmp_path / "model", tmp_path).run([[x]])
    rows = [np.roll(row + TABLE, shift) for row, shift in zip(np.maximum(x, 0), (1, 0, 6), strict=True)]
    assert np.array_equal(found, np.array(rows, np.float32).T) and count == 3


def test_wrong_snippets(tmp_path):
    words = given(tmp_path, custom(), "ShiftRows", SNIPPET.replace("[3, 4]", "[4, 3]"))
    err = fail(*words).stderr
    assert "shift.yaml:10:9: error: operator 1 'rows' (ShiftRows): argument 'y' has the shape [4, 3], result" in err
    words = given(tmp_path, custom(None), "ShiftRows", SNIPPET.replace("shape: [3, 4], ", ""))
    code, _, err = opwest(*words)
    assert code == 1 and "the file does not contain the shape of the result 'shifted'" in err
    words = given(tmp_path, custom(), "ShiftRows", SNIPPET.replace("options_table", "options"))
    code, _, err = opwest(*words)
    assert code == 1 and "argument 'options': only custom operators of TFLite have custom options" in err
    words = given(tmp_path, custom(), "ShiftRow")
    code, _, err = opwest(*words)
    assert code == 1 and "--operator: the model has no operator 'ShiftRow'" in err
    assert "expected: Relu, ShiftRows, Transpose, own.ShiftRows" in err and "did you mean 'ShiftRows'?" in err


def test_refusal_names_the_way_out(tmp_path):
    onnx.save(custom(), tmp_path / "m.onnx")
    err = fail("import", tmp_path / "m.onnx", "-o", tmp_path / "model").stderr
    assert "operator 1 'rows' (ShiftRows): unsupported operator" in err
    assert "bring an operator of your own: --operator own.ShiftRows=FILE.yaml" in err


CLIP_SOURCE = """\
#include <stdint.h>

void own_pool(const float *x, const int64_t *strides, float *y)
{
	for (int c = 0; c < 2; c++) {
		for (int i = 0; i < 4; i++) {
			const float *p = x + 16 * c + 4 * (i / 2 * (int)strides[0]) + i % 2 * (int)strides[1];
			float one = p[0] > p[1] ? p[0] : p[1], other = p[4] > p[5] ? p[4] : p[5];
			*y++ = one > other ? one : other;
		}
	}
}
"""
CLIP_SNIPPET = """\
objects:
  - files: [shift.c]
operators:
  own_pool:
    returns: void
    args:
      - {name: x, dtype: float32, shape: [1, 2, 4, 4]}
      - {name: options_strides, dtype: int64}
      - {name: y, dtype: float32, shape: [1, 2, 2, 2], direction: out}
"""


def test_replaced_operator_has_the_layout_of_the_file(tmp_path):
    need("onnxruntime")
    from models.onnx_support import Made

    made = Made()
    pooled = made.add("MaxPool", made.input(1, 2, 4, 4), kernel_shape=[2, 2], strides=[2, 2])
    made.output(made.add("Neg", pooled))
    words = given(tmp_path, made.model(), "MaxPool", CLIP_SNIPPET)
    (tmp_path / "shift.c").write_text(CLIP_SOURCE)
    out = succeed(*words, "--compare", "2").stdout
    assert "compared with the reference on 2 inputs, 1 results of operators: no difference" in out
    assert "from onnxruntime" in (tmp_path / "model/manifest.yaml").read_text()
