# SPDX-License-Identifier: Apache-2.0
"""`opwest import --operator NAME=FILE.yaml`: operators of the user in the emitted application, on the host."""

import json

import numpy as np
import pytest
from flatbuffers import flexbuffers
from importers.importers_support import Built
from in_process import fail, opwest, succeed
from requirements_support import need

need("cc", "tflite", "ai_edge_litert")

from models.made import Model  # noqa: E402
from models.oracle import litert  # noqa: E402

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


def flex(**values):
    """Return custom options as TFLite's converter writes them."""
    builder = flexbuffers.Builder()
    with builder.Map():
        for name, value in values.items():
            if isinstance(value, list):
                builder.VectorFromElements(name, value)
            else:
                builder.Float(name, value) if isinstance(value, float) else builder.Int(name, value)
    return bytes(builder.Finish())


def custom_model(options, gains=(2.0,), shape=(3, 4), dtype="float32"):
    """Return RELU, then a custom operator for each gain, then NEG."""
    model = Model()
    data = model.operator("RELU", [model.input(dtype, (3, 4), name="x")], (dtype,))
    for gain in gains:
        result = model._tensor(dtype, shape)
        weights = model.constant(WEIGHTS)
        data = model.operator("ScaledSum", [data, weights], result, custom=options(gain))
    model.output(model.operator("NEG", [data], (dtype,)))
    return model


def given(folder, model, snippet=SNIPPET):
    """Write a model and a snippet with its files; return the words of an import."""
    own = folder / "own"
    for path, text in (("src/scale.c", SOURCE), ("include/scale.h", HEADER), ("scale.yaml", snippet)):
        (own / path).parent.mkdir(parents=True, exist_ok=True)
        (own / path).write_text(text)
    file = model.save(folder / "m.tflite")
    return ["import", file, "-o", folder / "model", "--operator", f"ScaledSum={own / 'scale.yaml'}"]


def test_custom_operator_runs_on_the_host(tmp_path):
    options = lambda gain: flex(gain=gain)  # noqa: E731
    words = given(tmp_path, custom_model(options, gains=(2.0, 0.5)))
    err = succeed(*words).stderr
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
    np.save(tmp_path / "x.npy", x)
    succeed(
        "run", tmp_path / "app", "--host", "--input", f"x={tmp_path / 'x.npy'}", "--output-dir", tmp_path / "results"
    )
    expected = np.maximum(x, 0)
    for gain in (2.0, 0.5):
        expected = (expected + WEIGHTS) * np.float32(gain) + options(gain)[0]
    [result] = (tmp_path / "results").glob("*.npy")
    np.testing.assert_allclose(np.load(result), -expected, rtol=1e-6)


def test_shape_of_the_result_is_that_of_the_snippet(tmp_path):
    words = given(tmp_path, custom_model(lambda gain: flex(gain=gain), shape=()))
    succeed(*words)
    words = given(
        tmp_path, custom_model(lambda gain: flex(gain=gain), shape=()), SNIPPET.replace("shape: [3, 4], ", "")
    )
    words[3] = tmp_path / "other"
    err = fail(*words).stderr
    assert (
        "scale.yaml:12:9: error: operator 1 (ScaledSum), result 'tensor_2': the file does not contain the shape" in err
    )
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
    model.output(model.operator("ADD", data, model._tensor("int8", (2, 5), 0.5, 0)))
    file = model.save(tmp_path / "m.tflite")
    (tmp_path / "add.c").write_text(ADD_SOURCE)
    (tmp_path / "add.yaml").write_text(ADD_SNIPPET)
    words = ["import", file, "--operator", f"ADD={tmp_path / 'add.yaml'}", "--compare", "3"]
    out = succeed(*words, "-o", tmp_path / "model").stdout
    assert "3 inputs, 1 results of operators: no difference" in out
    assert not (tmp_path / "model/operators.c").exists()
    cases = np.load(tmp_path / "model/vectors.npz")
    found = Built(tmp_path / "model", tmp_path).run(list(zip(cases["a"], cases["b"], strict=True)))
    expected = litert(file.read_bytes(), list(zip(cases["a"], cases["b"], strict=True)))
    assert all(np.array_equal(one[0], other[0]) for one, other in zip(found, expected, strict=True))
    (tmp_path / "add.c").write_text(ADD_SOURCE.replace("a[i] + b[i]", "a[i] - b[i]"))
    code, out, err = opwest(*words, "-o", tmp_path / "wrong")
    assert code == 1 and "of step 1 differs from the reference" in err


def refused(tmp_path, snippet=SNIPPET, options=None, **keys):
    """Return the diagnostics of an import."""
    words = given(tmp_path, custom_model(options or (lambda gain: flex(gain=gain)), **keys), snippet)
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
    [(_, text, expected)] = refused(tmp_path, options=lambda gain: flex(gain=[1, 2]))
    assert text == LABEL + "argument 'gain': the option 'gain' is not a number"
    assert expected == "an array argument 'options_gain'"
    [(_, text, expected)] = refused(tmp_path, options=lambda gain: b"\x01\x02no flexbuffer\xff")
    assert text == LABEL + "argument 'gain': the node has no option 'gain'"
    [(_, text, _)] = refused(tmp_path, SNIPPET.replace("gain, dtype: float32", "gain, dtype: int32"), gains=(0.5,))
    assert text == LABEL + "argument 'gain' is int32, the option is 0.5"


def test_wrong_names(tmp_path):
    words = given(tmp_path, custom_model(lambda gain: flex(gain=gain)))
    snippet = words[-1].partition("=")[2]
    err = fail(*words, "--operator", f"ScaledSun={snippet}").stderr
    assert f"{snippet}:5:3: error: --operator: the model has no operator 'ScaledSun'" in err
    assert "expected: NEG, RELU, ScaledSum" in err and "hint: did you mean 'ScaledSum'?" in err
    code, _, err = opwest(*words, "--operator", f"ScaledSum={snippet}")
    assert code == 1 and "error: duplicate --operator 'ScaledSum'" in err
    code, _, err = opwest(*words, "--operator", f"X={tmp_path / 'absent.yaml'}")
    assert code == 1 and "cannot read the snippet of --operator: No such file or directory" in err
    code, _, err = opwest(*words, "--operator", "ScaledSum")
    assert code == 1 and "invalid --operator 'ScaledSum'" in err and "expected: NAME=FILE.yaml" in err


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
    result = model._tensor("int32", (1,), name="winner")
    model.output(model.operator("Best", [data, total], result))
    for path, content in (("m.tflite", model.build()), ("best.c", source.encode()), ("best.yaml", snippet.encode())):
        (folder / path).write_bytes(content)
    return ["import", folder / "m.tflite", "-o", folder / "model", "--operator", f"Best={folder / 'best.yaml'}"]


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
    source = STATE_SOURCE.replace("int32_t *sum, ", "int32_t *sum, int32_t *y, ").replace(
        "return at;", "*y = at;\n\treturn 0;"
    )
    source = source.replace("#include <stdint.h>", "#include <stdint.h>\nstruct device;")
    succeed(*stateful(tmp_path, snippet, source))
    manifest = (tmp_path / "model/manifest.yaml").read_text()
    assert "devices:\n  npu:\n    devicetree: {nodelabel: npu0}" in manifest
    assert "- {call: best, device: npu, args: [x, total, winner]}" in manifest
    succeed("check", tmp_path / "model/manifest.yaml")
