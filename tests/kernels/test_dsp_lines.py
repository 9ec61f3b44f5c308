# SPDX-License-Identifier: Apache-2.0
"""Elements, rows and interpolation on a Cortex-M4, sums on a Cortex-M3, in QEMU: results, costs, imports.

Results are equal to those of the reference bit for bit.
"""

import dataclasses

import numpy as np
import pytest
from campaign import sized
from kernels import reference
from kernels.variants import candidate, candidates_of, check, variant_of
from models.commands import chosen
from models.made import Model
from opwest.compiler.emission.function import VARIANTS
from opwest.compiler.execution.run import run_program
from opwest.compiler.ir.elements import AddQuantised, Product, SquaredDifference
from opwest.compiler.ir.operations import Elementwise, SoftmaxTable
from opwest.compiler.kernels.dsp.wide_unary import segments
from opwest.compiler.kernels.lines import Form
from opwest.compiler.kernels.slopes import sum_line
from opwest.compiler.output.emit import emit_program
from opwest.compiler.request import Options
from opwest.compiler.semantics.arithmetic import AddNumbers, ProductNumbers
from opwest.compiler.semantics.fixed_point import Multiplier, quantize_multiplier
from opwest.compiler.semantics.tables import SigmoidNumbers, interpolated_sigmoid
from opwest.imports.prepare import prepare, program_of
from opwest.tuning import random_layers
from opwest.tuning.image import Candidate
from opwest.tuning.machines import machines
from opwest.tuning.measure import alone, inputs_of, run

CORE = "cortex-m4"
KINDS = [
    ("pairs", "int8", "dsp-elements"),
    ("pairs", "int16", "dsp-elements"),
    ("extremes", "int8", "dsp-elements"),
    ("extremes", "int16", "dsp-elements"),
    ("slopes", "int8", "dsp-elements"),
    ("softmax", "int8", "dsp-softmax"),
    ("softmax", "int16", "dsp-softmax"),
    ("reduction", "int8", "dsp-sums"),
    ("reduction", "int16", "dsp-sums"),
    ("interpolation", "int8", "dsp-interpolate"),
    ("interpolation", "int16", "dsp-interpolate"),
    ("rescaled", "int16", "dsp-unary"),
    ("samples", "int16", "dsp-unary"),
    ("sigmoid", "int16", "dsp-unary"),
    ("table", "int8", "mla-lookup"),
    ("table", "uint8", "mla-lookup"),
]


@pytest.mark.parametrize(("kind", "dtype", "variant"), KINDS)
def test_random_layers(kind, dtype, variant, tmp_path):
    make = getattr(random_layers, kind)
    found = candidates_of(make, variant, sized(60, 400), seed=41, most=sized(6, 200), dtype=dtype)
    assert len(found) >= sized(6, 100)
    assert {variant_of(one) for one in found} == {variant}
    check(found, CORE, tmp_path, ("-O2", "-Wconversion", "-Wsign-conversion", "-Werror"))


def test_sums_on_a_cortex_m3(tmp_path):
    """Without the DSP extension each result is clamped alone."""
    found = candidates_of(random_layers.pairs, "mla-slopes", sized(80, 600), seed=44, most=sized(12, 200))
    found += candidates_of(random_layers.elements, "mla-slopes", 20, seed=45, most=4, shape=(3, 33), kind="subtract")
    assert len(found) >= sized(14, 100) and {variant_of(one) for one in found} == {"mla-slopes"}
    assert any("_each(" in one.emitted.source for one in found)
    check(found, "cortex-m3", tmp_path)


def test_code_does_not_depend_on_optimisation(tmp_path):
    found = []
    for kind, dtype, variant in KINDS[::2]:
        found += candidates_of(getattr(random_layers, kind), variant, 40, seed=42, most=1, dtype=dtype)
    assert len(found) == len(KINDS[::2])
    check(found, CORE, tmp_path / "none", ("-O0", "-Werror"))
    check(found, CORE, tmp_path / "small", ("-Os", "-Werror"))


def _sum(scales, target, zeros=(3, -7, 11), limits=(-128, 127), subtract=False, left=20):
    twice = 2 * max(scales)
    multipliers = tuple(quantize_multiplier(scale / twice) for scale in scales)
    result = quantize_multiplier(twice / ((1 << left) * target))
    return AddQuantised(AddNumbers(left, zeros[:2], multipliers, result, zeros[2], *limits), subtract)


def _square(scales, target):
    twice = 2 * max(scales)
    multipliers = tuple(quantize_multiplier(scale / twice) for scale in scales)
    result = quantize_multiplier(twice * twice / ((1 << 14) * target))
    return SquaredDifference(AddNumbers(7, (127, -128), multipliers, result, -128, -128, 127))


EXHAUSTIVE = [
    _sum((0.05, 0.03), 0.08),
    _sum((0.03, 0.05), 0.08, subtract=True),
    _sum((0.05, 0.05), 0.1),
    _sum((0.05, 0.05), 0.1, (0, 0, 0), subtract=True),
    _sum((0.25, 0.125), 0.5, (0, 0, 0), (-50, 60)),
    _sum((0.05, 0.000001), 0.05),
    _sum((0.5, 0.4), 0.02, (-128, 127, 0)),
    Product(ProductNumbers((3, -7), quantize_multiplier(0.0078125), -3, -128, 127)),
    Product(ProductNumbers((-128, 127), quantize_multiplier(0.004), 0, 0, 127)),
    Product(ProductNumbers((0, 0), Multiplier(1 << 30, -5), 1, -100, 77)),
    Product(ProductNumbers((5, 5), Multiplier(0, 0), 1, -100, 77)),
    _square((0.05, 0.03), 0.9),
    _square((0.03, 0.05), 1.7),
]


@pytest.mark.parametrize("form", ["pair", "row", "vector"])
def test_all_pairs_of_codes(form, tmp_path):
    """Sums of halves are rounded away from zero; each pair of int8 values is an element."""
    codes = np.arange(-128, 128).astype(np.int8)
    shapes = {"pair": ((65536,), (65536,)), "row": ((256, 1), (256,)), "vector": ((256, 256), (256,))}[form]
    one = np.repeat(codes, 256) if form != "row" else codes
    arrays = [one.reshape(shapes[0]), (np.tile(codes, 256) if form == "pair" else codes).reshape(shapes[1])]
    found = []
    for number, function in enumerate(EXHAUSTIVE):
        operands = tuple(random_layers.value("input", "int8", shape) for shape in shapes)
        result = random_layers.value("output", "int8", np.broadcast_shapes(*shapes))
        made = random_layers.program(Elementwise("layer", operands, (result,), function))
        found.append(candidate(made, "dsp-elements", number, arrays))
    assert {variant_of(one) for one in found} == {"dsp-elements"}
    check(found, CORE, tmp_path)


def test_sums_without_a_slope_have_tables(tmp_path):
    """Results so large that their clamp is all of the sum, and random ones: a line, or the loop with tables."""
    functions = [_sum((0.5, 0.4), 0.0000005), *(_sum((0.05, 0.03), float(t)) for t in np.linspace(0.01, 0.2, 40))]
    lines = [sum_line(one, False, Form.PAIR) for one in functions]
    assert lines[0] is None and sum(one is not None for one in lines) >= 38
    made = random_layers.elements(np.random.default_rng(1), (1, 99), "add")
    [operation] = made.operations
    # The result of the first one has a left shift, which no variant has.
    wide = dataclasses.replace(functions[1].numbers, result=Multiplier(1 << 30, -1), zero=0, low=-128, high=127)
    replaced = dataclasses.replace(operation, function=AddQuantised(wide))
    assert sum_line(AddQuantised(wide), False, Form.PAIR) is None
    program = random_layers.program(replaced)
    inputs = random_layers.inputs_of(np.random.default_rng(2), program, 2)
    check([candidate(program, "dsp-elements", 0, inputs)], CORE, tmp_path)


@pytest.mark.parametrize("form", ["pair", "row", "constant"])
def test_greatest_and_least_int16_values(form, tmp_path):
    """Products of 2**30, sums of 2**16, either operand with the greater scale, halves."""
    ends = np.asarray([-32768, 32767, -1, 0, 1, -32767, 2, 12345])
    one, other = (array.astype(np.int16) for array in (np.repeat(ends, 8), np.tile(ends, 8)))
    zeros = (0, 0, 0)
    numbers = [_sum(*some, zeros, (-32768, 32767), sign, 15) for sign in (False, True) for some in WIDE]
    numbers += [_sum((0.001, 0.0007), 0.0015, zeros, limits, False, 15) for limits in ((0, 32767), (-100, 200))]
    numbers += [
        Product(ProductNumbers((0, 0), quantize_multiplier(real), 0, low, 32767))
        for real in (2.0**-15, 2.0**-16, 0.00003, 0.4)
        for low in (-32768, 0, -7)
    ]
    found = []
    for number, function in enumerate(numbers):
        shapes = ((64,), (64,)) if form != "row" else ((64,), (1,))
        operands = [random_layers.value("input", "int16", shape) for shape in shapes]
        arrays = [one, other if form != "row" else other[number % 8 : number % 8 + 1]]
        if form == "constant":
            operands[1] = dataclasses.replace(operands[1], role="constant", content=other)
            arrays = arrays[:1]
        result = random_layers.value("output", "int16", (64,))
        made = random_layers.program(Elementwise("layer", tuple(operands), (result,), function))
        found.append(candidate(made, "dsp-elements", number, arrays))
    assert {variant_of(one) for one in found} == {"dsp-elements"}
    check(found, CORE, tmp_path)


WIDE = [((0.001, 0.001), 0.002), ((0.001, 0.0007), 0.0013), ((0.0003, 0.001), 0.002), ((0.001, 0.0005), 0.001)]


@pytest.mark.parametrize("length", [1, 511, 512, 4095])
def test_softmax_of_equal_elements(length, tmp_path):
    found = []
    for number, (target, scale) in enumerate((target, scale) for target in ("int8", "int16") for scale in (0.01, 0.4)):
        made = random_layers.softmax(np.random.default_rng(1), (2, length), "int8", scale, target)
        data = np.full((2, length), -5, np.int8)
        data[1, -1] = 127
        found.append(candidate(made, "dsp-softmax", number, [data]))
    assert {variant_of(one) for one in found} == {"dsp-softmax"}
    check(found, CORE, tmp_path)


def test_rows_of_4096_elements_are_portable():
    made = random_layers.softmax(np.random.default_rng(1), (1, 4096), "int8", 0.1, "int8")
    assert emit_program(made, "test", "dsp-softmax").steps[0].variant == "portable"


def test_forms_of_interpolation(tmp_path):
    """Factors 2, 4 and 8 have sums of 16 bits; others of 32 bits, of int16 of 64 bits."""
    found = []
    for number, (dtype, factor, form) in enumerate(
        (dtype, factor, form)
        for dtype in ("int8", "int16")
        for factor in (2, 4, 8, 3, 5)
        for form in ("half", "plain", "corners")
    ):
        size = (3 * factor, 2 * (factor if factor < 8 else 1))
        made = random_layers.interpolation(np.random.default_rng(number), (1, 3, 2, 5), size, dtype, form)
        inputs = random_layers.inputs_of(np.random.default_rng(number), made, number % 3)
        found.append(candidate(made, "dsp-interpolate", number, inputs))
    assert {variant_of(one) for one in found} == {"dsp-interpolate"}
    names = {name for one in found for name in ("packed", "channels", "long") if f"_{name}(" in one.emitted.source}
    assert names == {"packed", "channels", "long"}
    check(found, CORE, tmp_path)


@pytest.mark.parametrize("is_tanh", [False, True])
def test_segments_have_the_results_of_samples(is_tanh):
    """For all numbers of the fixed-point input: places 0 and the multiplier 1 would give them."""
    bits, shift = (8, 8) if is_tanh else (9, 10)
    inputs = np.arange(-260 << bits, 260 << bits)
    first, steps = segments(is_tanh).astype(np.int64).reshape(-1, 2)[np.clip(inputs >> bits, -256, 255) + 256].T
    found = (first + (inputs & ((1 << bits) - 1)) * steps) >> shift
    assert np.array_equal(found, interpolated_sigmoid(inputs, SigmoidNumbers(1, 0), is_tanh))


@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_sums_of_many_rows(dtype, tmp_path):
    """More rows than 16 bits hold, elements at both ends, columns that are no multiple of four."""
    shapes = [((252, 8), (0,)), ((253, 7), (0,)), ((2, 600, 4), (1,)), ((3, 255, 2, 5), (0, 1)), ((1, 700), (1,))]
    found = []
    for number, (shape, axes) in enumerate(shapes):
        made = random_layers.reduction(np.random.default_rng(number), shape, axes, dtype, "mean")
        for case in (0, 1):
            inputs = random_layers.inputs_of(np.random.default_rng(number), made, case)
            found.append(candidate(made, "dsp-sums", f"{number}_{case}", inputs))
    assert {variant_of(one) for one in found} == {"dsp-sums"}
    check(found, CORE, tmp_path)


def _pair(kind, dtype, shapes, constant=False):
    model = Model()
    wide = dtype == "int16"
    first, second, target = (0.001, 0.0007, 0.0018) if wide else (0.05, 0.03, 0.08)
    zeros = (0, 0, 0) if wide else (-3, 7, 4)
    target = 0.9 if kind == "SQUARED_DIFFERENCE" else target
    data = model.input(dtype, shapes[0], first, zeros[0])
    if constant:
        content = np.random.default_rng(0).integers(-100, 100, shapes[1]).astype(dtype)
        other = model.constant(content, second, zeros[1])
    else:
        other = model.input(dtype, shapes[1], second, zeros[1])
    return model.ending_with(kind, [data, other], (dtype, target, zeros[2]))


def _one(kind, dtype, shape, result, *constants, **options):
    model = Model()
    scale, zero = (0.001, 0) if dtype == "int16" else (0.05, -3)
    given = [model.constant(np.asarray(one, np.int32)) for one in constants]
    return model.ending_with(kind, [model.input(dtype, shape, scale, zero), *given], result, **options)


ROWS = ((8, 64), (8, 1))
VECTOR = ((8, 64), (64,))
EQUAL = ((8, 64), (8, 64))
BYTES, HALVES = ("int8", 0.05, -3), ("int16", 0.001, 0)
COSTS = {
    "add": (_pair("ADD", "int8", EQUAL), 6.7),
    "add row": (_pair("ADD", "int8", ROWS), 5.1),
    "add vector": (_pair("ADD", "int8", VECTOR, True), 5.3),
    "subtract vector": (_pair("SUB", "int8", VECTOR), 7.0),
    "multiply": (_pair("MUL", "int8", EQUAL), 7.7),
    "multiply row": (_pair("MUL", "int8", ROWS), 6.9),
    "multiply vector": (_pair("MUL", "int8", VECTOR, True), 7.3),
    "square": (_pair("SQUARED_DIFFERENCE", "int8", EQUAL), 9.8),
    "square row": (_pair("SQUARED_DIFFERENCE", "int8", ROWS), 8.2),
    "wide add": (_pair("ADD", "int16", EQUAL), 11.9),
    "wide add vector": (_pair("ADD", "int16", VECTOR, True), 8.1),
    "wide subtract row": (_pair("SUB", "int16", ROWS), 7.2),
    "wide multiply": (_pair("MUL", "int16", EQUAL), 7.8),
    "wide multiply row": (_pair("MUL", "int16", ROWS), 7.6),
    "maximum": (_pair("MAXIMUM", "int8", VECTOR), 2.2),
    "softmax": (_one("SOFTMAX", "int8", (1, 1000), ("int8", 1 / 256, -128), beta=1.0), 9.9),
    "wide softmax": (_one("SOFTMAX", "int16", (1, 1000), ("int16", 1 / 32768, 0), beta=1.0), 22.8),
    "resize": (
        _one("RESIZE_BILINEAR", "int8", (1, 8, 8, 16), BYTES, (16, 16), half_pixel_centers=True),
        9.9,
    ),
    "resize corners": (_one("RESIZE_BILINEAR", "int8", (1, 8, 8, 16), BYTES, (16, 16), align_corners=True), 14.9),
    "wide resize": (
        _one("RESIZE_BILINEAR", "int16", (1, 8, 8, 16), HALVES, (16, 16), half_pixel_centers=True),
        14.9,
    ),
    "mean": (_one("MEAN", "int8", (8, 64), BYTES, (1,), keep_dims=True), 86),
    "wide mean": (_one("MEAN", "int16", (8, 64), HALVES, (1,), keep_dims=True), 107),
    "mean of columns": (_one("MEAN", "int8", (1, 8, 8, 16), BYTES, (1, 2)), 95),
    "hard swish": (_one("HARD_SWISH", "int8", (8, 64), BYTES), 3.7),
    "wide logistic": (_one("LOGISTIC", "int16", (8, 64), ("int16", 2.0**-15, 0)), 10.3),
    "wide leaky relu": (_one("LEAKY_RELU", "int16", (8, 64), HALVES, alpha=0.1), 10.9),
    "wide requantisation": (_one("QUANTIZE", "int16", (8, 64), BYTES), 6.8),
}
"""Models of one operator, and the most instructions for an element of the result."""


def test_instructions_for_each_element(tmp_path):
    found, limits = [], []
    for number, (name, (model, limit)) in enumerate(COSTS.items()):
        file = model.save(tmp_path / "made.tflite")
        [graph] = prepare(file, Options(), lambda *_: None).graphs
        [operation] = program_of(graph, Options(), "made").operations
        made = alone(operation)
        emitted = emit_program(made, "made by a test", "dsp", f"c{number}_")
        if emitted.steps[0].variant == "portable":
            emitted = emit_program(made, "made by a test", "mla-lookup", f"c{number}_")
        inputs = inputs_of(made)
        outputs = [reference.results_of(made.operations[0], *inputs)]
        found.append(Candidate(made, emitted, inputs, outputs))
        limits.append((name, limit * made.outputs[0].size))
    measured = check(found, CORE, tmp_path)
    above = {
        name: one.instructions for one, (name, limit) in zip(measured, limits, strict=True) if one.instructions > limit
    }
    assert not above
    assert max(one.code for one in measured) < 1000 and max(one.stack for one in measured) <= 110


def normalisation(rows=6, length=40):
    """Layer normalisation as converters write it, then the probabilities of each row."""
    model, random = Model(), np.random.default_rng(3)
    data = model.input("int8", (rows, length), 0.05, -3, name="data")
    last = model.constant(np.asarray([1], np.int32))
    mean = model.operator("MEAN", [data, last], ("int8", 0.02, 4), keep_dims=True)
    squares = model.operator("SQUARED_DIFFERENCE", [data, mean], ("int8", 0.15, -128))
    variance = model.operator("MEAN", [squares, last], ("int8", 0.06, -128), keep_dims=True)
    least = model.constant(np.asarray([-128], np.int8), 0.001, -128)
    inverse = model.operator(
        "RSQRT", [model.operator("ADD", [variance, least], ("int8", 0.06, -127))], ("int8", 0.02, -128)
    )
    moved = model.operator("SUB", [data, mean], ("int8", 0.06, -2))
    scaled = model.operator("MUL", [moved, inverse], ("int8", 0.03, 1))
    for kind, target in (("MUL", 0.04), ("ADD", 0.05)):
        vector = model.constant(random.integers(-128, 128, length).astype(np.int8), 0.01, 5)
        scaled = model.operator(kind, [scaled, vector], ("int8", target, -1))
    return model.ending_with("SOFTMAX", [scaled], ("int8", 1 / 256, -128), beta=1.0)


def test_import_of_a_normalisation(tmp_path):
    """Every operator has a variant, and the results are those of the interpreter of programs."""
    names = ["dsp-elements", "dsp-sums", "dsp-softmax", "mla-lookup"]
    file = normalisation().save(tmp_path / "made.tflite")
    words = [word for name in names for word in ("--prefer", name)]
    found, _ = chosen(file, tmp_path / "model", *words)
    # The sum with a constant is a table.
    wanted = "dsp-sums dsp-elements dsp-sums mla-lookup mla-lookup dsp-elements dsp-elements dsp-elements"
    assert found["dsp"] == [*wanted.split(), "dsp-elements", "dsp-softmax"]
    [graph] = prepare(file, Options(), lambda *_: None).graphs
    program = program_of(graph, Options(), "made")
    variants = dict(zip(program.operations, found["dsp"], strict=True))
    candidates = []
    for number in range(3):
        inputs = random_layers.inputs_of(np.random.default_rng(number), program, number + 2)
        emitted = emit_program(program, "made by a test", variants, f"c{number}_")
        candidates.append(Candidate(program, emitted, inputs, run_program(program, inputs)))
    for measured in run(candidates, machines()[CORE], tmp_path / "image"):
        assert (measured.wrong, measured.guards) == (0, 0)


def test_variants_of_this_file_are_registered():
    names = {one.name for some in VARIANTS.values() for one in some}
    assert {variant for _, _, variant in KINDS} <= names
    assert [one.name for one in VARIANTS[SoftmaxTable]][:2] == ["portable", "dsp-softmax"]
