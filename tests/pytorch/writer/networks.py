# SPDX-License-Identifier: Apache-2.0
"""All whole networks, written as programs. Runs in the environment of PyTorch."""

import numpy as np
import torch
from draws import fill, normal
from images import IMAGES
from programs import CALIBRATIONS, exported, quantised, written
from signals import SIGNALS

NETWORKS = IMAGES | SIGNALS
RUNS = 4
"""The cases of a network, a sequence for those with state."""


def write_network(folder, name, *, whole=False, decomposed=False, quantiser=None):
    """Write the program of a network; return the row of the index."""
    random = np.random.default_rng([*map(ord, name), 7])
    torch.manual_seed(7)
    module, shapes = NETWORKS[name](whole)
    module.eval()
    with torch.no_grad():
        module(*(torch.zeros(shape) for shape in shapes))  # lazy layers get their shapes
    fill(random, module)
    for buffer in ("state", "frames", "mean"):
        if isinstance(getattr(module, buffer, None), torch.Tensor):
            getattr(module, buffer).zero_()
    draws = [normal(*shape, scale=1) for shape in shapes]
    cases = [[draw(random) for draw in draws] for _ in range(max(RUNS, CALIBRATIONS))]
    with torch.no_grad():
        program = (
            quantised(module, cases, quantiser, decomposed) if quantiser else exported(module, cases[0], decomposed)
        )
    form = (quantiser or "float") + ("-decomposed" if decomposed else "")
    found = written(folder, f"{name}-{form}", program, cases[:RUNS])
    return found | {"network": name, "form": form}
