# SPDX-License-Identifier: Apache-2.0
"""`opwest run --host --dataset FILE.npz --labels FILE.npy`."""

import json

import numpy as np
import pytest

pytestmark = pytest.mark.needs("cc")


@pytest.fixture
def dataset(digits, tmp_path):
    with np.load(digits / "vectors.npz") as vectors:
        np.savez(tmp_path / "images.npz", image=vectors["image"])
        return tmp_path / "images.npz", vectors["label"]


def test_accuracy(opwest, succeed, digits_of, dataset, tmp_path):
    images, labels = dataset
    wrong = labels.copy()
    wrong[:3] += 1
    np.save(tmp_path / "labels.npy", wrong)
    words = ("run", digits_of, "--host", "--dataset", images, "--labels", tmp_path / "labels.npy")
    done = succeed(*words)
    assert "accuracy of label: 85.00% (17 of 20)" in done.out
    done = opwest(*words, "--json")
    found = json.loads(done.out)["result"]["accuracy"]
    assert found == {"output": "label", "correct": 17, "cases": 20, "accuracy": 0.85}


def test_faults(fail, digits_of, dataset, tmp_path):
    images, labels = dataset
    np.save(tmp_path / "few.npy", labels[:5])
    start = ("run", digits_of, "--host", "--dataset", images)
    few = tmp_path / "few.npy"
    for words, message in (
        ([*start, "--labels", few], f"{few}' is int32 [5]"),
        ([*start, "--labels", few], "expected: 20 integers, the class of each case"),
        ([*start, "--labels", f"nothing={few}"], "unknown output 'nothing'\n  expected: one of: label"),
        ([*start, "--labels", "absent.npy"], "cannot read 'absent.npy': No such file or directory"),
        (["run", digits_of, "--host", "--labels", few], "--labels requires --dataset"),
        ([*start, "--repeat", "2"], "--dataset excludes --repeat"),
        (["run", digits_of, "--board", "native_sim", "--dataset", images], "--dataset cannot be used with --board"),
    ):
        assert message in fail(*words).err
