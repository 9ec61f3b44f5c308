# SPDX-License-Identifier: Apache-2.0
"""Unsupported Relax modules: errors with the operator's name, no output, no traceback."""

import pytest
from importers.importers_support import need_tvm

need_tvm("onnx")

import numpy as np  # noqa: E402
from importers.onnx_made import from_onnx, model_of, node, two_by_two  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402
from opwest.base.diagnostics import OpwestError  # noqa: E402
from opwest.frontends.tvm import import_module  # noqa: E402


def refused(module, folder):
    """Return the message for an unsupported module."""
    with pytest.raises(OpwestError) as caught:
        import_module(module, folder)
    assert not folder.exists()
    assert not list(folder.parent.glob(".*"))
    text = str(caught.value)
    assert "Traceback" not in text
    return text


def branch(kind):
    result = helper.make_tensor_value_info(kind, TensorProto.FLOAT, [1, 4])
    return helper.make_graph([node(kind, "x", kind)], kind, [], [result])


ROW = {"x": [1, 4]}, {"y": [1, 4]}
ONNX = {
    "an operator without lowering": (
        model_of([node("CumSum", "x axis", "y", "totals")], {"x": [2, 4]}, {"y": [2, 4]}, {"axis": np.int64(1)}),
        ["operator cumsum", "has no lowering in TVM"],
    ),
    "a branch that depends on data": (
        model_of(
            [
                node("ReduceSum", "x", "sum", keepdims=0),
                node("Greater", "sum limit", "more"),
                node("If", "more", "y", "gate", then_branch=branch("Relu"), else_branch=branch("Neg")),
            ],
            *ROW,
            {"limit": np.float32(0)},
        ),
        ["unsupported control flow at run time: a branch"],
    ),
    "a result of unknown size": (
        model_of([node("NonZero", "x", "y", "where")], {"x": [1, 4]}, {"y": [1, "n"]}, {}, TensorProto.INT64),
        ["operator nonzero, which writes", "it has a dynamic shape"],
    ),
    "a dynamic shape": (
        model_of([node("Relu", "x", "y")], {"x": ["batch", 4]}, {"y": ["batch", 4]}, {}),
        ["input 'x': it has a dynamic shape, [batch"],
    ),
}


@pytest.mark.parametrize("case", ONNX)
def test_unsupported_modules(case, tmp_path):
    model, words = ONNX[case]
    text = refused(from_onnx(model), tmp_path / "out")
    for one in words:
        assert one in text


def test_occupied_directory(tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    with pytest.raises(OpwestError, match="the directory is not empty"):
        import_module(from_onnx(two_by_two()), tmp_path / "full")
    assert [p.name for p in (tmp_path / "full").iterdir()] == ["mine"]
