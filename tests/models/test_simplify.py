# SPDX-License-Identifier: Apache-2.0
"""Rewrites of graphs: each happens where it is exact, nowhere else, and agrees with LiteRT."""

import numpy as np
import pytest
from requirements_support import need

need("cc", "tflite", "ai_edge_litert")

from models.bounds import bound_of  # noqa: E402
from models.campaigns import check_configurations, graph_of  # noqa: E402
from models.executor import Library  # noqa: E402
from models.layers import operands, quantised  # noqa: E402
from models.made import Model  # noqa: E402
from models.moves import numbers  # noqa: E402
from opwest.diagnostics import Diagnostics  # noqa: E402
from opwest.importers.models.graph.check import check_graph  # noqa: E402
from opwest.importers.models.graph.types import Graph, Node, Tensor  # noqa: E402
from opwest.importers.models.lower.lower import lower_graph, with_passes  # noqa: E402
from opwest.importers.models.simplify.folding import Folding  # noqa: E402
from opwest.importers.models.simplify.simplify import simplify  # noqa: E402


def kinds(model):
    return [node.kind for node in graph_of(model.build(), simplified=True).nodes]


def check(builders, folder, bound=0.0):
    """Compare the simplified graphs with LiteRT."""
    each = iter(builders)
    check_configurations(lambda _: next(each), folder, seed=3, count=len(builders), bound=bound, simplified=True)


def chain():
    """Return what exporters write for x.reshape(x.shape[0], -1, 2): a shape that is computed."""
    model = Model()
    data = model.input("float32", (3, 4, 2, 2))
    shape = model.operator("SHAPE", [data], ("int32",), out_type="int32")
    cut = [numbers(model, v) for v in ([0], [1], [1])]
    rows = model.operator("STRIDED_SLICE", [shape, *cut], ("int32",), shrink_axis_mask=1)
    whole = [rows, numbers(model, -1), numbers(model, 2)]
    wanted = model.operator("PACK", whole, ("int32",), values_count=3, axis=0)
    shaped = model.operator("RESHAPE", [data, wanted], ("float32",))
    twice = model.operator("CONCATENATION", [shape, shape], ("int32",), axis=0)
    filled = model.operator("FILL", [twice, model.constant(np.float32(2.5))], ("float32",))
    model.operator("TILE", [shaped, wanted], ("float32",))  # without a user, with a negative multiple
    model.output(model.operator("ADD", [shaped, shaped], ("float32",)), filled, shape)
    return model


def test_computed_shapes_are_folded(tmp_path):
    model = chain()
    model.graph.operators.pop(-2)
    assert kinds(model) == ["RESHAPE", "ADD"]
    check([model], tmp_path)


def test_operators_without_users_are_removed():
    model = Model()
    data = model.input("float32", (2, 3))
    model.operator("ADD", [data, model.operator("ABS", [data], ("float32",))], ("float32",))
    model.output(model.operator("ABS", [data], ("float32",)))
    assert kinds(model) == ["ABS"]


def test_folding_is_bounded():
    model = Model()
    data = model.input("float32", (1,))
    filled = model.operator("FILL", [numbers(model, [100]), model.constant(np.float32(1))], ("float32",))
    model.output(model.operator("ADD", [data, filled], ("float32",)))
    graph = graph_of(model.build())
    Folding(graph.rules, 399)(graph.nodes[0])
    assert [node.kind for node in simplify(graph).nodes] == ["FILL", "ADD"]
    Folding(graph.rules, 400)(graph.nodes[0])
    assert [node.kind for node in simplify(graph).nodes] == ["ADD"]


def padded(random, dtype, kind, **changes):
    """Return PAD, then an operator with windows."""
    model = Model()
    scale, zero = quantised(random, dtype)
    channels = int(random.integers(1, 4))
    image = changes.get("image", tuple(map(int, random.integers(4, 9, 2))))
    data = model.input(dtype, (2, *image, channels), scale, zero)
    amounts = np.asarray([[0, 0], *random.integers(0, 4, (2, 2)), [0, 0]])
    amounts[1, 0] = 1
    paddings = numbers(model, changes.get("amounts", amounts))
    value = changes.get("value")
    if value is None:
        wide = model.operator("PAD", [data, paddings], (dtype, scale, zero))
    else:
        wide = model.operator(
            "PADV2", [data, paddings, model.constant(np.asarray([value], dtype), scale, zero)], (dtype, scale, zero)
        )
    size = changes.get("size", [int(n) for n in random.integers(2, 4, 2)])
    options = {"padding": str(random.choice(["SAME", "VALID"])), "fused_activation_function": "NONE"}
    options["stride_h"] = options["stride_w"] = int(random.integers(1, 3))
    if kind == "MAX_POOL_2D":
        options.update(filter_height=size[0], filter_width=size[1])
        model.output(model.operator(kind, [wide], (dtype, scale, zero), **options))
    elif kind == "CONV_2D":
        weights, bias, *result = operands(model, random, dtype, (3, *size, channels), 3, channels * 6, 0)
        model.output(model.operator(kind, [wide, weights, bias], (dtype, *result), **options))
    else:
        weights, bias, *result = operands(model, random, dtype, (1, *size, channels), channels, 6, 3)
        options["depth_multiplier"] = 1
        model.output(model.operator(kind, [wide, weights, bias], (dtype, *result), **options))
    if changes.get("is_read"):
        model.output(wide)
    return model


@pytest.mark.parametrize("kind", ["CONV_2D", "DEPTHWISE_CONV_2D"])
def test_padding_is_absorbed(kind, tmp_path):
    random = np.random.default_rng(5)
    models = [padded(random, dtype, kind) for dtype in ("int8", "float32", "uint8", "int16") * 2]
    assert all(kinds(model) == [kind] for model in models)
    check(models, tmp_path, bound_of(kind))


@pytest.mark.parametrize("kind", ["CONV_2D", "DEPTHWISE_CONV_2D"])
def test_padding_of_one_pixel(kind, tmp_path):
    """Windows that are partly or completely in the padding."""
    random = np.random.default_rng(8)
    models = []
    for dtype in ("int8", "float32", "uint8", "int16"):
        for size in ([1, 1], [2, 1], [1, 3]):
            edges = [[0, 0], [int(random.integers(1, 4)), 2], [2, int(random.integers(0, 3))], [0, 0]]
            models.append(padded(random, dtype, kind, image=(1, 1), size=size, amounts=edges))
    assert all(kinds(model) == [kind] for model in models)
    check(models, tmp_path, bound_of(kind))


def test_padding_with_the_least_value_is_absorbed_by_the_greatest(tmp_path):
    random = np.random.default_rng(6)
    edges = [[0, 0], [1, 1], [1, 1], [0, 0]]
    models = [
        padded(random, "int8", "MAX_POOL_2D", value=-128, amounts=edges),
        padded(random, "float32", "MAX_POOL_2D", value=-np.inf, amounts=edges),
    ]
    assert all(kinds(model) == ["MAX_POOL_2D"] for model in models)
    check(models, tmp_path)


def test_padding_with_the_stored_number_0_is_kept(tmp_path):
    """The padding of a convolution has the zero point, which is not 0 in these models."""
    random = np.random.default_rng(11)
    models = [padded(random, dtype, "CONV_2D", value=0) for dtype in ("int8", "uint8")]
    assert all(kinds(model) == ["PADV2", "CONV_2D"] for model in models)
    check(models, tmp_path)


def test_padding_is_not_absorbed():
    random = np.random.default_rng(7)
    for changes in ({"value": 7.0}, {"is_read": True}, {"amounts": [[0, 0], [1, 0], [0, 0], [0, 1]]}):
        if "amounts" in changes:
            assert kinds(padded(random, "float32", "MAX_POOL_2D", **changes)) == ["PAD", "MAX_POOL_2D"]
        else:
            assert kinds(padded(random, "float32", "CONV_2D", **changes))[1:] == ["CONV_2D"]
    # Windows without an element of the image have the value of the padding.
    edges = [[0, 0], [4, 0], [0, 0], [0, 0]]
    assert kinds(padded(random, "int8", "MAX_POOL_2D", value=-128, amounts=edges)) == ["PADV2", "MAX_POOL_2D"]


def test_padding_after_an_activation_is_absorbed_by_the_greatest(tmp_path):
    """ReLU, then zeros around: they are not greater than any element."""
    models = []
    for dtype, zero in (("int8", -30), ("int8", -128), ("float32", 0)):
        model = Model()
        pair = (None, 0) if dtype == "float32" else (0.05, zero)
        data = model.input(dtype, (1, 6, 6, 2), *pair)
        one = model.operator("ADD", [data, data], (dtype, *pair), fused_activation_function="RELU")
        wide = model.operator("PAD", [one, numbers(model, [[0, 0], [1, 1], [1, 1], [0, 0]])], (dtype, *pair))
        options = {"filter_height": 3, "filter_width": 3, "stride_h": 2, "stride_w": 2, "padding": "VALID"}
        model.output(model.operator("MAX_POOL_2D", [wide], (dtype, *pair), **options))
        assert kinds(model) == ["ADD", "MAX_POOL_2D"]
        models.append(model)
    check(models, tmp_path)


def test_padding_after_an_activation_is_kept_where_windows_show_it(tmp_path):
    """Padding above some elements, and below all of them in windows without an element."""
    models = []
    cases = ("int8", 20, [1, 1], 1), ("int8", -40, [0, 3], 2), ("int8", -40, [4, 0], 2), ("float32", 3, [1, 1], 1)
    for dtype, value, edges, stride in cases:
        model = Model()
        pair = (None, 0) if dtype == "float32" else (0.05, -30)
        data = model.input(dtype, (1, 6, 6, 2), *pair)
        one = model.operator("ADD", [data, data], (dtype, *pair), fused_activation_function="RELU6")
        amounts = numbers(model, [[0, 0], edges, [0, 0], [0, 0]])
        padding = model.constant(np.asarray([value], dtype), *pair)
        wide = model.operator("PADV2", [one, amounts, padding], (dtype, *pair))
        options = {"filter_height": 2, "filter_width": 2, "stride_h": stride, "stride_w": stride, "padding": "VALID"}
        model.output(model.operator("MAX_POOL_2D", [wide], (dtype, *pair), **options))
        assert kinds(model) == ["ADD", "PADV2", "MAX_POOL_2D"]
        models.append(model)
    check(models, tmp_path)


def activated(random, dtype, kind, first, second, same=True):
    """Return an operator with the fused activation `first`, then the operator `second`."""
    model = Model()
    scale, zero = quantised(random, dtype)
    data = model.input(dtype, (2, 5, 5, 3), scale, zero)
    options = {"fused_activation_function": first}
    if kind == "ADD":
        result = (scale, zero)
        one = model.operator(kind, [data, data], (dtype, *result), **options)
    elif kind == "AVERAGE_POOL_2D":
        options.update(filter_height=2, filter_width=2, stride_h=1, stride_w=1, padding="VALID")
        result = (scale, zero)
        one = model.operator(kind, [data], (dtype, *result), **options)
    else:
        weights, bias, *result = operands(model, random, dtype, (4, 2, 2, 3), 4, 12, 0)
        options.update(stride_h=1, stride_w=1, padding="VALID")
        one = model.operator(kind, [data, weights, bias], (dtype, *result), **options)
    if not same:
        result = (result[0] * 1.5, result[1])
    model.output(model.operator(second, [one], (dtype, *result)))
    return model


@pytest.mark.parametrize("kind", ["CONV_2D", "ADD", "AVERAGE_POOL_2D"])
def test_activations_are_absorbed(kind, tmp_path):
    random = np.random.default_rng(8)
    models = [
        activated(random, dtype, kind, first, second)
        for dtype in ("int8", "float32", "uint8")
        for first, second in (("NONE", "RELU"), ("RELU", "RELU6"), ("NONE", "RELU_N1_TO_1"))
    ]
    assert all(kinds(model) == [kind] for model in models)
    check(models, tmp_path, max(1e-6, bound_of(kind)))


def test_activations_are_not_absorbed():
    random = np.random.default_rng(9)
    assert kinds(activated(random, "float32", "ADD", "RELU", "RELU_N1_TO_1")) == ["ADD", "RELU_N1_TO_1"]
    assert kinds(activated(random, "int8", "ADD", "NONE", "RELU", same=False)) == ["ADD", "RELU"]


def test_identical_quantize_and_folded_dequantize(tmp_path):
    random = np.random.default_rng(10)
    model = Model()
    data = model.input("int8", (1, 12), 0.1, 4)
    same = model.operator("QUANTIZE", [data], ("int8", 0.1, 4))
    other = model.operator("QUANTIZE", [same], ("int8", 0.2, 4))
    real = model.operator("DEQUANTIZE", [other], ("float32",))
    weights = model.constant(random.integers(-127, 128, (5, 12)).astype(np.int8), 0.01)
    plain = model.operator("DEQUANTIZE", [weights], ("float32",))
    model.output(model.operator("FULLY_CONNECTED", [real, plain, None], ("float32",)))
    assert kinds(model) == ["QUANTIZE", "DEQUANTIZE", "FULLY_CONNECTED"]
    check([model], tmp_path, bound_of("FULLY_CONNECTED"))


def test_operators_whose_shapes_depend_on_data(tmp_path):
    """WHERE of a constant is known; of data it is refused by name."""
    model = Model()
    data = model.input("float32", (6,))
    places = model.operator("WHERE", [model.constant(np.asarray([0, 1, 1, 0, 1], bool))], ("int64",))
    shape = model.operator("BROADCAST_ARGS", [numbers(model, [2, 1, 1]), numbers(model, [3, 1])], ("int32",))
    taken = model.operator("GATHER", [data, places], ("float32",))
    model.output(model.operator("BROADCAST_TO", [taken, shape], ("float32",), version=2))
    assert kinds(model) == ["GATHER", "BROADCAST_TO"]
    check([model], tmp_path)
    model = Model()
    model.output(model.operator("WHERE", [model.input("bool", (5,))], ("int64",)))
    with pytest.raises(AssertionError) as found:
        graph_of(model.build())
    assert "input 0 'tensor_0' is computed when the model runs, but determines a shape" in str(found.value)


def test_new_contents_of_states_are_kept(tmp_path):
    """A node whose result only a state needs; its PAD, its activation and its shape are rewritten as elsewhere."""
    state = Tensor("state", "float32", (1, 4, 4, 1), is_state=True)
    data, result, shape = (Tensor(name, "float32", (1, 4, 4, 1)) for name in ("data", "result", "unused"))
    shape.dtype = "int32"
    total, clamped = Tensor("total", "float32", ()), Tensor("clamped", "float32", ())
    nodes = (
        Node("SHAPE", (state,), (shape,), label="0"),
        Node("ADD", (state, data), (total,), label="1"),
        Node("RELU", (total,), (clamped,), label="2"),
        Node("ABS", (data,), (result,), label="3"),
    )
    graph, faults = Graph("", (data,), (result,), nodes, updates={state: clamped}), Diagnostics()
    check_graph(graph, "made", faults, Folding(graph.rules))
    assert not faults.has_errors
    assert shape.content.tolist() == [1, 4, 4, 1]
    simple = simplify(graph)
    assert [node.kind for node in simple.nodes] == ["ADD", "ABS"]
    given, program = np.ones((1, 4, 4, 1), np.float32), with_passes(lower_graph(simple, "made", faults))
    content = {}
    Library([program], tmp_path).run(0, [given], content)
    assert [value.tolist() for value in content.values()] == [given.tolist()]
    assert [program.tensors[value] for value in program.outputs] == [result]
