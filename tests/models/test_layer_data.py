# SPDX-License-Identifier: Apache-2.0
"""The layers of an import: kinds and names of the file, multiplications counted one by one, costs, import.json."""

import json
from itertools import product

import numpy as np
import pytest
from in_process import succeed
from models.made import Model, of_one
from models.real import model_file
from requirements_support import need

FLOAT = ("float32", None, 0)
SAME, VALID = 0, 1


def imported(model, folder, *words):
    """Return the layers of a model in the JSON output, which import.json repeats."""
    file = model if not hasattr(model, "save") else model.save(folder / "model.tflite")
    printed = succeed("import", file, "-o", folder / "out", "--vectors", "0", "--json", *words).stdout
    done = json.loads(printed)["result"]
    written = json.loads((folder / "out" / "import.json").read_text())
    assert written["version"] == 2
    assert written["models"] == done["layers"]
    return done["layers"][0]


def taps(rows, columns, channels, kernel, stride, results, *, depthwise=False):
    """Count the products of a convolution with padding SAME, one window after the other."""
    count = 0
    for _ in product(range(-(-rows // stride)), range(-(-columns // stride))):
        for _ in product(range(kernel), range(kernel)):
            count += results if depthwise else results * channels
    return count


def window(kind, shape, weights, results, **options):
    random = np.random.default_rng(1)
    weights = random.standard_normal(weights).astype(np.float32)
    bias = np.zeros(results, np.float32)
    options = {"padding": SAME, "stride_h": 2, "stride_w": 2, "fused_activation_function": 1, **options}
    return of_one(kind, [("float32", shape), (weights,), (bias,)], FLOAT, **options)


def test_convolution(tmp_path):
    [row] = imported(window("CONV_2D", (1, 5, 7, 3), (4, 3, 3, 3), 4), tmp_path)["layers"]
    assert row["macs"] == row["file_macs"] == taps(5, 7, 3, 3, 2, 4)
    assert row["weight_bytes"] == 4 * 3 * 3 * 3 * 4
    assert row["attributes"] == {"kernel": [3, 3], "stride": [2, 2]}
    assert [(one["kind"], one["activation"], one["name"]) for one in row["operators"]] == [
        ("CONV_2D", "RELU", "tensor_3")
    ]
    assert row["inputs"] == [{"name": "tensor_0", "dtype": "float32", "shape": [1, 5, 7, 3]}]
    assert row["outputs"] == [{"name": "tensor_3", "dtype": "float32", "shape": [1, 3, 4, 4]}]


def test_depthwise_convolution(tmp_path):
    model = window("DEPTHWISE_CONV_2D", (1, 6, 6, 3), (1, 3, 3, 6), 6, depth_multiplier=2)
    [row] = imported(model, tmp_path)["layers"]
    assert row["macs"] == taps(6, 6, 3, 3, 2, 6, depthwise=True)


def test_dense_pool_and_product(tmp_path):
    random = np.random.default_rng(2)
    model = Model()
    data = model.input("float32", (1, 4, 4, 5), name="image")
    pooled = model.operator(
        "AVERAGE_POOL_2D", [data], FLOAT, padding=VALID, stride_h=2, stride_w=2, filter_height=2, filter_width=2
    )
    shape = model.constant(np.int32([4, 5]))
    rows = model.operator("RESHAPE", [pooled, shape], FLOAT)
    rows.name = "flat"
    weights = model.constant(random.standard_normal((7, 5)).astype(np.float32))
    dense = model.operator("FULLY_CONNECTED", [rows, weights, None], FLOAT)
    dense.name = "hidden"
    other = model.input("float32", (7, 3), name="matrix")
    model.output(model.operator("BATCH_MATMUL", [dense, other], FLOAT))
    found = imported(model, tmp_path)
    rows = found["layers"]
    kinds = [[one["kind"] for one in row["operators"]] for row in rows]
    assert kinds == [["AVERAGE_POOL_2D"], ["FULLY_CONNECTED"], ["BATCH_MATMUL"]]
    assert [row["macs"] for row in rows] == [0, 4 * 5 * 7, 4 * 7 * 3]
    assert rows[1]["attributes"] == {}
    assert [(view["kind"], view["name"]) for view in found["views"]] == [("RESHAPE", "flat")]
    base = found["implementations"][0]
    assert base["variant"] is None
    assert "hidden" in base["tensors"].values()
    assert [step["layer"] for step in base["steps"]] == [0, 1, 2]


def test_transposed_convolution(tmp_path):
    random = np.random.default_rng(3)
    weights = random.standard_normal((2, 3, 3, 4)).astype(np.float32)  # results, rows, columns, channels
    inputs = [(np.int32([1, 10, 12, 2]),), (weights,), ("float32", (1, 5, 6, 4))]
    options = {"padding": SAME, "stride_h": 2, "stride_w": 2}
    [row] = imported(of_one("TRANSPOSE_CONV", inputs, FLOAT, **options), tmp_path)["layers"]
    count = sum(2 for _ in product(range(5), range(6), range(4), range(3), range(3)))
    assert row["macs"] == count
    assert row["weight_bytes"] == weights.nbytes


def test_activation_and_padding_of_a_layer_are_parts_of_it(tmp_path):
    random = np.random.default_rng(4)
    model = Model()
    data = model.input("float32", (1, 5, 5, 2))
    padded = model.operator("PAD", [data, model.constant(np.int32([[0, 0], [1, 1], [1, 1], [0, 0]]))], FLOAT)
    weights = model.constant(random.standard_normal((3, 3, 3, 2)).astype(np.float32))
    made = model.operator("CONV_2D", [padded, weights, None], FLOAT, padding=VALID, stride_h=1, stride_w=1)
    model.output(model.operator("RELU", [made], FLOAT))
    found = imported(model, tmp_path)
    [row] = found["layers"]
    assert [(one["number"], one["kind"]) for one in row["operators"]] == [(0, "PAD"), (1, "CONV_2D"), (2, "RELU")]
    assert found["views"] == []


def test_costs_of_cores_and_removed_channels(tmp_path):
    found = imported(model_file("vww_int8.tflite"), tmp_path)
    variants = {made["variant"]: made for made in found["implementations"]}
    assert list(variants) == [None, "mla", "dsp", "mve"]
    assert [cost["core"] for cost in variants[None]["costs"]] == ["rv32", "cortex-m0plus"]
    assert [cost["core"] for name in ("mla", "dsp", "mve") for cost in variants[name]["costs"]] == [
        "cortex-m3", "cortex-m4", "cortex-m55",
    ]  # fmt: skip
    for made in found["implementations"]:
        for cost in made["costs"]:
            assert len(cost["steps"]) == len(made["steps"])
            assert abs(cost["cycles"] - sum(step["cycles"] for step in cost["steps"])) <= len(made["steps"])
        rows = [found["layers"][step["layer"]] for step in made["steps"]]
        assert sum(row["file_macs"] for row in rows) == 7_489_664  # of a reader of the file: see test_macs_of_a_file
        assert sum(row["macs"] for row in rows) < sum(row["file_macs"] for row in rows)


@pytest.mark.parametrize("name", ["ic_int8", "vww_int8", "kws_int8"])
def test_macs_of_a_file(name, tmp_path):
    """The shapes of a file, read without opwest's reader, give the same multiplications."""
    import tflite

    model = tflite.Model.GetRootAs(model_file(f"{name}.tflite").read_bytes(), 0)
    graph = model.Subgraphs(0)
    count = 0
    for number in range(graph.OperatorsLength()):
        operator = graph.Operators(number)
        code = model.OperatorCodes(operator.OpcodeIndex())
        kind = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
        result = np.prod(graph.Tensors(operator.Outputs(0)).ShapeAsNumpy())
        if kind in (tflite.BuiltinOperator.CONV_2D, tflite.BuiltinOperator.FULLY_CONNECTED):
            count += result * np.prod(graph.Tensors(operator.Inputs(1)).ShapeAsNumpy()[1:])
        elif kind == tflite.BuiltinOperator.DEPTHWISE_CONV_2D:
            count += result * np.prod(graph.Tensors(operator.Inputs(1)).ShapeAsNumpy()[1:3])
    found = imported(model_file(f"{name}.tflite"), tmp_path, "--kernels", "portable")
    assert sum(found["layers"][step["layer"]]["file_macs"] for step in found["implementations"][0]["steps"]) == count


def test_names_and_activations_of_onnx(tmp_path):
    need("onnx", "onnxruntime")
    from models.onnx_support import helper, numpy_helper, onnx

    random = np.random.default_rng(5)
    weights = random.standard_normal((4, 3, 3, 3)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="/features/0/Conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], name="/features/1/Relu"),
        helper.make_node("MaxPool", ["r"], ["y"], name="/pool/MaxPool", kernel_shape=[2, 2], strides=[2, 2]),
    ]
    ends = [helper.make_tensor_value_info(name, 1, shape) for name, shape in (("x", (1, 3, 8, 8)), ("y", (1, 4, 4, 4)))]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], [numpy_helper.from_array(weights, "w")])
    file = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), file)
    rows = imported(file, tmp_path)["layers"]
    [conv] = [row for row in rows if row["macs"]]
    assert conv["macs"] == 8 * 8 * weights.size
    assert [(one["number"], one["kind"], one["name"], one["activation"]) for one in conv["operators"]] == [
        (0, "Conv", "/features/0/Conv", "RELU")
    ]
    assert [one["name"] for row in rows for one in row["operators"] if one["kind"] == "MaxPool"] == ["/pool/MaxPool"]


def test_tune_reads_import_json_of_earlier_versions(tmp_path):
    from opwest.imports.import_json import read_import_json

    model = window("CONV_2D", (1, 5, 7, 3), (4, 3, 3, 3), 4)
    file = model.save(tmp_path / "model.tflite")
    succeed("import", file, "-o", tmp_path / "out", "--vectors", "0", "--max-flash", "9000")
    place = tmp_path / "out" / "import.json"
    data = json.loads(place.read_text())
    for key in ("version", "models"):
        del data[key]
    place.write_text(json.dumps(data))
    read = read_import_json(tmp_path / "out")
    assert read.model == file
    assert read.options.max_flash == 9000
