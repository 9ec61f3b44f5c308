# SPDX-License-Identifier: Apache-2.0
"""Pools and normalisations in all dtypes, against LiteRT."""

import numpy as np
import pytest
from models.campaigns import check_configurations, check_family, families, refusal
from models.layers import ACTIVATIONS, quantised
from models.made import of_one


def pool(random, kind, dtype):
    height, width = int(random.integers(1, 12)), int(random.integers(1, 14))
    shape = (int(random.choice([1, 1, 2])), height, width, int(random.integers(1, 9)))
    numbers = quantised(random, dtype)
    padding = str(random.choice(["SAME", "VALID"]))
    # Windows that cover the image, or are larger than it, are usual at the end of a network.
    extra = 4 if padding == "SAME" else 0
    size = [int(random.choice([n, random.integers(1, n + extra + 1)])) for n in (height, width)]
    options = {"padding": padding, "filter_height": size[0], "filter_width": size[1]}
    options |= {"stride_h": int(random.integers(1, 4)), "stride_w": int(random.integers(1, 4))}
    options["fused_activation_function"] = str(random.choice(ACTIVATIONS))
    return of_one(kind, [(dtype, shape, *numbers)], (dtype, *numbers), **options)


NUMBERS = {
    "SOFTMAX": {"int8": (1 / 256, -128), "uint8": (1 / 256, 0), "int16": (1 / 32768, 0), "float32": (None, 0)},
    "LOG_SOFTMAX": {"int8": (1 / 16, 127), "uint8": (1 / 16, 255), "float32": (None, 0)},
    "L2_NORMALIZATION": {"int8": (1 / 128, 0), "uint8": (1 / 128, 128), "float32": (None, 0)},
}
"""The scale and the zero point of the results of normalisations."""


def normalisation(random, kind, dtype, result):
    scale = quantised(random, dtype)
    shape = random.integers(1, 5, int(random.integers(1, 5)) - 1).tolist()
    data = (dtype, (*shape, int(random.integers(2, 40))), *scale)
    options = {"beta": float(random.choice([1, 1, 0.3, 2.5]))} if kind == "SOFTMAX" else {}
    numbers = NUMBERS[kind][result] if result == dtype else (1 / 65536, -32768)
    return of_one(kind, [data], (result, *numbers), **options)


DTYPES = ("int8", "uint8", "int16", "float32")
POOLS = [
    *((pool, kind, dtype) for kind in ("AVERAGE_POOL_2D", "MAX_POOL_2D") for dtype in DTYPES),
    (pool, "L2_POOL_2D", "float32"),
    *((normalisation, kind, dtype, dtype) for kind, numbers in NUMBERS.items() for dtype in numbers),
    *((normalisation, "SOFTMAX", dtype, "int16") for dtype in ("int8", "uint8")),
]


@families(POOLS)
def test_pools(make, words, tmp_path):
    check_family(tmp_path, make, *words)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_softmax_rounds_halves(dtype, tmp_path):
    """Equal elements: 256 / n ends in exactly a half for several n."""

    def build(random):
        data = (dtype, (64, int(random.choice([3, 16, 256, 511, 6]))), 0.1, 0)
        return of_one("SOFTMAX", [data], (dtype, *NUMBERS["SOFTMAX"][dtype]), beta=1.0)

    def cases(graph, random):
        return [[(random.integers(0, 2, one.shape) * 100).astype(dtype) for one in graph.inputs] for _ in range(2)]

    check_configurations(build, tmp_path, seed=3, cases=cases)


@pytest.mark.parametrize("kind", ["SOFTMAX", "LOG_SOFTMAX"])
def test_long_rows(kind, tmp_path):
    """Sums that overflow in LiteRT: the limit of the real result."""

    def build(random):
        options = {"beta": 1.0} if kind == "SOFTMAX" else {}
        return of_one(kind, [("int8", (2, 5000), 0.05, 0)], ("int8", *NUMBERS[kind]["int8"]), **options)

    array = np.zeros((2, 5000), np.int8)
    array[1, :2] = 127, 125

    def oracle(content, given, resolver):
        """Equal elements: the logarithm of 4096. Others: the real results."""
        row = array[1] * 0.05
        real = row - np.log(np.exp(row).sum())
        rows = [[-np.log(4096)] * 5000, real]
        if kind == "SOFTMAX":
            return [[(np.round(256 * np.exp(rows)) - 128).astype(np.int8)]]
        return [[(127 + np.round(16 * np.array(rows))).astype(np.int8)]]

    check_configurations(build, tmp_path, seed=4, count=1, cases=lambda graph, random: [[array]], oracle=oracle)


@pytest.mark.parametrize(
    ("kind", "scale", "text"),
    [("SOFTMAX", 1 / 128, "0.0078125"), ("LOG_SOFTMAX", 1 / 16, "0.0625"), ("L2_NORMALIZATION", 1 / 100, "0.01")],
)
def test_refused_normalisations(kind, scale, text):
    model = of_one(kind, [("int8", (1, 8), 0.1, 0)], ("int8", scale, 0))
    assert f"the scale {text} and the zero point 0" in refusal(model)
