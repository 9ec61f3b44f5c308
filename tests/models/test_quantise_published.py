# SPDX-License-Identifier: Apache-2.0
"""Float models quantised here beside int8 files that others made from them, on the same inputs.

OPWEST_PUBLISHED=DIR: a directory for each model with float.tflite, int8.tflite (of the other tool), calibration.npz,
test.npz and, if there are classes, test_y.npy. The arrays have the name of the input; no case is in both files.
"""

import os
from pathlib import Path

import numpy as np
import pytest
from models.oracle import litert
from opwest import quantise
from opwest.frontends.tflite.read import read_tflite
from opwest.quantisation.constants import dequantised_array, quantised_array
from requirements_support import need, skip_here

need("ai_edge_litert", "tflite")
FOLDERS = sorted(Path(os.environ.get("OPWEST_PUBLISHED", os.devnull)).glob("*/float.tflite"))


def scores(content, cases):
    """Return the float32 outputs of LiteRT for float32 inputs, [cases, classes]."""
    [graph] = read_tflite(content)
    data, result = graph.inputs[0], graph.outputs[0]
    if data.quantization is not None:
        cases = quantised_array(cases, data.quantization, data.dtype)
    found = litert(content, [[case.reshape(data.shape)] for case in cases])
    return np.stack([dequantised_array(outputs[0], result.quantization).reshape(-1) for outputs in found])


@pytest.mark.parametrize("file", FOLDERS or [None], ids=lambda file: file.parent.name if file else "none")
def test_no_more_is_lost(file, tmp_path, record_property):
    """The accuracy is that of the other int8 file or better; without classes, the agreement with the float model is."""
    if file is None:
        skip_here("no published models: OPWEST_PUBLISHED=DIR")
    folder = file.parent
    done = quantise(file, output=tmp_path / "new.tflite", samples=folder / "calibration.npz")
    with np.load(folder / "test.npz") as arrays:
        [cases] = arrays.values()
    floats = scores(file.read_bytes(), cases)
    labels = np.load(folder / "test_y.npy") if (folder / "test_y.npy").exists() else floats.argmax(axis=1)
    rates = {}
    for name, path in (("opwest", tmp_path / "new.tflite"), ("published", folder / "int8.tflite")):
        found = scores(path.read_bytes(), cases)
        error = 100 * np.sqrt(np.square(found - floats).sum() / np.square(floats).sum())
        rates[name] = float((found.argmax(axis=1) == labels).mean())
        record_property(f"{folder.name} {name}", (rates[name], float(error)))
        print(f"{folder.name} {name}: {rates[name]:.2%}, error {error:.2f} %")
    assert done.cases >= 10
    assert rates["opwest"] >= rates["published"]
