# SPDX-License-Identifier: Apache-2.0
"""Trained models, compiled by Vela: the model of the NPU against the importer's interpreter and LiteRT.

The NPU rounds FULLY_CONNECTED of int8 twice, LiteRT once. With that rule the interpreter gives the NPU's results bit
for bit, softmax included; so all differences from LiteRT are those of FULLY_CONNECTED, and what follows from them.
"""

import numpy as np
import pytest
from campaign import sized
from requirements_support import need

need("ethosu", "tflite", "ai_edge_litert")

from models.campaigns import graph_of  # noqa: E402
from models.oracle import litert  # noqa: E402
from models.real import model_file, structured_and_random  # noqa: E402

from npu_model.vela_support import OPTIONS, compiled, interpreted  # noqa: E402

OPERATIONS = {
    "ad01_int8": {"CONV": 10},
    "kws_int8": {"DMA_START": 11, "CONV": 7, "DEPTHWISE": 4, "POOL": 3, "ELEMENTWISE": 26},
    "ic_int8": {"DMA_START": 10, "CONV": 11, "POOL": 3, "ELEMENTWISE": 29},
    "vww_int8": {"DMA_START": 26, "CONV": 17, "DEPTHWISE": 13, "POOL": 3, "ELEMENTWISE": 26},
}
CASES = {"ad01_int8": sized(30, 100), "kws_int8": sized(20, 100), "ic_int8": sized(6, 100), "vww_int8": sized(3, 40)}
FROM_LITERT = {"ad01_int8": 3, "kws_int8": 2, "ic_int8": 10, "vww_int8": 1}
"""The greatest difference from LiteRT that was measured, with 100 inputs each (vww: 30)."""


@pytest.mark.parametrize("name", OPERATIONS)
def test_trained_model(name):
    content = model_file(f"{name}.tflite").read_bytes()
    model, graph = compiled(content), graph_of(content)
    found = model.operations()
    assert {kind: found[f"NPU_OP_{kind}"] for kind in OPERATIONS[name]} == OPERATIONS[name]
    cases = structured_and_random(graph.inputs[0].shape, graph.inputs[0].dtype, max(CASES[name], 13))[-CASES[name] :]
    differing = 0
    for case, [reference] in zip(cases, litert(content, cases), strict=True):
        [result] = model.run(case)
        [wanted] = interpreted(graph, case)
        assert np.array_equal(result, wanted)
        distance = abs(result.astype(int) - reference)
        assert distance.max() <= FROM_LITERT[name]
        differing += int((distance > 0).sum())
    if name == "ad01_int8":  # nine of ten layers are FULLY_CONNECTED with differing rounding
        assert differing > 0


@pytest.mark.parametrize(
    "options", [value for value in OPTIONS.values() if value], ids=[name for name in OPTIONS if OPTIONS[name]]
)
def test_options_of_vela_change_no_result(options):
    """Other schedules, orders of weights and regions; the older core writes other command streams too."""
    content = model_file("kws_int8.tflite").read_bytes()
    usual, other = compiled(content), compiled(content, *options)
    assert other.payload != usual.payload
    for case in structured_and_random((1, 49, 10, 1), "int8", 16)[-3:]:
        assert np.array_equal(usual.run(case)[0], other.run(case)[0])
