# SPDX-License-Identifier: Apache-2.0
"""`--place` and `--pool`: constants of layers that are copied to a pool when the model is opened."""

import json

import numpy as np
import pytest
import yaml
from in_process import fail, succeed
from requirements_support import need

need("cc", "tflite", "ai_edge_litert")

from importers.importers_support import Built  # noqa: E402
from models.test_commands import dense  # noqa: E402

REGION = "dtcm=nucleo_h743zi/stm32h743xx:dtcm"


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return dense("int8", results=40, layers=3).save(tmp_path_factory.mktemp("placement") / "m.tflite")


def test_constants_of_layers_are_in_pools(file, tmp_path):
    words = ["--place", "0,2=sram", "--place", "1=dtcm", "--pool", REGION]
    succeed("import", file, "-o", tmp_path / "model", *words)
    manifest = yaml.safe_load((tmp_path / "model/manifest.yaml").read_text())
    assert manifest["memory"] == {"sram": {}, "dtcm": {"boards": {"nucleo_h743zi/stm32h743xx": {"nodelabel": "dtcm"}}}}
    for section in (manifest, *manifest["variants"].values()):
        steps = section["run"]["steps"]
        for step, pool in zip(steps, ("sram", "dtcm", "sram"), strict=True):
            # The first constant of each layer has its weights. Layers share some of the other constants.
            weights = next(name for name in step["args"] if name in section["constants"])
            assert section["constants"][weights]["pool"] == pool
    with np.load(tmp_path / "model/vectors.npz") as vectors:
        cases, expected = (vectors[name] for name in vectors.files)
    found = Built(tmp_path / "model", tmp_path).run([[one] for one in cases])
    assert all(np.array_equal(one[0], wanted) for one, wanted in zip(found, expected, strict=True))


def test_the_plan_contains_the_constants(file, tmp_path):
    sizes = []
    for number, words in enumerate(((), ("--place", "0,1,2=sram"))):
        folder = tmp_path / str(number)
        succeed("import", file, "-o", folder, "--kernels", "portable", *words)
        out = succeed("check", "--json", folder / "manifest.yaml").stdout
        [model] = json.loads(out)["result"]
        sizes.append(model["pools"]["sram"]["size"])
    weights = 3 * 40 * 40
    assert weights <= sizes[1] - sizes[0] <= weights * 1.5


def test_faults_are_reported_together(file, tmp_path):
    words = ["--place", "0=fast", "--place", "1", "--pool", "fast", "--pool", "sram=a:b", "--pool", "ram2=a:b"]
    err = fail("import", file, "-o", tmp_path / "model", *words).stderr
    assert "error: --place 0=fast: no pool 'fast'\n  expected: 'sram' or 'ram2'\n" in err
    assert "  hint: --pool fast=BOARD:NODELABEL declares it" in err
    assert "error: invalid --place '1'\n  expected: LAYERS=POOL, such as 2,4=sram" in err
    assert "error: invalid --pool 'fast'\n  expected: NAME=BOARD:NODELABEL, such as dtcm=nucleo_h743zi:dtcm" in err
    assert "error: --pool sram=a:b: 'sram' is ordinary memory\n  expected: another name" in err
    assert "error: --pool ram2: no layer is in it\n  expected: --place LAYERS=ram2, or no --pool" in err
    assert not (tmp_path / "model").exists()


def test_a_layer_without_constants(tmp_path):
    model = dense("float32", layers=1)
    [scores] = model.graph.outputs
    model.graph.outputs.clear()
    model.output(model.operator("ABS", [scores], ("float32",)))
    model.save(tmp_path / "m.tflite")
    err = fail("import", tmp_path / "m.tflite", "-o", tmp_path / "model", "--place", "0,1=sram").stderr
    assert "error: --place: layer 1 has no constants\n  expected: one of: 0" in err


def test_a_layer_that_does_not_exist(file, tmp_path):
    err = fail("import", file, "-o", tmp_path / "model", "--place", "1,7=sram").stderr
    assert "error: --place: the model has no layer '7'\n  expected: one of: 0, 1, 2" in err
    assert not (tmp_path / "model").exists()
