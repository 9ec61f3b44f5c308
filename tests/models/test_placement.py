# SPDX-License-Identifier: Apache-2.0
"""`--place` and `--pool`: constants of layers that are copied to a pool when the model is opened."""

import json

import yaml
from in_process import fail, succeed
from models.commands import check_vectors, dense, pool_bytes

REGION = "dtcm=nucleo_h743zi/stm32h743xx:dtcm"
MODEL = dense("int8", results=40, layers=3).build


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
    check_vectors(tmp_path / "model")


def test_the_plan_contains_the_constants(file, tmp_path):
    def size(name, *words):
        succeed("import", file, "-o", tmp_path / name, "--kernels", "portable", *words)
        [model] = json.loads(succeed("check", "--json", tmp_path / name / "manifest.yaml").stdout)["result"]
        return pool_bytes(model)["sram"]

    weights = 3 * 40 * 40
    assert weights <= size("placed", "--place", "0,1,2=sram") - size("plain") <= weights * 1.5


def reasons(folder, variant):
    """Return the kernels of an implementation, and the reasons on its first core and on the others."""
    [model] = json.loads((folder / "import.json").read_text())["models"]
    [found] = [one for one in model["implementations"] if one["variant"] == variant]
    return [step["kernel"] for step in found["steps"]], [
        [step["reason"] for step in c["steps"]] for c in found["costs"]
    ]


def test_variants_with_larger_constants_are_chosen_only_by_prefer(file, tmp_path):
    """The reason is --place; a preferred variant is chosen all the same."""
    words = ("import", file, "--place", "0,1,2=sram", "--vectors", "0")
    succeed(*words, "-o", tmp_path / "default")
    kernels, (first, *others) = reasons(tmp_path / "default", None)
    assert set(kernels) == {"portable"}
    assert set(first) == {"6,240 B less RAM than portable-words in 3 equal layers, for --place"}
    assert others == [["by the costs of rv32"] * 3]
    kernels, [first] = reasons(tmp_path / "default", "mla")
    assert set(kernels) == {"mla-bytes"}
    assert set(first) == {"6,252 B less RAM than mla-pairs in 3 equal layers, for --place"}
    succeed(*words, "-o", tmp_path / "preferred", "--prefer", "portable-words", "--prefer", "mla-pairs")
    for variant, kernel in ((None, "portable-words"), ("mla", "mla-pairs")):
        kernels, (first, *_) = reasons(tmp_path / "preferred", variant)
        assert (set(kernels), set(first)) == ({kernel}, {"--prefer"})


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


def test_layers_that_cannot_be_placed(tmp_path):
    model = dense("float32", layers=1)
    [scores] = model.graph.outputs
    model.graph.outputs.clear()
    file = model.ending_with("ABS", [scores], ("float32",)).save(tmp_path / "m.tflite")
    for place, fault in (("0,1", "layer 1 has no constants"), ("0,7", "the model has no layer '7'")):
        err = fail("import", file, "-o", tmp_path / "model", "--place", f"{place}=sram").stderr
        assert f"error: --place: {fault}\n  expected: one of: 0\n" in f"{err}\n"
    assert not (tmp_path / "model").exists()
