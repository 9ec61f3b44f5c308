# SPDX-License-Identifier: Apache-2.0
"""examples/keyword_spotting and examples/anomaly_detection on this machine: one command from the model file."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from in_process import succeed
from models.real import model_file
from opwest.zephyr.runtime import files_of
from requirements_support import need

need("cc", "tflite")

ROOT = Path(__file__).resolve().parents[2]
SPOTTING = ROOT / "examples" / "keyword_spotting"


def copied_to(folder):
    """Copy the files that the examples need: they write to build/ at the top."""
    for name in ("examples", "scripts"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "objects"))
    return folder


@pytest.fixture(scope="module")
def spotting(tmp_path_factory):
    """Return a copy where keyword spotting heard two words, and what its image printed on this machine."""
    need("espeak-ng", "ai_edge_litert")
    folder = copied_to(tmp_path_factory.mktemp("spotting"))
    command = [sys.executable, SPOTTING / "speech.py", "--say", "yes", "--say", "left"]
    subprocess.run([*command, "--wav", folder / "words.wav", "-o", folder / "audio.npy"], check=True)
    done = run(folder, "keyword_spotting", model_file("kws_int8.tflite"), "--wav", folder / "words.wav")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder, done.stdout


def run(folder, example, *words):
    """Run an example without Zephyr: tests/zephyr builds imported models for boards."""
    return subprocess.run(
        [sys.executable, folder / "examples" / example / "run.py", *map(str, words)],
        env={**os.environ, "ZEPHYR_BASE": str(folder / "no-zephyr")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def anomaly(tmp_path_factory):
    """Return a copy where a model for anomaly detection ran, and the output."""
    folder = copied_to(tmp_path_factory.mktemp("anomaly"))
    done = run(folder, "anomaly_detection", model_file("ad01_int8.tflite"))
    assert done.returncode == 0, done.stdout + done.stderr
    return folder, done.stdout


def runtime_of(folder, example):
    runtime = folder / "build" / example / "app" / "modules" / "opwest"
    return sorted(path.relative_to(runtime).as_posix() for path in runtime.rglob("*") if path.is_file())


def test_one_command_imports_and_runs_a_model(anomaly):
    """The import of float32 models is tested by tests/models/test_real_models.py."""
    folder, console = anomaly
    assert "skipped: " in console
    assert console.splitlines()[-1] == "cases: 8 of 8 agree with the reference"
    assert runtime_of(folder, "anomaly_detection") == files_of({"core", "sources", "vectors"})  # as in digits


def test_words_are_recognized(spotting):
    """Each score of each window is that of LiteRT for the features of numpy, within 1."""
    folder, console = spotting
    words = re.findall(r"^   \d+\.\d s: (\w+)$", console, re.MULTILINE)
    assert [word for word in words if word != "unknown"] == ["yes", "left"]
    assert console.splitlines()[-1] == "cases: 20 of 20 agree with the reference"
    assert runtime_of(folder, "keyword_spotting") == files_of({"core", "sources", "state", "vectors"})


def test_stream_ends_in_words(spotting):
    """The features, which are an output here, are those of numpy; `opwest run` prints words."""
    folder, _ = spotting
    model = folder / "build" / "keyword_spotting" / "model"
    text = (model / "manifest.yaml").read_text()
    shown = r"\n\1  outputs:\n\1    input_1: {dtype: int8, shape: [1, 49, 10, 1]}\n"
    text = re.sub(r"\n( *)  outputs:\n", shown, text)  # of the manifest and of each variant
    (model / "shown.yaml").write_text(text[: text.index("\ntests:\n")])
    succeed("generate", model / "shown.yaml", "-o", folder / "shown")
    stream = ["--stream", f"audio={folder}/audio.npy", "--output-dir", folder / "outputs"]
    done = succeed("run", folder / "shown", "--host", *stream)
    with np.load(model / "features_of_vectors.npz") as file:
        expected = file["features"]
    found = np.load(folder / "outputs" / "input_1.npy")
    np.testing.assert_array_equal(found.reshape(expected.shape), expected)
    words = re.findall(r"^  frames? [0-9 to]+: (\w+)$", done.stdout, re.MULTILINE)
    assert [word for word in words if word != "unknown"] == ["yes", "left"]


def test_imported_model_has_metadata_of_llvm(anomaly):
    """A model of C sources only: the target of the metadata is that of native_sim."""
    need("llvmlite")
    folder, _ = anomaly
    (manifest,) = (folder / "build" / "anomaly_detection").glob("*/manifest.yaml")
    succeed("generate", manifest, "-o", folder / "llvm", "--metadata=llvm")
    assert "cases: 8 of 8" in succeed("run", folder / "llvm", "--host").stdout


def test_other_and_missing_models_are_reported(tmp_path):
    copy = copied_to(tmp_path)
    done = run(copy, "keyword_spotting", model_file("hello_world_int8.tflite"))
    assert done.returncode == 1
    assert "the model has 1 input and 1 output values, expected 490 and 12: this is another model" in done.stderr
    assert "Traceback" not in done.stderr
    done = run(copy, "anomaly_detection", "none.tflite")
    assert done.returncode == 2
    assert "none.tflite' not found; see README.md for its origin" in done.stderr
