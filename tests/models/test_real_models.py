# SPDX-License-Identifier: Apache-2.0
"""Trained models: the emitted C on this machine against LiteRT's reference kernels, 14 to 100 inputs each."""

import numpy as np
import pytest
from campaign import sized
from importers.importers_support import Built, planned
from requirements_support import need

need("cc", "tflite", "ai_edge_litert")

from models.oracle import litert  # noqa: E402
from models.real import model_file, structured_and_random  # noqa: E402
from opwest.compiler.request import Options  # noqa: E402
from opwest.imports.convert import import_model  # noqa: E402

# The most live bytes between steps, with scratch memory; inputs and outputs of the model belong to the caller.
ARENA = {
    "hello_world_float": 128,
    "hello_world_int8": 32,
    "ad01_fp32": 1024,
    "ad01_int8": 256,
    "kws_int8": 9344,
    "ic_int8": 33_920,
    "vww_int8": 55_296,
}


@pytest.mark.parametrize("name", ARENA)
def test_model_equals_litert(name, tmp_path):
    file = model_file(f"{name}.tflite")
    import_model(file, tmp_path / "model", Options(vectors=2))
    model, plan = planned(tmp_path / "model")
    pool = plan.pools["sram"]
    assert pool.size == pool.lower_bound == ARENA[name]
    [tensor] = model.inputs
    count = sized(14, 20) if name in ("ic_int8", "vww_int8") else sized(25, 100)
    cases = structured_and_random(tensor.type.shape, tensor.type.dtype.name, count)
    found = Built(tmp_path / "model", tmp_path).run(cases)
    expected = litert(file.read_bytes(), cases)
    for number, (one, other) in enumerate(zip(found, expected, strict=True)):
        if other[0].dtype == np.float32:
            np.testing.assert_allclose(one[0], other[0], rtol=1e-5, atol=1e-5, err_msg=f"case {number}")
        else:
            assert np.array_equal(one[0], other[0]), f"case {number}"


def test_import_is_reproducible(tmp_path):
    file = model_file("hello_world_int8.tflite")
    for name in ("one", "two"):
        import_model(file, tmp_path / name)
    one, other = (
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in (tmp_path / "one", tmp_path / "two")
    )
    assert sorted(one) == sorted(other)
    assert [path for path in one if one[path] != other[path]] == []
