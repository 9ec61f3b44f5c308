# SPDX-License-Identifier: Apache-2.0
"""Layers with windows that are partly or completely in the padding: the variants in QEMU, the operations in numpy."""

import numpy as np
import pytest
from campaign import sized
from kernels import reference
from kernels.padded_layers import DTYPES, KINDS, padded_layer
from kernels.variants import FLAGS
from opwest.importers.models.emit.emit import emit_program
from opwest.importers.models.emit.registry import VARIANTS
from opwest.importers.models.execute.run import run_program
from opwest.tuning import random_layers
from opwest.tuning.emulator import run
from opwest.tuning.image import Candidate
from opwest.tuning.machines import MACHINES
from requirements_support import need

need("arm-none-eabi-gcc", "qemu-system-arm", "cc")
CORES = {"portable": "cortex-m0plus", "mla": "cortex-m3", "dsp": "cortex-m4", "mve": "cortex-m55"}
CASES = [
    (kind, name)
    for kind in KINDS
    for name in dict.fromkeys(one.name for one in VARIANTS[kind])
    if name.partition("-")[0] in CORES
]


@pytest.mark.parametrize(("kind", "variant"), CASES, ids=lambda one: one if isinstance(one, str) else one.__name__)
def test_windows_in_the_padding(tmp_path, kind, variant):
    found = []
    for number in range(sized(120, 800)):
        if len(found) == sized(8, 800):
            break
        random, program = padded_layer(kind, number, DTYPES[kind][number % len(DTYPES[kind])])
        if program is None:
            continue
        [operation] = program.operations
        inputs = random_layers.inputs_of(random, program, number)
        expected = reference.results_of(operation, *inputs)
        [executed] = run_program(program, inputs, {})
        assert np.array_equal(executed, expected), operation
        emitted = emit_program(program, "made by a test", variant, prefix=f"layer_{number}_")
        if emitted.steps[0].variant == variant:
            found.append(Candidate(program, emitted, inputs, [expected]))
    core = MACHINES[CORES[variant.partition("-")[0]]]
    for one, measured in zip(found, run(found, core, tmp_path, FLAGS), strict=True):
        assert (measured.wrong, measured.guards) == (0, 0), (measured, one.program.operations[0])
    assert len(found) > 2, len(found)
