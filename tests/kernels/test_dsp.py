# SPDX-License-Identifier: Apache-2.0
"""The variants for the DSP extension, in QEMU: equal to the reference bit for bit, also at the edges."""

import itertools

import pytest
from campaign import sized
from kernels.variants import candidates_of, check
from opwest.tuning import random_layers
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


OTHERS = ["cortex-m7", "cortex-m33"]
CASES = [(core, variant) for number, variant in enumerate(LAYERS) for core in ("cortex-m4", OTHERS[number % 2])]


@pytest.mark.parametrize(("core", "variant"), sized(CASES, list(itertools.product(["cortex-m4", *OTHERS], LAYERS))))
def test_random_layers(tmp_path, core, variant):
    found = []
    for make in LAYERS[variant]:
        some = candidates_of(make, variant, sized(16, 800), 1, most=sized(4, 800), dtype=DTYPES.get(variant, "int8"))
        assert len(some) >= sized(4, 200)
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
            found += candidates_of(make, variant, sized(2, 4), 2, dtype=DTYPES.get(variant, "int8"))
    check(found, "cortex-m4", tmp_path, (level, "-Wconversion", "-Werror", "-fno-omit-frame-pointer"))


def one_column(random, **keys):
    """A depthwise layer whose data has one column."""
    rows, size, stride = ((25, 5, 1), (9, 9, 1), (12, 2, 2), (7, 1, 3), (300, 4, 1), (5, 3, 2))[random.integers(0, 6)]
    places = {"size": (size, 1), "stride": (stride, 1), "dilation": (1, 1)}
    return random_layers.depthwise(random, shape=(2, rows, 1, 6), **places, **keys)


@pytest.mark.parametrize("variant", ["dsp-planes", "dsp-wide"])
def test_depthwise_layers_with_one_column(tmp_path, variant):
    found = candidates_of(one_column, variant, sized(9, 24), seed=3, dtype=DTYPES.get(variant, "int8"))
    assert len(found) >= sized(6, 16)
    check(found, "cortex-m4", tmp_path)


def long_dense(random, **keys):
    """A fully connected layer whose sums can exceed 32 bits."""
    return random_layers.dense(random, length=1301, results=6, rows=1, kind="ordinary", **keys)


def long_convolution(random, **keys):
    """A convolution whose sums can exceed 32 bits."""
    return random_layers.convolution(
        random, shape=(1, 4, 5, 145), size=(3, 3), results=5, kind="relu", dilation=(1, 1), **keys
    )


@pytest.mark.parametrize(("make", "function"), [(long_dense, "sums_wide"), (long_convolution, "tile_2x2_wide")])
def test_layers_with_sums_of_64_bits(tmp_path, make, function):
    found = candidates_of(make, "dsp-wide", 12, seed=4, dtype="int16")
    some = [one for one in found if function in one.emitted.source]
    assert len(some) >= 4
    check(sized(some[:4], found), "cortex-m4", tmp_path)
