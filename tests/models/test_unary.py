# SPDX-License-Identifier: Apache-2.0
"""Functions of one element in all dtypes, against LiteRT."""

import numpy as np
import pytest
from models.bounds import bound_of
from models.campaigns import OPTIMISED, any_shape, cases_of, check_dtypes, quantised
from models.made import of_one

BYTES = ("float32", "int8", "uint8")
WORDS = ("float32", "int8", "int16")
DTYPES = {
    **dict.fromkeys(("LOGISTIC", "TANH", "RELU", "RELU6", "LEAKY_RELU", "GELU"), (*BYTES, "int16")),
    **dict.fromkeys(("HARD_SWISH", "RELU_N1_TO_1", "RELU_0_TO_1"), BYTES),
    **dict.fromkeys(("EXP", "LOG", "SQRT", "RSQRT"), WORDS),
    "ELU": ("float32", "int8"),
    "ABS": (*WORDS, "int32"),
    "NEG": (*WORDS, "int32", "int64"),
    "SIGN": ("float32", "int32"),
}
FLOATS = ["SQUARE", "FLOOR", "CEIL", "ROUND", "SIN", "COS"]
POSITIVE = ("LOG", "SQRT", "RSQRT")
FIXED = {"int8": (1 / 256, -128), "uint8": (1 / 256, 0), "int16": (1 / 32768, 0)}


def unary(kind, random, dtype):
    """Return a model of one operator; all 256 values of an 8-bit input are likely."""
    shape = any_shape(random) if random.random() < 0.5 else (2, 7, 40)
    scale, zero = quantised(random, dtype, {"RSQRT": 1, "HARD_SWISH": 0.8}.get(kind, 1))
    if dtype == "int16" and kind in ("LOGISTIC", "TANH") and random.random() < 0.4:
        scale = 2.0 ** -int(random.integers(10, 14))
    if kind in POSITIVE and dtype == "int8":
        zero = int(random.integers(-128, -20))
    data, options = (dtype, shape, scale, zero), {}
    if kind == "LEAKY_RELU":
        options["alpha"] = float(np.float32(random.choice([0.0, 0.01, 0.3, 1.5, -0.5])))
    if kind == "GELU":
        options["approximate"] = bool(random.integers(0, 2))
    target, offset = quantised(random, dtype, random.choice([0.3, 1, 3]))
    if kind == "HARD_SWISH" and dtype != "float32":
        target = max(target, scale / 100)
    if kind == "LOGISTIC" or (kind == "TANH" and dtype == "int16"):
        target, offset = FIXED.get(dtype, (None, 0))
    if kind == "EXP" and dtype == "int16":
        target *= 100
    if kind in ("RELU", "ABS") and random.random() < 0.3:
        target, offset = scale, zero
    return of_one(kind, [data], (dtype, target, offset), **options)


def positive_cases(graph, random):
    """Return inputs whose real numbers are not below 0, where LiteRT would stop; above 0 for float32."""
    found = []
    for case in cases_of(graph, random):
        [tensor], [array] = graph.inputs, case
        if tensor.dtype == "float32":
            found.append([np.abs(array) + np.float32(1e-3)])
        else:
            found.append([np.maximum(array, tensor.quantization.zero)])
    return found


def whole_cases(graph, random):
    return [[np.rint(a / 2).astype(a.dtype) for a in case] for case in cases_of(graph, random)]


@pytest.mark.parametrize("kind", DTYPES)
def test_unary(kind, tmp_path):
    options = {"cases": positive_cases} if kind in POSITIVE else {"cases": whole_cases} if kind == "SIGN" else {}
    if kind == "ELU":
        options["resolver"] = OPTIMISED
    options["bound"] = bound_of(kind)
    check_dtypes(lambda random, dtype: unary(kind, random, dtype), DTYPES[kind], tmp_path, kind, **options)


@pytest.mark.parametrize("resolver", ["BUILTIN_REF", OPTIMISED])
def test_functions_of_float(resolver, tmp_path):
    kinds = [kind for kind in FLOATS if resolver == OPTIMISED or kind not in ("CEIL", "ROUND")]
    options = {"resolver": resolver, "bound": 1e-6}
    check_dtypes(lambda random, kind: unary(kind, random, "float32"), kinds, tmp_path, "float", **options)


def test_abs_of_int16_without_a_scale(tmp_path):
    check_dtypes(
        lambda random, dtype: of_one("ABS", [(dtype, any_shape(random))], (dtype,)), ["int16"], tmp_path, "ABS"
    )
