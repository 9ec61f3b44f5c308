# SPDX-License-Identifier: Apache-2.0
"""Random programs as blocks in stripes, in QEMU: equal to their layers one after the other, bit for bit."""

import numpy as np
import pytest
from campaign import sized
from kernels.chains import chain, has_pool_with_other_divisors, striped
from kernels.variants import FLAGS
from opwest.importers.models.emit.emit import emit_program
from opwest.importers.models.ir.stripes import Striped
from opwest.tuning import random_layers
from opwest.tuning.emulator import run
from opwest.tuning.image import Candidate
from opwest.tuning.machines import MACHINES
from requirements_support import need

need("arm-none-eabi-gcc", "qemu-system-arm", "cc")
CORES = {"cortex-m0plus": "portable", "cortex-m3": "mla", "cortex-m4": "dsp", "cortex-m55": "mve"}
FORMS = ((1, 1), (1, 2), (1, 8), (2, 4), (3, 9))
STACK = 600
"""The greatest use of stack of a block, in bytes, with its arguments: docs/importing-models.md."""


def blocks(processor, count, dtype="int8"):
    """Return random programs, each as it is and as blocks."""
    found = []
    for number in range(count):
        random = np.random.default_rng((31, number))
        program = chain(random, int(random.integers(2, 7)), dtype)
        inputs = random_layers.inputs_of(random, program, number)
        made = [(form, striped(random, program, processor, *form)) for form in FORMS]
        some = [one for form, one in made if one is not None]
        if not some:
            assert has_pool_with_other_divisors(program) or len(program.operations) > 2
            continue
        start = len(found)
        for one in (program, *some):
            emitted = emit_program(one, "made by a test", "portable", prefix=f"c{len(found)}_")
            found.append(Candidate(one, emitted, inputs, None, None if one is program else start))
    return found


@pytest.mark.parametrize("core", CORES)
def test_random_blocks(core, tmp_path):
    found = blocks(CORES[core], sized(2, 200))
    assert sum(isinstance(one.program.operations[0], Striped) for one in found) >= sized(4, 400)
    for one, measured in zip(found, run(found, MACHINES[core], tmp_path, FLAGS), strict=True):
        names = [one.operation for one in getattr(one.program.operations[0], "layers", ())]
        assert (measured.wrong, measured.guards) == (0, 0), (one.program.operations[0].label, names)
        assert measured.stack <= STACK, one.program.operations[0].label


@pytest.mark.parametrize("core", ["cortex-m4", "cortex-m55"])
def test_blocks_of_int16(core, tmp_path):
    found = blocks(CORES[core], sized(2, 60), "int16")
    assert sum(isinstance(one.program.operations[0], Striped) for one in found) >= sized(3, 60)
    for one, measured in zip(found, run(found, MACHINES[core], tmp_path, FLAGS), strict=True):
        assert (measured.wrong, measured.guards) == (0, 0), one.program.operations[0].label
