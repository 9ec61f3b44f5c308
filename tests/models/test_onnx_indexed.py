# SPDX-License-Identifier: Apache-2.0
"""Products by letters, vectors, indices of elements, triangles and tests of special values, against onnxruntime."""

import numpy as np
import pytest
from requirements_support import need

need("cc", "onnx", "onnxruntime")

from models.bounds import onnx_bound  # noqa: E402
from models.onnx_support import CONFIGURATIONS, Made, check, floats, kinds_of  # noqa: E402
from models.test_onnx_refusals import refused  # noqa: E402

EQUATIONS = [
    "bij,bjk->bik", "bij,bkj->bki", "ij,j->i", "i,j->ij", "bhid,bhjd->bhij", "...ij,...jk->...ik", "ij->ji", "ijk->j",
    "bij,ijk->bk", "ij,jk", "i,i", "abc,cd,bd->ad", "bnqd,bnkd->bnqk", "b...,...->b...", "ij,ij->ij",
]  # fmt: skip
ELLIPSES = {"...ij,...jk->...ik": ((2, 1), (2, 3)), "b...,...->b...": ((3, 2), (3, 2))}


def einsum(random, equation):
    made = Made(int(random.integers(12, 22)))
    sizes = {one: int(n) for one, n in zip("abcdhijknqe", random.integers(1, 5, 11), strict=True)}
    operands = []
    for number, term in enumerate(equation.split("->")[0].split(",")):
        shape = [sizes[one] for one in term.replace("...", "")]
        if "..." in term:
            extra = list(ELLIPSES[equation][number])
            shape = shape[: term.index(".")] + extra + shape[term.index(".") :]
        if number and random.random() < 0.4:
            operands.append(floats(random, *shape))
        else:
            operands.append(made.input(*shape))
    made.output(made.add("Einsum", *operands, equation=equation))
    return made


def test_einsum(tmp_path):
    random = np.random.default_rng(80)
    models = [einsum(random, one) for one in EQUATIONS for _ in range(max(1, CONFIGURATIONS // 4))]
    check(models, tmp_path, random, onnx_bound("Einsum"))


@pytest.mark.parametrize("equation", ["ii->i", "ij,jk,kl->il", "ij,jk->iz", "ijk,jk->i"])
def test_refused_equations(equation):
    made = Made(17)
    made.output(made.add("Einsum", made.input(3, 3), made.input(3, 3), equation=equation))
    assert "error:" in refused(made.model())


def vectors(random):
    made = Made(int(random.integers(13, 22)))
    n, k, m = (int(v) for v in random.integers(1, 6, 3))
    pairs = [((k,), (k, m)), ((2, n, k), (k,)), ((k,), (k,)), ((k,), (2, k, m)), ((n, k), (k,))]
    one, other = pairs[int(random.integers(0, len(pairs)))]
    made.output(
        made.add("MatMul", made.input(*one), floats(random, *other) if random.random() < 0.5 else made.input(*other))
    )
    return made


def test_products_with_vectors(tmp_path):
    random = np.random.default_rng(81)
    check([vectors(random) for _ in range(2 * CONFIGURATIONS)], tmp_path, random, onnx_bound("MatMul"))


def indexed(random, kind):
    made = Made(int(random.integers(16, 22)))
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
        y = made.add(kind, x, index, axis=axis)
    elif kind == "ScatterElements":
        y = made.add(kind, x, index, made.input(*part) if random.random() < 0.5 else floats(random, *part), axis=axis)
    else:
        depth = int(random.integers(1, 4))
        every = np.argwhere(np.ones(shape[:depth]))
        chosen = every[random.permutation(len(every))[: int(random.integers(1, len(every) + 1))]]
        y = made.add(kind, x, chosen.astype(np.int64), made.input(len(chosen), *shape[depth:]))
    made.output(y)
    return made


@pytest.mark.parametrize("kind", ["GatherElements", "ScatterElements", "ScatterND"])
def test_indices(kind, tmp_path):
    random = np.random.default_rng([ord(c) for c in kind])
    check([indexed(random, kind) for _ in range(CONFIGURATIONS)], tmp_path, random, onnx_bound(kind))


def special(random, kind):
    made = Made(int(random.integers(14, 22)))
    shape = [int(n) for n in random.integers(1, 5, 3)]
    x = made.input(*shape)
    if kind == "Trilu":
        y = made.add(kind, x, np.int64(random.integers(-3, 4)), upper=int(random.integers(0, 2)))
    elif kind == "ThresholdedRelu":
        y = made.add(kind, x, alpha=0.4)
    elif kind == "Xor":
        y = made.add(kind, made.add("Greater", x, np.float32(0)), made.add("Less", x, np.float32(0.5)))
    else:
        strange = np.asarray([0, 1, np.nan, np.inf, -np.inf], np.float32)
        flags = {"detect_negative": int(random.integers(0, 2))} if kind == "IsInf" else {}
        y = made.add(kind, made.add("Add", x, random.choice(strange, shape)), **flags)
    made.output(y)
    return made


@pytest.mark.parametrize("kind", ["Trilu", "ThresholdedRelu", "Xor", "IsNaN", "IsInf"])
def test_special_values(kind, tmp_path):
    random = np.random.default_rng([ord(c) for c in kind])
    check([special(random, kind) for _ in range(CONFIGURATIONS)], tmp_path, random, onnx_bound(kind))


def test_constant_indices_only():
    made = Made(17)
    made.output(made.add("GatherElements", made.input(2, 3), made.input(2, 3, dtype="int64")))
    assert "the indices 'x1' are computed when the model runs" in refused(made.model())


def test_infinity_of_doubles(tmp_path):
    """torch.nan_to_num in the exporter by tracing: IsInf of float64."""
    made = Made(17)
    x = made.add("Div", made.input(2, 3), np.asarray([0, 1, 2], np.float32))
    found = made.add("IsInf", made.add("Cast", x, to=11))
    made.output(made.add("Where", found, np.float32(7), x))
    [graph] = check([made], tmp_path, np.random.default_rng(82), onnx_bound("Div"))
    assert "CAST" not in kinds_of(graph)


def resized(random, dtype):
    """Linear interpolation of stored integers, which onnxruntime's form QOperator has."""
    made = Made(int(random.integers(13, 20)))
    x = made.input(1, 3, 5, 6, dtype=dtype)
    sizes = np.asarray([1, 3, *random.integers(2, 13, 2)], np.int64)
    transform = str(random.choice(["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"]))
    empty = np.zeros(0, np.float32)
    options = {"mode": "linear", "coordinate_transformation_mode": transform}
    made.output(made.add("Resize", x, empty, empty, sizes, **options))
    return made


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_linear_integers(dtype, tmp_path):
    """onnxruntime cuts off the fraction: equal with --exact, one step without."""
    random = np.random.default_rng(83)
    models = [resized(random, dtype) for _ in range(CONFIGURATIONS)]
    check(models, tmp_path / "exact", random, 0, exact=True)
    check(models, tmp_path / "fixed", random, 0, 1)
