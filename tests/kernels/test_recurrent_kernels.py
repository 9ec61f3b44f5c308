# SPDX-License-Identifier: Apache-2.0
"""Variants of integer LSTMs, and of functions of elements by tables, in QEMU: equal to numpy bit for bit."""

import dataclasses

import numpy as np
import pytest
from campaign import sized
from kernels.test_every_variant import core_of
from kernels.variants import FLAGS, check
from opwest.compiler.emission.function import VARIANTS
from opwest.compiler.execution.run import run_program
from opwest.compiler.ir.operations import Filter, FloatMemory, IntegerMemory
from opwest.compiler.output.emit import candidates, emit_program
from opwest.compiler.semantics.fixed_point import Multiplier, Rounding
from opwest.compiler.semantics.recurrent import LstmNumbers
from opwest.tuning import random_layers
from opwest.tuning.image import Candidate
from requirements_support import need

need("tflite")

from models.commands import chosen  # noqa: E402
from models.layers import byte_lstm, micro_lstm  # noqa: E402
from models.test_recurrent import svdf  # noqa: E402

LSTMS = ("dsp-lstm", "mve-lstm")
POWERS = range(-15, -8)


def candidate(program, variant, number, inputs):
    """Return a candidate whose expected results and states are those of numpy."""
    expected = run_program(program, [np.array(one) for one in inputs], {})
    emitted = emit_program(program, "made by a test", variant, prefix=f"layer_{number}_")
    assert emitted.steps[0].variant == variant
    return Candidate(program, emitted, inputs, expected)


def accepted(variant, count, seed, **keys):
    """Return the first layers that a variant accepts; most are."""
    found = []
    for number in range(4 * count + 8):
        random = np.random.default_rng((seed, number))
        made = random_layers.integer_lstm(random, **keys)
        inputs = random_layers.inputs_of(random, made, number)
        if variant in candidates(made.operations[0], variant.partition("-")[0]) and len(found) < count:
            found.append(candidate(made, variant, f"{seed}_{number}", inputs))
    assert len(found) == count
    return found


@pytest.mark.parametrize("variant", LSTMS)
@pytest.mark.parametrize("keys", [{"is_micro": False}, {"is_micro": True}, {"dtype": "int16"}], ids=str)
def test_random_lstms(variant, keys, tmp_path):
    check(accepted(variant, sized(6, 300), 1, **keys), core_of(variant), tmp_path)


@pytest.mark.parametrize("variant", LSTMS)
def test_lstms_with_loops_over_their_weights(variant, tmp_path):
    sizes = [(65, 64), (64, 97), (1, 130), (200, 3)]
    kinds = [{"is_micro": False}, {"is_micro": True}, {"dtype": "int16"}]
    found = [accepted(variant, 1, n, sizes=size, **kinds[n % 3])[0] for n, size in enumerate(sizes)]
    check(found, core_of(variant), tmp_path)


@pytest.mark.parametrize("variant", LSTMS)
def test_code_does_not_depend_on_optimisation(variant, tmp_path):
    found = [*accepted(variant, 2, 3, is_micro=False), *accepted(variant, 2, 4, dtype="int16")]
    for level in ("-O0", "-Os"):
        check(found, core_of(variant), tmp_path / level, (level, *FLAGS[1:]))


def beside_portable(made, variant, number, inputs):
    """Return the candidates of the portable variant and of another one, whose results and states must be equal."""
    found = []
    for name in ("portable", variant):
        emitted = emit_program(made, "made by a test", name, prefix=f"hybrid_{number}_{len(found)}_")
        found.append(Candidate(made, emitted, inputs, None, None if name == "portable" else 2 * number))
    assert found[1].emitted.steps[0].variant == variant
    return found


@pytest.mark.parametrize("variant", LSTMS)
def test_hybrid_lstms_are_equal_to_portable_ones(variant, tmp_path):
    """Of float32 bits: what a kernel computes are integers, and the order of the float operations is the same."""
    found = []
    for number in range(sized(5, 8)):
        random = np.random.default_rng((7, number))
        made = random_layers.hybrid_lstm(random, sizes=((5, 3), (70, 4), (17, 33), (1, 1), (2, 100))[number % 5])
        found += beside_portable(made, variant, number, random_layers.inputs_of(random, made, number))
    check(found, core_of(variant), tmp_path)


@pytest.mark.parametrize(("variant", "most"), [("dsp-lstm", 2.3), ("mve-lstm", 1.4)])
def test_cost_of_a_hybrid_lstm(variant, most, tmp_path):
    """Instructions for each product, of which those of the float functions are the most: 104 values, 40 cells."""
    made = random_layers.hybrid_lstm(np.random.default_rng(1), sizes=(104, 40))
    inputs = random_layers.inputs_of(np.random.default_rng(2), made, 3)
    portable, measured = check(beside_portable(made, variant, 0, inputs), core_of(variant), tmp_path)
    layer, [data, *_] = made.operations[0], inputs
    products = layer.weights.size * data.shape[0] * data.shape[1]
    assert portable.instructions - measured.instructions > 1.5 * products
    assert measured.instructions < most * products


FILTERS = ("dsp-svdf", "mve-svdf")


@pytest.mark.parametrize("variant", FILTERS)
def test_random_filters(variant, tmp_path):
    found = []
    for number in range(sized(16, 400)):
        random = np.random.default_rng((13, number))
        made = random_layers.svdf(random)
        inputs = random_layers.inputs_of(random, made, number)
        if variant in candidates(made.operations[0], variant.partition("-")[0]):
            found.append(candidate(made, variant, number, inputs))
    assert len(found) > sized(10, 250)
    check(found, core_of(variant), tmp_path)


@pytest.mark.parametrize("variant", FILTERS)
def test_filters_of_all_sizes(variant, tmp_path):
    """The last words and vectors of rows, and of times: one after the other in the state."""
    sizes = [(1, 1, 1, 1), (130, 5, 1, 2), (4, 1, 8, 3), (16, 2, 2, 64), (31, 3, 1, 17), (9, 7, 3, 8), (200, 2, 1, 9)]
    found = []
    for number, size in enumerate(sizes):
        random = np.random.default_rng((17, number))
        made = random_layers.svdf(random, sizes=size)
        while variant not in candidates(made.operations[0], variant.partition("-")[0]):
            made = random_layers.svdf(random, sizes=size)
        found.append(candidate(made, variant, number, random_layers.inputs_of(random, made, number)))
    check(found, core_of(variant), tmp_path)
    check(found[1:3], core_of(variant), tmp_path / "none", ("-O0", *FLAGS[1:]))


@pytest.mark.parametrize(("variant", "most"), [("dsp-svdf", 1.55), ("mve-svdf", 0.8)])
def test_cost_of_filters(variant, most, tmp_path):
    """40 values, 64 units of two filters with 10 times: 6,400 products."""
    random = np.random.default_rng(4)
    made = random_layers.svdf(random, sizes=(40, 64, 2, 10))
    while variant not in candidates(made.operations[0], variant.partition("-")[0]):
        made = random_layers.svdf(random, sizes=(40, 64, 2, 10))
    inputs = random_layers.inputs_of(random, made, 3)
    [measured] = check([candidate(made, variant, 0, inputs)], core_of(variant), tmp_path)
    print(measured)
    assert measured.instructions <= 6400 * most * inputs[0].shape[0]
    assert measured.code <= 1200


def test_filters_without_a_variant():
    made = random_layers.svdf(np.random.default_rng(1), sizes=(8, 4, 1, 5)).operations[0]
    long = random_layers.svdf(np.random.default_rng(1), sizes=(8, 4, 1, 65)).operations[0]
    others = [dataclasses.replace(made, zeros=(made.zeros[0], 1)), dataclasses.replace(made, inner=None), long]
    for variant in VARIANTS[Filter]:
        if variant.name in FILTERS:
            assert variant.call(made) is not None
            assert [variant.call(one) for one in others] == [None] * 3


WEIGHTS = (127, 127, 1)
"""The products of three int8 numbers with these are all int16 numbers but the ends."""


def of_values(values, cells, power, is_micro, gate, others):
    """Return a layer with a sequence of one step and one cell for each value of a gate: 0 the input, 2 the cell gate.

    The forget gate is 1, the output gate a half; `others`: the value of the other gate.
    """
    gates = np.zeros((4, 1, 4), np.int8)
    gates[gate, 0, :3] = WEIGHTS
    starts = np.zeros((2, 4, 1), np.int32)
    starts[0, 1], starts[0, 2 - gate] = 32767, others
    same = (Multiplier(1 << 30, 1),) * 4
    numbers = LstmNumbers(
        is_micro, Rounding.TWICE, same, same, (0, 0), power, None,
        (Multiplier(1 << 30, -14), Multiplier(1 << 30, -29 - power)) if is_micro else None,
        Multiplier(1 << 30, -22), 0, -128, 127,
    )  # fmt: skip
    count = len(values)
    inputs = (
        random_layers.value("data", "int8", (count, 1, 3)),
        random_layers.value("last", "int8", (count, 1)),
        random_layers.value("cell", "int16", (count, 1)),
    )
    inputs = tuple(dataclasses.replace(one, role="input") for one in inputs)
    result = random_layers.value("output", "int8", (count, 1, 1))
    layer = IntegerMemory("layer", inputs, (result,), False, gates, None, None, None, None, None, starts, numbers)
    made = random_layers.program(layer)
    made.outputs = [result, *inputs[1:]]
    first = np.clip(np.rint(values / 127 / 2), -128, 127).astype(np.int64)
    second = np.clip(np.rint((values - 127 * first) / 127), -128, 127).astype(np.int64)
    third = np.clip(values - 127 * (first + second), -128, 127)
    data = np.stack([first, second, third], axis=1).reshape(count, 1, 3).astype(np.int8)
    return made, [data, np.zeros((count, 1), np.int8), cells.reshape(count, 1).astype(np.int16)]


@pytest.mark.parametrize("variant", LSTMS)
@pytest.mark.parametrize("is_micro", [False, True], ids=["litert", "micro"])
def test_functions_of_all_values(variant, is_micro, tmp_path):
    """Cells of 16 bits show every difference of the functions of gates; results of 8 bits most of tanh of cells."""
    every = np.arange(-32768, 32768)
    few = np.concatenate([[-32768, -32767, -1, 0, 1, 32766, 32767], *(every[place::61] for place in (0, 7))])
    values = sized(few, every)
    zeros = np.zeros(len(values), np.int64)
    powers = sized((-15, -12, -9), POWERS)
    made = [of_values(values, zeros, -15, is_micro, gate, 32767) for gate in (0, 2)]
    made += [of_values(zeros, values, power, is_micro, 2, -32767) for power in powers]
    found = [candidate(program, variant, number, inputs) for number, (program, inputs) in enumerate(made)]
    for one, low in zip(found, (0, -32000), strict=False):
        assert (one.outputs[2].min() - low < 99, one.outputs[2].max() > 32000) == (True, True)
    check(found, core_of(variant), tmp_path)


def layer_of(random, **changed):
    made = random_layers.integer_lstm(random, is_micro=False, sizes=(5, 6), power=-12)
    numbers = {name: changed.pop(name) for name in ("hidden", "low") if name in changed}
    operation = made.operations[0]
    return dataclasses.replace(operation, numbers=dataclasses.replace(operation.numbers, **numbers), **changed)


@pytest.mark.parametrize(
    "changed",
    [
        {"peepholes": np.ones((3, 6), np.int16)},
        {"norms": np.ones((4, 6), np.int16)},
        {"projection": np.ones((6, 6), np.int8)},
        {"starts": np.full((2, 4, 6), 1 << 33)},
        {"hidden": Multiplier(1 << 30, 1)},
        {"low": -100},
    ],
    ids=lambda one: next(iter(one)),
)
def test_layers_without_a_variant(changed):
    whole, other = layer_of(np.random.default_rng(2)), layer_of(np.random.default_rng(2), **changed)
    for variant in VARIANTS[IntegerMemory]:
        if variant.name in LSTMS:
            assert variant.call(whole) is not None
            assert variant.call(other) is None


CURVES = [
    ("mve-curves", random_layers.curve, "int16"),
    ("mve-curves", random_layers.table, "int8"),
    ("mve-curves", random_layers.table, "uint8"),
]


@pytest.mark.parametrize(("variant", "make", "dtype"), CURVES, ids=lambda one: getattr(one, "__name__", one))
def test_random_functions_of_elements(variant, make, dtype, tmp_path):
    found = []
    for number in range(sized(10, 400)):
        random = np.random.default_rng((9, number))
        made = make(random, dtype=dtype)
        if variant in candidates(made.operations[0], variant.partition("-")[0]):
            found.append(candidate(made, variant, number, random_layers.inputs_of(random, made, number)))
    assert len(found) >= sized(3, 100)
    check(found, core_of(variant), tmp_path)


KINDS = {"dsp-unary": ("LOGISTIC", "TANH"), "mve-curves": ("LOGISTIC", "TANH", "EXP")}


@pytest.mark.parametrize(("variant", "kind"), [(variant, kind) for variant, kinds in KINDS.items() for kind in kinds])
def test_curves_of_all_int16_values(variant, kind, tmp_path):
    every = np.arange(-32768, 32768).astype(np.int16)[:: sized(5, 1)]
    found = []
    for number in range(sized(2, 12)):
        made = random_layers.curve(np.random.default_rng((11, number)), len(every), kind)
        found.append(candidate(made, variant, number, [every]))
    check(found, core_of(variant), tmp_path)


COSTS = {
    ("dsp-lstm", "litert"): 270_000,
    ("dsp-lstm", "micro"): 187_000,
    ("dsp-lstm", "int16"): 156_000,
    ("mve-lstm", "litert"): 68_000,
    ("mve-lstm", "micro"): 56_000,
    ("mve-lstm", "int16"): 70_000,
}
"""The most instructions for 28 steps of 28 values with 20 cells, 107,520 products."""


def benchmark(rule):
    """Return an LSTM as that of tflite-micro's example: 28 steps of 28 values, 20 cells."""
    random = np.random.default_rng(3)
    made = random_layers.integer_lstm(random, "int16" if rule == "int16" else "int8", rule != "litert", -12, (28, 20))
    [layer] = made.operations
    dtype = layer.inputs[0].dtype
    shapes = ((1, 28, 28), (1, 20), (1, 20))
    inputs = tuple(dataclasses.replace(one, shape=shape) for one, shape in zip(layer.inputs, shapes, strict=True))
    by = (Multiplier(1 << 30, -4 if dtype == "int8" else -10),) * 4
    numbers = dataclasses.replace(layer.numbers, data=by, last=by, clip=32767, hidden=Multiplier(1 << 30, -22))
    weights = np.clip(np.rint(random.normal(0, 40, (4, 20, 48))), -127, 127).astype(np.int8)
    starts = random.integers(-3000, 3000, (2, 4, 20)).astype(np.int32)
    result = random_layers.value("output", dtype, (1, 28, 20))
    keys = {"inputs": inputs, "results": (result,), "weights": weights, "starts": starts, "is_time_major": False}
    return random_layers.program(dataclasses.replace(layer, numbers=numbers, **keys))


@pytest.mark.parametrize(("variant", "rule"), COSTS)
def test_cost_of_an_lstm(variant, rule, tmp_path):
    made = benchmark(rule)
    inputs = random_layers.inputs_of(np.random.default_rng(4), made, 3)
    [measured] = check([candidate(made, variant, 0, inputs)], core_of(variant), tmp_path)
    print(variant, rule, measured)
    assert measured.instructions <= COSTS[variant, rule]
    assert measured.code <= 2000


ELEMENTS = [
    ("dsp-unary", random_layers.curve, {"kind": "LOGISTIC"}, 10.3),
    ("dsp-unary", random_layers.curve, {"kind": "TANH"}, 10.3),
    ("mve-curves", random_layers.curve, {"kind": "LOGISTIC"}, 4.9),
    ("mve-curves", random_layers.curve, {"kind": "TANH"}, 4.9),
    ("mve-curves", random_layers.curve, {"kind": "EXP"}, 1.6),
    ("mve-curves", random_layers.table, {"target": "int8"}, 0.28),
    ("mve-curves", random_layers.table, {"target": "int16"}, 0.53),
]


@pytest.mark.parametrize(
    ("variant", "make", "keys", "most"), ELEMENTS, ids=lambda one: getattr(one, "__name__", str(one))
)
def test_cost_of_functions_of_elements(variant, make, keys, most, tmp_path):
    made = make(np.random.default_rng(1), 1000, **keys)
    inputs = random_layers.inputs_of(np.random.default_rng(2), made, 3)
    [measured] = check([candidate(made, variant, 0, inputs)], core_of(variant), tmp_path)
    assert measured.instructions <= 1000 * most


def test_all_variants_are_tested():
    for kind in (IntegerMemory, FloatMemory):
        assert {one.name for one in VARIANTS[kind]} == {"portable", *LSTMS}
    assert {one.name for one in VARIANTS[Filter]} == {"portable", *FILTERS}


@pytest.mark.parametrize("make", [byte_lstm, micro_lstm])
def test_an_import_uses_the_variants(make, tmp_path):
    file = plain_lstm(make).save(tmp_path / "lstm.tflite")
    for kernels in ("dsp", "mve"):
        found, _ = chosen(file, tmp_path / kernels, "--prefer", f"{kernels}-lstm")
        assert found[kernels] == [f"{kernels}-lstm"]


def test_an_import_uses_the_variants_of_filters(tmp_path):
    file = svdf(np.random.default_rng(5), "int8").save(tmp_path / "svdf.tflite")
    for kernels in ("dsp", "mve"):
        found, _ = chosen(file, tmp_path / kernels, "--prefer", f"{kernels}-svdf")
        assert found[kernels] == [f"{kernels}-svdf"]


def plain_lstm(make):
    """Return the first model of a family without parts that have no variant."""
    for seed in range(100):
        words = ["int8"] if make is micro_lstm else []
        model = make(np.random.default_rng(seed), *words)
        [(_, inputs, _, _)] = model.graph.operators
        if inputs[1] is not None and not any(one for one in (*inputs[9:12], inputs[16], *inputs[20:])):
            return model
    raise AssertionError("a layer without parts")
