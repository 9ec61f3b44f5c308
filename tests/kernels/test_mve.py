# SPDX-License-Identifier: Apache-2.0
"""The variants for the vector extension and for the DSP extension, in QEMU: equal to the reference bit for bit."""

import itertools

import numpy as np
import pytest
from campaign import sized
from kernels import variants
from kernels.variants import FLAGS, variant_of
from opwest.compiler.output.emit import emit_program
from opwest.compiler.semantics.fixed_point import Rounding
from opwest.tuning import random_layers

LAYERS = sized(6, 240)
VARIANTS = {
    ("convolution", "int8"): {"mve-rows"},
    ("convolution", "int16"): {"mve-long", "mve-rows"},
    ("dense", "int8"): {"mve-rows", "mve-dense"},
    ("dense", "int16"): {"mve-dense", "mve-long", "mve-rows"},
    ("depthwise", "int8"): {"mve-tiles", "mve-gathers"},
    ("depthwise", "int16"): {"mve-gathers"},
    ("pool", "int8"): {"mve-lanes"},
    **{(kind, dtype): {"mve-words"} for kind in ("add", "multiply") for dtype in ("int8", "int16")},
}


def candidate(layer, dtype, number, preferred="mve", **keys):
    random = np.random.default_rng((5, number))
    made = getattr(random_layers, layer)(random, dtype=dtype, **keys)
    return variants.candidate(made, preferred, number, random_layers.inputs_of(random, made, number))


def check(candidates, folder, flags=FLAGS):
    variants.check(candidates, "cortex-m55", folder, flags)


@pytest.mark.parametrize(("kind", "dtype"), VARIANTS)
def test_random_layers_have_exact_results(kind, dtype, tmp_path):
    candidates = [candidate(kind, dtype, number) for number in range(LAYERS)]
    assert {variant_of(one) for one in candidates} == VARIANTS[kind, dtype]
    check(candidates, tmp_path)


def test_code_does_not_depend_on_optimisation(tmp_path):
    kinds = ["convolution", "dense", "depthwise"] * 2
    candidates = [candidate(kind, "int8", number) for number, kind in enumerate(kinds)]
    check(candidates, tmp_path / "none", ("-O0", "-Werror"))
    check(candidates, tmp_path / "all", ("-O3", "-Werror"))


def test_rows_are_longer_than_the_unrolled_code(tmp_path):
    shapes = [(9, 5, 2), (200, 9, 3), (640, 4, 3), (5000, 3, 2), (1000, 11, 1), (4100, 8, 1)]
    keys = [dict(zip(("length", "results", "rows"), one, strict=True), kind="ordinary") for one in shapes]
    check([candidate("dense", "int8", number, **one) for number, one in enumerate(keys)], tmp_path)


def test_single_roundings_are_exact(tmp_path):
    kinds = ("exponents", "left", "halves", "greatest", "one", "relu")
    found = [candidate("dense", "int8", n, kind=kind, rounding=Rounding.ONCE) for n, kind in enumerate(kinds)]
    check(found, tmp_path)


def test_sums_of_64_bits_are_exact(tmp_path):
    kinds = ("convolution", "dense") * 3
    found = [candidate(kind, "int16", number, "mve-long") for number, kind in enumerate(kinds)]
    assert {variant_of(one) for one in found} == {"mve-long"}
    check(found, tmp_path)


def test_a_window_that_is_the_image_is_a_single_row(tmp_path):
    keys = {"stride": (1, 1), "dilation": (1, 1)}
    whole = candidate("convolution", "int8", 0, shape=(1, 2, 3, 5), size=(2, 3), same=False, **keys)
    padded = candidate("convolution", "int8", 1, shape=(1, 1, 1, 5), size=(3, 3), same=True, **keys)
    assert [variant_of(one) for one in (whole, padded)] == ["mve-dense", "mve-rows"]
    check([whole, padded], tmp_path)


def test_layers_that_differ_in_their_numbers_share_a_function():
    shape = {"size": (3, 3), "kind": "relu", "stride": (1, 1), "dilation": (1, 1), "same": True}
    made = [random_layers.convolution(np.random.default_rng(n), (1, 6, 6, 16), results=8, **shape) for n in range(9)]
    # A clamp has instructions of its own.
    plain = [one for one in made if one.operations[0].finish.high == 127]
    assert len(plain) > 1
    assert len({_function(one) for one in plain}) == 1


def _function(made):
    [step] = emit_program(made, "Test.", "mve").steps
    return step.function


@pytest.mark.parametrize(("results", "in_place"), [(16, ("data",)), (20, ())])
def test_results_replace_the_data_where_they_are_written_later(results, in_place):
    keys = {"stride": (1, 1), "dilation": (1, 1)}
    made = random_layers.convolution(np.random.default_rng(1), (1, 6, 6, 16), (1, 1), results, **keys)
    [written] = [one for one in _function(made).parameters if one.direction == "out"]
    assert written.in_place == in_place


MAKERS = {
    "dsp-bytes": (random_layers.convolution, random_layers.dense),
    "dsp-halves": (random_layers.convolution, random_layers.dense),
    "dsp-planes": (random_layers.depthwise,),
    "dsp-pool": (random_layers.pool,),
    "dsp-elements": (random_layers.elements,),
    "dsp-wide": (random_layers.convolution, random_layers.dense, random_layers.depthwise),
}
DTYPES = {"dsp-wide": ("int16",), "dsp-pool": ("int8", "int16")}
"""int8 for others."""
OTHERS = ["cortex-m7", "cortex-m33"]
CASES = [(core, variant) for number, variant in enumerate(MAKERS) for core in ("cortex-m4", OTHERS[number % 2])]


@pytest.mark.parametrize(("core", "variant"), sized(CASES, list(itertools.product(["cortex-m4", *OTHERS], MAKERS))))
def test_random_layers_of_the_dsp_extension(tmp_path, core, variant):
    found = []
    for make, dtype in itertools.product(MAKERS[variant], DTYPES.get(variant, ("int8",))):
        some = variants.candidates_of(make, variant, sized(16, 800), 1, most=sized(4, 800), dtype=dtype)
        assert len(some) >= sized(4, 200)
        found += some
    assert {step.variant for one in found for step in one.emitted.steps} == {variant}
    variants.check(found, core, tmp_path)


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_other_levels_of_optimisation(tmp_path, level):
    found = []
    for variant, makes in MAKERS.items():
        for make, dtype in itertools.product(makes, DTYPES.get(variant, ("int8",))):
            found += variants.candidates_of(make, variant, sized(2, 4), 2, dtype=dtype)
    variants.check(found, "cortex-m4", tmp_path, (level, "-Wconversion", "-Werror", "-fno-omit-frame-pointer"))


def one_column(random, **keys):
    rows, size, stride = ((25, 5, 1), (9, 9, 1), (12, 2, 2), (7, 1, 3), (300, 4, 1), (5, 3, 2))[random.integers(0, 6)]
    places = {"size": (size, 1), "stride": (stride, 1), "dilation": (1, 1)}
    return random_layers.depthwise(random, shape=(2, rows, 1, 6), **places, **keys)


@pytest.mark.parametrize("variant", ["dsp-planes", "dsp-wide"])
def test_depthwise_layers_with_one_column(tmp_path, variant):
    found = variants.candidates_of(one_column, variant, sized(9, 24), seed=3, dtype=DTYPES.get(variant, ("int8",))[0])
    assert len(found) >= sized(6, 16)
    variants.check(found, "cortex-m4", tmp_path)


def long_dense(random, **keys):
    """A fully connected layer whose sums can exceed 32 bits."""
    return random_layers.dense(random, length=1301, results=6, rows=1, kind="ordinary", **keys)


def long_convolution(random, **keys):
    """A convolution whose sums can exceed 32 bits."""
    return random_layers.convolution(random, (1, 4, 5, 145), (3, 3), 5, "relu", dilation=(1, 1), **keys)


@pytest.mark.parametrize(("make", "function"), [(long_dense, "sums_wide"), (long_convolution, "tile_2x2_wide")])
def test_layers_with_sums_of_64_bits(tmp_path, make, function):
    found = variants.candidates_of(make, "dsp-wide", 12, seed=4, dtype="int16")
    some = [one for one in found if function in one.emitted.source]
    assert len(some) >= 4
    variants.check(sized(some[:4], found), "cortex-m4", tmp_path)
