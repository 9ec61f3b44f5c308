# SPDX-License-Identifier: Apache-2.0
"""Sums after convolutions: fused where the sum is the only reader of a plain convolution, and equal to LiteRT."""

import numpy as np
import pytest
from requirements_support import need

need("cc", "tflite", "ai_edge_litert")

from models.campaigns import check_configurations, graph_of  # noqa: E402
from models.made import Model  # noqa: E402
from opwest.diagnostics import Diagnostics  # noqa: E402
from opwest.importers.models.ir.operations import ConvolutionSum  # noqa: E402
from opwest.importers.models.lower.lower import lower_graph, with_passes  # noqa: E402


def summed(random, form):
    """Return a convolution of 4 channels, then a sum."""
    model, dtype = Model(), "int16" if form == "int16" else "int8"
    zero = 0 if dtype == "int16" else 3
    data = model.input(dtype, (1, 6, 5, 4), 0.05, zero)

    def convolution(groups=1):
        scales = random.uniform(0.005, 0.01, 4)
        weights = model.constant(random.integers(-127, 128, (4, 3, 3, 4 // groups)).astype(np.int8), scales, 0, 0)
        wide = np.int64 if dtype == "int16" else np.int32
        bias = model.constant(random.integers(-900, 900, 4).astype(wide), 0.05 * scales, 0)
        options = {"padding": "SAME", "stride_h": 1, "stride_w": 1, "fused_activation_function": "NONE"}
        return model.operator("CONV_2D", [data, weights, bias], (dtype, 0.3, -zero), **options)

    one = convolution(2 if form == "grouped" else 1)
    others = {
        "twice": one,
        "second": convolution() if form == "second" else None,
        "channels": model.constant(random.integers(-128, 128, 4).astype(dtype), 0.2, zero),
    }
    pair = [one, others.get(form, data)]
    options = {"fused_activation_function": "NONE"}
    model.output(
        model.operator("ADD", pair if random.random() < 0.5 else pair[::-1], (dtype, 0.4, zero), **options),
        *([one] if form == "read" else []),
    )
    return model


@pytest.mark.parametrize("form", ["plain", "second", "grouped", "twice", "read", "channels", "int16"])
def test_sums_after_convolutions(form, tmp_path):
    random = np.random.default_rng(9)
    models = [summed(random, form) for _ in range(2)]
    for model in models:
        program = with_passes(lower_graph(graph_of(model.build()), "made.tflite", Diagnostics()))
        assert any(isinstance(one, ConvolutionSum) for one in program.operations) == (form in ("plain", "second"))
    each = iter(models)
    check_configurations(lambda _: next(each), tmp_path, seed=5, count=len(models))
