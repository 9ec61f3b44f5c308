# SPDX-License-Identifier: Apache-2.0
"""Convolutions whose results are operands of sums, in every variant and in C for every processor."""

import pytest
from campaign import sized
from kernels.variants import candidates_of, check
from opwest.tuning import random_layers
from requirements_support import need

need("arm-none-eabi-gcc", "qemu-system-arm", "cc")


@pytest.mark.parametrize(
    ("core", "variant"),
    [
        ("cortex-m3", "mla-pairs"),
        ("cortex-m3", "mla-bytes"),
        ("cortex-m4", "dsp-bytes"),
        ("cortex-m4", "dsp-halves"),
        ("cortex-m55", "mve-rows"),
    ],
)
def test_random_sums(tmp_path, core, variant):
    found = candidates_of(random_layers.convolution_sum, variant, sized(12, 200), seed=6, most=sized(4, 200))
    assert len(found) >= sized(4, 80)
    check(found, core, tmp_path)


def test_portable_sums(tmp_path):
    found = candidates_of(random_layers.convolution_sum, "portable", sized(5, 12), seed=7, accepts_portable=True)
    check(found, "cortex-m0plus", tmp_path, ("-Os",))
