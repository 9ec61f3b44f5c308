# SPDX-License-Identifier: Apache-2.0
"""float32 operators of ONNX in opsets 11 to 21, and indices and special values, against onnxruntime."""

import numpy as np
import pytest
from models.bounds import ONNX
from models.executor import program_of
from models.onnx_support import CONFIGURATIONS, Made, check, check_family, floats, kinds_of, opset_of
from models.test_onnx_refusals import one, refused
from opwest.compiler.ir.labels import layer
from opwest.compiler.output.placement import layers_of

UNARY = {
    "Abs": {}, "Neg": {}, "Exp": {}, "Sin": {}, "Cos": {}, "Floor": {}, "Ceil": {}, "Round": {}, "Tanh": {},
    "Sigmoid": {}, "Erf": {}, "Relu": {}, "LeakyRelu": {"alpha": 0.2}, "Elu": {"alpha": 0.7}, "Selu": {},
    "Celu": {"alpha": 1.5}, "HardSigmoid": {"alpha": 0.3, "beta": 0.4}, "Softplus": {}, "Softsign": {},
    "HardSwish": {}, "Gelu": {"approximate": "tanh"}, "Mish": {}, "Reciprocal": {}, "Sign": {}, "Tan": {},
    "Asin": {}, "Acos": {}, "Atan": {}, "Sinh": {}, "Cosh": {}, "Asinh": {}, "Acosh": {}, "Atanh": {},
}  # fmt: skip
SINCE = {"HardSwish": 14, "Gelu": 20, "Mish": 18, "Celu": 12}


def unary(random, kind):
    made = Made(opset_of(random, SINCE.get(kind, 11)))
    x = made.input(*random.integers(1, 5, int(random.integers(1, 5))))
    return made.ending_with(kind, x, **UNARY[kind])


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
    return made.output(result)


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


def convolution(random, kind="Conv"):
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
    y = made.add(kind, *inputs, group=groups, **options)
    if random.random() < 0.5:
        parts = [floats(random, results) for _ in range(3)] + [np.abs(floats(random, results)) + 0.1]
        y = made.add("BatchNormalization", y, *parts, epsilon=1e-3)
    end = random.integers(0, 4)
    y = made.add("Relu", y) if end == 0 else made.add("Clip", y, np.float32(0), np.float32(6)) if end == 1 else y
    return made.output(y)


def test_convolutions(tmp_path):
    for graph in check_family(tmp_path, convolution, "Conv", 6):
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


def transposed(random, kind="ConvTranspose"):
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
    return made.ending_with(kind, *inputs, group=groups, **options)


def pool(random, kind):
    spatial = int(random.choice([1, 2, 2]))
    made = Made(opset_of(random, 19 if kind == "AveragePool" else 11))
    x = made.input(int(random.integers(1, 3)), int(random.integers(1, 5)), *random.integers(6, 11, spatial))
    if kind.startswith("Global"):
        return made.ending_with(kind, x)
    options = {"kernel_shape": [int(n) for n in random.integers(2, 4, spatial)], **windows(random, spatial, 3)}
    if "pads" in options:
        options["ceil_mode"] = int(random.integers(0, 2))
    if kind == "AveragePool":
        options["count_include_pad"] = int(random.integers(0, 2))
    return made.ending_with(kind, x, **options)


def dense(random, kind="MatMul"):
    made = Made(opset_of(random))
    n, k, m = (int(v) for v in random.integers(1, 9, 3))
    which = random.integers(0, 5)
    if which == 0:
        ta, tb = (int(v) for v in random.integers(0, 2, 2))
        x = made.input(*((k, n) if ta else (n, k)))
        bias = []
        if random.random() < 0.8:
            bias.append(floats(random, *[(m,), (1, m), (n, m), (1,)][int(random.integers(0, 4))]))
        options = {
            "transA": ta,
            "transB": tb,
            "alpha": float(random.choice([1, 0.5])),
            "beta": float(random.choice([1, 2])),
        }
        return made.ending_with("Gemm", x, floats(random, *((m, k) if tb else (k, m))), *bias, **options)
    if which == 1:
        y = made.add(kind, made.input(2, n, k), floats(random, k, m))
        return made.ending_with("Add", y, floats(random, m))
    if which == 2:
        # Attention: the transposed operand remains where it is.
        a, b = made.input(2, 3, n, k), made.input(2, 3, m, k)
        y = made.add("Softmax", made.add(kind, a, made.add("Transpose", b, perm=[0, 1, 3, 2])), axis=-1)
        return made.ending_with(kind, y, floats(random, 2, 3, m, 2))
    if which == 3:
        return made.ending_with(kind, made.input(n, k), made.input(3, k, m))
    bias = [floats(random, m)] if random.random() < 0.5 else []
    alpha = float(random.choice([1, 0.5, -2]))
    y = made.add("Gemm", made.input(n, k), made.input(m, k), *bias, transB=1, alpha=alpha)
    return made.ending_with("Relu", y) if random.random() < 0.5 else made.output(y)


def reduction(random, kind):
    made = Made(opset_of(random))
    rank = int(random.integers(2, 5))
    x = made.input(*random.integers(1, 5, rank))
    axes = [int(n) - (rank if random.random() < 0.5 else 0) for n in random.choice(rank, 2, replace=False)]
    keep = {"keepdims": int(random.integers(0, 2))}
    if made.opset >= 18 or (kind == "ReduceSum" and made.opset >= 13):
        return made.ending_with(kind, x, np.asarray(axes, np.int64), **keep)
    return made.ending_with(kind, x, axes=axes, **keep)


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
        return made.ending_with(kind, x, axis=int(random.integers(-4, 4)))
    if kind == "LRN":
        return made.ending_with(kind, x, size=3, alpha=0.5, bias=2.0)
    if kind == "LpNormalization":
        # Vectors of zeros stay zeros.
        x = made.add("Relu", x)
        return made.ending_with(kind, x, axis=int(random.integers(0, 4)), p=int(random.integers(1, 3)))
    if kind == "LayerNormalization":
        axis = int(random.integers(1, 4))
        shape = (n, c, h, w)[axis:]
        return made.ending_with(kind, x, floats(random, *shape), floats(random, *shape), axis=axis, epsilon=1e-3)
    parts = [floats(random, c), floats(random, c)]
    if kind == "BatchNormalization":
        return made.ending_with(kind, x, *parts, floats(random, c), np.abs(floats(random, c)) + 0.1)
    options = {"num_groups": c} if kind == "GroupNormalization" else {}
    return made.ending_with(kind, x, *parts, epsilon=0.1, **options)


def resize(random, kind="Resize"):
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
        return made.ending_with(kind, x, empty, empty, sizes, **options)
    scales = np.asarray([1, 1, *random.choice([0.6, 1.5, 2, 3], 2)], np.float32)
    return made.ending_with(kind, x, empty, scales, **options)


def filtered(random, kind="Resize"):
    """Return a Resize with the options of opset 18: smaller images through a wider filter, one scale for all sides."""
    made = Made(opset_of(random, 18))
    x = made.input(random.integers(1, 3), random.integers(1, 4), *random.integers(4, 14, 2))
    options = {"mode": str(random.choice(["linear", "cubic"])), "antialias": int(random.random() < 0.7)}
    transforms = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"]
    options |= {"coordinate_transformation_mode": str(random.choice(transforms)), "axes": [2, 3]}
    if options["mode"] == "cubic":
        options |= {"cubic_coeff_a": float(random.choice([-0.75, -0.5]))}
    options["exclude_outside"] = int(options["antialias"] or options["mode"] == "cubic") * int(random.integers(0, 2))
    empty = np.zeros(0, np.float32)
    if random.random() < 0.7:
        if not options["antialias"] or random.random() < 0.5:
            options |= {"keep_aspect_ratio_policy": str(random.choice(["stretch", "not_larger", "not_smaller"]))}
        return made.ending_with(kind, x, empty, empty, random.integers(2, 12, 2).astype(np.int64), **options)
    scales = random.choice([0.3, 0.5, 0.6, 1.0, 2.0], 2).astype(np.float32)
    return made.ending_with(kind, x, empty, scales, **options)


@pytest.mark.parametrize(
    ("kind", "direction"),
    [("LSTM", "forward"), ("GRU", "reverse"), ("RNN", "forward"), ("LSTM", "bidirectional"), ("GRU", "bidirectional")],
)
def test_recurrent(kind, direction, tmp_path):
    random = np.random.default_rng([ord(c) for c in kind + direction])
    gates, count = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind], 2 if direction == "bidirectional" else 1
    models = []
    for number in range(CONFIGURATIONS):
        made = Made(opset_of(random))
        steps, batch, width, hidden = (int(v) for v in random.integers(1, 5, 4))
        inputs = [made.input(steps, batch, width), floats(random, count, gates * hidden, width)]
        inputs += [floats(random, count, gates * hidden, hidden), floats(random, count, 2 * gates * hidden)]
        options = {"direction": direction, "hidden_size": hidden, "results": 3 if kind == "LSTM" else 2}
        if kind == "GRU":
            options["linear_before_reset"] = number % 2
        if kind == "LSTM" and number % 2:
            inputs += ["", floats(random, count, batch, hidden), floats(random, count, batch, hidden)]
            inputs.append(floats(random, count, 3 * hidden))
        models.append(made.ending_with(kind, *inputs, **options))
    check(models, tmp_path, random, ONNX[kind])


EQUATIONS = [
    "bij,bjk->bik", "bij,bkj->bki", "ij,j->i", "i,j->ij", "bhid,bhjd->bhij", "...ij,...jk->...ik", "ij->ji", "ijk->j",
    "bij,ijk->bk", "ij,jk", "i,i", "abc,cd,bd->ad", "bnqd,bnkd->bnqk", "b...,...->b...", "ij,ij->ij",
]  # fmt: skip
ELLIPSES = {"...ij,...jk->...ik": ((2, 1), (2, 3)), "b...,...->b...": ((3, 2), (3, 2))}


def einsum(random, equation):
    made = Made(opset_of(random, 12))
    sizes = {one: int(n) for one, n in zip("abcdhijknqe", random.integers(1, 5, 11), strict=True)}
    operands = []
    for number, term in enumerate(equation.split("->")[0].split(",")):
        shape = [sizes[one] for one in term.replace("...", "")]
        if "..." in term:
            place = term.index(".")
            shape[place:place] = ELLIPSES[equation][number]
        is_constant = number and random.random() < 0.4
        operands.append(floats(random, *shape) if is_constant else made.input(*shape))
    return made.ending_with("Einsum", *operands, equation=equation)


def test_einsum(tmp_path):
    random = np.random.default_rng(80)
    models = [einsum(random, one) for one in EQUATIONS for _ in range(max(1, CONFIGURATIONS // 4))]
    check(models, tmp_path, random, ONNX["Einsum"])


@pytest.mark.parametrize("equation", ["ii->i", "ij,jk,kl->il", "ij,jk->iz", "ijk,jk->i"])
def test_refused_equations(equation):
    assert "error:" in refused(one("Einsum", lambda made: made.input(3, 3), shape=(3, 3), equation=equation))


def vectors(random, kind):
    made = Made(opset_of(random, 13))
    n, k, m = (int(v) for v in random.integers(1, 6, 3))
    pairs = [((k,), (k, m)), ((2, n, k), (k,)), ((k,), (k,)), ((k,), (2, k, m)), ((n, k), (k,))]
    one, other = pairs[int(random.integers(0, len(pairs)))]
    x = made.input(*one)
    return made.ending_with(kind, x, floats(random, *other) if random.random() < 0.5 else made.input(*other))


def indexed(random, kind):
    made = Made(opset_of(random, 16))
    shape = [int(n) for n in random.integers(2, 5, 3)]
    x = made.input(*shape)
    if random.random() < 0.5:
        x = made.add("Transpose", x, perm=[1, 2, 0])
        shape = [shape[1], shape[2], shape[0]]
    axis = int(random.integers(-3, 3))
    part = [int(random.integers(1, n + 1)) for n in shape]
    index = np.zeros(part, np.int64)
    n = shape[axis]
    # Scatter does not define the order of equal indices: each line has different ones.
    for at in np.ndindex(*[1 if i == axis % 3 else v for i, v in enumerate(part)]):
        line = tuple(slice(None) if i == axis % 3 else v for i, v in enumerate(at))
        index[line] = random.permutation(n)[: part[axis]] - (n if random.random() < 0.3 else 0)
    if kind == "GatherElements":
        return made.ending_with(kind, x, index, axis=axis)
    if kind == "ScatterElements":
        updates = made.input(*part) if random.random() < 0.5 else floats(random, *part)
        return made.ending_with(kind, x, index, updates, axis=axis)
    depth = int(random.integers(1, 4))
    every = np.argwhere(np.ones(shape[:depth]))
    chosen = every[random.permutation(len(every))[: int(random.integers(1, len(every) + 1))]]
    return made.ending_with(kind, x, chosen.astype(np.int64), made.input(len(chosen), *shape[depth:]))


def special(random, kind):
    made = Made(opset_of(random, 14))
    shape = [int(n) for n in random.integers(1, 5, 3)]
    x = made.input(*shape)
    if kind == "Trilu":
        return made.ending_with(kind, x, np.int64(random.integers(-3, 4)), upper=int(random.integers(0, 2)))
    if kind == "ThresholdedRelu":
        return made.ending_with(kind, x, alpha=0.4)
    if kind == "Xor":
        return made.ending_with(kind, made.add("Greater", x, np.float32(0)), made.add("Less", x, np.float32(0.5)))
    strange = np.asarray([0, 1, np.nan, np.inf, -np.inf], np.float32)
    flags = {"detect_negative": int(random.integers(0, 2))} if kind == "IsInf" else {}
    return made.ending_with(kind, made.add("Add", x, random.choice(strange, shape)), **flags)


FAMILIES = [
    *((unary, kind, 1) for kind in UNARY),
    *((binary, kind, 1) for kind in "Add Sub Mul Div Pow Min Max Mean Less Greater Equal".split()),
    *((padded, kind, 10) for kind in ("Conv", "MaxPool")),
    (transposed, "ConvTranspose", 3),
    *((pool, kind, 2) for kind in ("MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool")),
    (dense, "MatMul", 6),
    (vectors, "MatMul", 2),
    *((reduction, f"Reduce{kind}", 1) for kind in "Mean Sum Max Min Prod L1 L2 SumSquare LogSumExp".split()),
    *((normalisation, kind, 1) for kind in NORMALISATIONS),
    (resize, "Resize", 8),
    (filtered, "Resize", 8),
    *((indexed, kind, 1) for kind in ("GatherElements", "ScatterElements", "ScatterND")),
    *((special, kind, 1) for kind in ("Trilu", "ThresholdedRelu", "Xor", "IsNaN", "IsInf")),
]


@pytest.mark.parametrize(("make", "kind", "count"), FAMILIES)
def test_operators(make, kind, count, tmp_path):
    check_family(tmp_path, make, kind, count)


def test_constant_indices_only():
    model = one("GatherElements", lambda made: made.input(2, 3, dtype="int64"), shape=(2, 3))
    assert "the indices 'x1' are computed when the model runs" in refused(model)


def test_infinity_of_doubles(tmp_path):
    """torch.nan_to_num in the exporter by tracing: IsInf of float64."""
    made = Made(17)
    x = made.add("Div", made.input(2, 3), np.asarray([0, 1, 2], np.float32))
    found = made.add("IsInf", made.add("Cast", x, to=11))
    made.ending_with("Where", found, np.float32(7), x)
    [graph] = check([made], tmp_path, np.random.default_rng(82), ONNX["Div"])
    assert "CAST" not in kinds_of(graph)


def resized(random, dtype):
    """Linear interpolation of stored integers, which onnxruntime's form QOperator has."""
    made = Made(int(random.integers(13, 20)))
    x = made.input(1, 3, 5, 6, dtype=dtype)
    sizes = np.asarray([1, 3, *random.integers(2, 13, 2)], np.int64)
    transform = str(random.choice(["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"]))
    empty = np.zeros(0, np.float32)
    options = {"mode": "linear", "coordinate_transformation_mode": transform}
    return made.ending_with("Resize", x, empty, empty, sizes, **options)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_linear_integers(dtype, tmp_path):
    """onnxruntime cuts off the fraction: equal with --exact, one step without."""
    random = np.random.default_rng(83)
    models = [resized(random, dtype) for _ in range(CONFIGURATIONS)]
    check(models, tmp_path / "exact", random, 0, exact=True)
    check(models, tmp_path / "fixed", random, 0, 1)


def test_each_operation_of_an_operator_has_a_label(tmp_path):
    """Of normalisations and recurrent layers, which become many; an operator with one operation keeps its label."""
    random, made = np.random.default_rng(1), Made(17)
    x = made.input(3, 1, 8)
    weights = (floats(random, 1, 24, 8), floats(random, 1, 24, 8))
    rows, _ = made.add("GRU", made.add("Tanh", x), *weights, results=2, hidden_size=8)
    rows = made.add("Softmax", made.add("Squeeze", rows, np.asarray([1])), axis=0)
    made.ending_with("LayerNormalization", rows, floats(random, 8), floats(random, 8), axis=-1)
    made.outputs.append(x)
    [graph] = check([made], tmp_path, random, ONNX["LayerNormalization"])
    labels = [layer(operation.label) for operation in program_of(graph).operations]
    assert len(set(labels)) == len(labels) and labels[0] == "0 (Tanh)" and labels[-1] == "copy to output 'x0'"
    parts = [label.partition(" (Softmax): ")[2] for label in labels if "Softmax" in label]
    assert parts == ["transpose", "softmax"], labels
    assert {"1 (GRU): tanh 3", "4 (LayerNormalization): rsqrt"} < {*labels}
    assert {number for label in labels[:-1] for number in layers_of(label)} == {"0", "1", "3", "4"}
