# SPDX-License-Identifier: Apache-2.0
"""examples/keyword_spotting and examples/anomaly_detection on this machine: one command from the model file."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from importers.importers_support import model_file, need_tvm
from opwest.zephyr.runtime import files_of
from requirements_support import need

need_tvm("tflite")

ROOT = Path(__file__).resolve().parents[2]
MODELS = [("keyword_spotting", "kws_int8"), ("anomaly_detection", "ad01_int8"), ("anomaly_detection", "ad01_fp32")]


@pytest.fixture
def copy(tmp_path):
    """Return a copy of the files that the examples need: they write to build/ at the top."""
    for name in ("examples", "scripts"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "objects"))
    return tmp_path


def run(folder, example, *words):
    """Run an example without Zephyr: tests/zephyr builds imported models for boards."""
    return subprocess.run(
        [sys.executable, folder / "examples" / example / "run.py", *words],
        env={**os.environ, "ZEPHYR_BASE": str(folder / "no-zephyr")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(("example", "model"), MODELS)
def test_one_command_imports_and_runs_a_model(copy, example, model):
    done = run(copy, example, model_file(f"{model}.tflite"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "skipped: " in done.stdout
    assert done.stdout.splitlines()[-1] == "cases: 8 of 8 agree with the reference"
    runtime = copy / "build" / example / "app" / "modules" / "opwest"
    copied = sorted(path.relative_to(runtime).as_posix() for path in runtime.rglob("*") if path.is_file())
    assert copied == files_of({"core", "vectors"})  # as in digits: see test_lean_applications.py


def test_imported_model_has_metadata_of_llvm(copy):
    """A model of C sources only: the target of the metadata is that of native_sim."""
    need("llvmlite")
    assert run(copy, "anomaly_detection", model_file("ad01_int8.tflite")).returncode == 0
    (manifest,) = (copy / "build" / "anomaly_detection").glob("*/manifest.yaml")
    opwest, app = [sys.executable, "-m", "opwest"], copy / "llvm"
    subprocess.run([*opwest, "generate", manifest, "-o", app, "--metadata=llvm"], check=True, capture_output=True)
    done = subprocess.run([*opwest, "run", app, "--host"], capture_output=True, text=True, check=False)
    assert "cases: 8 of 8" in done.stdout, done.stdout + done.stderr


def test_other_model_is_reported(copy):
    done = run(copy, "keyword_spotting", model_file("hello_world_int8.tflite"))
    assert done.returncode == 1
    assert "the model has 1 input and 1 output values, expected 490 and 12: this is another model" in done.stderr
    assert "Traceback" not in done.stderr


def test_missing_model_is_reported(copy):
    done = run(copy, "anomaly_detection", "none.tflite")
    assert done.returncode == 2
    assert "none.tflite' not found; see README.md for its origin" in done.stderr
