# SPDX-License-Identifier: Apache-2.0
"""`opwest import --operator NAME=FILE.yaml`: operators of the user in the emitted application, on the host."""

import json

import numpy as np
import pytest
from importers.importers_support import Built
from in_process import fail, succeed
from models.commands import arrays_of, run_on_host
from models.made import Model, flex
from models.onnx_support import Made
from models.oracle import litert
from onnx import TensorProto, helper, numpy_helper, save
from requirements_support import need

need("cc", "tflite", "ai_edge_litert")

SOURCE = """\
#include "scale.h"

void scaled_sum(const float *x, const float *w, const uint8_t *options, float gain, float *y)
{
	for (int i = 0; i < LENGTH; i++) {
		y[i] = (x[i] + w[i]) * gain + options[0];
	}
}
"""
HEADER = "#include <stdint.h>\n#define LENGTH 12\n"
SNIPPET = """\
objects:
  - files: [src/scale.c]
    include_dirs: [include]
operators:
  scaled_sum:
    returns: void
    args:
      - {name: x, dtype: float32}
      - {name: w, dtype: float32}
      - {name: options, dtype: uint8}
      - {name: gain, dtype: float32, scalar: true}
      - {name: y, dtype: float32, shape: [3, 4], direction: out}
"""
LABEL = "operator 1 (ScaledSum), result 'tensor_2': "
WEIGHTS = np.linspace(-2, 3, 12, dtype=np.float32).reshape(3, 4)


def custom_model(*options, shape=(3, 4)):
    """Return RELU, then a custom operator for each of the options, then NEG."""
    model = Model()
    data = model.operator("RELU", [model.input("float32", (3, 4), name="x")], ("float32",))
    for custom in options or (flex(gain=2.0),):
        result = model._tensor("float32", shape)
        weights = model.constant(WEIGHTS)
        data = model.operator("ScaledSum", [data, weights], result, custom=custom)
    return model.ending_with("NEG", [data], ("float32",))


def written(folder, name, content, operator, texts):
    """Write a model, and a snippet with its files, the last one; return the words of an import."""
    (folder / name).write_bytes(content)
    for path, text in texts.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return ["import", folder / name, "-o", folder / "model", "--operator", f"{operator}={folder / path}"]


def given(folder, model, snippet=SNIPPET):
    texts = {"own/src/scale.c": SOURCE, "own/include/scale.h": HEADER, "own/scale.yaml": snippet}
    return written(folder, "m.tflite", model.build(), "ScaledSum", texts)


def test_custom_operator_runs_on_the_host(tmp_path):
    options = [flex(gain=gain) for gain in (2.0, 0.5)]
    err = succeed(*given(tmp_path, custom_model(*options))).stderr
    assert "note: there are no golden vectors: no runtime of the format runs the operators of --operator" in err
    folder = tmp_path / "model"
    assert not (folder / "vectors.npz").exists()
    assert (folder / "scaled_sum/src/scale.c").read_text() == SOURCE
    assert (folder / "scaled_sum/include/scale.h").read_text() == HEADER
    manifest = (folder / "manifest.yaml").read_text()
    assert "- {files: [scaled_sum/src/scale.c], include_dirs: [scaled_sum/include]}" in manifest
    assert manifest.count("\n  scaled_sum:") == 1
    assert "There are no golden vectors" in manifest
    succeed("generate", folder / "manifest.yaml", "-o", tmp_path / "app")
    x = np.random.default_rng(2).standard_normal((3, 4)).astype(np.float32)
    run_on_host(tmp_path / "app", {"x": x}, "--output-dir", tmp_path / "results")
    expected = np.maximum(x, 0)
    for gain, custom in zip((2.0, 0.5), options, strict=True):
        expected = (expected + WEIGHTS) * np.float32(gain) + custom[0]
    [result] = (tmp_path / "results").glob("*.npy")
    np.testing.assert_allclose(np.load(result), -expected, rtol=1e-6)


def test_shape_of_the_result_is_that_of_the_snippet(tmp_path):
    succeed(*given(tmp_path, custom_model(shape=())))
    words = given(tmp_path, custom_model(shape=()), SNIPPET.replace("shape: [3, 4], ", ""))
    words[3] = tmp_path / "other"
    err = fail(*words).stderr
    assert f"scale.yaml:12:9: error: {LABEL}the file does not contain the shape" in err
    assert "expected: shape: [...] in the argument 'y'" in err


ADD_SOURCE = """\
#include <stdint.h>

int32_t own_add(const int8_t *a, const int8_t *b, int32_t fused_activation_function, int32_t *sums, int8_t *y)
{
	for (int i = 0; i < 10; i++) {
		sums[i] = a[i] + b[i];
		y[i] = sums[i] > 127 ? 127 : sums[i] < -128 ? -128 : sums[i];
	}
	return fused_activation_function == 0 ? 0 : -22;
}
"""
ADD_SNIPPET = """\
version: 1
objects:
  - files: [add.c]
operators:
  own_add:
    args:
      - {name: a, dtype: int8}
      - {name: b, dtype: int8}
      - {name: fused_activation_function, dtype: int32, scalar: true}
      - {name: sums, dtype: int32, shape: [10], direction: scratch}
      - {name: y, dtype: int8, direction: out, in_place: [a]}
"""


def test_replaced_operator_is_compared_with_the_reference(tmp_path):
    model = Model()
    data = [model.input("int8", (2, 5), 0.5, 0, name=name) for name in ("a", "b")]
    file = model.ending_with("ADD", data, model._tensor("int8", (2, 5), 0.5, 0)).save(tmp_path / "m.tflite")
    (tmp_path / "add.c").write_text(ADD_SOURCE)
    (tmp_path / "add.yaml").write_text(ADD_SNIPPET)
    words = ["import", file, "--operator", f"ADD={tmp_path / 'add.yaml'}", "--compare", "3"]
    out = succeed(*words, "-o", tmp_path / "model").stdout
    assert "3 inputs, 1 result of operators: no difference" in out
    assert not (tmp_path / "model/operators.c").exists()
    vectors = arrays_of(tmp_path / "model/vectors.npz")
    cases = list(zip(vectors["a"], vectors["b"], strict=True))
    found, expected = Built(tmp_path / "model", tmp_path).run(cases), litert(file.read_bytes(), cases)
    assert all(np.array_equal(one[0], other[0]) for one, other in zip(found, expected, strict=True))
    (tmp_path / "add.c").write_text(ADD_SOURCE.replace("a[i] + b[i]", "a[i] - b[i]"))
    assert "of step 1 differs from the reference" in fail(*words, "-o", tmp_path / "wrong").stderr


def refused(tmp_path, snippet=SNIPPET, *options):
    words = given(tmp_path, custom_model(*options), snippet)
    out = fail(*words, "--json").stdout
    assert not (tmp_path / "model").exists()
    return [
        (one["location"]["line"], one["message"], one["expected"])
        for one in json.loads(out)["diagnostics"]
        if one["location"]["file"].endswith("scale.yaml")
    ]


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("      - {name: w, dtype: float32}\n", "", 5, "expected 2 arguments of 'scaled_sum' for the inputs of the"),
        (", direction: out", "", 5, "expected 2 arguments of 'scaled_sum' for the inputs of the node, found 3"),
        ("w, dtype: float32", "w, dtype: int8", 9, "argument 'w' is int8, input 'tensor_3' is float32"),
        ("x, dtype: float32", "x, dtype: float32, shape: [12]", 8, "argument 'x' has the shape [12], input 'tensor_1'"),
        ("shape: [3, 4]", "shape: [4, 3]", 12, "argument 'y' has the shape [4, 3], result 'tensor_2' has the shape"),
        ("name: gain", "name: gian", 11, "argument 'gian': the node has no option 'gian'"),
        ("gain, dtype: float32, scalar: true", "options_gian, dtype: float32", 11, "argument 'options_gian': the node"),
        ("options, dtype: uint8", "options, dtype: int8", 10, "argument 'options' is int8"),
        ("x, dtype: float32", "x, dtype: float32, direction: inout", 8, "argument 'x' is inout, input 'tensor_1' is"),
    ],
)
def test_wrong_arguments(old, new, line, message, tmp_path):
    assert old in SNIPPET
    [(where, text, _)] = refused(tmp_path, SNIPPET.replace(old, new, 1))
    assert where == line and text.startswith(LABEL + message), text


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("src/scale.c", "src/scales.c", 2, "cannot read 'src/scales.c': No such file or directory"),
        ("src/scale.c", "../scale.c", 2, "'../scale.c' is outside of the snippet's directory"),
        ("include_dirs: [include]", "include_dirs: [/usr]", 3, "'/usr' is outside of the snippet's directory"),
        ("returns: void", "return: void", 6, "unknown key 'return' in 'operators.scaled_sum'"),
        ("dtype: float32, scalar: true", "dtype: float23, scalar: true", 11, "'operators.scaled_sum.args[3].dtype'"),
        ("objects:", "steps: []\nobjects:", 1, "unknown key 'steps' in the snippet"),
        ("operators:", "operators:\n  other: {args: [{name: x, dtype: int8}]}", 5, "'operators' has 2 entries"),
        ("shape: [3, 4], direction: out", "direction: scratch", 12, "missing key 'shape' in the scratch argument 'y'"),
        ("    returns: void", "    device: {}\n    returns: void", 6, "'scaled_sum' takes a device, the snippet has 0"),
        ("objects:", "objects: [", 2, "invalid YAML"),
    ],
)
def test_wrong_snippets(old, new, line, message, tmp_path):
    assert old in SNIPPET
    found = refused(tmp_path, SNIPPET.replace(old, new, 1))
    assert [one for one in found if one[0] == line and one[1].startswith(message)], found


def test_options_of_other_kinds(tmp_path):
    [(_, text, expected)] = refused(tmp_path, SNIPPET, flex(gain=[1, 2]))
    assert text == LABEL + "argument 'gain': the option 'gain' is not a number"
    assert expected == "an array argument 'options_gain'"
    [(_, text, expected)] = refused(tmp_path, SNIPPET, b"\x01\x02no flexbuffer\xff")
    assert text == LABEL + "argument 'gain': the node has no option 'gain'"
    [(_, text, _)] = refused(tmp_path, SNIPPET.replace("gain, dtype: float32", "gain, dtype: int32"), flex(gain=0.5))
    assert text == LABEL + "argument 'gain' is int32, the option is 0.5"


def test_wrong_names(tmp_path):
    words = given(tmp_path, custom_model())
    snippet = words[-1].partition("=")[2]
    err = fail(*words, "--operator", f"ScaledSun={snippet}").stderr
    assert f"{snippet}:5:3: error: --operator: the model has no operator 'ScaledSun'" in err
    assert "expected: NEG, RELU, ScaledSum" in err and "hint: did you mean 'ScaledSum'?" in err
    err = fail(*words, "--operator", f"ScaledSum={snippet}").stderr
    assert "error: duplicate --operator 'ScaledSum'" in err
    err = fail(*words, "--operator", f"X={tmp_path / 'absent.yaml'}").stderr
    assert "cannot read the snippet of --operator: No such file or directory" in err
    err = fail(*words, "--operator", "ScaledSum").stderr
    assert "invalid --operator 'ScaledSum'" in err and "expected: NAME=FILE.yaml" in err


def test_refusals_name_the_way_out(tmp_path):
    model = Model()
    data = model.input("float32", (1, 4))
    other = model.operator("MyOwn", [data], ("float32",))
    model.output(model.operator("YourOwn", [other], ("float32",)), model.operator("FLOOR_MOD", [data], ("float32",)))
    file = model.save(tmp_path / "m.tflite")
    err = fail("import", file, "-o", tmp_path / "out").stderr
    for number, (name, tensor) in enumerate((("MyOwn", 1), ("YourOwn", 2), ("FLOOR_MOD", 3))):
        assert f"operator {number} ({name}), result 'tensor_{tensor}': unsupported" in err
        assert f"bring an operator of your own: --operator {name}=FILE.yaml" in err
    assert err.count("': unsupported operator") == 2


STATE_SOURCE = """\
#include <stdint.h>

int32_t best(const int32_t *x, int32_t *sum, const struct device *dev)
{
	int at = 0;

	(void)dev;
	for (int i = 0; i < 3; i++) {
		sum[i] += x[i];
		at = sum[i] > sum[at] ? i : at;
	}
	return at;
}
"""
STATE_SNIPPET = """\
objects:
  - files: [best.c]
operators:
  best:
    returns: {name: label, dtype: int32}
    args:
      - {name: x, dtype: int32, shape: [3]}
      - {name: sum, dtype: int32, direction: inout}
"""


def stateful(folder, snippet, source):
    """Return the words of an import: a custom operator with a variable whose result is a value."""
    model = Model()
    data, total = model.input("int32", (3,), name="x"), model.variable("int32", (3,), name="total")
    model.ending_with("Best", [data, total], model._tensor("int32", (1,), name="winner"))
    return written(folder, "m.tflite", model.build(), "Best", {"best.c": source, "best.yaml": snippet})


def test_variable_and_returned_value(tmp_path):
    source = STATE_SOURCE.replace(", const struct device *dev", "").replace("\t(void)dev;\n", "")
    succeed(*stateful(tmp_path, STATE_SNIPPET, source))
    manifest = (tmp_path / "model/manifest.yaml").read_text()
    assert "  state:\n    total: {dtype: int32, shape: [3]}" in manifest
    assert "    returns: {name: label, dtype: int32}" in manifest
    succeed("generate", tmp_path / "model/manifest.yaml", "-o", tmp_path / "app")
    np.save(tmp_path / "x.npy", np.array([[0, 2, 1], [4, 0, 0], [0, 3, 3]], np.int32))
    words = ["--host", "--stream", f"x={tmp_path / 'x.npy'}", "--output-dir", tmp_path / "results"]
    succeed("run", tmp_path / "app", *words)
    [result] = (tmp_path / "results").glob("*.npy")
    assert np.load(result).reshape(-1).tolist() == [1, 0, 1]  # sums [0,2,1], [4,2,1], [4,5,4]


def test_operator_with_a_device(tmp_path):
    snippet = STATE_SNIPPET.replace("    returns: {name: label, dtype: int32}\n", "    device: {}\n")
    snippet += "      - {name: y, dtype: int32, direction: out}\ndevices:\n  npu: {devicetree: {nodelabel: npu0}}\n"
    source = STATE_SOURCE.replace("int32_t *sum, ", "int32_t *sum, int32_t *y, ")
    source = source.replace("return at;", "*y = at;\n\treturn 0;").replace("h>", "h>\nstruct device;")
    succeed(*stateful(tmp_path, snippet, source))
    manifest = (tmp_path / "model/manifest.yaml").read_text()
    assert "devices:\n  npu:\n    devicetree: {nodelabel: npu0}" in manifest
    assert "- {call: best, device: npu, args: [x, total, winner]}" in manifest
    succeed("check", tmp_path / "model/manifest.yaml")


SHIFT_SOURCE = """\
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
SHIFT_SNIPPET = """\
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


def info(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def custom_onnx(shape=(3, 4), domain="own"):
    """Return Relu, ShiftRows, Transpose; the file has the shape of the result, or not."""
    attributes = {"shifts": [1, 0, 6], "table": numpy_helper.from_array(TABLE), "rows": 3, "mode": "ring"}
    nodes = [
        helper.make_node("Relu", ["x"], ["positive"]),
        helper.make_node("ShiftRows", ["positive"], ["shifted", "count"], domain=domain, name="rows", **attributes),
        helper.make_node("Transpose", ["shifted"], ["y"], perm=[1, 0]),
    ]
    graph = helper.make_graph(
        nodes, "made", [info("x", [3, 4])], [info("y", None), info("count", None, TensorProto.INT32)],
        value_info=[info("shifted", shape)] if shape else [],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(domain, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def given_onnx(folder, model, name, snippet=SHIFT_SNIPPET, source=SHIFT_SOURCE):
    texts = {"shift.c": source, "shift.yaml": snippet}
    return written(folder, "m.onnx", model.SerializeToString(), name, texts)


@pytest.mark.parametrize(("name", "shape"), [("ShiftRows", (3, 4)), ("own.ShiftRows", None)])
def test_operator_of_another_domain(name, shape, tmp_path):
    succeed(*given_onnx(tmp_path, custom_onnx(shape), name))
    x = np.random.default_rng(4).standard_normal((3, 4)).astype(np.float32)
    [[found, count]] = Built(tmp_path / "model", tmp_path).run([[x]])
    rows = [np.roll(row + TABLE, shift) for row, shift in zip(np.maximum(x, 0), (1, 0, 6), strict=True)]
    assert np.array_equal(found, np.array(rows, np.float32).T) and count == 3


def test_wrong_snippets_for_onnx(tmp_path):
    def messages(name="ShiftRows", shape=(3, 4), old="", new=""):
        return fail(*given_onnx(tmp_path, custom_onnx(shape), name, SHIFT_SNIPPET.replace(old, new))).stderr

    text = "shift.yaml:10:9: error: operator 1 'rows' (ShiftRows): argument 'y' has the shape [4, 3], result"
    assert text in messages(old="[3, 4]", new="[4, 3]")
    text = "the file does not contain the shape of the result 'shifted'"
    assert text in messages(shape=None, old="shape: [3, 4], ")
    text = "argument 'options': only custom operators of TFLite have custom options"
    assert text in messages(old="options_table", new="options")
    err = messages("ShiftRow")
    assert "--operator: the model has no operator 'ShiftRow'" in err
    assert "expected: Relu, ShiftRows, Transpose, own.ShiftRows" in err and "did you mean 'ShiftRows'?" in err


def test_a_refusal_of_onnx_names_the_way_out(tmp_path):
    save(custom_onnx(), tmp_path / "m.onnx")
    err = fail("import", tmp_path / "m.onnx", "-o", tmp_path / "model").stderr
    assert "operator 1 'rows' (ShiftRows): unsupported operator" in err
    assert "bring an operator of your own: --operator own.ShiftRows=FILE.yaml" in err


POOL_SOURCE = """\
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
POOL_SNIPPET = """\
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
    made = Made()
    pooled = made.add("MaxPool", made.input(1, 2, 4, 4), kernel_shape=[2, 2], strides=[2, 2])
    words = given_onnx(tmp_path, made.ending_with("Neg", pooled).model(), "MaxPool", POOL_SNIPPET, POOL_SOURCE)
    out = succeed(*words, "--compare", "2").stdout
    assert "compared with the reference on 2 inputs, 1 result of operators: no difference" in out
    assert "from onnxruntime" in (tmp_path / "model/manifest.yaml").read_text()
