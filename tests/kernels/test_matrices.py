# SPDX-License-Identifier: Apache-2.0
"""Products of matrices, transposed and grouped convolutions, layers with float32 data: results, costs, imports."""

import dataclasses

import numpy as np
import pytest
from campaign import sized
from kernels import variants
from models.campaigns import graph_of
from models.made import Model
from opwest.base.diagnostics import Diagnostics
from opwest.compiler.ir.operations import ConvolutionSum, MatrixProduct
from opwest.compiler.lowering.builder import lower_graph
from opwest.compiler.lowering.passes import PASSES, with_passes
from opwest.compiler.output.emit import candidates, emit_program
from opwest.compiler.selection.macs import macs_of
from opwest.compiler.semantics.fixed_point import Requantisation, Rounding
from opwest.tuning import random_layers
from opwest.tuning.image import Candidate

INTEGERS = [
    ("dsp-matrix", random_layers.matrix_product, "int8"),
    ("dsp-matrix-wide", random_layers.matrix_product, "int16"),
    *(
        (variant, make, "int8")
        for variant in ("dsp-bytes", "dsp-halves")
        for make in (random_layers.transposed_convolution, random_layers.grouped_convolution)
    ),
    ("dsp-wide", random_layers.grouped_convolution, "int16"),
]
HYBRID = ["dsp-bytes", "dsp-halves"]


@pytest.mark.parametrize(("variant", "make", "dtype"), INTEGERS)
@pytest.mark.parametrize("core", ["cortex-m4", "cortex-m33"])
def test_random_layers(tmp_path, variant, make, dtype, core):
    most, seed = sized(8, 200), 1 + (core == "cortex-m33")
    found = variants.candidates_of(make, variant, 6 * most, seed, most=most, dtype=dtype)
    assert len(found) == most
    assert {variants.variant_of(one) for one in found} == {variant}
    variants.check(found, core, tmp_path)


def grouped_sum(random, **keys):
    """A grouped convolution whose results are added to a second input."""
    [layer] = random_layers.grouped_convolution(random, **keys).operations
    shape = layer.results[0].shape
    [added] = random_layers.elements(random, shape, kind="add").operations
    fields = {field.name: getattr(layer, field.name) for field in dataclasses.fields(layer)}
    fields["inputs"] = (*layer.inputs, random_layers.value("input", "int8", shape))
    return random_layers.program(ConvolutionSum(**fields, function=added.function, place=int(random.integers(0, 2))))


def pitched(random, **keys):
    """A grouped convolution whose results are between the channels of others."""
    [layer] = random_layers.grouped_convolution(random, **keys).operations
    [result] = layer.results
    whole = random_layers.value("output", result.dtype, (*result.shape[:3], result.shape[3] + 5))
    part = dataclasses.replace(result, role="intermediate", root=whole, offset=2, pitch=whole.shape[3])
    program = random_layers.program(dataclasses.replace(layer, results=(part,)))
    program.outputs = [whole]
    return program


@pytest.mark.parametrize("variant", ["dsp-bytes", "dsp-halves"])
@pytest.mark.parametrize("make", [grouped_sum, pitched])
def test_groups_with_sums_and_between_channels(tmp_path, make, variant):
    count = sized(6, 100)
    programs = accepted(make, variant, count, 8, dtype="int8")
    assert len(programs) == count
    variants.check(beside_portable(programs, variant), "cortex-m4", tmp_path)


def beside_portable(programs, variant, first=0):
    """Return candidates in a variant, each behind the portable one with the same inputs; `first`: the first number."""
    found = []
    for number, program in enumerate(programs, first):
        inputs = random_layers.inputs_of(np.random.default_rng(number), program, number)
        for name in ("portable", variant):
            emitted = emit_program(program, "made by a test", name, prefix=f"p{number}_{name[:3]}_")
            found.append(Candidate(program, emitted, inputs, None, None if name == "portable" else 2 * number))
    return found


def accepted(make, variant, count, seed, **keys):
    """Return programs of random layers that a variant accepts."""
    made = (make(np.random.default_rng((seed, number)), **keys) for number in range(20 * count))
    return [one for one in made if variant in candidates(one.operations[0], "dsp", ())][:count]


@pytest.mark.parametrize("variant", HYBRID)
def test_hybrid_layers_are_those_of_the_portable_operator(tmp_path, variant):
    """Also the last bits: the sums are exact, and the expression of the end is the same."""
    count = sized(8, 200)
    programs = accepted(random_layers.hybrid_convolution, variant, count, 3)
    assert len(programs) == count
    variants.check(beside_portable(programs, variant), "cortex-m4", tmp_path)


SHAPES = [
    {"sizes": (1, 1, 1)},
    {"sizes": (1, 3, 2), "swaps": (True, True)},
    {"sizes": (5, 8, 3), "swaps": (True, False)},
    {"sizes": (7, 200, 131), "batches": ((), ()), "swaps": (False, True)},
    {"sizes": (9, 130, 61), "batches": ((2,), (2,)), "swaps": (False, False)},
    {"sizes": (3, 5, 250), "batches": ((2, 1), (3,)), "swaps": (True, True)},
    {"sizes": (2, 33, 4), "batches": ((1, 3), (2, 1)), "constant": 0},
    {"sizes": (6, 12, 6), "batches": ((3,), ()), "constant": 1, "has_bias": True},
    {"sizes": (4, 4, 5), "kind": "exponents", "has_bias": True},
]
"""One row, column and tap; columns in several parts, also with an odd number; broadcast batches."""


@pytest.mark.parametrize(("variant", "dtype"), [("dsp-matrix", "int8"), ("dsp-matrix-wide", "int16")])
def test_shapes_of_matrices(tmp_path, variant, dtype):
    found = []
    for number, keys in enumerate(SHAPES * 2):
        random = np.random.default_rng((5, number))
        made = random_layers.matrix_product(random, **{"kind": "one", **keys}, dtype=dtype)
        inputs = random_layers.inputs_of(random, made, number)
        one = variants.candidate(made, variant, f"{variant}_{number}", inputs)
        found += [one] if variants.variant_of(one) == variant else []
    assert len(found) >= 12
    variants.check(found, "cortex-m4", tmp_path)


def int8_product(**keys):
    given = {"sizes": (4, 8, 4), "batches": ((), ()), "kind": "one", "has_bias": False, "constant": -1}
    [layer] = random_layers.matrix_product(np.random.default_rng(1), **{**given, **keys}).operations
    assert isinstance(layer, MatrixProduct)
    return layer


def names_of(operation):
    return set(candidates(operation, "dsp", ()))


def with_finish(operation, **changes):
    return dataclasses.replace(operation, finish=dataclasses.replace(operation.finish, **changes))


def test_products_that_are_refused():
    layer = int8_product()
    assert names_of(layer) == {"portable", "dsp-matrix"}
    scales = tuple(0.01 for _ in layer.finish.multipliers)
    refused = [with_finish(layer, rounding=Rounding.FLOAT, scales=scales)]
    left = tuple(dataclasses.replace(one, shift=3) for one in layer.finish.multipliers)
    refused.append(with_finish(layer, multipliers=left))
    bias = random_layers.value("input", "int32", (4,), "bias")
    refused.append(dataclasses.replace(layer, inputs=(*layer.inputs, bias)))
    for other in refused:
        assert names_of(other) == {"portable"}


def test_transposed_convolutions_that_are_refused():
    keys = {"kind": "ordinary", "is_constant": True, "weight_zero": 0, "shape": (1, 4, 4, 4), "size": (2, 2)}
    made = random_layers.transposed_convolution(np.random.default_rng(2), **keys, stride=(2, 2), same=True, results=4)
    [layer] = made.operations
    assert "dsp-halves" in names_of(layer)
    computed = dataclasses.replace(layer, inputs=(layer.inputs[0], random_layers.value("input", "int8", (4, 2, 2, 4))))
    moved = dataclasses.replace(layer, window=dataclasses.replace(layer.window, before=(2, 0)))
    for other in (computed, moved):
        assert names_of(other) == {"portable"}
    # Weights without their zero point need more than 8 bits.
    assert "dsp-bytes" not in names_of(dataclasses.replace(layer, zeros=(0, -128)))


MATRIX = {"kind": "one", "constant": -1, "has_bias": False}
TRANSPOSED = {"is_constant": True, "same": True, "stride": (2, 2), "weight_zero": 0, "kind": "ordinary"}
GROUPED = {"same": True, "stride": (1, 1), "dilation": (1, 1), "kind": "ordinary"}
COSTS = [
    ("dsp-matrix", random_layers.matrix_product, 1.16, {
        "sizes": (64, 16, 64), "batches": ((4,), (4,)), "swaps": (False, True), **MATRIX}),
    ("dsp-matrix", random_layers.matrix_product, 0.95, {
        "sizes": (64, 64, 16), "batches": ((4,), (4,)), "swaps": (False, False), **MATRIX}),
    ("dsp-halves", random_layers.transposed_convolution, 1.11, {
        "shape": (1, 8, 8, 16), "size": (3, 3), "results": 16, **TRANSPOSED}),
    ("dsp-halves", random_layers.transposed_convolution, 0.90, {
        "shape": (1, 8, 8, 32), "size": (4, 4), "results": 16, **TRANSPOSED}),
    ("dsp-halves", random_layers.grouped_convolution, 1.22, {
        "shape": (1, 8, 8, 32), "size": (3, 3), "groups": 4, "results": 32, **GROUPED}),
    ("dsp-halves", random_layers.grouped_convolution, 0.92, {
        "shape": (1, 8, 8, 32), "size": (3, 3), "groups": 2, "results": 32, **GROUPED}),
    ("dsp-halves", random_layers.hybrid_convolution, 0.78, {
        "shape": (1, 1, 1, 256), "results": 64, "form": "dense"}),
    ("dsp-halves", random_layers.hybrid_convolution, 0.99, {
        "shape": (1, 8, 8, 16), "size": (3, 3), "results": 16, "form": "plain", "same": True, "stride": (1, 1)}),
]  # fmt: skip
"""The most instructions for each product of data with weights."""


def of_costs(make, keys):
    """Return a program with zero points and with results of all values."""
    program = make(np.random.default_rng(4), **keys)
    [layer] = program.operations
    if isinstance(layer.finish, Requantisation):
        layer = with_finish(layer, zero=5, low=-128, high=127)
    if isinstance(layer, MatrixProduct):
        layer = dataclasses.replace(layer, zeros=(3, -4))
    return random_layers.program(layer)


def test_instructions_for_each_product(tmp_path):
    found = []
    for number, (variant, make, _, keys) in enumerate(COSTS):
        found += beside_portable([of_costs(make, keys)], variant, first=number)
    measured = variants.check(found, "cortex-m4", tmp_path)
    for one, made, (variant, _, most, keys) in zip(measured[1::2], found[1::2], COSTS, strict=True):
        each = one.instructions / macs_of(made.program.operations[0])
        assert each <= most, (variant, keys, each)
        assert one.code < 3000 and one.stack <= 200, (variant, keys, one)


def attention():
    """A model with a transposed and a grouped convolution, the products of an attention layer, and one of weights."""
    random, model = np.random.default_rng(3), Model()

    def weights(*shape):
        return model.constant(np.clip(np.rint(random.normal(0, 40, shape)), -127, 127).astype(np.int8), 0.02, 0)

    def bias(count, scale):
        return model.constant(random.integers(-500, 500, count).astype(np.int32), scale, 0)

    options = {"padding": "SAME", "fused_activation_function": "NONE"}
    data, shape = model.input("int8", (1, 4, 4, 16), 0.05, -3), model.constant(np.array([1, 8, 8, 16], np.int32))
    strides = {"stride_h": 2, "stride_w": 2}
    inputs = [shape, weights(16, 3, 3, 16), data, bias(16, 0.001)]
    data = model.operator("TRANSPOSE_CONV", inputs, ("int8", 0.5, 5), **options, **strides, version=4)
    strides = {"stride_h": 1, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 1}
    inputs = [data, weights(16, 3, 3, 4), bias(16, 0.01)]
    data = model.operator("CONV_2D", inputs, ("int8", 2.0, -10), **{**options, **strides})
    shape = model.constant(np.array([4, 16, 16], np.int32))
    data = model.operator("RESHAPE", [data, shape], ("int8", 2.0, -10), new_shape=[4, 16, 16])
    other = model.input("int8", (4, 16, 16), 0.05, 4)
    data = model.operator("BATCH_MATMUL", [data, other], ("int8", 8.0, 3), adj_x=False, adj_y=True)
    other = model.input("int8", (4, 16, 16), 0.05, 7)
    data = model.operator("BATCH_MATMUL", [data, other], ("int8", 20.0, 3), adj_x=False, adj_y=False)
    return model.ending_with("BATCH_MATMUL", [data, weights(16, 12)], ("int8", 30.0, 3), adj_x=False, adj_y=False)


def test_an_imported_model(tmp_path):
    graph = graph_of(attention().build(), simplified=True)
    program = with_passes(lower_graph(graph, "made", Diagnostics()), PASSES)
    found = beside_portable([program], "dsp")
    names = [step.variant for step in found[1].emitted.steps]
    assert names == ["dsp-bytes", "dsp-bytes", "dsp-matrix", "dsp-matrix", "dsp-bytes"]
    variants.check(found, "cortex-m4", tmp_path)
