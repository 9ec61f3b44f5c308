# SPDX-License-Identifier: Apache-2.0
"""examples/vibration on this machine: features and conditions of every frame against numpy and scikit-learn."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from examples.example_files import reference_of
from in_process import succeed
from requirements_support import need

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "vibration"
reference = reference_of("vibration")


@pytest.fixture(scope="module")
def vectors():
    with np.load(EXAMPLE / "vectors.npz") as file:
        return dict(file)


@pytest.fixture(scope="module")
def application(tmp_path_factory):
    need("cc")
    app = tmp_path_factory.mktemp("vibration") / "app"
    succeed("generate", EXAMPLE / "manifest.yaml", "-o", app)
    return app


def test_files_of_the_example_agree(vectors):
    """The parameters, the vectors and the recording are those of reference.py."""
    with np.load(EXAMPLE / "parameters.npz") as file:
        np.testing.assert_array_equal(file["coeffs"], reference.coefficients())
        np.testing.assert_array_equal(file["z"], reference.at_rest()[:, :, 0])
    np.testing.assert_array_equal(vectors["features"], reference.features(vectors["frame"][None])[0])
    text = (EXAMPLE / "application" / "recording.h").read_text(encoding="ascii")
    frames, labels = re.findall(r"= \{\n([^;]*)\};", text)
    found = np.array(re.findall(r"-?\d+", frames), np.int16).reshape(-1, 64)
    np.testing.assert_array_equal(found, vectors["frame"])
    np.testing.assert_array_equal(np.array(re.findall(r"\d+", labels), np.int32), vectors["label"].ravel())
    assert set(vectors["label"].ravel()) == set(range(4))


def test_application_prints_conditions(application, vectors):
    lines = succeed("run", application, "--host").stdout.splitlines()
    labels = vectors["label"].ravel()
    changes = [i for i in range(7, 64) if i == 7 or labels[i] != labels[i - 1]]
    assert lines[:-1] == [f"{20 * (i + 1):4} ms: {reference.CLASSES[labels[i]]}" for i in changes]
    assert lines[-1] == "frames: 64 of 64 equal the reference"


def test_stream_equals_reference_bit_for_bit(application, vectors, tmp_path):
    """The recording, then extremes: the features against numpy, the classes against scikit-learn."""
    random = np.random.default_rng(4)
    extremes = random.choice(np.array([-32768, 32767], np.int16), (20, 64))
    frames = np.concatenate([vectors["frame"], extremes, np.zeros((10, 64), np.int16)])
    np.save(tmp_path / "frames.npy", frames)
    succeed("run", application, "--host", "--stream", f"frame={tmp_path}/frames.npy", "--output-dir", tmp_path)
    features, label = (np.load(tmp_path / f"{name}.npy") for name in ("features", "label"))
    np.testing.assert_array_equal(features, reference.features(frames[None])[0])
    np.testing.assert_array_equal(label[:64], vectors["label"])


def test_training_writes_the_same_files(tmp_path):
    """With the versions of the packages that wrote them."""
    need("sklearn", "emlearn")
    copy = Path(shutil.copytree(EXAMPLE, tmp_path / "copy", ignore=shutil.ignore_patterns("__pycache__")))
    written = (copy / "operators" / "classifier.h").read_text().splitlines()[1]
    done = subprocess.run([sys.executable, copy / "train.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert float(re.search(r"held-out windows: ([0-9.]+)% correct", done.stdout)[1]) > 95
    if (copy / "operators" / "classifier.h").read_text().splitlines()[1] == written:
        for path in EXAMPLE.rglob("*.[ch]"):
            assert (copy / path.relative_to(EXAMPLE)).read_text() == path.read_text(), path.name
