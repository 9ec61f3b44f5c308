# SPDX-License-Identifier: Apache-2.0
"""Layers with float32 data and int8 weights, against LiteRT."""

import numpy as np
import pytest
from requirements_support import need

need("cc", "tflite", "ai_edge_litert")

from models.bounds import bound_of  # noqa: E402
from models.campaigns import check_configurations, graph_of  # noqa: E402
from models.layers import ACTIVATIONS, dilation, present, windows  # noqa: E402
from models.lstms import float_lstm  # noqa: E402
from models.made import Model  # noqa: E402
from models.oracle import litert  # noqa: E402
from models.test_pools import seed_of  # noqa: E402
from opwest.diagnostics import Diagnostics  # noqa: E402
from opwest.importers.models.graph.check import check_graph  # noqa: E402
from opwest.importers.models.hybrid import dequantise_weights  # noqa: E402
from opwest.importers.models.interpret.run import outputs_of, run_graph  # noqa: E402
from opwest.importers.models.tflite.read import read_tflite  # noqa: E402


def weights_of(model, random, shape, results, axis, per_channel):
    scales = random.uniform(0.001, 0.02, results if per_channel else 1)
    return model.constant(random.integers(-127, 128, shape).astype(np.int8), scales, 0, axis)


def layer(random, kind):
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
    if kind == "FULLY_CONNECTED":
        inputs = [data, weights, bias if random.random() < 0.7 else None]
    else:
        inputs = present(data, weights, bias)
    model.output(model.operator(kind, inputs, ("float32",), version=9 if kind == "FULLY_CONNECTED" else 5, **options))
    return model


def product(random, kind):
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
    model.output(model.operator(kind, [data, weights], ("float32",), version=4, **options))
    return model


def transposed(random, kind):
    model = Model()
    batch, height, width, inner, results = (int(n) for n in random.integers(1, 5, 5))
    kh, kw, sy, sx = (int(n) for n in random.integers(1, 4, 4))
    weights = weights_of(model, random, (results, kh, kw, inner), results, 0, results > 1 and random.random() < 0.6)
    data = model.input("float32", (batch, height, width, inner))
    padding = str(random.choice(["SAME", "VALID"]))
    rows, columns = height * sy, width * sx
    if padding == "VALID":
        rows, columns = (height - 1) * sy + kh, (width - 1) * sx + kw
    shape = model.constant(np.array([batch, rows, columns, results], np.int32))
    options = {"padding": padding, "stride_h": sy, "stride_w": sx}
    options["fused_activation_function"] = str(random.choice(ACTIVATIONS))
    inputs = [shape, weights, data]
    if random.random() < 0.7:
        inputs.append(model.constant(random.standard_normal(results).astype(np.float32)))
    model.output(model.operator(kind, inputs, ("float32",), version=5, **options))
    return model


def some_zeros(graph, random):
    """Rows of different ranges: zeros, positive ones, large ones."""
    cases = []
    for number in range(4):
        [tensor] = graph.inputs
        array = random.standard_normal(tensor.shape) * random.choice([0.1, 1, 30])
        cases.append(
            [(np.zeros(tensor.shape) if number == 3 else abs(array) if number == 2 else array).astype(np.float32)]
        )
    return cases


@pytest.mark.parametrize("kind", ["CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "FULLY_CONNECTED", "BATCH_MATMUL"])
def test_hybrid(kind, tmp_path):
    make = {"BATCH_MATMUL": product, "TRANSPOSE_CONV": transposed}.get(kind, layer)
    check_configurations(
        lambda random: make(random, kind),
        tmp_path,
        seed=seed_of(kind),
        bound=bound_of(f"{kind} hybrid"),
        cases=some_zeros,
    )


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
    model.output(model.operator(kind, [wide, weights, bias], ("float32",), version=5, **options))
    return model


@pytest.mark.parametrize("kind", ["CONV_2D", "DEPTHWISE_CONV_2D"])
def test_padding_of_one_pixel_before_a_hybrid_layer(kind, tmp_path):
    check_configurations(
        lambda random: one_pixel(random, kind),
        tmp_path,
        seed=seed_of(kind),
        bound=bound_of(f"{kind} hybrid"),
        cases=some_zeros,
        simplified=True,
    )


@pytest.mark.parametrize("asymmetric", [False, True])
def test_batches_of_several_dimensions(asymmetric, tmp_path):
    """LiteRT takes the scales of other rows. The oracle is the same product with one dimension of batches."""
    random = np.random.default_rng(9)
    array, matrices = random.standard_normal((2, 3, 4, 5)), random.integers(-127, 128, (2, 3, 5, 6)).astype(np.int8)

    def build(batches):
        model = Model()
        data = model.input("float32", (*batches, 4, 5))
        weights = model.constant(matrices.reshape(*batches, 5, 6), 0.01)
        options = {"asymmetric_quantize_inputs": asymmetric}
        model.output(model.operator("BATCH_MATMUL", [data, weights], ("float32",), version=4, **options))
        return model

    flat, case = build((6,)).build(), array.astype(np.float32)

    def oracle(content, cases, resolver):
        found = litert(content, cases)
        [[expected]] = litert(flat, [[case.reshape(6, 4, 5)]])
        assert np.abs(found[0][0] - expected.reshape(2, 3, 4, 6)).max() > 0.1
        return [[expected.reshape(2, 3, 4, 6)]]

    check_configurations(
        lambda _: build((2, 3)),
        tmp_path,
        seed=1,
        count=1,
        bound=bound_of("BATCH_MATMUL hybrid"),
        cases=lambda graph, random: [[case]],
        oracle=oracle,
    )


def test_float_weights_on_request():
    """The results are those of real numbers: nearer to the hybrid kernels than a step of the quantised data."""
    random = np.random.default_rng(8)
    makes = {"TRANSPOSE_CONV": transposed, "UNIDIRECTIONAL_SEQUENCE_LSTM": lambda r, _: float_lstm(r, hybrid=True)}
    for kind in ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", *makes):
        content = makes.get(kind, layer)(random, kind).build()
        [graph] = read_tflite(content)
        graph = dequantise_weights(graph)
        faults = Diagnostics()
        check_graph(graph, "made.tflite", faults)
        assert not faults.has_errors
        assert all(tensor is None or tensor.dtype != "int8" for tensor in graph.nodes[0].inputs)
        case = [random.standard_normal(graph.inputs[0].shape).astype(np.float32)]
        [found] = outputs_of(graph, run_graph(graph, case))
        [[expected]] = litert(content, [case])
        assert 0 < np.abs(found - expected).max() < 0.05 * max(1, np.abs(expected).max())


def test_refused_hybrid():
    model = Model()
    data = model.input("float32", (1, 4))
    weights = model.constant(np.zeros((3, 4), np.int8), 0.1, 5)
    model.output(model.operator("FULLY_CONNECTED", [data, weights, None], ("float32",)))
    with pytest.raises(AssertionError, match="with a zero point, with float32 data"):
        graph_of(model.build())
    weights.zero, weights.content = 0, None
    model.graph.inputs.append(weights)
    model.graph.operators[0][3].clear()
    with pytest.raises(AssertionError, match="int8 weights that are computed when the model runs"):
        graph_of(model.build())
