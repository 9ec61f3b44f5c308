# SPDX-License-Identifier: Apache-2.0
"""Real models through TVM: the emitted C on this machine against LiteRT's reference kernels, 100 inputs each."""

import platform

import numpy as np
import pytest
from importers.importers_support import Built, model_file, need_tvm, planned, structured_and_random
from requirements_support import skip_here

need_tvm("tflite", "ai_edge_litert")

from opwest.importers.tvm import Options, import_model  # noqa: E402
from opwest.importers.tvm.read import read_model  # noqa: E402
from opwest.importers.tvm.vectors import run_litert  # noqa: E402

# The most live bytes between steps; inputs and outputs of the model belong to the caller.
ARENA = {"hello_world_float": 128, "hello_world_int8": 32, "ad01_fp32": 1024, "ad01_int8": 256, "kws_int8": 16000}


@pytest.mark.parametrize("name", ARENA)
def test_model_equals_litert(name, tmp_path):
    file = model_file(f"{name}.tflite")
    done = import_model(file, tmp_path / "model")
    assert not done.warnings
    model, plan = planned(tmp_path / "model")
    pool = plan.pools["sram"]
    assert pool.size == pool.lower_bound == ARENA[name]
    assert pool.size <= done.tvm_bytes
    [tensor] = model.inputs
    cases = structured_and_random(tensor.type.shape, tensor.type.dtype.name)
    assert len(cases) == 100
    found = Built(tmp_path / "model", tmp_path).run(cases)
    _, expected = run_litert(read_model(file), cases)
    for number, (one, other) in enumerate(zip(found, expected, strict=True)):
        assert np.array_equal(one[0], other[0]), f"case {number}"


def test_import_is_reproducible(tmp_path):
    file = model_file("hello_world_int8.tflite")
    for name in ("one", "two"):
        import_model(file, tmp_path / name)
    for path in sorted((tmp_path / "one").iterdir()):
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes(), path.name


def test_objects_for_this_machine(tmp_path):
    if platform.machine() not in ("x86_64", "aarch64"):
        skip_here(f"no named target is this machine, {platform.machine()}")
    host = {"x86_64": "x86-64", "aarch64": "aarch64-host"}[platform.machine()]
    file = model_file("kws_int8.tflite")
    targets = list(dict.fromkeys([host, "x86-64", "i386", "cortex-m3", "cortex-m4", "cortex-m4f", "rv32imac"]))
    import_model(file, tmp_path / "model", Options(targets=targets))
    model, _ = planned(tmp_path / "model")
    assert [build.target.name for build in model.builds] == targets
    cases = structured_and_random((1, 49, 10, 1), "int8")
    found = Built(tmp_path / "model", tmp_path).run(cases)
    _, expected = run_litert(read_model(file), cases)
    assert all(np.array_equal(a[0], b[0]) for a, b in zip(found, expected, strict=True))
