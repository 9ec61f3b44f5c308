# SPDX-License-Identifier: Apache-2.0
"""Operators of ONNX that move elements, windows of three dimensions, and graphs as exporters write them."""

import numpy as np
import pytest
from models.bounds import ONNX
from models.onnx_quantised import check_exact_and_fixed, dynamic, quantised
from models.onnx_support import (
    CONFIGURATIONS,
    Made,
    check,
    check_family,
    floats,
    graph_of,
    interpreted,
    kinds_of,
    opset_of,
)
from models.test_onnx_refusals import one, refused


def ints(*values):
    return np.asarray(values, np.int64)


def convolved(random, opset, shape=(1, 4, 6, 8)):
    """Return a model and a plain tensor, or one that a convolution leaves channels last."""
    made = Made(int(random.integers(opset, 22)))
    x = made.input(*shape)
    return made, made.add("Conv", x, floats(random, 4, 4, 1, 1)) if random.random() < 0.6 else x


def moved(random, kind):
    made, x = convolved(random, 18 if kind == "Split" else 13)
    axis = int(random.integers(-4, 4))
    n = (1, 4, 6, 8)[axis]
    if kind == "Transpose":
        y = made.add(kind, x, perm=[int(v) for v in random.permutation(4)])
        return made.ending_with("Add", y, floats(random, 1))
    if kind == "Reshape":
        wanted = [[0, -1], [4, 48], [1, 4, 48], [1, 1, 4, 6, 8], [2, 2, 6, 8], [1, 24, 8]][int(random.integers(0, 6))]
        return made.ending_with(kind, x, ints(*wanted))
    if kind == "Squeeze":
        return made.ending_with("Unsqueeze", made.add(kind, x, ints(0)), ints(int(random.integers(0, 4))))
    if kind == "Concat":
        return made.ending_with(kind, x, made.add("Relu", x), floats(random, 1, 4, 6, 8), axis=axis)
    if kind == "Split":
        if n == 1:
            return moved(random, kind)
        first = int(random.integers(1, n))
        return made.ending_with(kind, x, ints(first, n - first), axis=axis, results=2)
    if kind == "Slice":
        start = ints(int(random.integers(-6, 3)), int(random.integers(0, 4)))
        stop, step = ints(100, -1), ints(int(random.integers(1, 3)), 2)
        if random.random() < 0.4:
            start, stop, step = ints(100, -2), ints(-100, 1), ints(-1, -2)
        return made.ending_with(kind, x, start, stop, ints(2, -1), step)
    if kind == "Gather":
        index = ints(-1) if random.random() < 0.3 else random.integers(-n, n, [2, 3][: int(random.integers(0, 3))])
        return made.ending_with(kind, x, np.asarray(index, np.int64), axis=axis)
    if kind == "Pad":
        mode = str(random.choice(["constant", "reflect", "edge"]))
        amounts = [0, 0, *random.integers(0, 3, 2), 0, 0, *random.integers(0, 3, 2)]
        value = [np.float32(random.choice([0, 1.5]))] if mode == "constant" else []
        return made.ending_with(kind, x, ints(*amounts), *value, mode=mode)
    if kind == "Expand":
        return made.ending_with(kind, made.add("ReduceMax", x, keepdims=1), ints(2, 4, 1, 3))
    if kind == "Tile":
        return made.ending_with(kind, x, ints(1, 2, 1, 2))
    if kind == "DepthToSpace":
        mode = str(random.choice(["DCR", "CRD"]))
        return made.ending_with(kind, made.add("SpaceToDepth", x, blocksize=2), blocksize=2, mode=mode)
    return made.ending_with(kind, x, axis=axis, keepdims=int(random.integers(0, 2)))


KINDS = "Transpose Reshape Squeeze Concat Split Slice Gather Pad Expand Tile DepthToSpace ArgMax".split()


def test_movements(tmp_path):
    random = np.random.default_rng(30)
    models = [moved(random, kind) for kind in KINDS for _ in range(2 * CONFIGURATIONS)]
    check(models, tmp_path, random, ONNX["Conv"])


def test_padding_of_8_bit_integers(tmp_path):
    models = []
    for dtype in ("int8", "uint8"):
        made, numbers = Made(18), (np.float32(0.1), np.asarray(3, dtype))
        y = made.add("QuantizeLinear", made.input(1, 2, 4, 4), *numbers)
        y = made.add("Pad", y, ints(0, 0, 1, 1, 0, 0, 2, 0), np.asarray(7, dtype))
        models.append(made.ending_with("DequantizeLinear", y, *numbers))
    check(models, tmp_path, np.random.default_rng(31), 1e-6)


def residual(random, batch=1, has_means=True):
    """Return a network of images as torch.onnx exports it: blocks, pool, flatten by a computed shape, classifier.

    Means of integers often lie between two integers, where onnxruntime's float32 sums decide; without them none does.
    """
    made = Made(17)
    x = made.input(batch, 3, 12, 12)
    y = made.add("Relu", made.add("Conv", x, floats(random, 8, 3, 3, 3, scale=0.2), floats(random, 8), pads=[1] * 4))
    z = made.add("Conv", y, floats(random, 8, 1, 3, 3), group=8, pads=[1] * 4)
    numbers = [floats(random, 8) for _ in range(3)] + [np.abs(floats(random, 8)) + 0.5]
    z = made.add("Clip", made.add("BatchNormalization", z, *numbers), np.float32(0), np.float32(6))
    y = made.add("Relu", made.add("Add", z, y))
    # Squeeze and excitation.
    s = made.add("ReduceMean" if has_means else "ReduceMax", y, axes=[2, 3], keepdims=1)
    s = made.add("Conv", s, floats(random, 8, 8, 1, 1))
    y = made.add("Mul", y, made.add("HardSigmoid", s, alpha=1 / 6, beta=0.5))
    mean = "AveragePool" if has_means else "MaxPool"
    halves = [made.add(kind, y, kernel_shape=[2, 2], strides=[2, 2]) for kind in ("MaxPool", mean)]
    y = made.add("Concat", *halves, axis=1)
    # view(x.size(0), -1)
    size = made.add("Gather", made.add("Shape", y), np.asarray(0, np.int64), axis=0)
    shape = made.add("Concat", made.add("Unsqueeze", size, ints(0)), ints(-1), axis=0)
    y = made.add("Reshape", y, shape)
    y = made.add("Gemm", y, floats(random, 10, 16 * 36, scale=0.1), floats(random, 10), transB=1)
    return made.ending_with("Softmax", y, axis=1)


def test_only_the_input_is_transposed(tmp_path):
    random = np.random.default_rng(31)
    for graph in check([residual(random), residual(random, 2)], tmp_path, random, ONNX["network"]):
        kinds = kinds_of(graph)
        assert kinds.count("TRANSPOSE") == 1 and kinds[0] == "TRANSPOSE", kinds
        assert "BATCH_NORMALIZATION" not in kinds and kinds.count("RELU") == 0


def transformer(random):
    """Return a block of a transformer: layer normalisation taken apart, attention by reshapes, GELU by erf."""
    made = Made(14)
    x = made.input(1, 5, 8)
    mean = made.add("ReduceMean", x, axes=[-1])
    centred = made.add("Sub", x, mean)
    variance = made.add("ReduceMean", made.add("Pow", centred, np.float32(2)), axes=[-1])
    root = made.add("Sqrt", made.add("Add", variance, np.float32(1e-5)))
    y = made.add("Add", made.add("Mul", made.add("Div", centred, root), floats(random, 8)), floats(random, 8))
    heads = []
    for _ in range(3):
        one = made.add("Add", made.add("MatMul", y, floats(random, 8, 8)), floats(random, 8))
        heads.append(made.add("Transpose", made.add("Reshape", one, ints(1, 5, 2, 4)), perm=[0, 2, 1, 3]))
    scores = made.add("MatMul", heads[0], made.add("Transpose", heads[1], perm=[0, 1, 3, 2]))
    scores = made.add("Softmax", made.add("Div", scores, np.float32(2)), axis=-1)
    y = made.add("Transpose", made.add("MatMul", scores, heads[2]), perm=[0, 2, 1, 3])
    x = made.add("Add", x, made.add("Reshape", y, ints(1, 5, 8)))
    z = made.add("Add", made.add("MatMul", x, floats(random, 8, 16)), floats(random, 16))
    erf = made.add("Erf", made.add("Div", z, np.float32(np.sqrt(2))))
    z = made.add("Mul", made.add("Mul", z, made.add("Add", erf, np.float32(1))), np.float32(0.5))
    return made.ending_with("Add", x, made.add("MatMul", z, floats(random, 16, 8)))


def test_transformer(tmp_path):
    random = np.random.default_rng(32)
    [graph] = check([transformer(random)], tmp_path, random, ONNX["network"])
    kinds = kinds_of(graph)
    assert "GELU" in kinds and "ONNX_ERF" not in kinds
    assert kinds.count("FULLY_CONNECTED") == 5 and kinds.count("BATCH_MATMUL") == 2


def test_space_to_depth_by_column():
    """mode CRD of opset 28, which onnxruntime lacks. Source: onnx/docs/Operators.md, SpaceToDepth."""
    made = Made(28)
    made.ending_with("SpaceToDepth", made.input(2, 3, 4, 6), blocksize=2, mode="CRD")
    x = floats(np.random.default_rng(28), 2, 3, 4, 6)
    graph = graph_of(made.model().SerializeToString())
    [found] = interpreted(graph, [x])
    blocks = x.reshape(2, 3, 2, 2, 3, 2).transpose(0, 1, 3, 5, 2, 4)
    assert (found == blocks.reshape(2, 12, 2, 3)).all()


def test_results_that_nothing_reads(tmp_path):
    def made(opset, kind, shape, count, *inputs, **options):
        model = Made(opset)
        first, *_ = model.add(kind, model.input(*shape), *inputs, results=count, **options)
        return model.output(model.add("Relu", first))

    models = [
        made(9, "Dropout", (2, 3), 2, ratio=0.25),
        made(12, "MaxPool", (1, 2, 6, 6), 2, kernel_shape=[2, 2]),
        made(17, "LayerNormalization", (2, 3), 3, np.ones(3, np.float32)),
    ]
    check(models, tmp_path, np.random.default_rng(29), ONNX["LayerNormalization"])


def volume(random, kind="Conv", least=11):
    """Return a convolution over a volume in which one dimension has windows of one element, or of all elements."""
    made = Made(opset_of(random, least))
    groups, inner = int(random.choice([1, 2])), int(random.integers(1, 3))
    axis, covers = int(random.integers(0, 3)), random.random() < 0.5
    shape = random.integers(4, 8, 3)
    kernel = random.integers(1, 4, 3)
    kernel[axis] = shape[axis] if covers else 1
    free = [other for other in range(3) if other != axis]
    options = {"strides": np.ones(3, int), "dilations": np.ones(3, int), "pads": np.zeros(6, int)}
    for other in free:
        options["strides"][other] = random.integers(1, 3)
        options["dilations"][other] = random.integers(1, 3) if kernel[other] < 3 else 1
        options["pads"][[other, other + 3]] = random.integers(0, 2, 2)
    options = {name: [int(n) for n in values] for name, values in options.items()}
    x = made.input(int(random.integers(1, 3)), groups * inner, *shape)
    results = groups * int(random.integers(1, 4))
    y = made.add(kind, x, floats(random, results, inner, *kernel), floats(random, results), group=groups, **options)
    return made.output(made.add("Relu", y) if random.random() < 0.5 else y)


def test_volumes(tmp_path):
    for graph in check_family(tmp_path, volume, "Conv", 2):
        assert {"CONV_2D", "DEPTHWISE_CONV_2D"} & set(kinds_of(graph)) and "RELU" not in kinds_of(graph)


def test_quantised_volumes(tmp_path):
    random = np.random.default_rng(71)
    models = [volume(random, least=13).model() for _ in range(CONFIGURATIONS)]  # scales by channel
    contents = [quantised(one, tmp_path, random, per_channel=bool(n % 2)) for n, one in enumerate(models)]
    for graph in check_exact_and_fixed(contents, tmp_path, random):
        layer = next(node for node in graph.nodes if node.kind in ("CONV_2D", "DEPTHWISE_CONV_2D"))
        assert layer.output.dtype == "int8"
    check([dynamic(one, tmp_path) for one in models], tmp_path / "dynamic", random, ONNX["ConvInteger"])


def test_refused_volume():
    text = refused(one("Conv", np.ones((3, 2, 2, 2, 2), np.float32), shape=(1, 2, 4, 4, 4)))
    assert "a convolution over the volume 'x0' [1, 2, 4, 4, 4] with windows [2, 2, 2]" in text and "(Conv)" in text


def pool(random, kind):
    spatial = 3 if kind == "AveragePool" else int(random.integers(1, 4))
    made = Made(opset_of(random, 19 if kind == "AveragePool" else 11))
    kernel = [int(n) for n in random.integers(2, 4, spatial)]
    options = {"kernel_shape": kernel, "strides": [int(n) for n in random.integers(1, 3, spatial)]}
    if kind == "MaxPool":
        options["dilations"] = [int(n) for n in random.integers(1, 4, spatial)]
    if random.random() < 0.3:
        options["auto_pad"] = str(random.choice(["SAME_UPPER", "SAME_LOWER"]))
        options.pop("dilations", None)  # refused: onnxruntime does not follow the specification
    else:
        options["pads"] = [int(n) for n in random.integers(0, 2, 2 * spatial)]
        options["ceil_mode"] = int(random.integers(0, 2))
    if kind == "AveragePool":
        options["count_include_pad"] = int(random.integers(0, 2))
    x = made.input(int(random.integers(1, 3)), int(random.integers(1, 4)), *random.integers(7, 10, spatial))
    return made.ending_with(kind, x, **options)


@pytest.mark.parametrize("kind", ["MaxPool", "AveragePool"])
def test_pools(kind, tmp_path):
    check_family(tmp_path, pool, kind, 2)


@pytest.mark.parametrize("opset", [11, 19, 22])
def test_no_window_starts_after_the_data(opset, tmp_path):
    """With ceil_mode, in every opset."""

    def made(kind, *shape, **options):
        model = Made(opset)
        return model.ending_with(kind, model.input(*shape), ceil_mode=1, **options)

    models = [
        made("MaxPool", 1, 3, 9, 8, kernel_shape=[2, 2], pads=[1, 0, 1, 1], strides=[1, 2]),
        made("AveragePool", 2, 4, 9, count_include_pad=1, kernel_shape=[2], pads=[1, 1], strides=[2]),
        made("MaxPool", 1, 1, 5, kernel_shape=[1], strides=[3]),
    ]
    check(models, tmp_path, np.random.default_rng(74), ONNX["AveragePool"])


def test_quantised_dilated_pools(tmp_path):
    random = np.random.default_rng(72)
    contents = [quantised(pool(random, "MaxPool").model(), tmp_path, random) for _ in range(CONFIGURATIONS)]
    check(contents, tmp_path / "c", random, 1e-6, exact=True)


def transposed(random):
    """Return a transposed convolution with groups, dilations, and padding after the last window."""
    made = Made(opset_of(random, 13))
    groups, results = int(random.integers(1, 4)), int(random.integers(1, 3))
    stride = int(random.integers(2, 4))
    x = made.input(1, groups * 2, 4, 5)
    bias = [floats(random, results * groups)] if random.random() < 0.5 else []
    options = {"group": groups, "strides": [stride, stride], "dilations": [1, int(random.integers(1, 3))]}
    added = [int(n) for n in random.integers(0, stride, 2)]
    y = made.add("ConvTranspose", x, floats(random, groups * 2, results, 2, 3), *bias, output_padding=added, **options)
    return made.output(made.add("Relu", y) if random.random() < 0.5 else y)


def test_transposed_convolutions(tmp_path):
    random = np.random.default_rng(73)
    models = [transposed(random).model() for _ in range(CONFIGURATIONS)]
    check([one.SerializeToString() for one in models], tmp_path / "float", random, ONNX["ConvTranspose"])
    forms = [("int8", "int8"), ("uint8", "int8"), ("uint8", "uint8")]
    # With several groups the tool mistakes scales by channel for scales by input.
    contents = []
    for number, model in enumerate(models):
        [groups] = [attribute.i for attribute in model.graph.node[0].attribute if attribute.name == "group"]
        by_channel = groups == 1 and number % 2 == 0
        contents.append(quantised(model, tmp_path, random, "QDQ", *forms[number % 3], per_channel=by_channel))
    for graph in check_exact_and_fixed(contents, tmp_path, random):
        layers = [node for node in graph.nodes if node.kind == "TRANSPOSE_CONV"]
        assert layers and all(node.output.dtype == "int8" for node in layers)
