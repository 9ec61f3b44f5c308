# SPDX-License-Identifier: Apache-2.0
"""Comparisons, logic and selections in all dtypes, with broadcasting, against LiteRT."""

import numpy as np
import pytest
from requirements_support import need

need("cc", "tflite", "ai_edge_litert")

from models.campaigns import cases_of  # noqa: E402
from models.elements import any_shape, broadcast_shapes, check_dtypes, quantised  # noqa: E402
from models.made import Model  # noqa: E402

NUMBERS = ["float32", "int8", "uint8", "int16", "int32", "int64"]


def close_cases(graph, random):
    """Return random inputs of which many are equal."""
    found = []
    for one, other in cases_of(graph, random):
        if one.dtype != bool:
            one, other = (
                np.rint(a / 40).astype(a.dtype) if a.dtype != np.float32 else np.rint(a) for a in (one, other)
            )
        found.append([one, other])
    return found


@pytest.mark.parametrize("kind", ["EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"])
def test_comparisons(kind, tmp_path):
    def build(random, dtype):
        model = Model()
        scale = quantised(random, dtype)
        inputs = []
        for shape in broadcast_shapes(random, greatest=4):
            inputs.append(model.input(dtype, shape, *scale))
            if random.random() < 0.7:
                scale = quantised(random, dtype)
        model.output(model.operator(kind, inputs, ("bool",)))
        return model

    dtypes = [*NUMBERS, *(["bool"] if kind in ("EQUAL", "NOT_EQUAL") else [])]
    check_dtypes(build, dtypes, tmp_path, kind, cases=close_cases)


def test_logic(tmp_path):
    def build(random, kind):
        model = Model()
        shapes = broadcast_shapes(random, 1 if kind == "LOGICAL_NOT" else 2, greatest=4)
        model.output(model.operator(kind, [model.input("bool", shape) for shape in shapes], ("bool",)))
        return model

    check_dtypes(build, ["LOGICAL_AND", "LOGICAL_OR", "LOGICAL_NOT"], tmp_path, "logic")


VALUES = [*NUMBERS, "uint32", "bool"]


def test_select(tmp_path):
    def build(random, dtype):
        model = Model()
        shape = (2, *any_shape(random, 1, 4))  # of one element, LiteRT takes the result's shape from the file
        condition = [shape, shape[:1], ()][int(random.integers(0, 3))]
        scale = quantised(random, dtype)
        inputs = [model.input("bool", condition), model.input(dtype, shape, *scale), model.input(dtype, shape, *scale)]
        model.output(model.operator("SELECT", inputs, (dtype, *scale)))
        return model

    check_dtypes(build, VALUES, tmp_path, "SELECT")


def test_select_with_broadcasting(tmp_path):
    def build(random, dtype):
        model = Model()
        shapes = broadcast_shapes(random, 3, 4)
        shapes[0] = (2, *(1,) * (4 - len(shapes[0])), *shapes[0])  # more than one element, as for SELECT
        scale = quantised(random, dtype)
        inputs = [
            model.input("bool", shapes[0]),
            model.input(dtype, shapes[1], *scale),
            model.input(dtype, shapes[2], *scale),
        ]
        model.output(model.operator("SELECT_V2", inputs, (dtype, *scale)))
        return model

    check_dtypes(build, VALUES, tmp_path, "SELECT_V2")
