# SPDX-License-Identifier: Apache-2.0
"""Operators of ONNX that move elements, layouts, and graphs as exporters write them, against onnxruntime."""

import numpy as np
from requirements_support import need

need("cc", "onnx", "onnxruntime")

from models.bounds import onnx_bound  # noqa: E402
from models.onnx_support import CONFIGURATIONS, Made, check, floats, graph_of, kinds_of  # noqa: E402
from opwest.importers.models.interpret.run import outputs_of, run_graph  # noqa: E402


def ints(*values):
    return np.asarray(values, np.int64)


def movements(random, kind):
    """Return a model with an operator on a plain tensor, or on one that a convolution leaves channels last."""
    made = Made(int(random.integers(18 if kind == "split" else 13, 22)))
    shape = [1, 4, 6, 8]
    x = made.input(*shape)
    if random.random() < 0.6:
        x = made.add("Conv", x, floats(random, 4, 4, 1, 1))
    axis = int(random.integers(-4, 4))
    n = shape[axis]
    if kind == "transpose":
        y = made.add("Transpose", x, perm=[int(v) for v in random.permutation(4)])
        y = made.add("Add", y, floats(random, 1))
    elif kind == "reshape":
        wanted = [[0, -1], [4, 48], [1, 4, 48], [1, 1, 4, 6, 8], [2, 2, 6, 8], [1, 24, 8]][int(random.integers(0, 6))]
        y = made.add("Reshape", x, ints(*wanted))
    elif kind == "squeeze":
        y = made.add("Squeeze", x, ints(0))
        y = made.add("Unsqueeze", y, ints(int(random.integers(0, 4))))
    elif kind == "concat":
        other = made.add("Relu", x)
        third = floats(random, *shape)
        y = made.add("Concat", x, other, third, axis=axis)
    elif kind == "split":
        first = int(random.integers(1, n)) if n > 1 else 1
        if n == 1:
            return movements(random, kind)
        parts = made.add("Split", x, ints(first, n - first), axis=axis, results=2)
        made.output(*parts)
        return made
    elif kind == "slice":
        axes = [2, -1]
        start = ints(int(random.integers(-6, 3)), int(random.integers(0, 4)))
        stop, step = ints(100, -1), ints(int(random.integers(1, 3)), 2)
        if random.random() < 0.4:
            start, stop, step = ints(100, -2), ints(-100, 1), ints(-1, -2)
        y = made.add("Slice", x, start, stop, ints(*axes), step)
    elif kind == "gather":
        index = ints(-1) if random.random() < 0.3 else random.integers(-n, n, [2, 3][: int(random.integers(0, 3))])
        y = made.add("Gather", x, np.asarray(index, np.int64), axis=axis)
    elif kind == "pad":
        mode = str(random.choice(["constant", "reflect", "edge"]))
        amounts = [0, 0, *random.integers(0, 3, 2), 0, 0, *random.integers(0, 3, 2)]
        value = [np.float32(random.choice([0, 1.5]))] if mode == "constant" else []
        y = made.add("Pad", x, ints(*amounts), *value, mode=mode)
    elif kind == "expand":
        y = made.add("Expand", made.add("ReduceMax", x, keepdims=1), ints(2, 4, 1, 3))
    elif kind == "tile":
        y = made.add("Tile", x, ints(1, 2, 1, 2))
    elif kind == "depth":
        mode = str(random.choice(["DCR", "CRD"]))
        y = made.add("DepthToSpace", made.add("SpaceToDepth", x, blocksize=2), blocksize=2, mode=mode)
    else:
        y = made.add("ArgMax", x, axis=axis, keepdims=int(random.integers(0, 2)))
    made.output(y)
    return made


KINDS = [
    "transpose", "reshape", "squeeze", "concat", "split", "slice", "gather", "pad", "expand", "tile", "depth", "argmax",
]  # fmt: skip


def test_movements(tmp_path):
    random = np.random.default_rng(30)
    check(
        [movements(random, kind) for kind in KINDS for _ in range(2 * CONFIGURATIONS)],
        tmp_path,
        random,
        onnx_bound("Conv"),
    )


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
    y = made.add("Concat", made.add("MaxPool", y, kernel_shape=[2, 2], strides=[2, 2]),
                 made.add(mean, y, kernel_shape=[2, 2], strides=[2, 2]), axis=1)  # fmt: skip
    # view(x.size(0), -1)
    size = made.add("Gather", made.add("Shape", y), np.asarray(0, np.int64), axis=0)
    shape = made.add("Concat", made.add("Unsqueeze", size, ints(0)), ints(-1), axis=0)
    y = made.add("Reshape", y, shape)
    y = made.add("Gemm", y, floats(random, 10, 16 * 36, scale=0.1), floats(random, 10), transB=1)
    made.output(made.add("Softmax", y, axis=1))
    return made


def test_only_the_input_is_transposed(tmp_path):
    random = np.random.default_rng(31)
    for graph in check([residual(random), residual(random, 2)], tmp_path, random, onnx_bound("network")):
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
    y = made.add(
        "Reshape", made.add("Transpose", made.add("MatMul", scores, heads[2]), perm=[0, 2, 1, 3]), ints(1, 5, 8)
    )
    x = made.add("Add", x, y)
    z = made.add("Add", made.add("MatMul", x, floats(random, 8, 16)), floats(random, 16))
    erf = made.add("Erf", made.add("Div", z, np.float32(np.sqrt(2))))
    z = made.add("Mul", made.add("Mul", z, made.add("Add", erf, np.float32(1))), np.float32(0.5))
    made.output(made.add("Add", x, made.add("MatMul", z, floats(random, 16, 8))))
    return made


def test_transformer(tmp_path):
    random = np.random.default_rng(32)
    [graph] = check([transformer(random)], tmp_path, random, onnx_bound("network"))
    kinds = kinds_of(graph)
    assert "GELU" in kinds and "ONNX_ERF" not in kinds
    assert kinds.count("FULLY_CONNECTED") == 5 and kinds.count("BATCH_MATMUL") == 2


def test_space_to_depth_by_column():
    """mode CRD of opset 28, which onnxruntime lacks. Source: onnx/docs/Operators.md, SpaceToDepth."""
    made = Made(28)
    made.output(made.add("SpaceToDepth", made.input(2, 3, 4, 6), blocksize=2, mode="CRD"))
    x = floats(np.random.default_rng(28), 2, 3, 4, 6)
    graph = graph_of(made.model().SerializeToString())
    [found] = outputs_of(graph, run_graph(graph, [x]))
    blocks = x.reshape(2, 3, 2, 2, 3, 2).transpose(0, 1, 3, 5, 2, 4)
    assert (found == blocks.reshape(2, 12, 2, 3)).all()


def test_results_that_nothing_reads(tmp_path):
    def made(opset, kind, shape, count, *inputs, **options):
        model = Made(opset)
        first, *_ = model.add(kind, model.input(*shape), *inputs, results=count, **options)
        model.output(model.add("Relu", first))
        return model

    models = [
        made(9, "Dropout", (2, 3), 2, ratio=0.25),
        made(12, "MaxPool", (1, 2, 6, 6), 2, kernel_shape=[2, 2]),
        made(17, "LayerNormalization", (2, 3), 3, np.ones(3, np.float32)),
    ]
    check(models, tmp_path, np.random.default_rng(29), onnx_bound("LayerNormalization"))
