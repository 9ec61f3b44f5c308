# SPDX-License-Identifier: Apache-2.0
"""Models quantised by onnxruntime's tool, against onnxruntime: operators one by one, and whole networks.

The oracle runs without optimisations, so each QDQ operator is computed in float32 between DequantizeLinear and
QuantizeLinear (with ORT_ENABLE_EXTENDED only Softmax has other results). Rules(float_requantization=True): equal.
TFLite's rules: at most one step of the result.
"""

import numpy as np
import pytest
from campaign import sized
from in_process import opwest, succeed
from requirements_support import need

need("cc", "onnx", "onnxruntime")

import onnx  # noqa: E402
import onnxruntime  # noqa: E402
from models.bounds import onnx_bound  # noqa: E402
from models.onnx_quantised import dynamic, quantised, scale_of  # noqa: E402
from models.onnx_support import CONFIGURATIONS, Made, check, floats, graph_of, kinds_of  # noqa: E402
from models.test_onnx_movement import residual  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402
from opwest.importers.models.onnx.unsigned import with_unsigned_weights  # noqa: E402

FORMS = [("QDQ", "int8", "int8"), ("QDQ", "uint8", "int8"), ("QDQ", "uint8", "uint8"), ("QOperator", "uint8", "int8")]
"""Form, dtypes of data and weights. onnxruntime has no QLinearConv for int8 data in this form."""


def layer(random, kind):
    """Return a model with one operator that the tool quantises."""
    made = Made(17)
    n = int(random.integers(1, 3))
    x = made.input(n, 4, 8, 9)
    if kind == "Conv":
        groups = int(random.choice([1, 2, 4]))
        weights = floats(random, 8, 4 // groups, 3, 2)
        if random.random() < 0.5:
            weights[0] *= 1e-4
        y = made.add("Conv", x, weights, floats(random, 8), group=groups, pads=[1, 0, 1, 1], strides=[1, 2])
        y = made.add("Relu", y) if random.random() < 0.5 else y
    elif kind == "ConvTranspose":
        y = made.add("ConvTranspose", x, floats(random, 4, 3, 2, 2), floats(random, 3), strides=[2, 2])
    elif kind == "Gemm":
        y = made.add("Gemm", made.add("Flatten", x), floats(random, 7, 288), floats(random, 7), transB=1)
    elif kind == "MatMul":
        y = made.add("MatMul", x, floats(random, 9, 5))
    elif kind == "Products":
        y = made.add("MatMul", x, made.add("Transpose", made.input(n, 4, 6, 9), perm=[0, 1, 3, 2]))
    elif kind in ("Add", "Mul"):
        y = made.add(kind, x, made.input(4, 1, 9) if random.random() < 0.5 else made.input(n, 4, 8, 9))
    elif kind == "Concat":
        y = made.add("Concat", x, made.input(n, 2, 8, 9), axis=1)
    elif kind == "AveragePool":
        y = made.add("AveragePool", x, kernel_shape=[2, 3], strides=[2, 2], count_include_pad=1, pads=[0, 1, 0, 1])
    elif kind == "Softmax":
        y = made.add("Softmax", x, axis=-1)
    elif kind == "Pad":
        y = made.add("Pad", x, np.asarray([0, 0, 1, 1, 0, 0, 1, 1], np.int64))
    elif kind == "Resize":
        scales = np.asarray([1, 1, 2, 2], np.float32)
        options = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        y = made.add("Resize", x, np.zeros(0, np.float32), scales, **options)
    elif kind == "ResizeLinear":
        transform = str(random.choice(["half_pixel", "align_corners", "pytorch_half_pixel", "asymmetric"]))
        sizes = np.asarray([n, 4, *random.integers(3, 17, 2)], np.int64)
        options = {"mode": "linear", "coordinate_transformation_mode": transform}
        y = made.add("Resize", x, np.zeros(0, np.float32), np.zeros(0, np.float32), sizes, **options)
    elif kind == "PadValue":
        y = made.add("Pad", x, np.asarray([0, 0, 1, 1, 0, 0, 1, 1], np.int64), np.float32(random.choice([0, 0.4])))
    elif kind == "Where":
        y = made.add("Where", made.input(n, 4, 8, 9, dtype="bool"), x, made.input(n, 4, 8, 9))
    else:
        options = {"MaxPool": {"kernel_shape": [2, 2]}, "LeakyRelu": {"alpha": 0.1}}.get(kind, {})
        y = made.add(kind, x, **options)
    made.output(y)
    return made


KINDS = [
    "Conv", "ConvTranspose", "Gemm", "MatMul", "Products", "Add", "Mul", "Concat", "AveragePool", "GlobalAveragePool",
    "MaxPool", "Sigmoid", "LeakyRelu", "Tanh", "HardSwish", "Softmax", "Pad", "PadValue", "Resize",
    "ResizeLinear", "Where",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_operators(kind, tmp_path):
    random = np.random.default_rng([ord(c) for c in kind])
    contents = []
    for number in range(max(len(FORMS), CONFIGURATIONS)):
        model = layer(random, kind).model()
        contents.append(
            quantised(model, tmp_path, random, *FORMS[number % len(FORMS)], bool((number + number // 4) % 2))
        )
    # The results are float32: a step is the scale of the last DequantizeLinear.
    scales = [scale_of(content) for content in contents]
    # The tool can leave the result of Resize as float32.
    bound = onnx_bound("Resize") if kind == "ResizeLinear" else 1e-6
    check(contents, tmp_path / "exact", random, bound, exact=True)
    check(contents, tmp_path / "fixed", random, bound, 1.001, scales=scales)


def test_integers_at_the_interface(tmp_path):
    """uint8 inputs and outputs keep their dtype; the layers between have int8."""
    random = np.random.default_rng(40)
    contents = [
        without_ends(quantised(layer(random, "Conv").model(), tmp_path, random, "QDQ", dtype, "int8"))
        for dtype in ("uint8", "int8")
    ]
    for graph, dtype in zip(check(contents, tmp_path / "c", random, 0, exact=True), ("uint8", "int8"), strict=True):
        assert graph.inputs[0].dtype == graph.outputs[0].dtype == dtype
        assert graph.inputs[0].quantization is not None and graph.outputs[0].quantization is not None
        assert "DEQUANTIZE" not in kinds_of(graph)


def without_ends(content):
    """Return a model without the first QuantizeLinear and the last DequantizeLinear."""
    model = onnx.load_from_string(content)
    graph = model.graph
    first = next(one for one in graph.node if one.op_type == "QuantizeLinear" and one.input[0] == graph.input[0].name)
    last = next(one for one in graph.node if one.output[0] == graph.output[0].name)
    zero = next(numpy_helper.to_array(one) for one in graph.initializer if one.name == first.input[2])
    dtype = helper.np_dtype_to_tensor_dtype(zero.dtype)
    graph.input[0].name, graph.output[0].name = first.output[0], last.input[0]
    for one in (graph.input[0], graph.output[0]):
        one.type.tensor_type.elem_type = dtype
    graph.node.remove(first)
    graph.node.remove(last)
    return model.SerializeToString()


@pytest.mark.parametrize("form", FORMS)
def test_networks(form, tmp_path):
    """A network with blocks, pools and a classifier has the same bits, with one transpose, of its input."""
    random = np.random.default_rng([ord(c) for c in "".join(form)])
    content = quantised(
        residual(random, has_means=form[0] == "QOperator").model(),
        tmp_path,
        random,
        *form,
        per_channel=form[2] == "int8",
    )
    [graph] = check([content], tmp_path / "c", random, onnx_bound("network"), exact=True)
    assert kinds_of(graph).count("TRANSPOSE") == 1
    [graph] = [graph_of(content)]
    layers = [node for node in graph.nodes if node.kind in ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")]
    assert len(layers) >= 4 and all(node.output.dtype == "int8" for node in layers)


def test_weights_of_the_oracle():
    """int8 weights become uint8 ones with the same values; other readers of a constant keep it."""
    made = Made(17)
    x = made.input(2, 3, dtype="uint8")
    weights = made.constant(np.asarray([[-128], [0], [127]], np.int8))
    made.output(made.add("MatMulInteger", x, weights), made.add("Cast", weights, to=1))
    content = made.model().SerializeToString()
    changed = onnx.load_from_string(with_unsigned_weights(content))
    constants = {one.name: numpy_helper.to_array(one) for one in changed.graph.initializer}
    product, other = changed.graph.node
    assert constants[product.input[1]].tolist() == [[0], [128], [255]] and constants[product.input[3]] == 128
    assert other.input[0] == weights and constants[weights].dtype == np.int8
    plain = layer(np.random.default_rng(0), "Conv").model().SerializeToString()
    assert with_unsigned_weights(plain) == plain


@pytest.mark.parametrize("kind", ["MatMul", "Gemm", "Conv"])
def test_dynamic(kind, tmp_path):
    """The same bits: scales are computed when the model runs."""
    random = np.random.default_rng([ord(c) for c in kind])
    contents = [
        dynamic(layer(random, kind).model(), tmp_path, weights, per_channel)
        for weights in ("int8", "uint8")
        for per_channel in (False, True)
        for _ in range(sized(1, 13))
    ]
    check(contents, tmp_path / "c", random, onnx_bound("MatMulInteger"))


@pytest.mark.parametrize("shape", [(1,), (1, 1)])
def test_scales_with_dimensions(shape, tmp_path):
    """A dynamically quantised layer whose scale of weights is no scalar."""
    random = np.random.default_rng(11)
    model = onnx.load_from_string(dynamic(layer(random, "MatMul").model(), tmp_path))
    [scale] = (one for one in model.graph.initializer if one.name.endswith("_scale"))
    scale.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(scale).reshape(shape), scale.name))
    check([model.SerializeToString()], tmp_path / "c", random, onnx_bound("MatMulInteger"))


@pytest.mark.parametrize("kind", ["MatMul", "Gemm", "Conv"])
def test_dequantised_weights(kind, tmp_path):
    """Near to the float model, and to onnxruntime's results: uint8 weights, whose products saturate on no processor."""
    random = np.random.default_rng([ord(c) for c in kind])
    model = layer(random, kind).model()
    file = tmp_path / "m.onnx"
    file.write_bytes(dynamic(model, tmp_path / "work", "uint8", True))
    out = succeed("import", file, "-o", tmp_path / "model", "--dequantise-weights", "--compare", "3").stdout
    assert "1 results of operators: largest difference" in out
    assert "tolerance 0.05 of the largest element of a result" in out
    assert "quantise" not in (tmp_path / "model/operators.c").read_text()
    with np.load(tmp_path / "model/vectors.npz") as vectors:
        cases, found = (vectors[name] for name in vectors.files)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for one, other in zip(cases, found, strict=True):
        [expected] = session.run(None, {session.get_inputs()[0].name: one})
        assert np.abs(other - expected).max() <= 0.03 * max(1, np.abs(expected).max())


def test_float_io(tmp_path):
    """uint8 at both ends becomes float32."""
    made = Made(17)
    scale, zero = np.float32(0.05), np.uint8(120)
    real = made.add("Relu", made.add("DequantizeLinear", "data", scale, zero))
    made.output(made.add("QuantizeLinear", real, np.float32(0.03), np.uint8(3)))
    made.inputs.append(helper.make_tensor_value_info("data", onnx.TensorProto.UINT8, [2, 40]))
    file = tmp_path / "m.onnx"
    file.write_bytes(made.model().SerializeToString())
    out = succeed("import", file, "-o", tmp_path / "model", "--float-io", "--compare", "3", "--exact").stdout
    assert "1 results of operators: no difference" in out
    manifest = (tmp_path / "model/manifest.yaml").read_text()
    assert "data: {dtype: float32, shape: [2, 40]}" in manifest and "quantization" not in manifest


def test_dequantised_weights_without_such_a_layer(tmp_path):
    file = tmp_path / "m.onnx"
    file.write_bytes(layer(np.random.default_rng(1), "Add").model().SerializeToString())
    code, _, err = opwest("import", file, "-o", tmp_path / "model", "--dequantise-weights")
    assert code == 1 and "--dequantise-weights: no layer has int8 weights and float32 data" in err


def test_dynamic_lstm(tmp_path):
    random = np.random.default_rng(41)
    made = Made(13)
    x = made.input(4, 2, 5)
    weights = floats(random, 2, 24, 5), floats(random, 2, 24, 6), floats(random, 2, 48)
    made.output(*made.add("LSTM", x, *weights, results=3, hidden_size=6, direction="bidirectional"))
    check([dynamic(made.model(), tmp_path, "int8", True)], tmp_path / "c", random, onnx_bound("DynamicQuantizeLSTM"))
