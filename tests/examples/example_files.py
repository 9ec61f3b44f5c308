# SPDX-License-Identifier: Apache-2.0
"""The references of examples, and the images that their applications contain."""

import importlib.util
import re
import sys
from pathlib import Path

import numpy as np

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def reference_of(example):
    name = f"{example}_reference"
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / example / "reference.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses search there
    spec.loader.exec_module(module)
    return module


def held_out_of(example):
    """Return the images of an application, int8 [n, 8, 8, 1], their labels and the predictions."""
    text = (EXAMPLES / example / "application" / "held_out.h").read_text(encoding="ascii")
    rows = re.findall(r'^\t\{"([a-q]{64})", ([0-9]), ([0-9])\},$', text, flags=re.MULTILINE)
    declared = re.search(r"HELD_OUT_IMAGES = ([0-9]+),", text)
    assert declared and len(rows) == int(declared[1]) == text.count('"') // 2
    pixels = np.array([list(row[0].encode()) for row in rows]) - ord("a")
    labels, predictions = (np.array([int(row[i]) for row in rows], np.int32) for i in (1, 2))
    images = pixels.astype(np.int8).reshape(-1, 8, 8, 1)
    assert images.min() == 0 and images.max() == 16
    assert set(labels) == set(range(10))
    np.testing.assert_array_equal(reference_of(example).predict(images), predictions)
    return images, labels, predictions
