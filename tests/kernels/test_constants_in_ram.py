# SPDX-License-Identifier: Apache-2.0
"""The loads of layers from their constants, in QEMU."""

import numpy as np
import pytest
from opwest.importers.models.operators.fixed_point import Rounding
from opwest.tuning import random_layers
from opwest.tuning.placement import Offer, offers, offers_text
from requirements_support import need

need("arm-none-eabi-gcc", "qemu-system-arm", "cc")


@pytest.mark.parametrize(
    ("core", "variant", "size", "width"),  # bytes of a weight and of a load
    [("cortex-m3", "portable", 1, 1), ("cortex-m4", "dsp-halves", 2, 4), ("cortex-m55", "mve-dense", 1, 4)],
)
def test_a_fully_connected_layer_loads_its_weights_once(tmp_path, core, variant, size, width):
    random = np.random.default_rng(1)
    programs = [random_layers.dense(random, length, 64, rows=1, rounding=Rounding.ONCE) for length in (64, 128, 256)]
    variants = {one.operations[0]: variant for one in programs}
    found = offers(variants, core, tmp_path)
    assert [one.layer for one in found] == [one.label.split()[0] for one in variants]
    for one, length in zip(found, (64, 128, 256), strict=True):
        # Biases, multipliers and shifts, if they are not in the code: at most four words for each of the results.
        weights, others = length * 64 * size, 64 * 4
        assert weights <= one.ram <= weights + others * 4
        assert weights / width <= one.reads <= weights / width + others


def test_table():
    text = offers_text([Offer("0", "dsp-bytes", 1000, 250), Offer("1", "portable", 10, 5000)], "cortex-m7", 2)
    assert text.splitlines() == [
        "constants in RAM (cortex-m7; 2 wait states for each load from flash, without a cache; counted in QEMU)",
        "  layer  variant    loads  cycles saved  bytes of RAM",
        "  1      portable   5,000        10,000            10",
        "  0      dsp-bytes    250           500         1,000",
        "  opwest import --place LAYERS=sram copies the constants of layers when the model is opened",
    ]
