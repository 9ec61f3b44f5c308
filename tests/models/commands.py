# SPDX-License-Identifier: Apache-2.0
"""Commands on models: what an import prints and writes, and applications on this machine."""

import re

import numpy as np
import yaml
from importers.importers_support import Built
from in_process import succeed
from models.made import Model

CLASSES = {"cortex-m3": "mla", "cortex-m4": "dsp", "cortex-m55": "mve"}
"""The class of processors whose variants a core has."""


def dense(dtype="float32", results=4, layers=2):
    random = np.random.default_rng(3)
    model = Model()
    is_float = dtype == "float32"
    data = model.input(dtype, (1, 40), *(() if is_float else (0.05, 3)), name="image")
    for length in (40, *[results] * (layers - 1)):
        if is_float:
            weights = model.constant(random.standard_normal((results, length)).astype(np.float32))
        else:
            weights = model.constant(random.integers(-127, 128, (results, length)).astype(np.int8), 0.01)
        data = model.operator("FULLY_CONNECTED", [data, weights, None], (dtype, *(() if is_float else (0.1, -7))))
    data.name = "scores"
    return model.output(data)


def chosen(file, folder, *words):
    """Import a model; return the variants of its layers by class, and the manifest."""
    out = succeed("import", file, "-o", folder, "--vectors", "0", *words).stdout
    parts = re.split(r"^(?=\w+ \(cycles of)", out, flags=re.MULTILINE)[1:]
    found = {part.split()[0]: re.findall(r"^  \d+ \(.*?  +(\S+)", part, re.MULTILINE) for part in parts}
    return found, yaml.safe_load((folder / "manifest.yaml").read_text())


def pool_bytes(model):
    """Return the planned bytes of each pool in a row of `check --json`."""
    return {pool["name"]: pool["bytes"] for pool in model["pools"]}


def arrays_of(path):
    with np.load(path) as found:
        return dict(found)


def check_vectors(folder, bound=0.0):
    """Compare the emitted C with the golden vectors of a model of one input and one output."""
    cases, expected = arrays_of(folder / "vectors.npz").values()
    for one, wanted in zip(Built(folder, folder.parent).run([[one] for one in cases]), expected, strict=True):
        assert np.abs(one[0] - wanted).max() <= bound * max(1, np.abs(wanted).max())


def run_on_host(app, inputs, *words, references=None):
    for option, arrays in (("--input", inputs), ("--reference", references or {})):
        for name, array in arrays.items():
            np.save(app.parent / f"{name}.npy", array)
            words = (*words, option, f"{name}={app.parent / name}.npy")
    return succeed("run", app, "--host", *words)
