# SPDX-License-Identifier: Apache-2.0
"""Small models: the manifest of one operator from x to y, generated applications, and files of inputs."""

import numpy as np


def one_operator(name, objects, *, model="tiny", dtype="int8", shape="[4]", keys=""):
    """Return a manifest; `objects` is the value of its key, `keys` are further keys of the operator."""
    tensor = f"dtype: {dtype}, shape: {shape}"
    return f"""\
version: 1
model: {model}
objects: {objects}
operators:
  {name}: {{{keys}args: [{{name: x, {tensor}}}, {{name: y, {tensor}, direction: out}}]}}
run:
  inputs: {{x: {{{tensor}}}}}
  outputs: {{y: {{{tensor}}}}}
  steps: [{{call: {name}, args: [x, y]}}]
"""


def generated(succeed, folder, manifest, sources, *options):
    """Write a manifest and its sources, generate the application, and return its directory."""
    for name, text in {**sources, "manifest.yaml": manifest}.items():
        (folder / name).write_text(text)
    succeed("generate", folder / "manifest.yaml", "-o", folder / "app", *options)
    return folder / "app"


def given(folder, **arrays):
    """Write arrays, and return their options --input."""
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    return [word for name in arrays for word in ("--input", f"{name}={folder / name}.npy")]
