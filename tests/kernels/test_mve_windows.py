# SPDX-License-Identifier: Apache-2.0
"""Windows of any size on processors with the vector extension: depthwise convolutions and pools, and their costs."""

import dataclasses
import itertools
import sys
from pathlib import Path

import numpy as np
import pytest
from campaign import sized
from kernels import variants
from opwest.compiler.emission.function import VARIANTS
from opwest.compiler.output.emit import candidates
from opwest.compiler.request import Options
from opwest.compiler.selection.choose import choose
from opwest.compiler.selection.tuning_files import read_tables
from opwest.compiler.semantics.fixed_point import Rounding
from opwest.tuning import random_layers
from requirements_support import need

CORE = "cortex-m55"
ROOT = Path(__file__).resolve().parents[2]
DEPTHWISE = list(itertools.product(("mve-gathers", "mve-widened", "mve-tiles"), ("int8", "int16")))


def run(make, variant, count, tmp_path, least, **keys):
    """Check the layers that a variant accepts, of `count` random ones."""
    found = variants.candidates_of(make, variant, count, seed=11, most=sized(8, 400), **keys)
    assert len(found) >= least, len(found)
    return variants.check(found, CORE, tmp_path)


@pytest.mark.parametrize(("variant", "dtype"), [case for case in DEPTHWISE if case != ("mve-tiles", "int16")])
def test_depthwise_windows_of_any_size(variant, dtype, tmp_path):
    make = random_layers.depthwise if variant == "mve-tiles" else random_layers.wide_depthwise
    run(make, variant, sized(20, 600), tmp_path, sized(4, 200), dtype=dtype)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_pools_of_any_size(dtype, tmp_path):
    run(random_layers.wide_pool, "mve-lanes", sized(12, 600), tmp_path, sized(8, 400), dtype=dtype)


def test_results_replace_data(tmp_path):
    """Layers that declare it compute the same results in the memory of their data."""
    found = []
    for number in range(sized(40, 200)):
        random = np.random.default_rng((13, number))
        shape = (
            1 + number % 2,
            *(int(extent) for extent in random.integers(3, 12, 2)),
            int(random.choice([4, 20, 48])),
        )
        keys = {"multiplier": 1, "stride": (1 + number % 3, 1 + number % 3 // 2)}
        made = random_layers.depthwise(random, shape, dtype=("int8", "int16")[number // 2 % 2], **keys)
        [operation] = made.operations
        inputs = random_layers.inputs_of(random, made, number)
        one = variants.candidate(made, "mve-gathers", number, inputs)
        if any(parameter.in_place for parameter in one.emitted.steps[0].function.parameters):
            found.append(variants.in_place(one, operation.inputs[0], operation.results[0]))
    assert len(found) > sized(20, 100)
    variants.check(found, CORE, tmp_path, ("-O2",))


def placed(maker, shape, size, dtype="int8", **keys):
    """Return a layer with usual numbers."""
    places = {"stride": (1, 1), "dilation": (1, 1), "same": True, **keys}
    return maker(np.random.default_rng(1), shape=shape, size=size, dtype=dtype, **places)


def accepted(program, variant):
    return variant in candidates(program.operations[0], "mve", ())


def test_strides_and_sums_that_gathers_refuse():
    def layer(**keys):
        return placed(random_layers.depthwise, (1, 20, 20, 4), (3, 3), kind="ordinary", **keys)

    assert accepted(layer(stride=(7, 7)), "mve-gathers") and not accepted(layer(stride=(8, 8)), "mve-gathers")
    assert accepted(layer(stride=(9, 7)), "mve-gathers")
    assert accepted(layer(dtype="int16"), "mve-gathers")
    large = placed(random_layers.depthwise, (1, 26, 26, 2), (26, 26), "int16", kind="ordinary", same=False)
    sums = np.abs(large.operations[0].weights.astype(np.int64)).sum(axis=(0, 1)).max()
    assert accepted(large, "mve-gathers") == (sums * 32768 + 30000 < 1 << 31)


@pytest.mark.parametrize(
    ("size", "same", "dtype", "is_accepted"),
    [
        ((15, 17), True, "int8", True),
        ((16, 16), True, "int8", False),  # padded averages of more than 255 elements
        ((16, 16), False, "int8", True),
        ((16, 8), False, "uint8", True),
        ((16, 9), False, "uint8", True),
        ((32, 32), False, "int16", True),
    ],
)
def test_sizes_of_averages(size, same, dtype, is_accepted, tmp_path):
    found = []
    for number in range(40):
        random = np.random.default_rng((3, number))
        made = random_layers.pool(random, (1, 32, 32, 5), size, dtype, stride=(3, 2), same=same)
        if made.operations[0].kind != "average":
            continue
        assert accepted(made, "mve-lanes") == is_accepted
        # The least and the greatest values: sums at both ends.
        inputs = random_layers.inputs_of(random, made, len(found))
        found.append(variants.candidate(made, "mve-lanes", f"mve_{number}", inputs))
        if len(found) == sized(2, 10):
            break
    variants.check(found, CORE, tmp_path)


def per_product(program, variant, tmp_path):
    """Return the instructions for each product of a channel of data, or each element in the windows of a pool."""
    inputs = random_layers.inputs_of(np.random.default_rng(1), program, 3)
    one = variants.candidate(program, variant, variant, inputs)
    assert variants.variant_of(one) == variant
    [measured] = variants.check([one], CORE, tmp_path)
    layer = program.operations[0]
    (kh, kw), result = layer.window.size, layer.results[0]
    return measured.instructions / (result.size * kh * kw)


LAYERS = {
    "3x3 s2": ((1, 12, 12, 48), (3, 3), {"stride": (2, 2)}, "int8", 0.95),
    "3x3 d2": ((1, 12, 12, 20), (3, 3), {"dilation": (2, 2)}, "int8", 0.9),
    "5x5": ((1, 12, 12, 48), (5, 5), {}, "int8", 0.55),
    "7x7": ((1, 12, 12, 48), (7, 7), {}, "int8", 0.38),
    "10x4 s2": ((1, 12, 12, 48), (10, 4), {"stride": (2, 2)}, "int8", 0.53),
    "10x8 s2 x8": ((1, 12, 12, 1), (10, 8), {"stride": (2, 2), "multiplier": 8}, "int8", 0.48),
    "5x5 x2": ((1, 12, 12, 8), (5, 5), {"multiplier": 2}, "int8", 0.56),
    "3x3 int16": ((1, 12, 12, 48), (3, 3), {}, "int16", 1.12),
    "5x5 int16": ((1, 12, 12, 48), (5, 5), {}, "int16", 0.7),
    "7x7 int16": ((1, 12, 12, 48), (7, 7), {}, "int16", 0.61),
}


@pytest.mark.parametrize("name", LAYERS)
def test_products_of_depthwise_layers(name, tmp_path):
    shape, size, keys, dtype, most = LAYERS[name]
    made = placed(random_layers.depthwise, shape, size, dtype, kind="ordinary", **keys)
    assert per_product(made, "mve-gathers", tmp_path) <= most


POOLS = {
    "average 2x2": ("average", (2, 2), (2, 2), "int8", 0.8),
    "average 3x3": ("average", (3, 3), (2, 2), "int8", 0.75),
    "average 12x12": ("average", (12, 12), (1, 1), "int16", 0.64),
    "average 8x8": ("average", (8, 8), (1, 1), "uint8", 0.35),
    "maximum 2x2": ("maximum", (2, 2), (2, 2), "int8", 0.31),
    "maximum 3x3": ("maximum", (3, 3), (2, 2), "uint8", 0.32),
    "maximum 5x5": ("maximum", (5, 5), (2, 2), "int16", 0.52),
}


@pytest.mark.parametrize("name", POOLS)
def test_elements_of_pools(name, tmp_path):
    kind, size, stride, dtype, most = POOLS[name]
    keys = {"stride": stride, "same": size == (3, 3) or size == (5, 5)}
    made = (random_layers.pool(np.random.default_rng(n), (1, 12, 12, 16), size, dtype, **keys) for n in range(40))
    layer = next(one for one in made if one.operations[0].kind == kind)
    assert per_product(layer, "mve-lanes", tmp_path) <= most


def test_layers_of_an_import(tmp_path):
    """The variants apply to what the lowering of a model file makes, and the choice has them."""
    need("tflite")
    sys.path.append(str(ROOT / "benchmarks"))
    import held_out_models
    from opwest.imports.prepare import prepare, program_of

    layers = held_out_models.Layers(1, (1, 14, 14, 12))
    layers.depthwise(12, (5, 5), stride=(2, 2))
    layers.depthwise(12, (3, 3), dilation=(2, 2))
    layers.pool("AVERAGE_POOL_2D", (3, 3), (2, 2))
    path = tmp_path / "model.tflite"
    path.write_bytes(layers.build())
    options = Options()
    program = program_of(prepare(path, options, lambda _: None).graphs[0], options, "model")
    wanted = ("mve-gathers", "mve-gathers", "mve-lanes")
    chosen = choose(program, "mve", read_tables().of(CORE), prefer=wanted).variants
    assert tuple(chosen[operation] for operation in program.operations[:3]) == wanted
    for number, (operation, name) in enumerate(zip(program.operations[:3], wanted, strict=True)):
        inputs = tuple(random_layers.value("input", one.dtype, one.shape) for one in operation.inputs)
        results = tuple(random_layers.value("output", one.dtype, one.shape) for one in operation.results)
        made = random_layers.program(dataclasses.replace(operation, inputs=inputs, results=results))
        arrays = random_layers.inputs_of(np.random.default_rng(1), made, 3)
        one = variants.candidate(made, name, f"{name}_{number}", arrays)
        assert variants.variant_of(one) == name
        variants.check([one], CORE, tmp_path / str(number))


def test_weights_of_4_bits(tmp_path):
    run(random_layers.nibbles, "mve-nibbles", sized(24, 600), tmp_path, sized(8, 300))


def test_weights_of_4_bits_take_half_of_the_flash(tmp_path):
    """The instructions are at most a quarter more than those of whole weights."""
    made = random_layers.nibbles(
        np.random.default_rng(2), length=256, results=32, rows=1, kind="ordinary", rounding=Rounding.ONCE
    )
    [layer], names = made.operations, ("mve-dense", "mve-nibbles")
    calls = {variant.name: variant.call(layer) for variant in VARIANTS[type(layer)]}
    sizes = [calls[name].arguments[1].nbytes for name in names]
    ends = 16 + 32 * 9  # numbers of the layer and of each channel
    assert [size - ends for size in sizes] == [256 * 32, 256 * 32 // 2]
    costs = [per_product(made, name, tmp_path / name) / 256 for name in names]
    assert costs[1] <= 1.25 * costs[0] and costs[1] <= 0.2, costs


@pytest.mark.parametrize(("least", "greatest", "is_accepted"), [(-8, 7, True), (-9, 7, False), (-8, 8, False)])
def test_which_weights_are_nibbles(least, greatest, is_accepted):
    made = random_layers.nibbles(np.random.default_rng(2), length=100, results=3, rows=1, kind="ordinary")
    [layer] = made.operations
    weights = layer.weights.copy()
    weights[0, 0, 0, :2] = least, greatest
    changed = random_layers.program(dataclasses.replace(layer, weights=weights))
    assert accepted(changed, "mve-nibbles") == is_accepted
    assert accepted(changed, "mve-dense") != is_accepted
