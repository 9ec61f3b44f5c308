# SPDX-License-Identifier: Apache-2.0
"""Small networks of PyTorch, exported by both exporters in several opsets, float and quantised, against onnxruntime.

Graphs of the same patterns without PyTorch: test_onnx_float.py, test_onnx_movement.py, test_onnx_volumes.py,
test_onnx_indexed.py, test_onnx_control.py.
"""

import importlib.util

import numpy as np
import onnx
import pytest
from campaign import sized
from requirements_support import need, skip_here

need("cc", "onnx", "onnxruntime")
if any(importlib.util.find_spec(name) is None for name in ("torch", "onnxscript")):
    skip_here("PyTorch or onnxscript is not installed; CI does without such large packages")

from models.bounds import onnx_bound  # noqa: E402
from models.onnx_quantised import dynamic, quantised  # noqa: E402
from models.onnx_support import check  # noqa: E402
from models.torch_models import MODELS, exported  # noqa: E402

EXPORTS = [(False, 17, False), (True, 18, True)]
EXPORTS += sized([], [(False, 14, True), (False, 20, False), (True, 20, False), (True, 21, True)])
"""With torch.export or by tracing, the opset, and whether the batch has a symbolic size."""
LIMITS = (0, 20)
"""Of integer inputs: indices of words."""


@pytest.mark.parametrize("name", MODELS)
def test_float(name, tmp_path):
    random = np.random.default_rng(90)
    contents = [exported(name, *options) for options in EXPORTS]
    graphs = check(contents, tmp_path, random, onnx_bound("network"), limits=LIMITS)
    for graph, (_, _, batch) in zip(graphs, EXPORTS, strict=True):
        assert not batch or (all(one.shape[0] == 1 for one in graph.inputs) and graph.remarks)


FORMS = [("QDQ", "int8", True), ("QDQ", "uint8", False), ("QOperator", "uint8", True)]
WITHOUT = {
    "attention": "the tool gives the infinite mask the scale inf",
    "autoencoder": "the tool fails: it takes the scales of grouped ConvTranspose for those of its inputs",
    "products": "the tool writes vectors with several scales, which onnxruntime refuses",
}


FLOAT_RESIZE = ("sharper",)
"""In the form QOperator the tool writes a cubic Resize of uint8, which onnxruntime cannot run."""


@pytest.mark.parametrize("name", [name for name in MODELS if name not in WITHOUT])
def test_quantised(name, tmp_path):
    """With --exact the same bits, apart from float operators between the quantised ones."""
    random = np.random.default_rng(91)
    model = onnx.load_from_string(exported(name, False, 17))
    forms = [one for one in FORMS if one[0] == "QDQ" or name not in FLOAT_RESIZE]
    contents = [quantised(model, tmp_path, random, form, data, "int8", per) for form, data, per in forms]
    check(contents, tmp_path / "static", random, onnx_bound("network"), exact=True, limits=LIMITS)
    content = dynamic(model, tmp_path, "int8", True)
    check([content], tmp_path / "dynamic", random, onnx_bound("network"), limits=LIMITS)
