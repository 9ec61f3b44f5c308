# SPDX-License-Identifier: Apache-2.0
"""float32 operators of ONNX in opsets 11 to 21, against onnxruntime."""

import numpy as np
import pytest
from requirements_support import need

need("cc", "onnx", "onnxruntime")

from models.bounds import onnx_bound  # noqa: E402
from models.onnx_support import CONFIGURATIONS, Made, check, floats, kinds_of  # noqa: E402

UNARY = {
    "Abs": {}, "Neg": {}, "Exp": {}, "Sin": {}, "Cos": {}, "Floor": {}, "Ceil": {}, "Round": {}, "Tanh": {},
    "Sigmoid": {}, "Erf": {}, "Relu": {}, "LeakyRelu": {"alpha": 0.2}, "Elu": {"alpha": 0.7}, "Selu": {},
    "Celu": {"alpha": 1.5}, "HardSigmoid": {"alpha": 0.3, "beta": 0.4}, "Softplus": {}, "Softsign": {},
    "HardSwish": {}, "Gelu": {"approximate": "tanh"}, "Mish": {}, "Reciprocal": {}, "Sign": {}, "Tan": {},
    "Asin": {}, "Acos": {}, "Atan": {}, "Sinh": {}, "Cosh": {}, "Asinh": {}, "Acosh": {}, "Atanh": {},
}  # fmt: skip
SINCE = {"HardSwish": 14, "Gelu": 20, "Mish": 18, "Celu": 12}


def opset_of(random, least=11):
    return int(random.integers(least, 22))


def unary(random, kind):
    made = Made(opset_of(random, SINCE.get(kind, 11)))
    x = made.input(*random.integers(1, 5, int(random.integers(1, 5))))
    made.output(made.add(kind, x, **UNARY[kind]))
    return made


@pytest.mark.parametrize("kind", UNARY)
def test_unary(kind, tmp_path):
    random = np.random.default_rng([ord(c) for c in kind])
    check([unary(random, kind) for _ in range(CONFIGURATIONS)], tmp_path, random, onnx_bound(kind))


def binary(random, kind):
    made = Made(opset_of(random))
    shape = random.integers(1, 5, 4)
    other = [1 if random.random() < 0.3 else n for n in shape][int(random.integers(0, 3)) :]
    a, b = made.input(*shape), made.input(*other)
    if kind == "Pow":
        a = made.add("Abs", a)
    if random.random() < 0.3:
        a, b = b, a
    result = made.add(kind, a, b)
    if kind in ("Less", "Greater", "Equal", "LessOrEqual", "GreaterOrEqual"):
        result = made.add("Where", made.add("Not", result), a, b)
    made.output(result)
    return made


@pytest.mark.parametrize("kind", ["Add", "Sub", "Mul", "Div", "Pow", "Min", "Max", "Mean", "Less", "Greater", "Equal"])
def test_binary(kind, tmp_path):
    random = np.random.default_rng([ord(c) for c in kind])
    check([binary(random, kind) for _ in range(CONFIGURATIONS)], tmp_path, random, onnx_bound(kind))


ONE_ELEMENT = ("Add", "Mul", "Div", "Pow", "Max", "Sum", "Less", "Where", "Mod", "PRelu")


@pytest.mark.parametrize("kind", ONE_ELEMENT)
@pytest.mark.parametrize("quantised", [False, True])
def test_a_constant_of_one_element_has_the_dimensions_of_the_result(kind, quantised, tmp_path):
    """The other operands have fewer."""
    random = np.random.default_rng([ord(c) for c in kind])
    dtype = np.int32 if kind == "Mod" else np.float32
    models = []
    for shape, dimensions in (((), (1,)), ((3,), (1, 1)), ((2, 3), (1, 1, 1, 1)), ((1,), (1,))):
        made = Made(17)
        x = made.input(*shape, dtype=dtype.__name__)
        data = made.add("Abs", x) if kind == "Pow" else x
        constant = made.constant(np.full(dimensions, 2, dtype))
        if quantised and dtype == np.float32:
            scale, zero = np.float32(0.05), np.uint8(120)
            data = made.add("DequantizeLinear", made.add("QuantizeLinear", data, scale, zero), scale, zero)
            constant = made.add("DequantizeLinear", np.full(dimensions, 200, np.uint8), np.float32(0.01), np.uint8(0))
        if kind == "Where":
            result = made.add(kind, made.add("Less", data, np.float32(0)), data, constant)
        elif kind == "PRelu":
            result = made.add("Add", made.add(kind, data, np.float32(0.25)), constant)
        else:
            result = made.add(kind, data, constant)
        made.output(made.add("Not", result) if kind == "Less" else result)
        models.append(made)
    check(models, tmp_path, random, 1e-5, exact=True, limits=(-9, 10))


def windows(random, spatial, most=4):
    options = {"strides": [int(n) for n in random.integers(1, most, spatial)]}
    automatic = random.choice(["pads", "pads", "SAME_UPPER", "SAME_LOWER", "VALID"])
    if automatic == "pads":
        options["pads"] = [int(n) for n in random.integers(0, 2, 2 * spatial)]
    else:
        options["auto_pad"] = str(automatic)
    return options


def convolution(random):
    made = Made(opset_of(random))
    spatial = int(random.choice([1, 2, 2]))
    groups = int(random.choice([1, 1, 2, 3]))
    inner, results = int(random.choice([1, 1, 2, 5])), groups * int(random.integers(1, 4))
    kernel = random.integers(1, 4, spatial)
    x = made.input(int(random.integers(1, 3)), groups * inner, *random.integers(7, 11, spatial))
    options = windows(random, spatial)
    if "auto_pad" not in options or options["auto_pad"] == "VALID":
        options["dilations"] = [int(n) for n in random.integers(1, 3, spatial)]
    inputs = [x, floats(random, results, inner, *kernel)]
    if random.random() < 0.7:
        inputs.append(floats(random, results))
    y = made.add("Conv", *inputs, group=groups, **options)
    if random.random() < 0.5:
        parts = [floats(random, results) for _ in range(3)] + [np.abs(floats(random, results)) + 0.1]
        y = made.add("BatchNormalization", y, *parts, epsilon=1e-3)
    end = random.integers(0, 4)
    y = made.add("Relu", y) if end == 0 else made.add("Clip", y, np.float32(0), np.float32(6)) if end == 1 else y
    made.output(y)
    return made


def test_convolutions(tmp_path):
    random = np.random.default_rng(14)
    graphs = check([convolution(random) for _ in range(6 * CONFIGURATIONS)], tmp_path, random, onnx_bound("Conv"))
    for graph in graphs:
        assert not {"MUL", "RELU", "RELU6"} & set(kinds_of(graph)), "folded into the layer"


def padded(random, kind):
    """Return a layer over a few elements with dilated windows, some of them completely in the padding."""
    spatial = int(random.choice([1, 2]))
    kernel, dilations = random.integers(1, 4, spatial), random.integers(1, 4, spatial)
    # onnxruntime refuses pools whose padding is as wide as the kernel.
    pads = random.integers(0, np.tile(kernel, 2) if kind == "MaxPool" else 7, 2 * spatial)
    least = (kernel - 1) * dilations + 1 - pads[:spatial] - pads[spatial:]
    image = np.maximum(random.integers(1, 5, spatial), least)
    made = Made(opset_of(random))
    groups, inner = int(random.integers(1, 4)), int(random.integers(1, 3))
    x = made.input(int(random.integers(1, 3)), groups * inner, *image)
    strides = random.integers(1, 4, spatial)
    options = {"pads": pads.tolist(), "dilations": dilations.tolist(), "strides": strides.tolist()}
    if kind == "MaxPool":
        made.output(made.add(kind, x, kernel_shape=kernel.tolist(), **options))
    else:
        results = groups * int(random.integers(1, 3))
        weights, bias = floats(random, results, inner, *kernel), floats(random, results)
        made.output(made.add(kind, x, weights, bias, group=groups, **options))
    return made


@pytest.mark.parametrize("kind", ["Conv", "MaxPool"])
def test_windows_in_the_padding(kind, tmp_path):
    random = np.random.default_rng([16, *map(ord, kind)])
    check([padded(random, kind) for _ in range(10 * CONFIGURATIONS)], tmp_path, random, onnx_bound(kind))


def transposed(random):
    made = Made(opset_of(random))
    spatial = int(random.choice([1, 2, 2]))
    groups = int(random.choice([1, 1, 2]))
    inner, results = int(random.integers(1, 4)), int(random.integers(1, 4))
    kernel = random.integers(2, 4, spatial)
    x = made.input(1, groups * inner, *random.integers(3, 6, spatial))
    options = {"strides": [int(n) for n in random.integers(1, 3, spatial)]}
    if random.random() < 0.3:
        options["auto_pad"] = str(random.choice(["SAME_UPPER", "SAME_LOWER"]))
    elif random.random() < 0.3:
        options.update(pads=[1] * 2 * spatial, output_padding=[s - 1 for s in options["strides"]])
    else:
        options.update(pads=[int(n) for n in random.integers(0, 2, 2 * spatial)])
        options.update(dilations=[int(n) for n in random.integers(1, 3, spatial)])
    inputs = [x, floats(random, groups * inner, results, *kernel), floats(random, results * groups)]
    made.output(made.add("ConvTranspose", *inputs, group=groups, **options))
    return made


def test_transposed_convolutions(tmp_path):
    random = np.random.default_rng(15)
    check([transposed(random) for _ in range(3 * CONFIGURATIONS)], tmp_path, random, onnx_bound("ConvTranspose"))


def pool(random, kind):
    spatial = int(random.choice([1, 2, 2]))
    made = Made(opset_of(random, 19 if kind == "AveragePool" else 11))
    x = made.input(int(random.integers(1, 3)), int(random.integers(1, 5)), *random.integers(6, 11, spatial))
    if kind.startswith("Global"):
        made.output(made.add(kind, x))
        return made
    options = {"kernel_shape": [int(n) for n in random.integers(2, 4, spatial)], **windows(random, spatial, 3)}
    if "pads" in options:
        options["ceil_mode"] = int(random.integers(0, 2))
    if kind == "AveragePool":
        options["count_include_pad"] = int(random.integers(0, 2))
    made.output(made.add(kind, x, **options))
    return made


@pytest.mark.parametrize("kind", ["MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"])
def test_pools(kind, tmp_path):
    random = np.random.default_rng([ord(c) for c in kind])
    check([pool(random, kind) for _ in range(2 * CONFIGURATIONS)], tmp_path, random, onnx_bound(kind))


def dense(random):
    made = Made(opset_of(random))
    n, k, m = (int(v) for v in random.integers(1, 9, 3))
    which = random.integers(0, 5)
    if which == 0:
        ta, tb = (int(v) for v in random.integers(0, 2, 2))
        x = made.input(*((k, n) if ta else (n, k)))
        bias = (
            [floats(random, *[(m,), (1, m), (n, m), (1,)][int(random.integers(0, 4))])] if random.random() < 0.8 else []
        )
        made.output(
            made.add("Gemm", x, floats(random, *((m, k) if tb else (k, m))), *bias, transA=ta, transB=tb,
                     alpha=float(random.choice([1, 0.5])), beta=float(random.choice([1, 2])))
        )  # fmt: skip
    elif which == 1:
        x = made.input(2, n, k)
        y = made.add("MatMul", x, floats(random, k, m))
        made.output(made.add("Add", y, floats(random, m)))
    elif which == 2:
        # Attention: the transposed operand remains where it is.
        a, b = made.input(2, 3, n, k), made.input(2, 3, m, k)
        y = made.add("Softmax", made.add("MatMul", a, made.add("Transpose", b, perm=[0, 1, 3, 2])), axis=-1)
        made.output(made.add("MatMul", y, floats(random, 2, 3, m, 2)))
    elif which == 3:
        a, b = made.input(n, k), made.input(3, k, m)
        made.output(made.add("MatMul", a, b))
    else:
        a, b = made.input(n, k), made.input(m, k)
        made.output(made.add("Gemm", a, b, transB=1))
    return made


def test_products(tmp_path):
    random = np.random.default_rng(17)
    check([dense(random) for _ in range(6 * CONFIGURATIONS)], tmp_path, random, onnx_bound("MatMul"))


REDUCTIONS = ["Mean", "Sum", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSumExp"]


def reduction(random, kind):
    made = Made(opset_of(random))
    rank = int(random.integers(2, 5))
    x = made.input(*random.integers(1, 5, rank))
    axes = [int(n) - (rank if random.random() < 0.5 else 0) for n in random.choice(rank, 2, replace=False)]
    keep = {"keepdims": int(random.integers(0, 2))}
    if made.opset >= 18 or (kind == "Sum" and made.opset >= 13):
        made.output(made.add(f"Reduce{kind}", x, np.asarray(axes, np.int64), **keep))
    else:
        made.output(made.add(f"Reduce{kind}", x, axes=axes, **keep))
    return made


@pytest.mark.parametrize("kind", REDUCTIONS)
def test_reductions(kind, tmp_path):
    random = np.random.default_rng([ord(c) for c in kind])
    models = [reduction(random, kind) for _ in range(CONFIGURATIONS)]
    check(models, tmp_path, random, onnx_bound(f"Reduce{kind}"))


NORMALISATIONS = {
    "Softmax": 11, "LogSoftmax": 11, "LayerNormalization": 17, "InstanceNormalization": 11, "BatchNormalization": 11,
    "GroupNormalization": 21, "LRN": 11, "LpNormalization": 11,
}  # fmt: skip
"""The opset in which each operator has today's inputs."""


def normalisation(random, kind):
    made = Made(opset_of(random, NORMALISATIONS[kind]))
    n, c, h, w = (int(v) for v in random.integers(1, 5, 4))
    x = made.input(n, c, h, w)
    if kind in ("Softmax", "LogSoftmax"):
        y = made.add(kind, x, axis=int(random.integers(-4, 4)))
    elif kind == "LayerNormalization":
        axis = int(random.integers(1, 4))
        shape = (n, c, h, w)[axis:]
        y = made.add(kind, x, floats(random, *shape), floats(random, *shape), axis=axis, epsilon=1e-3)
    elif kind == "InstanceNormalization":
        y = made.add(kind, x, floats(random, c), floats(random, c), epsilon=0.1)
    elif kind == "BatchNormalization":
        parts = [floats(random, c) for _ in range(3)] + [np.abs(floats(random, c)) + 0.1]
        y = made.add(kind, x, *parts)
    elif kind == "GroupNormalization":
        y = made.add(kind, x, floats(random, c), floats(random, c), num_groups=c, epsilon=0.1)
    elif kind == "LRN":
        y = made.add(kind, x, size=3, alpha=0.5, bias=2.0)
    else:
        # Vectors of zeros stay zeros.
        y = made.add(kind, made.add("Relu", x), axis=int(random.integers(0, 4)), p=int(random.integers(1, 3)))
    made.output(y)
    return made


@pytest.mark.parametrize("kind", NORMALISATIONS)
def test_normalisations(kind, tmp_path):
    random = np.random.default_rng([ord(c) for c in kind])
    check([normalisation(random, kind) for _ in range(CONFIGURATIONS)], tmp_path, random, onnx_bound(kind))


def resize(random):
    made = Made(opset_of(random))
    shape = [1, int(random.integers(1, 4)), int(random.integers(2, 7)), int(random.integers(2, 7))]
    x = made.input(*shape)
    mode = str(random.choice(["nearest", "linear", "cubic"]))
    transform = str(random.choice(["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]))
    options = {"mode": mode, "coordinate_transformation_mode": transform}
    if mode == "nearest":
        options["nearest_mode"] = str(random.choice(["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"]))
    empty = np.zeros(0, np.float32)
    if random.random() < 0.5:
        sizes = np.asarray([*shape[:2], *random.integers(1, 11, 2)], np.int64)
        made.output(made.add("Resize", x, empty, empty, sizes, **options))
    else:
        scales = np.asarray([1, 1, *random.choice([0.6, 1.5, 2, 3], 2)], np.float32)
        made.output(made.add("Resize", x, empty, scales, **options))
    return made


def test_resize(tmp_path):
    random = np.random.default_rng(20)
    check([resize(random) for _ in range(8 * CONFIGURATIONS)], tmp_path, random, onnx_bound("Resize"))


def filtered(random):
    """Return a Resize with the options of opset 18: smaller images through a wider filter, one scale for all sides."""
    made = Made(int(random.integers(18, 22)))
    shape = [int(n) for n in (random.integers(1, 3), random.integers(1, 4), *random.integers(4, 14, 2))]
    x = made.input(*shape)
    options = {"mode": str(random.choice(["linear", "cubic"])), "antialias": int(random.random() < 0.7)}
    options["coordinate_transformation_mode"] = str(
        random.choice(["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"])
    )
    if options["mode"] == "cubic":
        options |= {"cubic_coeff_a": float(random.choice([-0.75, -0.5]))}
    options["exclude_outside"] = int(options["antialias"] or options["mode"] == "cubic") * int(random.integers(0, 2))
    empty = np.zeros(0, np.float32)
    if random.random() < 0.7:
        if not options["antialias"] or random.random() < 0.5:
            options |= {"keep_aspect_ratio_policy": str(random.choice(["stretch", "not_larger", "not_smaller"]))}
        sizes = random.integers(2, 12, 2)
        made.output(made.add("Resize", x, empty, empty, sizes.astype(np.int64), axes=[2, 3], **options))
    else:
        scales = random.choice([0.3, 0.5, 0.6, 1.0, 2.0], 2).astype(np.float32)
        made.output(made.add("Resize", x, empty, scales, axes=[2, 3], **options))
    return made


def test_resize_with_antialias_and_policies(tmp_path):
    random = np.random.default_rng(23)
    check([filtered(random) for _ in range(8 * CONFIGURATIONS)], tmp_path, random, onnx_bound("Resize"))


RECURRENT = [
    ("LSTM", "forward"),
    ("LSTM", "bidirectional"),
    ("GRU", "reverse"),
    ("GRU", "bidirectional"),
    ("RNN", "forward"),
]


@pytest.mark.parametrize(("kind", "direction"), RECURRENT)
def test_recurrent(kind, direction, tmp_path):
    random = np.random.default_rng([ord(c) for c in kind + direction])
    models = []
    for number in range(CONFIGURATIONS):
        made = Made(opset_of(random))
        gates, count = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind], 2 if direction == "bidirectional" else 1
        steps, batch, width, hidden = (int(v) for v in random.integers(1, 5, 4))
        x = made.input(steps, batch, width)
        inputs = [
            x,
            floats(random, count, gates * hidden, width),
            floats(random, count, gates * hidden, hidden),
            floats(random, count, 2 * gates * hidden),
        ]
        options = {"direction": direction, "hidden_size": hidden}
        if kind == "GRU":
            options["linear_before_reset"] = number % 2
        if kind == "LSTM" and number % 2:
            inputs += ["", floats(random, count, batch, hidden), floats(random, count, batch, hidden)]
            inputs.append(floats(random, count, 3 * hidden))
        results = made.add(kind, *inputs, results=3 if kind == "LSTM" else 2, **options)
        made.output(*results)
        models.append(made)
    check(models, tmp_path, random, onnx_bound(kind))
