# SPDX-License-Identifier: Apache-2.0
"""Matrix products, transposed convolutions, and layers whose weights are computed, against LiteRT."""

import numpy as np
import pytest
from requirements_support import need

need("cc", "tflite", "ai_edge_litert")

from models.bounds import bound_of  # noqa: E402
from models.campaigns import check_configurations, graph_of, lowering_fault  # noqa: E402
from models.layers import ACTIVATIONS, dilation, operands, present, quantised, windows  # noqa: E402
from models.made import Model  # noqa: E402
from models.test_pools import seed_of  # noqa: E402


def transposed(random, dtype):
    model = Model()
    batch, height, width = (int(n) for n in (random.choice([1, 1, 2]), *random.integers(1, 6, 2)))
    inner, results = int(random.integers(1, 7)), int(random.integers(1, 5))
    kh, kw = (int(n) for n in random.integers(1, 5, 2))
    data = model.input(dtype, (batch, height, width, inner), *quantised(random, dtype))
    weights, bias, scale, zero = operands(
        model, random, dtype, (results, kh, kw, inner), results, kh * kw * inner, 0, random.random() < 0.7
    )
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
    model.output(model.operator("TRANSPOSE_CONV", inputs, (dtype, scale, zero), version=4, **options))
    return model


@pytest.mark.parametrize("dtype", ["int8", "int16", "uint8", "float32"])
def test_transposed_convolutions(dtype, tmp_path):
    check_configurations(
        lambda random: transposed(random, dtype), tmp_path, seed=seed_of(dtype), bound=bound_of("TRANSPOSE_CONV")
    )


def product(random, dtype, other):
    model = Model()
    rows, depth, columns = (int(n) for n in random.integers(1, 9, 3))
    adj_x, adj_y = (bool(n) for n in random.integers(0, 2, 2))
    rank = int(random.integers(0, 4))
    batches = [int(n) for n in random.integers(1, 4, rank)]
    shapes = []
    for matrix in ((depth, rows) if adj_x else (rows, depth), (columns, depth) if adj_y else (depth, columns)):
        own = [1 if random.random() < 0.3 else n for n in batches][
            int(random.integers(0, rank + 1)) * (random.random() < 0.3) :
        ]
        shapes.append((*own, *matrix))
    first, second = quantised(random, dtype), quantised(random, other)
    one = model.input(dtype, shapes[0], *first)
    if random.random() < 0.5:
        two = model.input(other, shapes[1], *second)
    elif other == "float32":
        two = model.constant(random.standard_normal(shapes[1]).astype(np.float32))
    else:
        zero = 0 if dtype == "int16" else second[1]
        limits = np.iinfo(other)
        two = model.constant(random.integers(limits.min, limits.max, shapes[1]).astype(other), second[0], zero)
    if dtype == "int16" and two.content is None:
        two.zero = 0
    scale = None if dtype == "float32" else first[0] * second[0] * np.sqrt(depth) * random.uniform(0.3, 1)
    if dtype != "float32":
        spread = {"int8": 70, "int16": 20000}
        scale *= spread[dtype] * spread[other] / spread[dtype] * 1.5
    target = (scale, quantised(random, dtype)[1])
    options = {"adj_x": adj_x, "adj_y": adj_y}
    model.output(model.operator("BATCH_MATMUL", [one, two], (dtype, *target), **options))
    return model


@pytest.mark.parametrize(("dtype", "other"), [("float32",) * 2, ("int8",) * 2, ("int16",) * 2, ("int16", "int8")])
def test_matrix_products(dtype, other, tmp_path):
    check_configurations(
        lambda random: product(random, dtype, other),
        tmp_path,
        seed=seed_of(dtype, other),
        bound=bound_of("BATCH_MATMUL"),
    )


def test_plain_sums(tmp_path):
    """int8 matrices with int32 results: without zero points."""

    def build(random):
        model = product(random, "int8", "int8")
        model.graph.outputs[0].dtype = "int32"
        return model

    check_configurations(build, tmp_path, seed=21)


def computed(random, kind, dtype):
    """A layer whose weights are an input of the model, and sometimes the bias."""
    model = Model()
    results, inner = int(random.integers(2, 6)), int(random.integers(1, 7))
    if kind == "CONV_2D":
        kh, kw = (int(n) for n in random.integers(1, 4, 2))
        data = model.input(dtype, (int(random.choice([1, 2])), 7, 8, inner), *quantised(random, dtype))
        shape, fan = (results, kh, kw, inner), kh * kw * inner
        options = dilation(random, windows(random))
    elif kind == "DEPTHWISE_CONV_2D":
        kh, kw = (int(n) for n in random.integers(1, 4, 2))
        multiplier = int(random.choice([1, 1, 2]))
        results = inner * multiplier
        data = model.input(dtype, (int(random.choice([1, 2])), 7, 8, inner), *quantised(random, dtype))
        shape, fan = (1, kh, kw, results), kh * kw
        options = {"depth_multiplier": multiplier, **windows(random)}
        options["stride_h"] = options["stride_w"]
    else:
        data = model.input(dtype, (int(random.integers(1, 4)), inner), *quantised(random, dtype))
        shape, fan = (results, inner), inner
        options = {"fused_activation_function": str(random.choice(ACTIVATIONS))}
    is_window, axis = kind != "FULLY_CONNECTED", 3 if kind == "DEPTHWISE_CONV_2D" else 0
    weights, bias, scale, zero = operands(
        model, random, dtype, shape, results, fan, axis, is_window or random.random() < 0.7
    )
    if dtype != "float32" and np.size(weights.scale) > 1 and kind == "FULLY_CONNECTED":
        weights.scale = float(np.max(weights.scale))
    weights.content = None
    model.graph.inputs.append(weights)
    inputs = present(data, weights, bias) if is_window else [data, weights, bias]
    model.output(model.operator(kind, inputs, (dtype, scale, zero), **options))
    return model


@pytest.mark.parametrize("kind", ["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"])
@pytest.mark.parametrize("dtype", ["float32", "int8", "uint8", "int16"])
def test_computed_weights(kind, dtype, tmp_path):
    check_configurations(
        lambda random: computed(random, kind, dtype), tmp_path, seed=seed_of(kind, dtype), bound=bound_of(kind)
    )


def test_the_limit_of_sums_is_that_of_one_result(tmp_path):
    """Layers with more weights than 32 bits can sum: each result sums fewer."""
    models = []
    for kind, channels, shape, results in (
        ("CONV_2D", 200, (180, 1, 1, 200), 180),
        ("DEPTHWISE_CONV_2D", 33030, (1, 1, 1, 33030), 33030),
    ):
        model = Model()
        data, weights = model.input("int8", (1, 1, 1, channels), 0.1, 3), model.input("int8", shape, 0.1, 0)
        options = {"stride_h": 1, "stride_w": 1, "padding": "VALID", "fused_activation_function": "NONE"}
        if kind == "DEPTHWISE_CONV_2D":
            options["depth_multiplier"] = 1
        bias = model.constant(np.zeros(results, np.int32), 0.01, 0)
        model.output(model.operator(kind, [data, weights, bias], ("int8", 3.0, 0), **options))
        models.append(model)
    each = iter(models)
    check_configurations(lambda _: next(each), tmp_path, seed=1, count=len(models))


def test_refused_products():
    model = Model()
    data = model.input("int8", (1, 16), 0.1, 0)
    weights = model.constant(np.zeros((4, 16), np.int8), 0.1, 0)
    options = {"weights_format": "SHUFFLED4x16INT8"}
    model.output(model.operator("FULLY_CONNECTED", [data, weights, None], ("int8", 1.0, 0), **options))
    with pytest.raises(AssertionError, match="weights in the format SHUFFLED4x16INT8"):
        graph_of(model.build())
    model = Model()
    one, two = model.input("float32", (2, 3)), model.input("float32", (2, 3))
    model.output(model.operator("BATCH_MATMUL", [one, two], ("float32",)))
    with pytest.raises(AssertionError, match="with 3 columns and 2 rows"):
        graph_of(model.build())
    model = Model()
    one, two = model.input("int8", (1, 33025), 0.1, 0), model.input("int8", (2, 33025), 0.1, 0)
    model.output(model.operator("FULLY_CONNECTED", [one, two, None], ("int8", 1.0, 0)))
    fault = lowering_fault(model)
    assert fault.message.endswith(": sums of 33025 products") and fault.expected == "at most 33024"
