# SPDX-License-Identifier: Apache-2.0
"""Random layers in a variant on a core, in one image for QEMU."""

import numpy as np
from kernels import reference
from opwest.importers.models.emit.emit import emit_program
from opwest.tuning import random_layers
from opwest.tuning.emulator import run
from opwest.tuning.image import Candidate
from opwest.tuning.machines import MACHINES

FLAGS = ("-Os", "-Wconversion", "-Werror")


def candidates_of(make, variant, count, seed, accepts_portable=False, most=None, **keys):
    """Return candidates for those of `count` layers that the variant accepts, the first `most` of them."""
    found = []
    for number in range(count):
        if len(found) == most:
            break
        random = np.random.default_rng((seed, number))
        program = make(random, **keys)
        inputs = random_layers.inputs_of(random, program, number)
        outputs = [reference.results_of(program.operations[0], *inputs)]
        prefix = f"{variant}_{make.__name__}_{number}_".replace("-", "_")
        emitted = emit_program(program, "made by a test", variant, prefix=prefix)
        if accepts_portable or emitted.steps[0].variant != "portable":
            found.append(Candidate(program, emitted, inputs, outputs))
    return found


def check(candidates, core, folder, flags=FLAGS):
    """Run candidates; every result and every byte around it must be right."""
    for one, measured in zip(candidates, run(candidates, MACHINES[core], folder, flags), strict=True):
        operation = one.program.operations[0]
        assert (measured.wrong, measured.guards) == (0, 0), (measured, one.emitted.steps[0].variant, operation)
