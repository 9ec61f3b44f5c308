# SPDX-License-Identifier: Apache-2.0
"""The variants for the DSP extension, in QEMU: equal to the reference bit for bit, also at the edges."""

import pytest
from campaign import sized
from kernels import random_layers
from kernels.variants import candidates_of, check
from requirements_support import need

need("arm-none-eabi-gcc", "qemu-system-arm", "cc")
LAYERS = {
    "dsp-bytes": (random_layers.convolution, random_layers.dense),
    "dsp-halves": (random_layers.convolution, random_layers.dense),
    "dsp-planes": (random_layers.depthwise,),
    "dsp-pool": (random_layers.pool,),
    "dsp-elements": (random_layers.elements,),
    "dsp-wide": (random_layers.convolution, random_layers.dense, random_layers.depthwise),
}
DTYPES = {"dsp-wide": "int16"}
"""int8 for others."""


@pytest.mark.parametrize("core", ["cortex-m4", "cortex-m7", "cortex-m33"])
@pytest.mark.parametrize("variant", LAYERS)
def test_random_layers(tmp_path, core, variant):
    found = []
    for make in LAYERS[variant]:
        some = candidates_of(make, variant, sized(16, 400), seed=1, dtype=DTYPES.get(variant, "int8"))
        assert len(some) >= sized(4, 100)
        found += some
    for number, one in enumerate(found):
        for step in one.emitted.steps:
            assert step.variant == variant, number
    check(found, core, tmp_path)


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_other_levels_of_optimisation(tmp_path, level):
    found = []
    for variant, makes in LAYERS.items():
        for make in makes:
            found += candidates_of(make, variant, 4, 2, dtype=DTYPES.get(variant, "int8"))
    check(found, "cortex-m4", tmp_path, (level, "-Wconversion", "-Werror", "-fno-omit-frame-pointer"))
