# SPDX-License-Identifier: Apache-2.0
"""Convolutions, matrix products, layers with computed or hybrid weights, sums after convolutions, against LiteRT."""

import numpy as np
import pytest
from models import campaigns
from models.bounds import bound_of
from models.campaigns import check_configurations, check_family, check_models, families, graph_of, refusal, seed_of
from models.executor import checked, interpreted, program_of
from models.layers import ACTIVATIONS, KINDS, dilation, float_lstm, operands, present, quantised, windows
from models.made import Model, of_one
from models.oracle import litert
from opwest.compiler.ir.operations import ConvolutionSum
from opwest.compiler.lowering.conversions import dequantise_weights
from opwest.frontends.tflite.read import read_tflite


def transposed(random, dtype):
    model = Model()
    batch, height, width = (int(n) for n in (random.choice([1, 1, 2]), *random.integers(1, 6, 2)))
    inner, results = int(random.integers(1, 7)), int(random.integers(1, 5))
    kh, kw = (int(n) for n in random.integers(1, 5, 2))
    data = model.input(dtype, (batch, height, width, inner), *quantised(random, dtype))
    shape = (results, kh, kw, inner)
    has_bias = random.random() < 0.7
    weights, bias, scale, zero = operands(model, random, dtype, shape, results, kh * kw * inner, 0, has_bias)
    sy, sx = (int(n) for n in random.integers(1, 4, 2))
    padding = str(random.choice(["SAME", "VALID"]))
    if padding == "SAME":
        rows, columns = height * sy - int(random.integers(0, sy)), width * sx - int(random.integers(0, sx))
    else:
        rows, columns = (height - 1) * sy + kh, (width - 1) * sx + kw
    shape = model.constant(np.array([batch, rows, columns, results], np.int32))
    options = {"padding": padding, "stride_h": sy, "stride_w": sx}
    options["fused_activation_function"] = str(random.choice(ACTIVATIONS))
    inputs = present(shape, weights, data, bias)
    return model.ending_with("TRANSPOSE_CONV", inputs, (dtype, scale, zero), version=4, **options)


def product(random, dtype, other):
    rows, depth, columns = (int(n) for n in random.integers(1, 9, 3))
    adj_x, adj_y = (bool(n) for n in random.integers(0, 2, 2))
    rank = int(random.integers(0, 4))
    batches = [int(n) for n in random.integers(1, 4, rank)]
    shapes = []
    for matrix in ((depth, rows) if adj_x else (rows, depth), (columns, depth) if adj_y else (depth, columns)):
        own = [1 if random.random() < 0.3 else n for n in batches]
        shapes.append((*own[int(random.integers(0, rank + 1)) * (random.random() < 0.3) :], *matrix))
    first, (by, zero) = quantised(random, dtype), quantised(random, other)
    zero = 0 if dtype == "int16" else zero
    if random.random() < 0.5:
        two = (other, shapes[1], by, zero)
    elif other == "float32":
        two = (random.standard_normal(shapes[1]).astype(np.float32),)
    else:
        limits = np.iinfo(other)
        two = (random.integers(limits.min, limits.max, shapes[1]).astype(other), by, zero)
    scale = None if dtype == "float32" else first[0] * by * np.sqrt(depth) * random.uniform(0.3, 1)
    if dtype != "float32":
        spread = {"int8": 70, "int16": 20000}
        scale *= spread[dtype] * spread[other] / spread[dtype] * 1.5
    target = (scale, quantised(random, dtype)[1])
    inputs = [(dtype, shapes[0], *first), two]
    return of_one("BATCH_MATMUL", inputs, (dtype, *target), adj_x=adj_x, adj_y=adj_y)


def computed(random, kind, dtype):
    """A layer whose weights are an input of the model, and sometimes the bias."""
    model = Model()
    results, inner = int(random.integers(2, 6)), int(random.integers(1, 7))
    if kind == "FULLY_CONNECTED":
        data = model.input(dtype, (int(random.integers(1, 4)), inner), *quantised(random, dtype))
        shape, fan, axis = (results, inner), inner, 0
        options = {"fused_activation_function": str(random.choice(ACTIVATIONS))}
    else:
        kh, kw = (int(n) for n in random.integers(1, 4, 2))
        multiplier = int(random.choice([1, 1, 2])) if kind == "DEPTHWISE_CONV_2D" else None
        data = model.input(dtype, (int(random.choice([1, 2])), 7, 8, inner), *quantised(random, dtype))
        if multiplier is None:
            shape, fan, axis = (results, kh, kw, inner), kh * kw * inner, 0
            options = dilation(random, windows(random))
        else:
            results = inner * multiplier
            shape, fan, axis = (1, kh, kw, results), kh * kw, 3
            options = {"depth_multiplier": multiplier, **windows(random)}
            options["stride_h"] = options["stride_w"]
    has_bias = kind != "FULLY_CONNECTED" or random.random() < 0.7
    weights, bias, scale, zero = operands(model, random, dtype, shape, results, fan, axis, has_bias)
    if kind == "FULLY_CONNECTED" and dtype != "float32" and np.size(weights.scale) > 1:
        weights.scale = float(np.max(weights.scale))
    weights.content = None
    model.graph.inputs.append(weights)
    inputs = [data, weights, bias] if kind == "FULLY_CONNECTED" else present(data, weights, bias)
    return model.ending_with(kind, inputs, (dtype, scale, zero), **options)


DTYPES = ("float32", "int8", "uint8", "int16")
PRODUCTS = [
    *((transposed, dtype) for dtype in DTYPES),
    *((product, dtype, dtype) for dtype in ("float32", "int8", "int16")),
    (product, "int16", "int8"),
    *((computed, kind, dtype) for kind in KINDS for dtype in DTYPES),
]


@families(PRODUCTS)
def test_products(make, words, tmp_path):
    check_family(tmp_path, make, *words)


def test_plain_sums(tmp_path):
    """int8 matrices with int32 results: without zero points."""

    def build(random):
        model = product(random, "int8", "int8")
        model.graph.outputs[0].dtype = "int32"
        return model

    check_configurations(build, tmp_path, seed=21)


def test_the_limit_of_sums_is_that_of_one_result(tmp_path):
    """Layers with more weights than 32 bits can sum: each result sums fewer."""
    models = []
    for kind, channels, shape, results, options in (
        ("CONV_2D", 200, (180, 1, 1, 200), 180, {}),
        ("DEPTHWISE_CONV_2D", 33030, (1, 1, 1, 33030), 33030, {"depth_multiplier": 1}),
    ):
        inputs = [("int8", (1, 1, 1, channels), 0.1, 3), ("int8", shape, 0.1, 0), (np.zeros(results, np.int32), 0.01)]
        options |= {"stride_h": 1, "stride_w": 1, "padding": "VALID", "fused_activation_function": "NONE"}
        models.append(of_one(kind, inputs, ("int8", 3.0, 0), **options))
    check_models(models, tmp_path, seed=1)


def test_refused_products():
    inputs = [("int8", (1, 16), 0.1, 0), (np.zeros((4, 16), np.int8), 0.1), None]
    model = of_one("FULLY_CONNECTED", inputs, ("int8", 1.0, 0), weights_format="SHUFFLED4x16INT8")
    assert "weights in the format SHUFFLED4x16INT8" in refusal(model)
    model = of_one("BATCH_MATMUL", [("float32", (2, 3))] * 2, ("float32",))
    assert "with 3 columns and 2 rows" in refusal(model)
    inputs = [("int8", (1, 33025), 0.1, 0), ("int8", (2, 33025), 0.1, 0), None]
    fault = campaigns.lowering_fault(of_one("FULLY_CONNECTED", inputs, ("int8", 1.0, 0)))
    assert fault.message.endswith(": sums of 33025 products") and fault.expected == "at most 33024"


@pytest.mark.parametrize("dtype", ["int8", "int16", "uint8", "float32"])
@pytest.mark.parametrize("kind", KINDS)
def test_layers(kind, dtype, tmp_path):
    check_family(tmp_path, KINDS[kind], dtype, seed=seed_of(kind, dtype))


def random_zero(random):
    return int(random.integers(-128, 128))


def twins(random, kind):
    """Return a model of two layers of equal shapes with other numbers: they share a function."""
    model = Model()
    data = model.input("int8", (1, 40) if kind == "FULLY_CONNECTED" else (1, 7, 6, 4), 0.05, random_zero(random))
    shape, padding = (40, 40), {}
    if kind != "FULLY_CONNECTED":
        padding = {"padding": str(random.choice(["SAME", "VALID"])), "stride_w": 1, "stride_h": 1}
        size = (1, 1) if padding["padding"] == "VALID" else (3, 3)
        shape = (4 if kind == "CONV_2D" else 1, *size, 4)
    if kind == "DEPTHWISE_CONV_2D":
        padding["depth_multiplier"] = 1
    for _ in range(2):
        scale = float(random.uniform(0.001, 0.02))
        weights = model.constant(random.integers(-127, 128, shape).astype(np.int8), scale)
        length = shape[3] if kind == "DEPTHWISE_CONV_2D" else shape[0]
        bias = model.constant(random.integers(-900, 900, length).astype(np.int32), scale * data.scale)
        wide = data.scale * scale * 70 * 70 * np.sqrt(np.prod(shape[1:])) / 60
        options = {"fused_activation_function": str(random.choice(["NONE", "NONE", "RELU"])), **padding}
        data = model.operator(kind, [data, weights, bias], ("int8", wide, random_zero(random)), **options)
    return model.output(data)


@pytest.mark.parametrize("kind", KINDS)
def test_equal_shapes_share_a_function(kind, tmp_path):
    found = check_configurations(lambda random: twins(random, kind), tmp_path, seed_of(kind))
    assert any("numbers[0]" in one.source and one.source.count("void p") == 1 for one in found)


def summed(random, form):
    """Return a convolution of 4 channels, then a sum, fused if it is the only reader of a plain convolution."""
    model, dtype = Model(), "int16" if form == "int16" else "int8"
    zero = 0 if dtype == "int16" else 3
    data = model.input(dtype, (1, 6, 5, 4), 0.05, zero)

    def convolution(groups=1):
        scales = random.uniform(0.005, 0.01, 4)
        weights = model.constant(random.integers(-127, 128, (4, 3, 3, 4 // groups)).astype(np.int8), scales, 0, 0)
        wide = np.int64 if dtype == "int16" else np.int32
        bias = model.constant(random.integers(-900, 900, 4).astype(wide), 0.05 * scales, 0)
        options = {"padding": "SAME", "stride_h": 1, "stride_w": 1, "fused_activation_function": "NONE"}
        return model.operator("CONV_2D", [data, weights, bias], (dtype, 0.3, -zero), **options)

    one = convolution(2 if form == "grouped" else 1)
    others = {
        "twice": one,
        "second": convolution() if form == "second" else None,
        "channels": model.constant(random.integers(-128, 128, 4).astype(dtype), 0.2, zero),
    }
    pair = [one, others.get(form, data)]
    options = {"fused_activation_function": "NONE"}
    return model.output(
        model.operator("ADD", pair if random.random() < 0.5 else pair[::-1], (dtype, 0.4, zero), **options),
        *([one] if form == "read" else []),
    )


@pytest.mark.parametrize("form", ["plain", "second", "grouped", "twice", "read", "channels", "int16"])
def test_sums_after_convolutions(form, tmp_path):
    random = np.random.default_rng(9)
    models = [summed(random, form) for _ in range(2)]
    for model in models:
        operations = program_of(graph_of(model.build())).operations
        assert any(isinstance(one, ConvolutionSum) for one in operations) == (form in ("plain", "second"))
    check_models(models, tmp_path, seed=5)


def weights_of(model, random, shape, results, axis, per_channel):
    scales = random.uniform(0.001, 0.02, results if per_channel else 1)
    return model.constant(random.integers(-127, 128, shape).astype(np.int8), scales, 0, axis)


def hybrid_layer(random, kind):
    model = Model()
    batch, inner = int(random.choice([1, 1, 3])), int(random.integers(1, 9))
    per_channel = bool(random.random() < 0.6)
    options = {}
    if kind in ("CONV_2D", "DEPTHWISE_CONV_2D"):
        groups = int(random.choice([1, 1, 2])) if kind == "CONV_2D" else 1
        data = model.input("float32", (batch, 8, 9, inner * groups))
        kh, kw = (int(n) for n in random.integers(1, 4, 2))
        if kind == "CONV_2D":
            results = int(random.integers(1, 5)) * groups
            shape, axis = (results, kh, kw, inner), 0
            per_channel = per_channel or groups > 1
        else:
            multiplier = int(random.choice([1, 1, 2]))
            results = inner * multiplier
            shape, axis, per_channel = (1, kh, kw, results), 3, True
            options["depth_multiplier"] = multiplier
        options |= windows(random)
        options["stride_h"] = options["stride_w"]
        dilation(random, options)
        if "dilation_h_factor" in options:
            options["dilation_w_factor"] = options["dilation_h_factor"]
    else:
        results = int(random.integers(1, 12))
        shape, axis = (results, inner), 0
        data = model.input("float32", (batch, inner) if random.random() < 0.5 else (2, batch, inner))
        options["fused_activation_function"] = str(random.choice(ACTIVATIONS))
        options["asymmetric_quantize_inputs"] = bool(random.integers(0, 2))
    weights = weights_of(model, random, shape, results, axis, per_channel and results > 1)
    bias = model.constant(random.standard_normal(results).astype(np.float32))
    is_dense = kind == "FULLY_CONNECTED"
    inputs = [data, weights, bias if not is_dense or random.random() < 0.7 else None]
    return model.ending_with(kind, inputs, ("float32",), version=9 if is_dense else 5, **options)


def hybrid_product(random, kind):
    model = Model()
    rows, depth, columns = (int(n) for n in random.integers(1, 9, 3))
    adj_x, adj_y = (bool(n) for n in random.integers(0, 2, 2))
    # LiteRT is wrong where several dimensions are larger than 1.
    batches = (int(random.integers(1, 4)), 1)[:: int(random.choice([1, -1]))][: int(random.integers(0, 3))]
    shapes = []
    for matrix in ((depth, rows) if adj_x else (rows, depth), (columns, depth) if adj_y else (depth, columns)):
        own = tuple(1 if random.random() < 0.4 else n for n in batches)
        shapes.append((*own, *matrix) if random.random() < 0.6 else matrix)
    data = model.input("float32", shapes[0])
    weights = weights_of(model, random, shapes[1], columns, 0, False)
    options = {"adj_x": adj_x, "adj_y": adj_y, "asymmetric_quantize_inputs": bool(random.integers(0, 2))}
    return model.ending_with(kind, [data, weights], ("float32",), version=4, **options)


def hybrid_transposed(random, kind):
    model = Model()
    batch, height, width, inner, results = (int(n) for n in random.integers(1, 5, 5))
    kh, kw, sy, sx = (int(n) for n in random.integers(1, 4, 4))
    weights = weights_of(model, random, (results, kh, kw, inner), results, 0, results > 1 and random.random() < 0.6)
    data = model.input("float32", (batch, height, width, inner))
    padding = str(random.choice(["SAME", "VALID"]))
    rows, columns = height * sy, width * sx
    if padding == "VALID":
        rows, columns = rows - sy + kh, columns - sx + kw
    shape = model.constant(np.array([batch, rows, columns, results], np.int32))
    options = {"padding": padding, "stride_h": sy, "stride_w": sx}
    options["fused_activation_function"] = str(random.choice(ACTIVATIONS))
    inputs = [shape, weights, data]
    if random.random() < 0.7:
        inputs.append(model.constant(random.standard_normal(results).astype(np.float32)))
    return model.ending_with(kind, inputs, ("float32",), version=5, **options)


def some_zeros(graph, random):
    """Rows of different ranges: zeros, positive ones, large ones."""
    [tensor] = graph.inputs
    arrays = [random.standard_normal(tensor.shape) * random.choice([0.1, 1, 30]) for _ in range(4)]
    return [[array.astype(np.float32)] for array in (*arrays[:2], abs(arrays[2]), np.zeros(tensor.shape))]


HYBRID = [
    *((hybrid_layer, kind) for kind in KINDS),
    (hybrid_transposed, "TRANSPOSE_CONV"),
    (hybrid_product, "BATCH_MATMUL"),
]


@families(HYBRID)
def test_hybrid(make, words, tmp_path):
    check_family(tmp_path, make, *words, cases=some_zeros)


def one_pixel(random, kind):
    """Return PAD of one pixel, then a layer whose windows are partly or completely in the padding."""
    model, results = Model(), 4
    data = model.input("float32", (2, 1, 1, results))
    amounts = [[0, 0], *random.integers(0, 4, (2, 2)), [0, 0]]
    wide = model.operator("PAD", [data, model.constant(np.asarray(amounts, np.int32))], ("float32",))
    size = [min(int(random.integers(1, 3)), 1 + sum(edges)) for edges in amounts[1:3]]
    is_depthwise = kind == "DEPTHWISE_CONV_2D"
    shape = (1, *size, results) if is_depthwise else (results, *size, results)
    weights = weights_of(model, random, shape, results, 3 if is_depthwise else 0, True)
    bias = model.constant(random.standard_normal(results).astype(np.float32))
    options = {"padding": "VALID", "fused_activation_function": "NONE"}
    options["stride_h"] = options["stride_w"] = int(random.integers(1, 4))
    options |= {"depth_multiplier": 1} if is_depthwise else {}
    return model.ending_with(kind, [wide, weights, bias], ("float32",), version=5, **options)


@pytest.mark.parametrize("kind", ["CONV_2D", "DEPTHWISE_CONV_2D"])
def test_padding_of_one_pixel_before_a_hybrid_layer(kind, tmp_path):
    check_family(tmp_path, one_pixel, kind, bound=bound_of(f"{kind} hybrid"), cases=some_zeros, simplified=True)


@pytest.mark.parametrize("asymmetric", [False, True])
def test_batches_of_several_dimensions(asymmetric, tmp_path):
    """LiteRT takes the scales of other rows. The oracle is the same product with one dimension of batches."""
    random = np.random.default_rng(9)
    array, matrices = random.standard_normal((2, 3, 4, 5)), random.integers(-127, 128, (2, 3, 5, 6)).astype(np.int8)

    def build(batches):
        inputs = [("float32", (*batches, 4, 5)), (matrices.reshape(*batches, 5, 6), 0.01)]
        options = {"asymmetric_quantize_inputs": asymmetric, "version": 4}
        return of_one("BATCH_MATMUL", inputs, ("float32",), **options)

    flat, case = build((6,)).build(), array.astype(np.float32)

    def oracle(content, cases, resolver):
        found = litert(content, cases)
        [[expected]] = litert(flat, [[case.reshape(6, 4, 5)]])
        assert np.abs(found[0][0] - expected.reshape(2, 3, 4, 6)).max() > 0.1
        return [[expected.reshape(2, 3, 4, 6)]]

    options = {"bound": bound_of("BATCH_MATMUL hybrid"), "cases": lambda graph, random: [[case]], "oracle": oracle}
    check_configurations(lambda _: build((2, 3)), tmp_path, seed=1, count=1, **options)


def test_float_weights_on_request():
    """The results are those of real numbers: nearer to the hybrid kernels than a step of the quantised data."""
    random = np.random.default_rng(8)
    for make, *words in (*HYBRID[:-1], (float_lstm, True)):
        content = make(random, *words).build()
        [graph] = read_tflite(content)
        graph = checked(dequantise_weights(graph))
        assert all(tensor is None or tensor.dtype != "int8" for tensor in graph.nodes[0].inputs)
        case = [random.standard_normal(graph.inputs[0].shape).astype(np.float32)]
        [found] = interpreted(graph, case)
        [[expected]] = litert(content, [case])
        assert 0 < np.abs(found - expected).max() < 0.05 * max(1, np.abs(expected).max())


def test_refused_hybrid():
    model = of_one("FULLY_CONNECTED", [("float32", (1, 4)), (np.zeros((3, 4), np.int8), 0.1, 5), None], ("float32",))
    weights = model.graph.tensors[1]
    assert "with a zero point, with float32 data" in refusal(model)
    weights.zero, weights.content = 0, None
    model.graph.inputs.append(weights)
    model.graph.operators[0][3].clear()
    assert "int8 weights that are computed when the model runs" in refusal(model)
