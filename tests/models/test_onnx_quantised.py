# SPDX-License-Identifier: Apache-2.0
"""Models quantised by onnxruntime's tool, against onnxruntime: operators one by one, and whole networks.

The oracle computes each QDQ operator in float32 between DequantizeLinear and QuantizeLinear (with ORT_ENABLE_EXTENDED
only Softmax has other results). With --exact the results are equal; without, they have at most one step.
"""

import numpy as np
import pytest
from campaign import sized
from in_process import succeed
from models.bounds import ONNX
from models.commands import arrays_of
from models.onnx_quantised import check_exact_and_fixed, dynamic, quantised
from models.onnx_support import CONFIGURATIONS, Made, check, floats, graph_of, kinds_of
from models.test_onnx_movement import residual
from onnx import helper, load_from_string, numpy_helper
from onnxruntime import InferenceSession
from opwest.frontends.onnx.file import with_unsigned_weights

FORMS = [("QDQ", "int8", "int8"), ("QDQ", "uint8", "int8"), ("QDQ", "uint8", "uint8"), ("QOperator", "uint8", "int8")]
"""Form, dtypes of data and weights. onnxruntime has no QLinearConv for int8 data in this form."""


EDGES = np.asarray([0, 0, 1, 1, 0, 0, 1, 1], np.int64)
NEAREST = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
OPTIONS = {
    "AveragePool": {"kernel_shape": [2, 3], "strides": [2, 2], "count_include_pad": 1, "pads": [0, 1, 0, 1]},
    "MaxPool": {"kernel_shape": [2, 2]}, "LeakyRelu": {"alpha": 0.1}, "Softmax": {"axis": -1},
    "GlobalAveragePool": {}, "Sigmoid": {}, "Tanh": {}, "HardSwish": {},
}  # fmt: skip
"""Of operators with one input."""
KINDS = [
    *("Conv", "ConvTranspose", "Gemm", "MatMul", "Products", "Add", "Mul", "Concat", "Pad", "PadValue", "Resize"),
    *("ResizeLinear", "Where", *OPTIONS),
]


def layer(random, kind):
    made = Made(17)
    n = int(random.integers(1, 3))
    x, empty = made.input(n, 4, 8, 9), np.zeros(0, np.float32)
    if kind in OPTIONS:
        return made.ending_with(kind, x, **OPTIONS[kind])
    if kind == "Conv":
        groups = int(random.choice([1, 2, 4]))
        weights = floats(random, 8, 4 // groups, 3, 2)
        if random.random() < 0.5:
            weights[0] *= 1e-4
        y = made.add("Conv", x, weights, floats(random, 8), group=groups, pads=[1, 0, 1, 1], strides=[1, 2])
        return made.output(made.add("Relu", y) if random.random() < 0.5 else y)
    if kind == "ConvTranspose":
        return made.ending_with(kind, x, floats(random, 4, 3, 2, 2), floats(random, 3), strides=[2, 2])
    if kind == "Gemm":
        return made.ending_with(kind, made.add("Flatten", x), floats(random, 7, 288), floats(random, 7), transB=1)
    if kind == "MatMul":
        return made.ending_with(kind, x, floats(random, 9, 5))
    if kind == "Products":
        return made.ending_with("MatMul", x, made.add("Transpose", made.input(n, 4, 6, 9), perm=[0, 1, 3, 2]))
    if kind in ("Add", "Mul"):
        return made.ending_with(kind, x, made.input(4, 1, 9) if random.random() < 0.5 else made.input(n, 4, 8, 9))
    if kind == "Concat":
        return made.ending_with(kind, x, made.input(n, 2, 8, 9), axis=1)
    if kind.startswith("Pad"):
        value = [np.float32(random.choice([0, 0.4]))] if kind == "PadValue" else []
        return made.ending_with("Pad", x, EDGES, *value)
    if kind == "Resize":
        return made.ending_with(kind, x, empty, np.float32([1, 1, 2, 2]), **NEAREST)
    if kind == "ResizeLinear":
        transform = str(random.choice(["half_pixel", "align_corners", "pytorch_half_pixel", "asymmetric"]))
        sizes = np.asarray([n, 4, *random.integers(3, 17, 2)], np.int64)
        options = {"mode": "linear", "coordinate_transformation_mode": transform}
        return made.ending_with("Resize", x, empty, empty, sizes, **options)
    return made.ending_with(kind, made.input(n, 4, 8, 9, dtype="bool"), x, made.input(n, 4, 8, 9))


@pytest.mark.parametrize("kind", KINDS)
def test_operators(kind, tmp_path):
    random = np.random.default_rng([ord(c) for c in kind])
    contents = []
    for number in range(max(len(FORMS), CONFIGURATIONS)):
        form, per_channel = FORMS[number % len(FORMS)], bool((number + number // 4) % 2)
        contents.append(quantised(layer(random, kind).model(), tmp_path, random, *form, per_channel))
    # The tool can leave the result of Resize as float32.
    check_exact_and_fixed(contents, tmp_path, random, ONNX["Resize"] if kind == "ResizeLinear" else 1e-6)


def test_integers_at_the_interface(tmp_path):
    """uint8 inputs and outputs keep their dtype; the layers between have int8."""
    random = np.random.default_rng(40)
    dtypes = ("uint8", "int8")
    contents = [without_ends(quantised(layer(random, "Conv").model(), tmp_path, random, "QDQ", one)) for one in dtypes]
    for graph, dtype in zip(check(contents, tmp_path / "c", random, 0, exact=True), dtypes, strict=True):
        assert graph.inputs[0].dtype == graph.outputs[0].dtype == dtype
        assert graph.inputs[0].quantization is not None and graph.outputs[0].quantization is not None
        assert "DEQUANTIZE" not in kinds_of(graph)


def without_ends(content):
    """Return a model without the first QuantizeLinear and the last DequantizeLinear."""
    model = load_from_string(content)
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
    network = residual(random, has_means=form[0] == "QOperator").model()
    content = quantised(network, tmp_path, random, *form, per_channel=form[2] == "int8")
    [graph] = check([content], tmp_path / "c", random, ONNX["network"], exact=True)
    assert kinds_of(graph).count("TRANSPOSE") == 1
    layers = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
    layers = [node for node in graph_of(content).nodes if node.kind in layers]
    assert len(layers) >= 4 and all(node.output.dtype == "int8" for node in layers)


def test_weights_of_the_oracle():
    """int8 weights become uint8 ones with the same values; other readers of a constant keep it."""
    made = Made(17)
    x = made.input(2, 3, dtype="uint8")
    weights = made.constant(np.asarray([[-128], [0], [127]], np.int8))
    made.output(made.add("MatMulInteger", x, weights), made.add("Cast", weights, to=1))
    content = made.model().SerializeToString()
    changed = load_from_string(with_unsigned_weights(content))
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
    check(contents, tmp_path / "c", random, ONNX["MatMulInteger"])


@pytest.mark.parametrize("shape", [(1,), (1, 1)])
def test_scales_with_dimensions(shape, tmp_path):
    """A dynamically quantised layer whose scale of weights is no scalar."""
    random = np.random.default_rng(11)
    model = load_from_string(dynamic(layer(random, "MatMul").model(), tmp_path))
    [scale] = (one for one in model.graph.initializer if one.name.endswith("_scale"))
    scale.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(scale).reshape(shape), scale.name))
    check([model.SerializeToString()], tmp_path / "c", random, ONNX["MatMulInteger"])


@pytest.mark.parametrize("kind", ["MatMul", "Gemm", "Conv"])
def test_dequantised_weights(kind, tmp_path):
    """Near to the float model, and to onnxruntime's results: uint8 weights, whose products saturate on no processor."""
    random = np.random.default_rng([ord(c) for c in kind])
    model = layer(random, kind).model()
    file = tmp_path / "m.onnx"
    file.write_bytes(dynamic(model, tmp_path / "work", "uint8", True))
    out = succeed("import", file, "-o", tmp_path / "model", "--dequantise-weights", "--compare", "3").stdout
    assert "1 result of operators: largest difference" in out
    assert "tolerance 0.05 of the largest element of a result" in out
    assert "quantise" not in (tmp_path / "model/operators.c").read_text()
    cases, found = arrays_of(tmp_path / "model/vectors.npz").values()
    session = InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for one, other in zip(cases, found, strict=True):
        [expected] = session.run(None, {session.get_inputs()[0].name: one})
        assert np.abs(other - expected).max() <= 0.03 * max(1, np.abs(expected).max())


def test_dynamic_lstm(tmp_path):
    random = np.random.default_rng(41)
    made = Made(13)
    x = made.input(4, 2, 5)
    weights = floats(random, 2, 24, 5), floats(random, 2, 24, 6), floats(random, 2, 48)
    made.ending_with("LSTM", x, *weights, results=3, hidden_size=6, direction="bidirectional")
    check([dynamic(made.model(), tmp_path, "int8", True)], tmp_path / "c", random, ONNX["DynamicQuantizeLSTM"])
