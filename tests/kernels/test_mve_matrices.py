# SPDX-License-Identifier: Apache-2.0
"""Matrix products, transposed and grouped convolutions and hybrid layers with the vector extension, in QEMU."""

import dataclasses
import itertools
from pathlib import Path

import numpy as np
import pytest
from campaign import sized
from kernels.variants import FLAGS, images
from opwest.compiler.execution.run import run_program
from opwest.compiler.ir.operations import Convolution, Sums
from opwest.compiler.output.emit import candidates, emit_program
from opwest.compiler.request import Options
from opwest.compiler.selection.macs import macs_of
from opwest.compiler.semantics.fixed_point import Multiplier, Requantisation, Rounding
from opwest.imports.prepare import prepare, program_of
from opwest.tuning import random_layers
from opwest.tuning.image import Candidate
from opwest.tuning.machines import machines
from opwest.tuning.measure import distinct, measure, run
from requirements_support import need

CORE = "cortex-m55"
VARIANTS = {
    ("matrix_product", "int8"): ("mve-product",),
    ("matrix_product", "int16"): ("mve-long",),
    ("transposed_convolution", "int8"): ("mve-phases",),
    ("transposed_convolution", "int16"): ("mve-phases",),
    ("grouped_convolution", "int8"): ("mve-rows",),
    ("grouped_convolution", "int16"): ("mve-rows", "mve-long"),
    ("hybrid_product", "int8"): ("mve-hybrid",),
    ("hybrid_convolution", "int8"): ("mve-hybrid",),
}
CASES = [(kind, dtype, variant) for (kind, dtype), variants in VARIANTS.items() for variant in variants]
LAYERS = sized(8, 240)
STACK = 300
"""The greatest use of stack of an operator, in bytes, with its arguments: docs/contributing/imports.md."""


def offered(made):
    return candidates(made.operations[0], "mve")


def is_without(made):
    """Whether no variant for the vector extension applies."""
    return not any(name.startswith("mve-") for name in offered(made))


def with_numbers(made, **changes):
    """Return the program of a layer with other numbers."""
    [layer] = made.operations
    return dataclasses.replace(made, operations=[dataclasses.replace(layer, **changes)])


def candidate(made, variant, number, case=2):
    inputs = random_layers.inputs_of(np.random.default_rng((3, number)), made, case)
    emitted = emit_program(made, "made by a test", variant, prefix=f"c{number}_")
    assert emitted.steps[0].variant == variant
    return Candidate(made, emitted, inputs, run_program(made, inputs, {}))


def layers_of(kind, dtype, variant, count, seed=11):
    """Return the first `count` random layers that the variant accepts."""
    numbers = itertools.count()
    found = []
    while len(found) < count:
        number = next(numbers)
        assert number < 20 * count + 100
        made = getattr(random_layers, kind)(np.random.default_rng((seed, number)), dtype=dtype)
        if variant in offered(made):
            found.append(candidate(made, variant, len(found), number))
    return found


def check(given, folder, flags=FLAGS):
    """Run candidates; results and the bytes around them must be right. Return what was measured."""
    need("arm-none-eabi-gcc", "qemu-system-arm", "cc")
    found = []
    for number, image in enumerate(images(given)):
        found += run(image, machines()[CORE], folder / f"image{number}", flags)
    for one, measured in zip(given, found, strict=True):
        assert (measured.wrong, measured.guards) == (0, 0), (measured, one.program.operations)
        assert measured.stack <= STACK, (measured, one.program.operations)
    return found


@pytest.mark.parametrize(("kind", "dtype", "variant"), CASES)
def test_random_layers_have_exact_results(kind, dtype, variant, tmp_path):
    check(layers_of(kind, dtype, variant, LAYERS), tmp_path)


def test_code_does_not_depend_on_optimisation(tmp_path):
    found = [
        dataclasses.replace(one, emitted=emit_program(one.program, "made by a test", variant, prefix=f"c{number}_"))
        for number, (kind, dtype, variant) in enumerate(CASES)
        for one in layers_of(kind, dtype, variant, 1, seed=12)
    ]
    # The stack is that of the default optimisation only.
    for level in ("-O0", "-O3"):
        for measured in run(found, machines()[CORE], tmp_path / level, (level, "-Wconversion", "-Werror")):
            assert (measured.wrong, measured.guards) == (0, 0)


SHIFTS = [(1 << 30, shift) for shift in (-31, -17, -16, -15, -1, 0, 1, 7, 30)]
ENDS = [
    (rounding, fixed, shift, zero, limits)
    for rounding in (Rounding.TWICE, Rounding.ONCE)
    for (fixed, shift), zero, limits in zip(
        [*SHIFTS, (0, 0), ((1 << 31) - 1, -5), ((1 << 31) - 1, -9), (1 << 30, -2), (1518500250, -8)],
        itertools.cycle([0, -128, 127, 5]),
        itertools.cycle([(-128, 127), (-128, 127), (-3, 100)]),
        strict=False,
    )
]


def test_every_end_of_a_matrix_product_is_exact(tmp_path):
    found = []
    for number, (rounding, fixed, shift, zero, limits) in enumerate(ENDS):
        sizes = [(5, 12, 7), (4, 20, 2), (1, 16, 9), (3, 33, 3)][number % 4]
        made = random_layers.matrix_product(
            np.random.default_rng((13, number)), sizes, kind="one", rounding=rounding, constant=-1, has_bias=False
        )
        [layer] = made.operations
        zeros = [(-128, 127), (127, -128), (0, 0), (0, 5), (-7, 0)][number % 5]
        low, high = min(limits[0], zero) if number % 2 else limits[0], limits[1]
        finish = Requantisation((Multiplier(fixed, shift),), rounding, zero, low, high)
        made = with_numbers(made, finish=finish, zeros=zeros) if layer.results[0].dtype == "int8" else made
        if "mve-product" in offered(made):
            found.append(candidate(made, "mve-product", number, number))
        else:
            # One rounding shifts sums to the left, which must not exceed 32 bits.
            assert rounding is Rounding.ONCE and shift > 0
    assert len(found) > len(ENDS) - 4
    check(found, tmp_path)


SIZES = [(1, 1, 1), (2, 16, 1), (3, 17, 2), (4, 129, 3), (5, 300, 40), (9, 2000, 5), (6, 15, 21), (1, 8, 150)]


@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_sizes_and_orders_of_matrices(dtype, tmp_path):
    """Columns beyond scratch memory, odd ones, rows beyond the unrolled code, each order of elements."""
    variant, found = {"int8": "mve-product", "int16": "mve-long"}[dtype], []
    for number, (sizes, swaps) in enumerate(zip(SIZES, itertools.product([False, True], repeat=3), strict=True)):
        for batches in (((), ()), ((3, 1), (2,))) if number < 5 else (((), ()),):
            made = random_layers.matrix_product(
                np.random.default_rng((14, number)), sizes, batches, swaps[:2], "one", dtype, constant=-1
            )
            zeros = (0, 0) if dtype == "int16" else (-128, 12)
            if made.operations[0].results[0].dtype == dtype:
                made = with_numbers(made, zeros=zeros)
            if variant in offered(made):
                found.append(candidate(made, variant, len(found)))
    assert len(found) > 8
    check(found, tmp_path)


def test_constant_columns_are_packed_at_import(tmp_path):
    found = []
    for number, (columns, batches) in enumerate([(1, ((), ())), (7, ((3,), (3,))), (8, ((3,), ())), (5, ((), (2,)))]):
        made = random_layers.matrix_product(
            np.random.default_rng((15, number)), (6, 20, columns), batches, (False, bool(number % 2)), "one",
            constant=1, has_bias=False, rounding=Rounding.TWICE,
        )  # fmt: skip
        found.append(candidate(made, "mve-product", number))
        assert [one for one in found[-1].emitted.steps[0].function.parameters if one.direction == "scratch"] == []
    check(found, tmp_path)


def test_layers_of_other_forms_are_portable():
    random = np.random.default_rng(16)
    keys = {"constant": -1, "has_bias": False, "rounding": Rounding.TWICE}
    made = random_layers.matrix_product(random, (4, 16, 4), ((), ()), (False, False), "one", **keys)
    assert "mve-product" in offered(made)
    [layer] = made.operations
    several = tuple(Multiplier(1 << 30, -number - 3) for number in range(4))
    for finish in (
        dataclasses.replace(layer.finish, multipliers=several),
        dataclasses.replace(layer.finish, rounding=Rounding.FLOAT, scales=(0.5,)),
    ):
        assert "mve-product" not in offered(with_numbers(made, finish=finish))
    made = random_layers.transposed_convolution(random, (1, 4, 4, 3), (3, 3), 2, (2, 2), "ordinary", is_constant=False)
    assert is_without(made)
    made = random_layers.transposed_convolution(random, (1, 4, 4, 3), (5, 5), 2, (5, 5), "ordinary", is_constant=True)
    assert is_without(with_numbers(made, zeros=(0, 0)))
    made = random_layers.hybrid_convolution(random, (1, 4, 4, 3), (3, 3), form="depthwise")
    assert is_without(made)


def test_layers_of_sums(tmp_path):
    """As those of ONNX's ConvInteger and MatMulInteger: the results are the int32 sums."""
    found = []
    for number, make in enumerate(
        [random_layers.convolution, random_layers.dense, random_layers.grouped_convolution] * 3
    ):
        made = make(np.random.default_rng((22, number)), kind="ordinary")
        [layer] = made.operations
        result = random_layers.value("output", "int32", layer.results[0].shape)
        made.outputs, made.operations = [result], [dataclasses.replace(layer, finish=Sums(), results=(result,))]
        found.append(candidate(made, "mve-rows", number, number))
    check(found, tmp_path)


def products(random, sizes, swaps, zeros):
    """Return the products of 4 heads of an attention."""
    keys = {"constant": -1, "has_bias": False, "rounding": Rounding.TWICE}
    made = random_layers.matrix_product(random, sizes, ((4,), (4,)), swaps, "one", **keys)
    return with_numbers(made, zeros=zeros)


def wide_products(random):
    """Return products of int16 without limits of results."""
    keys = {"constant": -1, "has_bias": False, "rounding": Rounding.SIXTEEN, "dtype": "int16"}
    made = random_layers.matrix_product(random, (64, 64, 16), ((4,), (4,)), (False, True), "one", **keys)
    finish = dataclasses.replace(made.operations[0].finish, low=-32768, high=32767)
    return with_numbers(made, zeros=(0, 0), finish=finish)


def transposed(random, *shape):
    made = random_layers.transposed_convolution(random, *shape, "ordinary", is_constant=True, same=True)
    return with_numbers(made, zeros=(made.operations[0].zeros[0], 0))


def grouped(random, *shape):
    keys = {"stride": (1, 1), "dilation": (1, 1), "same": True}
    return random_layers.grouped_convolution(random, *shape, "ordinary", **keys)


COSTS = [
    # The instructions of a product, at most.
    ("mve-product", lambda random: products(random, (64, 16, 64), (False, True), (11, -5)), 0.25),
    ("mve-product", lambda random: products(random, (64, 64, 16), (False, False), (-128, 9)), 0.185),
    ("mve-product", lambda random: products(random, (64, 64, 16), (True, False), (-128, 9)), 0.255),
    ("mve-long", wide_products, 0.56),
    ("mve-phases", lambda random: transposed(random, (1, 8, 8, 16), (3, 3), 8, (2, 2)), 0.28),
    ("mve-phases", lambda random: transposed(random, (1, 8, 8, 32), (3, 3), 16, (2, 2)), 0.19),
    ("mve-phases", lambda random: transposed(random, (1, 8, 8, 16), (4, 4), 8, (2, 2)), 0.21),
    ("mve-rows", lambda random: grouped(random, (1, 8, 8, 32), (3, 3), 4, 32), 0.245),
    ("mve-rows", lambda random: grouped(random, (1, 8, 8, 16), (3, 3), 4, 16), 0.435),
    ("mve-rows", lambda random: grouped(random, (1, 8, 8, 32), (3, 3), 2, 32), 0.185),
    (
        "mve-hybrid",
        lambda random: random_layers.hybrid_convolution(random, (1, 1, 1, 256), results=64, form="dense"),
        0.325,
    ),
    (
        "mve-hybrid",
        lambda random: random_layers.hybrid_convolution(
            random, (1, 8, 8, 16), (3, 3), 16, "plain", stride=(1, 1), same=True
        ),
        0.30,
    ),
    ("mve-hybrid", lambda random: random_layers.hybrid_product(random, (16, 64, 32), ((2,), (2,))), 0.25),
]


def test_costs(tmp_path):
    made = [make(np.random.default_rng(17)) for _, make, _ in COSTS]
    given = [candidate(one, variant, n) for n, (one, (variant, _, _)) in enumerate(zip(made, COSTS, strict=True))]
    for one, measured, (variant, _, most) in zip(made, check(given, tmp_path, ("-O2",)), COSTS, strict=True):
        [layer] = one.operations
        assert measured.instructions <= most * macs_of(layer), (variant, layer.results, measured)
        # A function for each of the lengths of rows; others are smaller.
        assert measured.code <= 3000, (variant, layer.results, measured)


def test_interrupts_do_not_change_results(tmp_path):
    need("arm-none-eabi-gcc", "qemu-system-arm", "cc")
    given = [layers_of(*case, 1, seed=18)[0] for case in CASES]
    given = [
        dataclasses.replace(one, emitted=emit_program(one.program, "made by a test", case[2], prefix=f"c{number}_"))
        for number, (one, case) in enumerate(zip(given, CASES, strict=True))
    ]
    handler = Path(__file__).with_name("interrupts.c")
    found = run(given, machines()[CORE], tmp_path, ("-O2",), [handler], ["-icount", "shift=0"])
    assert [(one.wrong, one.guards) for one in found] == [(0, 0)] * len(given)


def test_groups_are_read_from_windows_of_all_channels():
    """Groups of few channels share the copies of windows; larger ones and other depths have copies of their own."""
    random = np.random.default_rng(20)
    functions = []
    for shape, groups in [((1, 6, 6, 32), 4), ((1, 6, 6, 18), 2), ((1, 6, 6, 64), 2)]:
        made = random_layers.grouped_convolution(random, shape, (3, 3), groups, 8, "ordinary", dilation=(1, 1))
        assert isinstance(made.operations[0], Convolution)
        functions.append(offered(made)["mve-rows"].function)
    assert ["taps" in "".join(one.definitions) for one in functions] == [True, False, False]


def saved_model(path):
    """Save a file with a product of computed matrices, a transposed and a grouped convolution, and hybrid layers."""
    from models.made import Model

    random, model = np.random.default_rng(21), Model()

    def weights(shape, results):
        found = model.constant(
            random.integers(-127, 128, shape).astype(np.int8), random.uniform(0.01, 0.02, results), 0
        )
        return found, model.constant(
            random.integers(-500, 500, results).astype(np.int32), 0.05 * np.array(found.scale), 0
        )

    query, key = (model.input("int8", (1, 4, 8, 16), 0.05, zero) for zero in (3, -7))
    model.output(model.operator("BATCH_MATMUL", [query, key], ("int8", 0.1, -128), adj_x=False, adj_y=True))
    image = model.input("int8", (1, 6, 6, 16), 0.05, -4)
    window = {"padding": "SAME", "stride_w": 2, "stride_h": 2, "fused_activation_function": "NONE"}
    shape = model.constant(np.array([1, 12, 12, 8], np.int32))
    by, bias = weights((8, 3, 3, 16), 8)
    model.output(model.operator("TRANSPOSE_CONV", [shape, by, image, bias], ("int8", 0.3, 5), version=4, **window))
    window |= {"stride_w": 1, "stride_h": 1, "dilation_w_factor": 1, "dilation_h_factor": 1}
    by, bias = weights((16, 3, 3, 4), 16)
    model.output(model.operator("CONV_2D", [image, by, bias], ("int8", 0.2, -128), version=3, **window))
    plain = model.input("float32", (2, 40))
    by = model.constant(random.integers(-127, 128, (12, 40)).astype(np.int8), 0.01, 0)
    model.output(model.operator("FULLY_CONNECTED", [plain, by], ("float32",), version=9))
    image = model.input("float32", (1, 6, 6, 8))
    by = model.constant(random.integers(-127, 128, (12, 3, 3, 8)).astype(np.int8), random.uniform(0.01, 0.02, 12), 0)
    bias = model.constant(random.standard_normal(12).astype(np.float32))
    model.output(model.operator("CONV_2D", [image, by, bias], ("float32",), version=5, **window))
    return model.save(path)


def test_an_import_has_layers_for_these_variants(tmp_path):
    need("arm-none-eabi-gcc", "qemu-system-arm", "cc", "tflite")
    path, options = saved_model(tmp_path / "model.tflite"), Options()
    graphs = prepare(path, options, lambda _: None).graphs
    programs = [program_of(graph, options, str(path)) for graph in graphs]
    # A wrong result is an error.
    measured = measure(distinct(programs), CORE, tmp_path / "work").results
    fastest = {}
    for one in sorted(measured, key=lambda one: -one.cycles):
        fastest[type(one.operation).__name__] = one.variant
    assert fastest == {
        "MatrixProduct": "mve-product",
        "DirectConvolution": "mve-phases",
        "Convolution": "mve-rows",
        "QuantiseRows": "portable",
        "HybridConvolution": "mve-hybrid",
    }
