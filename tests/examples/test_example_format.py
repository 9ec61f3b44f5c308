# SPDX-License-Identifier: Apache-2.0
"""The C of all examples, and of their applications, stays as it is in clang-format with Zephyr's options."""

import importlib.util
import shutil
import sys

import opwest
import pytest
from c_layout import ROOT, differing
from models.real import model_file
from requirements_support import need

EXAMPLES = ROOT / "examples"


def module_of(path):
    """Return a script of an example as a module, which does not run."""
    name = f"formatted_{path.parent.name}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses search there
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(ROOT / "scripts"))
    return module


def sources_of(folder):
    """Return the C files below a directory, without copies of the runtime, which is compared elsewhere."""
    paths = [path for end in "ch" for path in folder.rglob(f"*.{end}") if "modules" not in path.parts]
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in paths}


def test_sources_of_examples(tmp_path):
    sources = sources_of(EXAMPLES)
    assert len(sources) > 30
    assert differing(sources, tmp_path) == []


def test_applications_of_examples(tmp_path):
    for name in ("two_npus", "vibration"):
        shutil.copytree(EXAMPLES / name, tmp_path / name)
    manifests = {
        "digits": [module_of(EXAMPLES / "two_models_ota" / "run.py").digits_in_c(tmp_path / "digits")],
        "npus": [tmp_path / "two_npus" / name for name in ("manifest.yaml", "manifest_serial.yaml")],
        "pipeline": [tmp_path / "two_npus" / "manifest_pipeline.yaml"],
        "vibration": [tmp_path / "vibration" / "manifest.yaml"],
    }
    for name, paths in manifests.items():
        opwest.generate(paths, output=tmp_path / "applications" / name)
    sources = sources_of(tmp_path / "applications")
    assert {name.rpartition("/")[2] for name in sources} > {
        "npu_pipeline_stream.c",
        "digits_suite.c",
        "vibration_run.c",
    }
    (tmp_path / "work").mkdir()
    assert differing(sources, tmp_path / "work") == []


@pytest.mark.parametrize(("example", "name"), [("anomaly_detection", "ad01_int8"), ("mlperf_tiny", "kws_int8")])
def test_applications_of_imported_models(example, name, tmp_path):
    need("tflite")
    model = tmp_path / "model"
    opwest.import_model(model_file(f"{name}.tflite"), output=model, model=example, vectors=2)
    if example == "mlperf_tiny":
        script = module_of(EXAMPLES / example / "run.py")
        script.add_application(model, script.TASKS["kws"])
    else:
        script = module_of(ROOT / "scripts" / "imported_demo.py")
        script.add_application(model, EXAMPLES / example / "application")
    opwest.generate([model / "manifest.yaml"], output=tmp_path / "app")
    sources = sources_of(model) | sources_of(tmp_path / "app")
    assert {"main.c", "src/main.c", f"models/{example}/src/{example}_run.c"} < sources.keys()
    (tmp_path / "work").mkdir()
    assert differing(sources, tmp_path / "work") == []
