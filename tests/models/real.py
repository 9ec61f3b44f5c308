# SPDX-License-Identifier: Apache-2.0
"""Trained models that are not part of this repository, and inputs for them."""

import os
from pathlib import Path

import numpy as np
from requirements_support import skip_here

ROOT = Path(__file__).resolve().parents[2]


def model_file(name):
    """Return a model of the directory OPWEST_MODELS or ../shared/models."""
    folders = [Path(os.environ["OPWEST_MODELS"])] if "OPWEST_MODELS" in os.environ else [ROOT.parent / "shared/models"]
    for folder in folders:
        if (folder / name).is_file():
            return folder / name
    return skip_here(f"{name} is neither in $OPWEST_MODELS nor in ../shared/models")


def structured_and_random(shape, dtype, count=100, seed=7):
    """Return inputs: constant ones, ramps, single peaks, halves, waves, and then random ones of several spreads."""
    random, cases, size = np.random.default_rng(seed), [], int(np.prod(shape))
    steps = np.arange(size)
    shapes = [
        np.zeros(size),
        np.linspace(-1, 1, size),
        np.linspace(1, -1, size),
        np.where(steps == 0, 1.0, 0.0),
        np.where(steps == size // 2, -1.0, 0.0),
        np.where(steps % 2, 1.0, -1.0),
        np.where(steps < size // 2, 1.0, -1.0),
        np.sin(steps / 3.0),
        np.sin(steps / 50.0),
    ]
    shapes += [np.full(size, v) for v in (1.0, -1.0, 0.5, -0.25)]
    while len(shapes) < count:
        kind = len(shapes) % 3
        shapes.append(random.uniform(-1, 1, size) if kind else np.clip(random.standard_normal(size) / 3, -1, 1))
    for values in shapes:
        if dtype == "int8":
            cases.append([np.clip(np.round(values * 128), -128, 127).astype(np.int8).reshape(shape)])
        else:
            cases.append([(values * 3).astype(np.float32).reshape(shape)])
    return cases
