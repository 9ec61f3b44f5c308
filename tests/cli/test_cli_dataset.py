# SPDX-License-Identifier: Apache-2.0
"""`opwest run --host --dataset FILE.npz --labels FILE.npy`."""

import json

import numpy as np
import pytest

pytestmark = pytest.mark.needs("cc")


@pytest.fixture
def dataset(digits, tmp_path):
    """Return a file of images, and their classes."""
    with np.load(digits / "vectors.npz") as vectors:
        np.savez(tmp_path / "images.npz", image=vectors["image"])
        return tmp_path / "images.npz", vectors["label"]


def test_accuracy(opwest, digits_of, dataset, tmp_path):
    images, labels = dataset
    wrong = labels.copy()
    wrong[:3] += 1
    np.save(tmp_path / "labels.npy", wrong)
    words = ("run", digits_of, "--host", "--dataset", images, "--labels", tmp_path / "labels.npy")
    done = opwest(*words)
    assert done.code == 0, done.err
    assert "accuracy of label: 85.00% (17 of 20)" in done.out
    done = opwest(*words, "--json")
    found = json.loads(done.out)["result"]["accuracy"]
    assert found == {"output": "label", "correct": 17, "cases": 20, "accuracy": 0.85}


def test_faults(opwest, digits_of, dataset, tmp_path):
    images, labels = dataset
    np.save(tmp_path / "few.npy", labels[:5])
    start = ("run", digits_of, "--host", "--dataset", images)
    done = opwest(*start, "--labels", tmp_path / "few.npy")
    assert done.code == 1
    assert "few.npy' is int32 [5]" in done.err and "expected: 20 integers, the class of each case" in done.err
    done = opwest(*start, "--labels", f"nothing={tmp_path}/few.npy")
    assert "unknown output 'nothing'" in done.err and "expected: one of: label" in done.err
    done = opwest(*start, "--labels", tmp_path / "absent.npy")
    assert f"cannot read '{tmp_path}/absent.npy': No such file or directory" in done.err
    done = opwest("run", digits_of, "--host", "--labels", tmp_path / "few.npy")
    assert "--labels requires --dataset" in done.err
    done = opwest(*start, "--repeat", "2")
    assert "--dataset excludes --repeat" in done.err
    done = opwest("run", digits_of, "--board", "native_sim/native/64", "--dataset", images)
    assert "--dataset requires --host" in done.err
