# SPDX-License-Identifier: Apache-2.0
"""Rewrites of graphs: each happens where it is exact, nowhere else, and agrees with LiteRT."""

import numpy as np
import pytest
from models.bounds import bound_of
from models.campaigns import check_models, graph_of, refusal
from models.executor import Library, checked, program_of
from models.layers import operands, quantised
from models.made import Model, of_one
from models.moves import numbers
from opwest.compiler.graph.types import Graph, Node, Tensor
from opwest.compiler.lowering.simplify import Folding, simplify


def kinds(model):
    return [node.kind for node in graph_of(model.build(), simplified=True).nodes]


def check(models, folder, bound=0.0):
    check_models(models, folder, seed=3, bound=bound, simplified=True)


def around(*edges):
    return [[0, 0], *edges, [0, 0]]


def test_computed_shapes_are_folded(tmp_path):
    """What exporters write for x.reshape(x.shape[0], -1, 2)."""
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
    model.output(model.operator("ADD", [shaped, shaped], ("float32",)), filled, shape)
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


def padded(random, dtype, kind, image=None, amounts=None, value=None, size=None, is_read=False):
    model = Model()
    scale = quantised(random, dtype)
    channels = int(random.integers(1, 4))
    image = image or tuple(map(int, random.integers(4, 9, 2)))
    data = model.input(dtype, (2, *image, channels), *scale)
    drawn = np.asarray(around(*random.integers(0, 4, (2, 2))))
    drawn[1, 0] = 1
    inputs = [data, numbers(model, drawn if amounts is None else amounts)]
    if value is not None:
        inputs.append(model.constant(np.asarray([value], dtype), *scale))
    wide = model.operator("PAD" if value is None else "PADV2", inputs, (dtype, *scale))
    size = size or [int(n) for n in random.integers(2, 4, 2)]
    options = {"padding": str(random.choice(["SAME", "VALID"])), "fused_activation_function": "NONE"}
    options["stride_h"] = options["stride_w"] = int(random.integers(1, 3))
    inputs, result = [wide], scale
    if kind == "MAX_POOL_2D":
        options |= {"filter_height": size[0], "filter_width": size[1]}
    elif kind == "CONV_2D":
        weights, bias, *result = operands(model, random, dtype, (3, *size, channels), 3, channels * 6, 0)
        inputs += [weights, bias]
    else:
        weights, bias, *result = operands(model, random, dtype, (1, *size, channels), channels, 6, 3)
        inputs += [weights, bias]
        options["depth_multiplier"] = 1
    return model.ending_with(kind, inputs, (dtype, *result), **options).output(*([wide] if is_read else []))


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
            edges = around([int(random.integers(1, 4)), 2], [2, int(random.integers(0, 3))])
            models.append(padded(random, dtype, kind, image=(1, 1), size=size, amounts=edges))
    assert all(kinds(model) == [kind] for model in models)
    check(models, tmp_path, bound_of(kind))


def test_padding_with_the_least_value_is_absorbed_by_the_greatest(tmp_path):
    random, values = np.random.default_rng(6), {"int8": -128, "float32": -np.inf}
    keys = {"amounts": around([1, 1], [1, 1])}
    models = [padded(random, dtype, "MAX_POOL_2D", value=value, **keys) for dtype, value in values.items()]
    assert all(kinds(model) == ["MAX_POOL_2D"] for model in models)
    check(models, tmp_path)


def test_padding_with_the_stored_number_0_is_kept(tmp_path):
    """The padding of a convolution has the zero point, which is not 0 in these models."""
    random = np.random.default_rng(11)
    models = [padded(random, dtype, "CONV_2D", value=0) for dtype in ("int8", "uint8")]
    assert all(kinds(model) == ["PADV2", "CONV_2D"] for model in models)
    check(models, tmp_path)


@pytest.mark.parametrize(
    ("dtype", "expected", "changes"),
    [
        ("float32", ["PADV2", "CONV_2D"], {"value": 7.0}),
        ("float32", ["PAD", "CONV_2D"], {"is_read": True}),
        ("float32", ["PAD", "MAX_POOL_2D"], {"amounts": [[0, 0], [1, 0], [0, 0], [0, 1]]}),
        # Windows without an element of the image have the value of the padding.
        ("int8", ["PADV2", "MAX_POOL_2D"], {"value": -128, "amounts": around([4, 0], [0, 0])}),
    ],
)
def test_padding_is_not_absorbed(dtype, expected, changes):
    assert kinds(padded(np.random.default_rng(7), dtype, expected[1], **changes)) == expected


def pooled(dtype, zero, activation, edges, pool, value=None):
    """Return a sum with an activation, PAD or PADV2, and the maximum of windows."""
    model = Model()
    pair = (None, 0) if dtype == "float32" else (0.05, zero)
    data = model.input(dtype, (1, 6, 6, 2), *pair)
    one = model.operator("ADD", [data, data], (dtype, *pair), fused_activation_function=activation)
    inputs = [one, numbers(model, edges)]
    if value is not None:
        inputs.append(model.constant(np.asarray([value], dtype), *pair))
    wide = model.operator("PAD" if value is None else "PADV2", inputs, (dtype, *pair))
    size, stride = pool
    options = {"filter_height": size, "filter_width": size, "stride_h": stride, "stride_w": stride, "padding": "VALID"}
    return model.ending_with("MAX_POOL_2D", [wide], (dtype, *pair), **options)


def test_padding_after_an_activation_is_absorbed_by_the_greatest(tmp_path):
    """ReLU, then zeros around: they are not greater than any element."""
    cases, edges = (("int8", -30), ("int8", -128), ("float32", 0)), around([1, 1], [1, 1])
    models = [pooled(dtype, zero, "RELU", edges, (3, 2)) for dtype, zero in cases]
    assert all(kinds(model) == ["ADD", "MAX_POOL_2D"] for model in models)
    check(models, tmp_path)


def test_padding_after_an_activation_is_kept_where_windows_show_it(tmp_path):
    """Padding above some elements, and below all of them in windows without an element."""
    cases = ("int8", 20, [1, 1], 1), ("int8", -40, [0, 3], 2), ("int8", -40, [4, 0], 2), ("float32", 3, [1, 1], 1)
    models = [
        pooled(dtype, -30, "RELU6", around(edges, [0, 0]), (2, stride), value) for dtype, value, edges, stride in cases
    ]
    assert all(kinds(model) == ["ADD", "PADV2", "MAX_POOL_2D"] for model in models)
    check(models, tmp_path)


def activated(random, dtype, kind, first, second, same=True):
    """Return an operator with the fused activation `first`, then the operator `second`."""
    model = Model()
    result = quantised(random, dtype)
    data = model.input(dtype, (2, 5, 5, 3), *result)
    inputs, options = [data, data], {"fused_activation_function": first}
    if kind != "ADD":
        inputs, options = [data], {**options, "stride_h": 1, "stride_w": 1, "padding": "VALID"}
    if kind == "AVERAGE_POOL_2D":
        options |= {"filter_height": 2, "filter_width": 2}
    elif kind == "CONV_2D":
        weights, bias, *result = operands(model, random, dtype, (4, 2, 2, 3), 4, 12, 0)
        inputs += [weights, bias]
    one = model.operator(kind, inputs, (dtype, *result), **options)
    if not same:
        result = (result[0] * 1.5, result[1])
    return model.ending_with(second, [one], (dtype, *result))


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
    model = of_one("WHERE", [("bool", (5,))], ("int64",))
    assert "input 0 'tensor_0' is computed when the model runs, but determines a shape" in refusal(model)


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
    graph = Graph("", (data,), (result,), nodes, updates={state: clamped})
    checked(graph, Folding(graph.rules))
    assert shape.content.tolist() == [1, 4, 4, 1]
    simple = simplify(graph)
    assert [node.kind for node in simple.nodes] == ["ADD", "ABS"]
    given, program, content = np.ones((1, 4, 4, 1), np.float32), program_of(simple), {}
    Library([program], tmp_path).run(0, [given], content)
    assert [value.tolist() for value in content.values()] == [given.tolist()]
    assert [program.tensors[value] for value in program.outputs] == [result]
