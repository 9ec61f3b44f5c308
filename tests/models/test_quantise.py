# SPDX-License-Identifier: Apache-2.0
"""`opwest quantise` of TFLite files: what it prints and writes, layers that are kept, and what it refuses."""

import json
import re
from collections import Counter

import numpy as np
import pytest
import tflite
from campaign import sized
from in_process import fail, succeed
from models.float_models import classes_by, classifier, samples_of
from models.made import Model, of_one
from models.oracle import litert
from models.quantised_graphs import compare
from opwest import OpwestError, quantise
from opwest.frontends.tflite.read import metadata_of, read_tflite
from opwest.quantisation.search import Search

GRAPHS = sized(30, 4000)


def test_random_graphs():
    """LiteRT runs each written file; integers of files without float32 layers are equal bit for bit."""
    kinds = Counter()
    refused = [reason for seed in range(GRAPHS) if (reason := compare(seed, kinds)) is not None]
    assert len(refused) < 0.1 * GRAPHS, refused
    assert sum(kinds.values()) > 6 * GRAPHS
    for precision, least in (("int8", 35), ("int16x8", 25)):
        assert sum(name.endswith(f" {precision}") for name in kinds) >= least, sorted(kinds)


@pytest.fixture
def place(tmp_path):
    """A directory with a model, samples and their classes by the float model."""
    content, images = classifier(), samples_of(80)
    (tmp_path / "net.tflite").write_bytes(content)
    np.savez(tmp_path / "x.npz", image=images)
    np.save(tmp_path / "y.npy", classes_by(content, images))
    return tmp_path


def shown(place, text):
    return text.replace(f"{place}/", "")


def run(place, *words, end=succeed):
    done = end("quantise", place / "net.tflite", "--samples", place / "x.npz", "-o", place / "new.tflite", *words)
    return shown(place, done.stdout), shown(place, done.stderr)


def test_output_and_report(place):
    out, err = run(place, "--labels", place / "y.npy")
    assert re.search(r"loss of each layer \(80 samples, calibration (minmax|percentile|mse)\)", out)
    assert re.search(r"  0 \(CONV_2D\) +int8 +[\d.]+ +[\d.]+ +[\d.]+\n", out)
    assert re.search(r"calibrations, in percentage points of accuracy: minmax [\d.]+, percentile [\d.]+, mse", out)
    assert re.search(r"accuracy: 100.00% before, (9\d|100).\d\d% after: a loss of [\d.]+ percentage points\n", out)
    assert out.endswith("bytes, before 4,912; figures in new.quantise.json\nnext: opwest import new.tflite -o DIR\n")
    assert "opwest: calibrating with 80 samples" in err
    report = json.loads((place / "new.quantise.json").read_text())
    assert (report["version"], report["model"], report["cases"]) == (1, "new.tflite", 80)
    assert report["before"]["accuracy"] == 1.0 and 0 <= report["loss"] <= 5
    first = report["layers"][0]
    assert first["precision"] == "int8" and first["scale"] > 0 and -128 <= first["zero_point"] <= 127
    assert not list(place.glob(".*"))


def test_the_import_is_exact(place):
    """The import has LiteRT's results; inputs and outputs are int8, or float32 on request."""
    run(place)
    content = (place / "new.tflite").read_bytes()
    [graph] = read_tflite(content)
    assert [(t.name, t.dtype) for t in (*graph.inputs, *graph.outputs)] == [("image", "int8"), ("scores", "int8")]
    done = succeed("import", place / "new.tflite", "-o", place / "new", "--compare", "4")
    assert re.search(r"compared with the reference on 4 inputs, \d results of operators: no difference", done.stdout)
    succeed("quantise", place / "net.tflite", "--samples", place / "x.npz", "-o", place / "io.tflite", "--float-io")
    [graph] = read_tflite((place / "io.tflite").read_bytes())
    assert [t.dtype for t in (*graph.inputs, *graph.outputs)] == ["float32", "float32"]
    assert [node.kind for node in graph.nodes][::7] == ["QUANTIZE", "DEQUANTIZE"]


def test_int16_is_closer(place):
    errors = {}
    for dtype in ("int8", "int16x8"):
        done = quantise(place / "net.tflite", output=place / f"{dtype}.tflite", samples=place / "x.npz", dtype=dtype)
        errors[dtype] = done.after.error
        assert {layer.precision for layer in done.layers} == {dtype}
    assert errors["int16x8"] < errors["int8"] < 10


def test_two_layers_rescue_a_model(place):
    """A channel that is 1500 times larger takes the steps of the others: both layers at its tensor need 16 bits."""
    content, images = classifier(outlier=1500.0), samples_of(120)
    labels = classes_by(content, images)
    (place / "net.tflite").write_bytes(content)
    given = {"samples": {"image": images}, "labels": labels}
    broken = quantise(place / "net.tflite", output=place / "broken.tflite", **given)
    assert broken.before.accuracy == 1.0 and broken.loss > 40
    worst = sorted(broken.layers, key=lambda layer: -layer.output_error)[:2]
    assert {layer.layer for layer in worst} == {"0 (CONV_2D)", "1 (CONV_2D)"}
    saved = quantise(place / "net.tflite", output=place / "saved.tflite", keep_accuracy=2, **given)
    assert [(layer.layer, layer.precision) for layer in saved.kept] == [
        ("0 (CONV_2D)", "int16x8"),
        ("1 (CONV_2D)", "int16x8"),
    ]
    assert saved.loss <= 2 and saved.evaluations <= 12
    written = (place / "saved.tflite").read_bytes()
    [graph] = read_tflite(written)
    scale = graph.inputs[0].quantization
    stored = np.clip(np.rint(images / np.float32(scale.scale)) + scale.zero, -128, 127).astype(np.int8)
    classes = np.array([outputs[0].argmax() for outputs in litert(written, [[one[None]] for one in stored])])
    assert (classes == labels).mean() >= 0.98
    kept = quantise(place / "net.tflite", output=place / "float.tflite", keep_accuracy=2, keep="float", **given)
    assert {layer.precision for layer in kept.kept} == {"float"} and len(kept.kept) == 2 and kept.loss <= 2


def test_a_bound_that_does_not_hold(place):
    _, err = run(place, "--keep-accuracy", "0.0001", end=fail)
    assert re.search(
        r"net.tflite: error: the bound of 0.0001 percent of error does not hold: [\d.]+ "
        r"with all layers kept in int16x8\n"
        r"  hint: use --keep float or --float-io, or raise the bound\n",
        err,
    )
    assert sorted(path.name for path in place.iterdir()) == ["net.tflite", "x.npz", "y.npy"]


@pytest.mark.parametrize(
    ("needed", "order"), [("", "abcd"), ("a", "abcd"), ("bd", "abcd"), ("cb", "dcba"), ("abcd", "badc")]
)
def test_the_fewest_layers(needed, order):
    """The search finds exactly the layers that are needed, whatever their order."""
    search = Search(lambda kept: 0.0 if set(needed) <= kept else 5.0, 1.0)
    assert set(search.fewest(order)) == set(needed)
    assert Search(lambda kept: 5.0, 1.0).fewest(order) is None


def test_layers_without_an_integer_form(tmp_path):
    """They are computed in float32, between conversions, with a warning; constants are folded."""
    model = Model()
    weights = model.constant(np.eye(6, dtype=np.float32))
    inner = model.operator("FULLY_CONNECTED", [model.input("float32", (1, 6), name="x"), weights, None], ("float32",))
    sine = model.operator("SIN", [inner], ("float32",))
    model.ending_with("ADD", [sine, model.constant(np.ones((1, 6), np.float32))], ("float32",))
    model.save(tmp_path / "net.tflite")
    done = quantise(
        tmp_path / "net.tflite",
        output=tmp_path / "new.tflite",
        samples=np.linspace(-2, 2, 72, dtype=np.float32).reshape(12, 6),
    )
    assert [one.message for one in done.diagnostics] == ["no integer form, computed in float32: SIN"]
    [graph] = read_tflite((tmp_path / "new.tflite").read_bytes())
    assert [node.kind for node in graph.nodes] == ["FULLY_CONNECTED", "DEQUANTIZE", "SIN", "QUANTIZE", "ADD"]


def test_products_and_sums_become_parts_of_layers(tmp_path):
    """A batch normalisation after a layer: a product and a sum with a number for each channel, then RELU."""
    random = np.random.default_rng(1)
    model = Model()
    inputs = [
        model.input("float32", (1, 5, 5, 2), name="x"),
        model.constant(random.standard_normal((4, 3, 3, 2)).astype("f4")),
    ]
    layer = model.operator("CONV_2D", [*inputs, None], ("float32",), padding="SAME", stride_w=1, stride_h=1)
    scaled = model.operator("MUL", [layer, model.constant(random.uniform(0.5, 2, 4).astype("f4"))], ("float32",))
    moved = model.operator("ADD", [scaled, model.constant(random.standard_normal(4).astype("f4"))], ("float32",))
    model.ending_with("RELU", [moved], ("float32",)).save(tmp_path / "net.tflite")
    samples = random.standard_normal((20, 5, 5, 2)).astype(np.float32)
    done = quantise(tmp_path / "net.tflite", output=tmp_path / "new.tflite", samples={"x": samples})
    [graph] = read_tflite((tmp_path / "new.tflite").read_bytes())
    assert [(node.kind, node.options["fused_activation_function"]) for node in graph.nodes] == [("CONV_2D", "RELU")]
    assert done.after.error < 2


def test_names_and_metadata_remain(tmp_path):
    """The signature, its names, and the metadata of the file."""
    model = Model()
    weights = model.constant(np.eye(3, dtype=np.float32))
    data = model.input("float32", (1, 3), name="serving_default_x:0")
    result = model.operator("FULLY_CONNECTED", [data, weights, None], ("float32",))
    model.output(result).signatures.append(("serving_default", {"x": data}, {"scores": result}, 0))
    model.metadata["min_runtime_version"] = b"1.5.0"
    model.save(tmp_path / "net.tflite")
    samples = {"x": np.linspace(-1, 1, 36, dtype=np.float32).reshape(12, 3)}
    quantise(tmp_path / "net.tflite", output=tmp_path / "new.tflite", samples=samples)
    content = (tmp_path / "new.tflite").read_bytes()
    [graph] = read_tflite(content)
    assert (graph.signature.key, graph.signature.inputs, graph.signature.outputs) == (
        "serving_default",
        ("x",),
        ("scores",),
    )
    file = tflite.Model.GetRootAsModel(content, 0)
    assert list(metadata_of(file, content, b"min_runtime_version")) == [b"1.5.0"]


def test_results_that_are_no_numbers(tmp_path):
    """They do not count, and no figure is NaN: the root of a negative number."""
    model = Model()
    layer = [model.input("float32", (1, 4), name="x"), model.constant(np.eye(4, dtype=np.float32)), None]
    model.ending_with("SQRT", [model.operator("FULLY_CONNECTED", layer, ("float32",))], ("float32",))
    model.save(tmp_path / "net.tflite")
    samples = np.linspace(-1, 1, 48, dtype=np.float32).reshape(12, 4)
    done = quantise(tmp_path / "net.tflite", output=tmp_path / "new.tflite", samples=samples, float_io=True)
    assert 0 < done.after.error < 10 and "NaN" not in done.report.read_text()


def test_several_inputs(tmp_path):
    """Samples have an array for each; a .npy file has only one."""
    model = Model()
    inputs = [model.input("float32", (1, 4), name=name) for name in ("left", "right")]
    model.ending_with("MUL", inputs, ("float32",)).save(tmp_path / "net.tflite")
    random = np.random.default_rng(3)
    samples = {name: random.standard_normal((20, 4)).astype(np.float32) for name in ("left", "right")}
    done = quantise(tmp_path / "net.tflite", output=tmp_path / "new.tflite", samples=samples)
    assert done.after.error < 3 and done.after.agreement is None
    text = r"is one array, the model has 2 inputs\n  expected: an .npz file with the arrays 'left', 'right'"
    with pytest.raises(OpwestError, match=text):
        quantise(tmp_path / "net.tflite", output=tmp_path / "one.tflite", samples=samples["left"])
    samples["right"] = samples["right"][:7]
    with pytest.raises(OpwestError, match=r"samples: 20 of 'left', 7 of 'right'\n  expected: the same number of cases"):
        quantise(tmp_path / "net.tflite", output=tmp_path / "one.tflite", samples=samples)


def named(place, **arrays):
    np.savez(place / "x.npz", **arrays)


IMAGES = np.zeros((12, 8, 8, 3), np.float32)
FAULTS = {
    "names": ({"image": IMAGES, "other": IMAGES}, "error: samples: 'x.npz' has the array 'other', which is no input"),
    "missing": (
        {"imagine": IMAGES},
        "error: samples: 'x.npz' has the array 'imagine', which is no input\n  hint: did you mean 'image'?\n"
        "opwest: error: samples: 'x.npz' has no array 'image'\n  expected: an array for each input of the model\n",
    ),
    "shape": (
        {"image": IMAGES[:, :7]},
        "error: input 'image': 'x.npz' contains float32 [12, 7, 8, 3]\n"
        "  expected: float32 [N, 1, 8, 8, 3] or [N, 8, 8, 3], for N samples\n",
    ),
    "dtype": ({"image": IMAGES.astype(bool)}, "error: input 'image': 'x.npz' contains bool [12, 8, 8, 3]\n  expected:"),
    "none": ({"image": IMAGES[:0]}, "error: input 'image': 'x.npz' contains float32 [0, 8, 8, 3]\n  expected: float32"),
    "numbers": (
        {"image": np.full_like(IMAGES, np.nan)},
        "error: input 'image': the samples have 2304 numbers that are not finite\n  expected: finite numbers",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_wrong_samples(fault, place):
    arrays, text = FAULTS[fault]
    named(place, **arrays)
    _, err = run(place, end=fail)
    assert text in err, err
    assert not (place / "new.tflite").exists()


def test_wrong_labels_and_files(place):
    np.save(place / "y.npy", np.arange(80))
    assert (
        "error: labels: class 6 of output 'scores'\n  expected: 0 to 5"
        in run(place, "--labels", place / "y.npy", end=fail)[1]
    )
    np.save(place / "y.npy", np.arange(3))
    text = "error: labels: 'y.npy' is int64 [3]\n  expected: 80 integers, the class of each case"
    assert text in run(place, "--labels", place / "y.npy", end=fail)[1]
    (place / "x.npz").write_text("no archive")
    assert "error: samples: " in run(place, end=fail)[1]


def test_few_samples_are_reported(place):
    named(place, image=samples_of(4))
    _, err = run(place)
    assert "warning: 4 samples: the ranges of tensors are uncertain; use 100 or more that are typical" in err


def test_existing_files_are_kept(place):
    (place / "new.tflite").write_text("mine")
    _, err = run(place, end=fail)
    assert "new.tflite: error: the file exists and is not overwritten" in err and "remove the file" in err
    assert (place / "new.tflite").read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--keep", "float"], "--keep float has no effect without --keep-accuracy"),
        (
            ["--dtype", "int16x8", "--keep", "int16x8", "--keep-accuracy", "1"],
            "--keep int16x8 has no effect with --dtype int16x8",
        ),
    ],
)
def test_options_without_effect(words, text, place):
    assert f"error: {text}" in run(place, *words, end=fail)[1]


def test_the_output_has_the_format_of_the_model(place):
    done = fail("quantise", place / "net.tflite", "--samples", place / "x.npz", "-o", place / "new.onnx")
    assert "new.onnx: error: the output has the suffix '.onnx'\n  expected: a name with .tflite" in done.stderr
    done = fail("quantise", place / "y.npy", "--samples", place / "x.npz", "-o", place / "new.onnx")
    assert (
        "y.npy: error: the file is no model that can be quantised\n  expected: a .tflite, .onnx or .pt2 file"
        in done.stderr
    )
    done = fail("quantise", place / "no.tflite", "--samples", place / "x.npz", "-o", place / "new.tflite")
    assert "no.tflite: error: cannot read the model: No such file or directory" in done.stderr
    done = fail("quantise", place / "net.tflite", "--samples", place / "z.npz", "-o", place / "new.tflite")
    assert re.search(r"error: samples: cannot read '.*z.npz': No such file or directory", done.stderr)


def refusal(content, tmp_path):
    (tmp_path / "net.tflite").write_bytes(content)
    with pytest.raises(OpwestError) as caught:
        quantise(tmp_path / "net.tflite", output=tmp_path / "new.tflite", samples=np.zeros((12, 4), np.float32))
    return str(caught.value)


def test_models_that_are_no_float_models(tmp_path):
    quantised = of_one("RELU", [("int8", (1, 4), 0.1, 3)], ("int8", 0.1, 3)).build()
    text = refusal(quantised, tmp_path)
    assert "the model is quantised already: tensor 'tensor_0' is int8 with a scale" in text and "float model" in text
    state = Model()
    state.operator("SIN", [state.input("float32", (1, 4))], ("float32",))
    assert "no operator has an integer form" in refusal(state.output(state.graph.tensors[-1]).build(), tmp_path)
    unknown = Model()
    first = unknown.operator("FFT2D", [unknown.input("float32", (1, 4))], ("float32",))
    second = unknown.operator("HASHTABLE", [first], ("float32",))
    text = refusal(unknown.output(second).build(), tmp_path)
    assert "0 (FFT2D)" in text and "1 (HASHTABLE)" in text


def test_weights_of_dynamic_range_models_are_quantised_again(tmp_path):
    """They are int8 already: only the activations lose."""
    random = np.random.default_rng(2)
    model = Model()
    stored = random.integers(-127, 128, (5, 9)).astype(np.int8)
    stored[:, 0] = 127
    weights = model.constant(stored, 0.02)
    model.ending_with("FULLY_CONNECTED", [model.input("float32", (1, 9), name="x"), weights, None], ("float32",))
    model.save(tmp_path / "net.tflite")
    samples = random.standard_normal((30, 9)).astype(np.float32)
    done = quantise(tmp_path / "net.tflite", output=tmp_path / "new.tflite", samples=samples)
    assert "the weights are int8 already (dynamic range)" in done.diagnostics[0].message
    [graph] = read_tflite((tmp_path / "new.tflite").read_bytes())
    assert (graph.nodes[0].input(1).content == stored).all() and done.after.error < 2
