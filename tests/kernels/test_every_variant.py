# SPDX-License-Identifier: Apache-2.0
"""Layers of every variant in QEMU: sums of results, windows in the padding, results between the channels of others,
blocks in stripes, loads from constants.
"""

import dataclasses

import numpy as np
import pytest
from campaign import sized
from kernels import reference
from kernels.chains import chain, has_pool_with_other_divisors, striped
from kernels.padded_layers import DTYPES, KINDS, padded_layer
from kernels.variants import candidate, candidates_of, check, variant_of
from opwest.compiler.emission.function import VARIANTS
from opwest.compiler.execution.run import run_program
from opwest.compiler.ir.movement import Axis, Move, Region
from opwest.compiler.ir.stripes import Striped
from opwest.compiler.output.emit import emit_program
from opwest.compiler.semantics.fixed_point import Rounding
from opwest.objects.flash import UNKNOWN
from opwest.tuning import random_layers
from opwest.tuning.image import Candidate
from opwest.tuning.tune import PlacementOffer, offers, offers_text
from requirements_support import need

CORES = {"portable": "cortex-m0plus", "mla": "cortex-m3", "dsp": "cortex-m4", "mve": "cortex-m55", "rvv": "rv32-v"}
SUMS = ["mla-pairs", "mla-bytes", "dsp-bytes", "dsp-halves", "mve-rows", "rvv-channels", "portable-pairs"]
OTHERS = ("-float", "-nibbles")
"""The variants for float32 (test_floats.py), and for weights of 4 bits (test_nibbles.py)."""
PADDED = [
    (kind, name)
    for kind in KINDS
    for name in dict.fromkeys(one.name for one in VARIANTS[kind])
    if name.partition("-")[0] in CORES and not name.endswith(OTHERS)
]
PITCHED = {
    **dict.fromkeys(SUMS, "convolution"),
    **dict.fromkeys(("mla-channels", "dsp-pool", "mve-lanes"), "pool"),
    "mve-gathers": "depthwise",
    "mve-words": "elements",
    "portable": "convolution depthwise pool elements",
    "portable-pairs": "convolution",
    "portable-columns": "depthwise",
    "rvv-channels": "convolution depthwise pool",
}


def core_of(variant):
    return CORES[variant.partition("-")[0]]


@pytest.mark.parametrize("variant", SUMS)
def test_random_sums(tmp_path, variant):
    found = candidates_of(random_layers.convolution_sum, variant, sized(12, 200), seed=6, most=sized(4, 200))
    assert len(found) >= sized(4, 80)
    check(found, core_of(variant), tmp_path)


def test_portable_sums(tmp_path):
    found = candidates_of(random_layers.convolution_sum, "portable", sized(5, 12), seed=7, accepts_portable=True)
    check(found, "cortex-m0plus", tmp_path, ("-O2",))


@pytest.mark.parametrize(("kind", "variant"), PADDED, ids=lambda one: one if isinstance(one, str) else one.__name__)
def test_windows_in_the_padding(tmp_path, kind, variant):
    found = []
    for number in range(sized(120, 800)):
        if len(found) == sized(8, 800):
            break
        random, program = padded_layer(kind, number, DTYPES[kind][number % len(DTYPES[kind])])
        if program is None:
            continue
        one = candidate(program, variant, number, random_layers.inputs_of(random, program, number))
        [executed] = run_program(program, one.inputs, {})
        assert np.array_equal(executed, one.outputs[0]), program.operations
        found += [one] if variant_of(one) == variant else []
    check(found, core_of(variant), tmp_path)
    assert len(found) > 2, len(found)


FILL = 85
"""The value of channels that a layer must not change."""


def placed_between_channels(random, made):
    """Return the program of a layer whose result is a part of the channels of a tensor that is filled before."""
    [layer] = made.operations
    [result] = layer.results
    pitch = result.shape[-1] + int(random.choice([1, 2, 3, 4, 8, 16, 31, 4100]))
    first = int(random.integers(0, pitch - result.shape[-1] + 1))
    whole = random_layers.value("output", result.dtype, (*result.shape[:-1], pitch))
    part = dataclasses.replace(result, role="intermediate", root=whole, offset=first, pitch=pitch)
    filled = Region(None, (Axis(whole.size, 0, 1),), fill=FILL)
    found = dataclasses.replace(made, outputs=[whole])
    found.operations = [Move("fill", (), (whole,), (filled,)), dataclasses.replace(layer, results=(part,))]
    return found


def between_channels(make, variant, number):
    """Return a random layer between channels; its variant, and its result by the reference."""
    random = np.random.default_rng((7, number))
    # The operands of sums have one row.
    keys = {"shape": (1, *map(int, random.integers(1, 9, 3)))} if make is random_layers.elements else {}
    made = make(random, **keys)
    inputs = random_layers.inputs_of(random, made, number)
    expected = reference.results_of(made.operations[0], *inputs)
    placed = placed_between_channels(random, made)
    part, [whole] = placed.operations[1].results[0], placed.outputs
    outputs = np.full(whole.shape, FILL, whole.dtype)
    outputs[..., part.offset : part.offset + part.shape[-1]] = expected
    names = {placed.operations[0]: "portable", placed.operations[1]: variant}
    prefix = f"{variant}_{make.__name__}_{number}_".replace("-", "_")
    emitted = emit_program(placed, "made by a test", names, prefix=prefix)
    return emitted.steps[1].variant, Candidate(placed, emitted, inputs, [outputs])


@pytest.mark.parametrize("variant", PITCHED)
def test_only_the_channels_of_a_layer_change(tmp_path, variant):
    found = []
    for kind in PITCHED[variant].split():
        count = sized(4, 400)
        made = [between_channels(getattr(random_layers, kind), variant, number) for number in range(count)]
        some = [one for name, one in made if name == variant]
        assert len(some) >= count // 4, kind
        found += some
    check(found, core_of(variant), tmp_path)


def test_variants_that_write_such_results_are_tested():
    names = {one.name for some in VARIANTS.values() for one in some if one.has_pitch}
    assert {name for name in names if not name.endswith(OTHERS)} == set(PITCHED)


CLASSES = {name: processor for processor, name in CORES.items()}
FORMS = ((1, 1), (1, 2), (1, 8), (2, 4), (3, 9))
STACK = 600
"""The greatest use of stack of a block, in bytes, with its arguments: docs/contributing/imports.md."""


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


@pytest.mark.parametrize("core", CLASSES)
def test_random_blocks(core, tmp_path):
    found = blocks(CLASSES[core], sized(2, 200))
    assert sum(isinstance(one.program.operations[0], Striped) for one in found) >= sized(4, 400)
    for one, measured in zip(found, check(found, core, tmp_path), strict=True):
        assert measured.stack <= STACK, one.program.operations[0].label


def test_blocks_of_float32(tmp_path):
    """In the exact variants: the results are those of the portable layers."""
    found = blocks("dsp", sized(6, 60), "float32")
    sources = "".join(one.emitted.source for one in found)
    assert sum(isinstance(one.program.operations[0], Striped) for one in found) >= sized(3, 60)
    assert "float_tile" in sources and "float_columns" in sources
    check(found, "cortex-m4", tmp_path)


@pytest.mark.parametrize("core", ["cortex-m4", "cortex-m55"])
def test_blocks_of_int16(core, tmp_path):
    found = blocks(CLASSES[core], sized(2, 60), "int16")
    assert sum(isinstance(one.program.operations[0], Striped) for one in found) >= sized(3, 60)
    check(found, core, tmp_path)


@pytest.mark.parametrize(
    ("core", "variant", "size", "width"),  # bytes of a weight and of a load
    [("cortex-m3", "portable", 1, 1), ("cortex-m4", "dsp-halves", 2, 4), ("cortex-m55", "mve-dense", 1, 4)],
)
def test_a_fully_connected_layer_loads_its_weights_once(tmp_path, core, variant, size, width):
    need("arm-none-eabi-gcc", "qemu-system-arm", "cc")
    random = np.random.default_rng(1)
    programs = [random_layers.dense(random, length, 64, rows=1, rounding=Rounding.ONCE) for length in (64, 128, 256)]
    variants = {one.operations[0]: variant for one in programs}
    found = offers(variants, core, tmp_path, UNKNOWN)
    assert [one.layer for one in found] == [one.label.split()[0] for one in variants]
    for one, length in zip(found, (64, 128, 256), strict=True):
        # Biases, multipliers and shifts, if they are not in the code: at most four words for each of the results.
        weights, others = length * 64 * size, 64 * 4
        assert weights <= one.ram <= weights + others * 4
        assert weights / width <= one.reads <= weights / width + others


def test_the_greatest_saving_for_a_byte_is_first():
    given = [PlacementOffer("0", "dsp-bytes", 1000, 250, 500), PlacementOffer("1", "portable", 10, 5000, 10_000)]
    rows = [line.split() for line in offers_text(given, "cortex-m7", UNKNOWN).splitlines()[2:4]]
    assert rows == [["1", "portable", "5,000", "10,000", "10"], ["0", "dsp-bytes", "250", "500", "1,000"]]
