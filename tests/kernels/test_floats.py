# SPDX-License-Identifier: Apache-2.0
"""The variants of float32 layers: exact on the FPU and in C, within bounds of rounding errors with vectors."""

import dataclasses

import numpy as np
import pytest
from campaign import sized
from kernels.padded_layers import FLOAT_KINDS, padded_layer
from kernels.test_every_variant import placed_between_channels
from models.bounds import bound_of as bound_of_operator
from opwest.compiler.execution.run import run_program
from opwest.compiler.output.emit import emit_program
from opwest.compiler.request import Options
from opwest.imports.prepare import prepare, program_of
from opwest.tuning import random_layers
from opwest.tuning.image import Candidate
from opwest.tuning.machines import machines
from opwest.tuning.measure import inputs_of, run
from opwest.tuning.tolerance import limits_for
from requirements_support import need

CORES = {"dsp-float": "cortex-m4", "mve-float": "cortex-m55"}
MAKERS = {
    name: getattr(random_layers, f"float_{name}")
    for name in ("convolution", "dense", "depthwise", "elements", "pool", "product")
}
COUNT = sized(6, 200)


def pair(program, inputs, variant, number, **keys):
    """Return candidates of a program: the portable one and another; none if the variant does not apply."""
    found = []
    for name in ("portable", variant):
        emitted = emit_program(program, "made by a test", name, prefix=f"c{number}_{name.replace('-', '_')}_")
        if emitted.steps[-1].variant != name:
            return []
        limits = keys.get("limits", limits_for(program, name, inputs) if len(program.operations) == 1 else None)
        found.append(Candidate(program, emitted, inputs, None, None, limits if name == variant else None))
    return found


def check(pairs, machine, folder, flags=("-O2",)):
    """Run pairs of candidates; return what was measured."""
    need("arm-none-eabi-gcc", "qemu-system-arm", "cc")
    measured = []
    for start in range(0, len(pairs), 16):
        some = [dataclasses.replace(two[1], like=2 * place) for place, two in enumerate(pairs[start : start + 16])]
        given = [one for two, other in zip(pairs[start : start + 16], some, strict=True) for one in (two[0], other)]
        measured += run(given, machine, folder / str(start), flags)
    for one, found in zip([one for two in pairs for one in two], measured, strict=True):
        assert (found.wrong, found.guards) == (0, 0), (found, one.program.operations)
    return measured


def random_pairs(kind, variant, count, seed=1, exact=False, first=0):
    """Return pairs of `count` random layers that the variant accepts."""
    pairs = []
    for number in range(4 * count):
        program = MAKERS[kind](np.random.default_rng((seed, number)))
        inputs = random_layers.inputs_of(np.random.default_rng(number), program, number)
        keys = {"limits": None} if exact else {}
        pairs += [pair(program, inputs, variant, first + number, **keys)] * (len(pairs) < count)
        pairs = [two for two in pairs if two]
    assert len(pairs) == count
    return pairs


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("variant", CORES)
def test_random_layers(variant, kind, tmp_path):
    check(random_pairs(kind, variant, COUNT), machines()[CORES[variant]], tmp_path)


WITHOUT = [
    ("dsp-float", ("softfp", "soft"), ()),
    # Vectors of integers: with an FPU, and as if there were none.
    ("mve-float", ("cortex-m55", "cortex-m55+nomve.fp"), ()),
    ("mve-float", (), ("-D__ARM_FP=0", "-D__ARM_FEATURE_MVE=1")),
]
"""Variants, a change of the compiler's words, flags, so that other functions than those of the core are compiled."""


@pytest.mark.parametrize(("variant", "words", "flags"), WITHOUT)
def test_processors_without_the_instructions_have_exact_results(variant, words, flags, tmp_path):
    machine = machines()[CORES[variant]]
    if words:
        changed = [word.replace(*(f"={one}" for one in words)) for word in machine.compiler if "fpu" not in word]
        assert any(word.endswith(words[1]) for word in changed)
        machine = dataclasses.replace(machine, compiler=tuple(changed))
    pairs = []
    for place, kind in enumerate(MAKERS):
        pairs += random_pairs(kind, variant, sized(2, 60), 2, exact=True, first=1000 * place)
    check(pairs, machine, tmp_path, ("-O2", *flags))


def test_products_joined_by_vmla_are_exact(tmp_path):
    """VMLA rounds the product: the tiles of a processor that takes no further cycles for it."""
    pairs = []
    for place, kind in enumerate(("convolution", "dense", "depthwise")):
        pairs += random_pairs(kind, "dsp-float", sized(3, 40), 3, first=1000 * place)
    assert all("vmla.f32" in two[1].emitted.source for two in pairs)
    check(pairs, machines()["cortex-m7"], tmp_path)


@pytest.mark.parametrize("kind", FLOAT_KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("variant", CORES)
def test_windows_in_the_padding(variant, kind, tmp_path):
    pairs = []
    for number in range(sized(40, 600)):
        random, program = padded_layer(kind, number, "float32")
        if program is not None:
            pairs.append(pair(program, random_layers.inputs_of(random, program, number), variant, number))
    pairs = [two for two in pairs if two]
    assert len(pairs) > sized(6, 200)
    check(pairs[: sized(6, 600)], machines()[CORES[variant]], tmp_path)


@pytest.mark.parametrize("kind", ["convolution", "depthwise", "elements", "pool"])
@pytest.mark.parametrize("variant", CORES)
def test_only_the_channels_of_a_layer_change(variant, kind, tmp_path):
    pairs = []
    for number in range(sized(6, 100)):
        random = np.random.default_rng((4, number))
        keys = {"shape": (1, *map(int, random.integers(2, 9, 3)))} if kind == "elements" else {}
        made = MAKERS[kind](random, **keys)
        inputs = random_layers.inputs_of(random, made, number)
        placed = placed_between_channels(random, made)
        limits = limits_for(made, variant, inputs)
        part, [whole] = placed.operations[1].results[0], placed.outputs
        if limits is not None:
            wide = np.zeros(whole.shape, np.float32)
            wide[..., part.offset : part.offset + part.shape[-1]] = limits[0]
            limits = [wide]
        pairs.append(pair(placed, inputs, variant, number, limits=limits))
    pairs = [two for two in pairs if two]
    assert len(pairs) >= sized(3, 50)
    check(pairs, machines()[CORES[variant]], tmp_path)


SPECIAL = np.asarray([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, 1e-40, -1e-45, 3e38, 1.1754944e-38], np.float32)


@pytest.mark.parametrize("kind", MAKERS)
def test_infinite_and_subnormal_numbers_on_the_fpu(kind, tmp_path):
    """NaN results are NaN; their bits are those of the operand that the instruction takes."""
    pairs = []
    for number in range(sized(4, 60)):
        random = np.random.default_rng((6, number))
        program = MAKERS[kind](random)
        inputs = [
            np.where(
                random.random(value.shape) < 0.9, random.normal(0, 1, value.shape), random.choice(SPECIAL, value.shape)
            )
            for value in program.inputs
        ]
        inputs = [array.astype(np.float32) for array in inputs]
        pairs.append(pair(program, inputs, "dsp-float", number))
    check([two for two in pairs if two], machines()["cortex-m4"], tmp_path)


def test_a_limit_finds_a_wrong_product(tmp_path):
    """Outputs that are farther than the limits are wrong, also in one place, and those that are nearer are right."""
    program = random_layers.float_convolution(
        np.random.default_rng(3), (1, 6, 6, 8), (3, 3), 8, limits=(None, None), same=True, stride=(1, 1)
    )
    inputs = inputs_of(program)
    [expected], [limit] = run_program(program, inputs, {}), limits_for(program, "mve-float", inputs)
    assert limit.min() > 0 and limit.max() < 1e-4 * np.abs(expected).max()
    shifts = [0.0, 0.5, 3.0]
    outputs = [expected + shift * limit for shift in shifts]
    one = expected.copy()
    one[0, 2, 3, 5] -= 3 * limit[0, 2, 3, 5]
    given = []
    for number, array in enumerate([*outputs, one]):
        emitted = emit_program(program, "made by a test", "mve-float", prefix=f"a{number}_")
        given.append(Candidate(program, emitted, inputs, [array], None, [limit]))
    found = run(given, machines()["cortex-m55"], tmp_path)
    assert [measured.wrong for measured in found] == [0, 0, expected.size, 1]


def test_vectors_are_within_the_committed_bounds(tmp_path):
    """The bounds are those of the comparison with LiteRT; data and weights are those of usual layers."""
    kinds = {"convolution": "CONV_2D", "depthwise": "DEPTHWISE_CONV_2D", "dense": "FULLY_CONNECTED"}
    given = []
    for number in range(sized(9, 90)):
        name = list(kinds)[number % 3]
        random = np.random.default_rng((8, number))
        program = MAKERS[name](random)
        [operation] = program.operations
        usual = random.normal(0, 1 / np.sqrt(operation.weights[..., 0].size), operation.weights.shape)
        program = random_layers.program(dataclasses.replace(operation, weights=usual.astype(np.float32), bias=None))
        emitted = emit_program(program, "made by a test", "mve-float", prefix=f"b{number}_")
        [expected] = run_program(program, inputs_of(program), {})
        limit = bound_of_operator(kinds[name]) * np.maximum(1, np.abs(expected))
        given.append(Candidate(program, emitted, inputs_of(program), [expected], None, [limit]))
    found = run(given, machines()["cortex-m55"], tmp_path)
    assert [measured.wrong for measured in found] == [0] * len(given)


def network():
    """Return a file with layers of all kinds: a residual block, pools, a product of matrices."""
    need("tflite")
    from models.made import Model

    model, random, plain = Model(), np.random.default_rng(12), ("float32", None, 0)

    def constants(shape, results, fan_in):
        weights = random.normal(0, 1 / np.sqrt(fan_in), shape).astype(np.float32)
        return [model.constant(weights), model.constant(random.normal(0, 0.1, results).astype(np.float32))]

    window = {"padding": "SAME", "stride_h": 1, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 1}
    first = {**window, "fused_activation_function": "RELU"}
    data = model.input("float32", (1, 14, 13, 3), name="data")
    data = model.operator("CONV_2D", [data, *constants((12, 3, 3, 3), 12, 27)], plain, **first)
    other = [data, *constants((1, 3, 3, 12), 12, 9)]
    other = model.operator("DEPTHWISE_CONV_2D", other, plain, depth_multiplier=1, **first)
    other = model.operator("CONV_2D", [other, *constants((12, 1, 1, 12), 12, 12)], plain, **window)
    data = model.operator("ADD", [data, other], plain, fused_activation_function="RELU")
    pool = {"padding": "VALID", "filter_height": 2, "filter_width": 2, "stride_h": 2, "stride_w": 2}
    data = model.operator("MAX_POOL_2D", [data], plain, **pool)
    rows = model.operator("RESHAPE", [data, model.constant(np.asarray([42, 12], np.int32))], plain)
    data = model.operator("BATCH_MATMUL", [rows, rows], plain, adj_y=True)
    data = model.operator("RESHAPE", [data, model.constant(np.asarray([1, 42, 42, 1], np.int32))], plain)
    data = model.operator("AVERAGE_POOL_2D", [data], plain, **{**pool, "filter_height": 6, "stride_h": 6})
    data = model.operator("RESHAPE", [data, model.constant(np.asarray([1, 147], np.int32))], plain)
    return model.ending_with("FULLY_CONNECTED", [data, *constants((10, 147), 10, 147)], plain, keep_num_dims=True)


LAYERS = ["CONV_2D", "DEPTHWISE_CONV_2D", "CONV_2D", "ADD", "MAX_POOL_2D", "BATCH_MATMUL", "AVERAGE_POOL_2D"]


@pytest.mark.parametrize("variant", CORES)
def test_an_import_has_the_variant_in_every_layer(variant, tmp_path):
    model = network().save(tmp_path / "made.tflite")
    [graph] = prepare(model, Options(), lambda _: None).graphs
    program = program_of(graph, Options(), "made.tflite")
    emitted = emit_program(program, "made by a test", variant, prefix="network_")
    found = [(step.label.split("(")[1].split(")")[0], step.variant) for step in emitted.steps]
    assert found == [(name, variant) for name in (*LAYERS, "FULLY_CONNECTED")]
    inputs = inputs_of(program)
    expected = run_program(program, inputs, {})
    limits = [1e-5 * np.maximum(1, np.abs(array)) for array in expected]
    [measured] = run(
        [Candidate(program, emitted, inputs, expected, None, limits)], machines()[CORES[variant]], tmp_path
    )
    assert (measured.wrong, measured.guards) == (0, 0)


def square(extent, channels, results, size, stride=1):
    keys = {"stride": (stride, stride), "same": True, "dilation": (1, 1), "limits": (0.0, None)}
    random = np.random.default_rng(1)
    return random_layers.float_convolution(random, (1, extent, extent, channels), (size, size), results, **keys)


def depthwise(extent, channels, stride):
    keys = {"stride": (stride, stride), "same": True, "dilation": (1, 1), "limits": (0.0, None)}
    return random_layers.float_depthwise(np.random.default_rng(1), (1, extent, extent, channels), (3, 3), 1, **keys)


def dense(length, results):
    return random_layers.float_dense(np.random.default_rng(1), length, results, 1, (0.0, None))


def product(rows, depth, columns):
    return random_layers.float_product(np.random.default_rng(1), rows, depth, columns, (False, False))


IC = {
    "32x32x3 to 16": (square(32, 3, 16, 3), 1),
    "32x32x16 to 16": (square(32, 16, 16, 3), 2),
    "32x32x16 to 32 stride 2": (square(32, 16, 32, 3, 2), 1),
    "16x16x32 to 32": (square(16, 32, 32, 3), 1),
    "16x16x32 to 64 stride 2": (square(16, 32, 64, 3, 2), 1),
    "8x8x64 to 64": (square(8, 64, 64, 3), 1),
    "1x1 32x32x16 to 32": (square(32, 16, 32, 1, 2), 1),
    "1x1 16x16x32 to 64": (square(16, 32, 64, 1, 2), 1),
}
"""The convolutions of MLPerf Tiny's ic, ResNet-8, and their number."""
COSTS = {
    "dense 640 to 128": (dense(640, 128), 640 * 128, 3.5, 0.56),
    "depthwise 16x16x64": (depthwise(16, 64, 1), 16 * 16 * 64 * 9, 5.7, 1.07),
    "depthwise 16x16x32 stride 2": (depthwise(16, 32, 2), 8 * 8 * 32 * 9, 7.3, 1.52),
    "products 64x64 by 64x64": (product(64, 64, 64), None, 3.2, 0.57),
    "sum of 4096": (random_layers.float_elements(np.random.default_rng(1), 4096, "+", (0.0, None)), 4096, 9.1, 1.85),
}
"""Programs, their products or elements, and ceilings: modelled cycles on the M4, instructions on the M55."""


def measured(programs, variant, folder):
    pairs = [pair(one, inputs_of(one), variant, number) for number, one in enumerate(programs)]
    return check(pairs, machines()[CORES[variant]], folder)[1::2]


def test_costs(tmp_path):
    programs = [row[0] for row in COSTS.values()]
    slow = measured(programs, "dsp-float", tmp_path / "m4")
    fast = measured(programs, "mve-float", tmp_path / "m55")
    for name, cycles, instructions in zip(COSTS, slow, fast, strict=True):
        program, count, most_cycles, most_instructions = COSTS[name]
        count = count or program.outputs[0].size * 64
        assert cycles.cycles / count <= most_cycles, name
        assert instructions.instructions / count <= most_instructions, name


def test_costs_of_ic(tmp_path):
    """Of all 12.5 million products: 3.5 modelled cycles on the M4 and 0.5 instructions on the M55 are the limits."""
    programs, counts = zip(*IC.values(), strict=True)
    products = [
        one.operations[0].weights[0].size * one.operations[0].results[0].size * count for one, count in IC.values()
    ]
    assert sum(products) == 12_500_992
    slow = measured(programs, "dsp-float", tmp_path / "m4")
    fast = measured(programs, "mve-float", tmp_path / "m55")
    cycles = sum(one.cycles * count for one, count in zip(slow, counts, strict=True))
    instructions = sum(one.instructions * count for one, count in zip(fast, counts, strict=True))
    assert cycles / sum(products) <= 3.0
    assert instructions / sum(products) <= 0.47
    assert max(one.code for one in slow) < 2048 and max(one.code for one in fast) < 1024


@pytest.mark.parametrize("variant", CORES)
def test_filters_of_one_channel(variant, tmp_path):
    """A depthwise convolution of one channel with several results."""
    pairs = []
    for number, results in enumerate((2, 5, 8)):
        program = random_layers.float_depthwise(np.random.default_rng((10, number)), (1, 9, 8, 1), (3, 2), results)
        pairs.append(pair(program, inputs_of(program), variant, number))
    assert all(pairs)
    check(pairs, machines()[CORES[variant]], tmp_path)
