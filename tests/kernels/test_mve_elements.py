# SPDX-License-Identifier: Apache-2.0
"""Functions of elements, rows and images with the vector extension, in QEMU: equal to numpy bit for bit, and fast."""

import re
from pathlib import Path

import numpy as np
import pytest
from campaign import sized
from kernels.variants import check, variant_of
from models.made import of_one
from opwest.compiler.execution.run import run_program
from opwest.compiler.ir.elements import AddQuantised, Clamped, Prelu, Product
from opwest.compiler.ir.operations import Elementwise
from opwest.compiler.kernels.mve.linear import CODES, linear_of
from opwest.compiler.output.emit import candidates, emit_program
from opwest.compiler.request import Options
from opwest.compiler.semantics.arithmetic import AddNumbers, PreluNumbers, ProductNumbers
from opwest.compiler.semantics.fixed_point import Multiplier, Rounding, quantize_multiplier, scaled
from opwest.imports.prepare import prepare, program_of
from opwest.tuning import random_layers
from opwest.tuning.image import Candidate
from opwest.tuning.machines import machines
from opwest.tuning.measure import run
from requirements_support import need

CORE = "cortex-m55"
MADE = {
    ("pairs", "int8"): "mve-words",
    ("pairs", "int16"): "mve-words",
    ("shifted", "int16"): "mve-words",
    ("extremes", "int8"): "mve-words",
    ("extremes", "int16"): "mve-words",
    ("slopes", "int8"): "mve-words",
    ("rescaled", "int16"): "mve-words",
    ("quantised", "float32"): "mve-words",
    ("dequantised", "int8"): "mve-words",
    ("dequantised", "uint8"): "mve-words",
    ("dequantised", "int16"): "mve-words",
    ("softmax", "int8"): "mve-gather",
    ("softmax", "int16"): "mve-gather",
    ("reduction", "int8"): "mve-lanes",
    ("reduction", "int16"): "mve-lanes",
    ("interpolation", "int8"): "mve-rows",
    ("interpolation", "int16"): "mve-rows",
}


def candidate(program, number, preferred="mve", inputs=None):
    random = np.random.default_rng((8, number))
    inputs = random_layers.inputs_of(random, program, number) if inputs is None else inputs
    expected = run_program(program, inputs, {})
    return Candidate(
        program, emit_program(program, "made by a test", preferred, prefix=f"l{number}_"), inputs, expected
    )


def made_by(maker, number, **keys):
    return getattr(random_layers, maker)(np.random.default_rng((9, number)), **keys)


@pytest.mark.parametrize(("kind", "dtype"), MADE)
def test_random_layers_have_exact_results(kind, dtype, tmp_path):
    found = [candidate(made_by(kind, number, dtype=dtype), number) for number in range(sized(12, 400))]
    some = [one for one in found if variant_of(one) == MADE[kind, dtype]]
    assert len(some) >= len(found) // 2
    check(some, CORE, tmp_path)


FORMS = ("equal", "scalar", "vector", "row", "outer", "any")


@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_operands_of_all_shapes(dtype, tmp_path):
    found = []
    for number in range(sized(18, 300)):
        kind = ("add", "subtract", "multiply")[number // 6 % 3]
        found.append(candidate(made_by("pairs", number, kind=kind, dtype=dtype, form=FORMS[number % 6]), number))
    assert {variant_of(one) for one in found} == {"mve-words"}
    check(found, CORE, tmp_path)


def pair(function, shape=(1, 64), other=None, dtype="int8"):
    inputs = (random_layers.value("input", dtype, shape), random_layers.value("input", dtype, other or shape))
    return random_layers.program(Elementwise("layer", inputs, (random_layers.value("output", dtype, shape),), function))


def sum_of(one, other, target, zeros=(-3, 4, 5), low=-128, high=127, subtract=False):
    twice = 2 * max(one, other)
    multipliers = quantize_multiplier(one / twice), quantize_multiplier(other / twice)
    result = quantize_multiplier(twice / ((1 << 20) * target))
    return AddQuantised(AddNumbers(20, zeros[:2], multipliers, result, zeros[2], low, high), subtract)


def all_pairs():
    return [
        np.repeat(CODES, 256).astype(np.int8).reshape(256, 256),
        np.tile(CODES, 256).astype(np.int8).reshape(256, 256),
    ]


SCALES = [(0.0713, 0.0432, 0.0911), (1, 1, 1), (1, 1, 2), (1, 0.5, 1), (0.0213, 0.3, 0.25), (3, 0.01, 1)]


@pytest.mark.parametrize("scales", sized(SCALES[:3], SCALES), ids=str)
@pytest.mark.parametrize("subtract", [False, True])
def test_linear_sums_are_exact_for_all_pairs_of_values(scales, subtract, tmp_path):
    function = sum_of(*scales, subtract=subtract)
    assert linear_of(function, (0, 1)) is not None
    one = candidate(pair(function, (256, 256)), 0, inputs=all_pairs())
    assert "_linear_" in one.emitted.source
    check([one], CORE, tmp_path)


def test_sums_without_a_linear_function_are_exact_for_all_pairs_of_values(tmp_path):
    # Sums that are halves but for the errors of float32 scales, which round them up or down.
    one, other, target = (float(np.float32(scale)) for scale in (0.05, 0.03, 0.04))
    functions = [sum_of(one, other, target, (-3, 4, -128), low=-128), sum_of(other, one, target, subtract=True)]
    assert [linear_of(function, (0, 1)) for function in functions] == [None, None]
    found = [candidate(pair(function, (256, 256)), n, inputs=all_pairs()) for n, function in enumerate(functions)]
    assert {variant_of(one) for one in found} == {"mve-words"}
    check(found, CORE, tmp_path)


def test_most_sums_have_a_linear_function():
    random = np.random.default_rng(1)
    found = []
    for _ in range(40):
        one, other = np.exp(random.uniform(-3, 0, 2))
        found.append(linear_of(sum_of(one, other, max(one, other) * random.uniform(0.8, 2)), (0, 1)))
    assert sum(one is not None for one in found) >= 36


def test_linear_functions_are_those_of_the_sums():
    function = sum_of(0.0713, 0.0432, 0.0611, (-128, 127, 9), -100, 90, subtract=True)
    for operands in ((0, 1), (1, 0)):
        linear = linear_of(function, operands)
        parts = [(CODES * (1 << 24) * by + (1 << 30)) >> 31 for by in linear.multipliers]
        sums = np.clip(parts[0][:, None] + parts[1][None, :] + linear.constant, -(2**31), 2**31 - 1)
        found = np.clip((sums + (1 << (linear.shift - 1))) >> linear.shift, linear.low, linear.high)
        numbers = function.numbers
        one, other = (
            scaled((CODES - zero) << 20, by.fixed, by.shift, Rounding.TWICE)
            for zero, by in zip(numbers.zeros, numbers.multipliers, strict=True)
        )
        wanted = numbers.zero + scaled(
            one[:, None] - other[None, :], numbers.result.fixed, numbers.result.shift, Rounding.TWICE
        )
        wanted = np.clip(wanted, -100, 90)
        assert np.array_equal(found, wanted if operands == (0, 1) else wanted.T)


def test_layers_of_equal_form_share_a_function():
    shapes = [(1, 64), (3, 128), (7, 20), (1, 1000)]
    steps = [emit_program(pair(sum_of(0.0713, 0.04 + 0.001 * n, 0.09), shape), "Test.", "mve").steps[0]
             for n, shape in enumerate(shapes)]  # fmt: skip
    assert len({step.function for step in steps}) == 1


def test_sums_with_two_other_multipliers_are_portable():
    numbers = AddNumbers(15, (0, 0), (Multiplier(1 << 30, -1), Multiplier(3 << 29, -1)), Multiplier(1 << 30, -14), 0,
                         -32768, 32767)  # fmt: skip
    assert set(candidates(pair(AddQuantised(numbers), dtype="int16").operations[0], "mve")) == {"portable"}


@pytest.mark.parametrize(("shape", "shifts"), [((1, 1), (0, -6)), ((3, 8), (16, -6)), ((3, 8), (0, 9))])
def test_slopes_of_more_dimensions_and_large_multipliers_have_no_vectors(shape, shifts):
    multipliers = (Multiplier(1 << 30, shift) for shift in shifts)
    inputs = (random_layers.value("input", "int8", shape), random_layers.value("input", "int8", (3, 8)))
    function = Prelu(PreluNumbers((0, 0), *multipliers, 0, -128, 127))
    operation = Elementwise("layer", inputs, (random_layers.value("output", "int8", (3, 8)),), function)
    assert not [name for name in candidates(operation, "mve") if name.startswith("mve")]


def test_extreme_values_of_int16(tmp_path):
    least, most = -32768, 32767
    values = np.asarray([least, most, least, most, -1, 0, 1, least, most], np.int16)
    others = np.asarray([least, most, most, least, most, least, -1, 0, 1], np.int16)
    found = []
    for number in range(sized(10, 60)):
        made = made_by("pairs", number, dtype="int16", shapes=((9,), (9,)))
        found.append(candidate(made, number, inputs=[values, others][: len(made.inputs)]))
    check(found, CORE, tmp_path)


# (kind, inputs, result, options): instructions for each element of the data or the result, whichever are more.
I8, I16 = ("int8", (1, 64, 64), 0.0513, -3), ("int16", (1, 64, 64), 2.1e-4, 0)
R8, R16 = ("int8", 0.0717, 5), ("int16", 3.3e-4, 0)
SIZE = (np.asarray([32, 32], np.int32),)
LAST, MIDDLE = (np.asarray([2], np.int32),), (np.asarray([1], np.int32),)
COSTS = {
    "ADD": ("ADD", [I8, ("int8", (1, 64, 64), 0.031, 4)], R8, {}, 1.95),
    "SUB": ("SUB", [I8, ("int8", (1, 64, 64), 0.031, 4)], R8, {}, 1.95),
    "ADD of halves": ("ADD", [("int8", (1, 64, 64), 0.05, -3), ("int8", (1, 64, 64), 0.03, 4)], ("int8", 0.04, -128),
                      {"fused_activation_function": "RELU"}, 3.6),
    "ADD of a vector": ("ADD", [I8, ("int8", (64,), 0.031, 4)], R8, {}, 2.05),
    "SUB of a value for each row": ("SUB", [I8, ("int8", (1, 64, 1), 0.031, 4)], R8, {}, 1.55),
    "MUL": ("MUL", [I8, ("int8", (1, 64, 64), 0.031, 4)], R8, {}, 2.35),
    "MUL by a vector": ("MUL", [I8, ("int8", (64,), 0.031, 4)], R8, {}, 2.45),
    "MUL by a scalar": ("MUL", [I8, ("int8", (1,), 0.031, 4)], R8, {}, 2.1),
    "ADD of int16": ("ADD", [I16, ("int16", (1, 64, 64), 1.3e-4, 0)], R16, {}, 3.1),
    "MUL of int16": ("MUL", [I16, ("int16", (1, 64, 64), 1.3e-4, 0)], R16, {}, 1.85),
    "SQUARED_DIFFERENCE": ("SQUARED_DIFFERENCE", [I8, ("int8", (1, 64, 1), 0.031, 4)], ("int8", 0.2, -128), {}, 2.65),
    "MAXIMUM": ("MAXIMUM", [I8, I8], ("int8", 0.0513, -3), {}, 0.35),
    "PRELU": ("PRELU", [("int8", (1, 8, 8, 64), 0.05, -3), (np.arange(64, dtype=np.int8), 0.01, 0)], R8, {}, 3.5),
    "LEAKY_RELU of int16": ("LEAKY_RELU", [I16], R16, {"alpha": 0.1}, 2.85),
    "QUANTIZE to int8": ("QUANTIZE", [I16], ("int8", 0.06, 5), {}, 2.35),
    "QUANTIZE of float32": ("QUANTIZE", [("float32", (1, 64, 64))], ("int8", 0.05, -3), {}, 3.85),
    "QUANTIZE by a power of two": ("QUANTIZE", [("float32", (1, 64, 64))], ("int8", 0.0625, -3), {}, 2.1),
    "DEQUANTIZE": ("DEQUANTIZE", [I8], ("float32",), {}, 1.6),
    "SOFTMAX": ("SOFTMAX", [("int8", (1, 1000), 0.05, -3)], ("int8", 1 / 256, -128), {"beta": 1.0}, 4.1),
    "SOFTMAX of short rows": ("SOFTMAX", [("int8", (64, 32), 0.05, 3)], ("int8", 1 / 256, -128), {"beta": 1.0}, 5.5),
    "SOFTMAX of int16": ("SOFTMAX", [("int16", (1, 1000), 2e-4, 0)], ("int16", 1 / 32768, 0), {"beta": 1.0}, 6.7),
    "MEAN of rows": ("MEAN", [I8, LAST], R8, {"keep_dims": True}, 0.5),
    "MEAN of rows of int16": ("MEAN", [I16, LAST], R16, {"keep_dims": True}, 0.7),
    "SUM of columns": ("SUM", [I8, MIDDLE], ("int8", 1.1, 0), {"keep_dims": True}, 0.6),
    "RESIZE_BILINEAR": ("RESIZE_BILINEAR", [("int8", (1, 16, 16, 16), 0.05, -3), SIZE], ("int8", 0.05, -3),
                        {"half_pixel_centers": True}, 2.05),
    "RESIZE_BILINEAR by corners": ("RESIZE_BILINEAR", [("int8", (1, 16, 16, 16), 0.05, -3), SIZE], ("int8", 0.05, -3),
                                   {"align_corners": True}, 3.6),
    "RESIZE_BILINEAR of one channel": ("RESIZE_BILINEAR", [("int8", (1, 12, 16, 1), 0.05, -3), SIZE],
                                       ("int8", 0.05, -3), {}, 2.9),
    "RESIZE_BILINEAR of int16": ("RESIZE_BILINEAR", [("int16", (1, 16, 16, 16), 2e-4, 0), SIZE], ("int16", 2e-4, 0),
                                 {"half_pixel_centers": True}, 3.6),
    "RESIZE_BILINEAR of int16 by corners": ("RESIZE_BILINEAR", [("int16", (1, 16, 16, 16), 2e-4, 0), SIZE],
                                            ("int16", 2e-4, 0), {"align_corners": True}, 6.2),
    "ADD of 44": ("ADD", [("int8", (1, 44), 0.0513, -3), ("int8", (1, 44), 0.031, 4)], R8, {}, 2.55),
    "MUL of 44": ("MUL", [("int8", (1, 44), 0.0513, -3), ("int8", (1, 44), 0.031, 4)], R8, {}, 2.85),
}  # fmt: skip


def imported(kind, inputs, result, options, folder):
    """Return the operation of an imported file."""
    path = of_one(kind, inputs, result, **options).save(folder / "made.tflite")
    settings = Options()
    [graph] = prepare(path, settings, lambda _: None).graphs
    return program_of(graph, settings, str(path))


def test_costs_of_imported_operators(tmp_path):
    found = []
    for number, (kind, inputs, result, options, _) in enumerate(COSTS.values()):
        program = imported(kind, inputs, result, options, tmp_path)
        assert len(program.operations) == 1
        found.append(candidate(program, 5 * number + 3))
    assert "portable" not in {variant_of(one) for one in found}
    costs = {}
    for name, one, measured in zip(COSTS, found, check(found, CORE, tmp_path), strict=True):
        [operation] = one.program.operations
        elements = max(value.size for value in (*operation.inputs, *operation.results))
        costs[name] = round(measured.instructions / elements, 3)
        assert measured.code < 300 and measured.stack <= 110, (name, measured)
    assert all(costs[name] <= limit for name, (*_, limit) in COSTS.items()), costs


@pytest.mark.parametrize("level", ["-O0", "-Os"])
def test_results_do_not_depend_on_optimisation(level, tmp_path):
    found = [candidate(made_by(kind, 3, dtype=dtype), number) for number, (kind, dtype) in enumerate(MADE)]
    check(found, CORE, tmp_path, (level,))


def test_no_instruction_is_encoded_in_two_ways():
    """GNU as encodes VQSHRN as VQRSHRN, which LLVM does not."""
    for kind, dtype in MADE:
        for number in range(6):
            [step] = emit_program(made_by(kind, number, dtype=dtype), "Test.", "mve").steps
            assert not re.search(r"\bvqshrn", "".join(step.function.definitions))


EDGES = [0.0, -0.0, 0.5, -0.5, 1.5, -1.5, 0.49999997, 126.5, 127.5, -128.5, 3e38, -3e38, 1e-40, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("scale", [1.0, 0.25, 0.3, 1.7e-7])
def test_numbers_at_the_edges_are_quantised_as_by_the_portable_variant(scale, tmp_path):
    made = [made_by("quantised", n, target=t, scale=scale, size=16) for n, t in enumerate(("int8", "uint8", "int16"))]
    values = (np.asarray(EDGES) * scale).astype(np.float32)
    found = []
    for program in made:
        for variant in ("portable", "mve"):
            emitted = emit_program(program, "made by a test", variant, prefix=f"l{len(found)}_")
            found.append(Candidate(program, emitted, [values], None, len(found) - 1 if variant == "mve" else None))
    assert [variant_of(one) for one in found] == ["portable", "mve-words"] * 3
    check(found, CORE, tmp_path)


def test_conversions_without_vectors_of_float(tmp_path):
    dtypes = {"quantised": ["float32"] * 3, "dequantised": ["int8", "uint8", "int16"]}
    found = [candidate(made_by(kind, 9 * number, dtype=dtype), len(kind) + number)
             for kind, some in dtypes.items() for number, dtype in enumerate(some)]  # fmt: skip
    check(found, CORE, tmp_path, ("-O2", "-mcpu=cortex-m55+nomve.fp", "-Wconversion", "-Werror"))


def test_conversions_by_extreme_scales_are_portable():
    for scale in (2.0**-61, 2.0**61):
        made = made_by("quantised", 0, target="int8", scale=scale)
        assert set(candidates(made.operations[0], "mve")) == {"portable"}


@pytest.mark.parametrize("target", ["uint8", "int16"])
def test_softmax_of_uint8(target, tmp_path):
    found = [candidate(made_by("softmax", n, dtype="uint8", scale=0.05, target=target), n) for n in range(sized(6, 60))]
    assert {variant_of(one) for one in found} == {"mve-gather"}
    check(found, CORE, tmp_path)


@pytest.mark.parametrize("dtype", ["uint8", "int32"])
def test_limits_of_other_dtypes(dtype, tmp_path):
    found = [candidate(made_by("extremes", number, dtype=dtype), number) for number in range(sized(8, 60))]
    for number, limits in enumerate([(3, 200), (0, 255), (77, 77)]):
        data, result = (random_layers.value(role, dtype, (5, 13)) for role in ("input", "output"))
        made = random_layers.program(Elementwise("layer", (data,), (result,), Clamped(*limits)))
        found.append(candidate(made, 100 + number))
    assert {variant_of(one) for one in found} == {"mve-words"}
    check(found, CORE, tmp_path)


def test_interrupts_do_not_change_results(tmp_path):
    need("arm-none-eabi-gcc", "qemu-system-arm", "cc")
    found = [candidate(made_by(kind, number, dtype=dtype), 10 * number + place)
             for place, (kind, dtype) in enumerate(MADE) for number in range(sized(1, 9))]  # fmt: skip
    handler = Path(__file__).with_name("interrupts.c")
    measured = run(found, machines()[CORE], tmp_path, ("-O2",), [handler], ["-icount", "shift=0"])
    assert [(one.wrong, one.guards) for one in measured] == [(0, 0)] * len(found)


def test_products_with_any_multiplier(tmp_path):
    shifts = (-31, -15, -1, 0, 1, 7)
    found = []
    for number, shift in enumerate(shifts):
        for fixed in (0, 1 << 30, (1 << 31) - 1):
            from_zero = number % 2 == 0
            numbers = ProductNumbers((-128, 127), Multiplier(fixed, shift), -128, -128 if from_zero else -100, 127)
            found.append(candidate(pair(Product(numbers), (3, 37)), len(found)))
    check(found, CORE, tmp_path)
