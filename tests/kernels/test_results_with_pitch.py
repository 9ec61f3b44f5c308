# SPDX-License-Identifier: Apache-2.0
"""Layers that write their results between the channels of other layers, in QEMU: no other channel changes."""

import numpy as np
import pytest
from campaign import sized
from kernels import reference
from opwest.importers.models.emit.emit import emit_program
from opwest.importers.models.emit.registry import VARIANTS
from opwest.tuning import random_layers
from opwest.tuning.emulator import run
from opwest.tuning.image import Candidate
from opwest.tuning.machines import MACHINES
from requirements_support import need

need("arm-none-eabi-gcc", "qemu-system-arm", "cc")
FLAGS = ("-Os", "-Wconversion", "-Werror")
VARIANTS_OF = {
    "cortex-m3": {"mla-pairs": "convolution", "mla-bytes": "convolution", "mla-channels": "pool"},
    "cortex-m4": {"dsp-bytes": "convolution", "dsp-halves": "convolution", "dsp-pool": "pool"},
    "cortex-m55": {"mve-rows": "convolution", "mve-lanes": "pool"},
    "cortex-m0plus": {"portable": "convolution depthwise pool elements"},
}
CASES = [(core, variant) for core, variants in VARIANTS_OF.items() for variant in variants]


def candidate_of(make, variant, number):
    """Return a random layer between channels; its variant, and its result by the reference."""
    random = np.random.default_rng((7, number))
    # The operands of sums have one row.
    keys = {"shape": (1, *map(int, random.integers(1, 9, 3)))} if make is random_layers.elements else {}
    made = make(random, **keys)
    inputs = random_layers.inputs_of(random, made, number)
    expected = reference.results_of(made.operations[0], *inputs)
    placed = random_layers.between_channels(random, made)
    part, [whole] = placed.operations[1].results[0], placed.outputs
    outputs = np.full(whole.shape, random_layers.FILL, whole.dtype)
    outputs[..., part.offset : part.offset + part.shape[-1]] = expected
    names = {placed.operations[0]: "portable", placed.operations[1]: variant}
    prefix = f"{variant}_{make.__name__}_{number}_".replace("-", "_")
    emitted = emit_program(placed, "made by a test", names, prefix=prefix)
    return emitted.steps[1].variant, Candidate(placed, emitted, inputs, [outputs])


@pytest.mark.parametrize(("core", "variant"), CASES)
def test_only_the_channels_of_a_layer_change(tmp_path, core, variant):
    found = []
    for kind in VARIANTS_OF[core][variant].split():
        count = sized(4, 400)
        made = [candidate_of(getattr(random_layers, kind), variant, number) for number in range(count)]
        some = [one for name, one in made if name == variant]
        assert len(some) >= count // 4, kind
        found += some
    for one, measured in zip(found, run(found, MACHINES[core], tmp_path, FLAGS), strict=True):
        assert (measured.wrong, measured.guards) == (0, 0), (measured, one.program.operations[1])


def test_variants_that_write_such_results_are_tested():
    tested = {variant for _, variant in CASES}
    assert {one.name for some in VARIANTS.values() for one in some if one.has_pitch} == tested
