# SPDX-License-Identifier: Apache-2.0
"""Concatenations of channels that layers write in place: the results are those of LiteRT, and no copy remains."""

import numpy as np
from campaign import sized
from requirements_support import need

need("cc", "tflite", "ai_edge_litert")

from models.campaigns import cases_of, graph_of  # noqa: E402
from models.executor import Library  # noqa: E402
from models.made import Model  # noqa: E402
from models.oracle import litert  # noqa: E402
from opwest.cli.main import main  # noqa: E402
from opwest.diagnostics import Diagnostics  # noqa: E402
from opwest.importers.models.choice.geometry import key_of, key_without_pitch  # noqa: E402
from opwest.importers.models.choice.joined_channels import in_place  # noqa: E402
from opwest.importers.models.choice.joins import Needs, joined_in_place  # noqa: E402
from opwest.importers.models.choice.table import Table  # noqa: E402
from opwest.importers.models.convert import import_model  # noqa: E402
from opwest.importers.models.ir.movement import Move  # noqa: E402
from opwest.importers.models.ir.operations import Convolution, Depthwise  # noqa: E402
from opwest.importers.models.lower.lower import lower_graph  # noqa: E402

SCALE, ZERO = 0.05, -128
SQUARE = {"padding": "SAME", "stride_h": 1, "stride_w": 1}


def convolution(model, random, data, channels, results, size=1):
    """Append a convolution of the size of its data."""
    weights = np.clip(np.rint(random.normal(0, 30, (results, size, size, channels))), -127, 127).astype(np.int8)
    scales = random.uniform(0.5, 1.5, results) * 0.02 / np.sqrt(size * size * channels)
    bias = model.constant(random.integers(-300, 300, results).astype(np.int32), SCALE * scales, 0)
    given = [data, model.constant(weights, scales, 0, 0), bias]
    return model.operator("CONV_2D", given, ("int8", SCALE, ZERO), fused_activation_function="RELU", **SQUARE)


def depthwise(model, random, data, channels):
    weights = random.integers(-90, 90, (1, 3, 3, channels)).astype(np.int8)
    scales = np.full(channels, 0.004)
    bias = model.constant(random.integers(-300, 300, channels).astype(np.int32), SCALE * scales, 0)
    given = [data, model.constant(weights, scales, 0, 3), bias]
    options = {"depth_multiplier": 1, "fused_activation_function": "RELU", **SQUARE}
    return model.operator("DEPTHWISE_CONV_2D", given, ("int8", SCALE, ZERO), **options)


def pool(model, data, kind="MAX_POOL_2D"):
    options = {"filter_width": 3, "filter_height": 3, "fused_activation_function": "NONE", **SQUARE}
    return model.operator(kind, [data], ("int8", SCALE, ZERO), **options)


def concatenation(model, *tensors, axis=3):
    keys = {"axis": axis, "fused_activation_function": "NONE"}
    return model.operator("CONCATENATION", list(tensors), ("int8", SCALE, ZERO), **keys)


def operand(model, random, data, channels):
    """Append an operator of any kind; return its result and its channels."""
    results = int(random.integers(1, 13))
    kind = int(random.integers(0, 7))
    if kind == 0:
        return depthwise(model, random, data, channels), channels
    if kind == 1:
        return pool(model, data, str(random.choice(["MAX_POOL_2D", "AVERAGE_POOL_2D"]))), channels
    if kind == 2:
        options = {"fused_activation_function": "NONE"}
        other = convolution(model, random, data, channels, channels)
        return model.operator("ADD", [data, other], ("int8", SCALE, ZERO), **options), channels
    if kind == 3:
        order = model.constant(np.asarray([0, 2, 1, 3], np.int32))
        return model.operator("TRANSPOSE", [data, order], ("int8", SCALE, ZERO)), channels
    return convolution(model, random, data, channels, results, int(random.choice([1, 1, 3]))), results


def random_model(random):
    """Return a model with one to three concatenations of two to four operands."""
    model = Model()
    side = int(random.integers(1, 7))
    channels = int(random.integers(1, 10))
    data = model.input("int8", (int(random.choice([1, 1, 2])), side, side, channels), SCALE, ZERO)
    known = [(data, channels)]
    for _ in range(int(random.integers(1, 4))):
        tensors = []
        for _ in range(int(random.integers(2, 5))):
            # An earlier tensor has other readers, is the input, an operand twice or a concatenation.
            source = known[int(random.integers(0, len(known)))]
            made = source if random.random() < 0.25 else operand(model, random, *source)
            tensors.append(made)
            known.append(made)
        known.append((concatenation(model, *(one for one, _ in tensors)), sum(some for _, some in tensors)))
    model.output(known[-1][0])
    if random.random() < 0.3:
        model.output(known[1][0])
    return model


def program_of(model):
    return lower_graph(graph_of(model.build()), "made.tflite", Diagnostics())


def compare(models, programs, folder):
    """Compare the programs of models with LiteRT."""
    library = Library(programs, folder)
    random = np.random.default_rng(3)
    for number, model in enumerate(models):
        content = model.build()
        cases = cases_of(graph_of(content), random)
        for case, wanted in zip(cases, litert(content, cases, "BUILTIN_REF"), strict=True):
            for one, other in zip(wanted, library.run(number, case), strict=True):
                np.testing.assert_array_equal(one, other.reshape(one.shape), f"model {number}")


def test_random_models(tmp_path):
    models = [random_model(np.random.default_rng((5, number))) for number in range(sized(5, 600))]
    before = [program_of(model) for model in models]
    after = [joined_in_place(one) for one in before]
    assert sum(one is not other for one, other in zip(before, after, strict=True)) > len(models) // 3
    compare(models, after, tmp_path)


def test_some_operands_in_place(tmp_path):
    """Each operand is written in place or copied, whatever the others are."""
    models = [random_model(np.random.default_rng((6, number))) for number in range(sized(4, 400))]
    chosen = np.random.default_rng(1)

    class Any(Needs):
        """Random decisions."""

        def is_faster(self, after, before):
            return bool(chosen.random() < 0.5)

    after = [joined_in_place(program_of(model), Any()) for model in models]
    compare(models, after, tmp_path)


def fire(random):
    """Return a model with two convolutions of the same data whose channels are joined."""
    model = Model()
    data = model.input("int8", (1, 8, 8, 6), SCALE, ZERO)
    parts = [convolution(model, random, data, 6, 8), convolution(model, random, data, 6, 12, 3)]
    return model, concatenation(model, *parts)


def results_of(program):
    return [(type(one).__name__, one.results[0].pitch) for one in program.operations]


def test_no_copy_remains():
    model, joined = fire(np.random.default_rng(1))
    model.output(convolution(model, np.random.default_rng(2), joined, 20, 4))
    program = joined_in_place(program_of(model))
    assert results_of(program) == [("Convolution", 20), ("Convolution", 20), ("Convolution", 0)]
    assert [" pitch 20 " in key_of(one) for one in program.operations] == [True, True, False]
    assert key_without_pitch(program.operations[0]) == key_of(program_of(model).operations[0])
    first, second = (one.results[0] for one in program.operations[:2])
    assert first.root is second.root is program.operations[2].inputs[0]
    assert (first.offset, second.offset) == (0, 8)


def test_an_output_is_written_in_place():
    model, joined = fire(np.random.default_rng(1))
    model.output(joined)
    program = joined_in_place(program_of(model))
    assert not any(isinstance(one, Move) for one in program.operations)
    assert {one.results[0].root for one in program.operations} == set(program.outputs)


def test_a_concatenation_in_a_concatenation():
    random = np.random.default_rng(1)
    model, joined = fire(random)
    other = convolution(model, random, model.graph.inputs[0], 6, 4)
    model.output(concatenation(model, other, joined))
    program = joined_in_place(program_of(model))
    assert [one.results[0].offset for one in program.operations] == [4, 12, 0]
    assert {one.results[0].pitch for one in program.operations} == {24}


def test_a_tensor_with_other_readers_is_copied():
    random = np.random.default_rng(1)
    model = Model()
    data = model.input("int8", (1, 8, 8, 6), SCALE, ZERO)
    one = convolution(model, random, data, 6, 8)
    model.output(concatenation(model, one, convolution(model, random, one, 8, 12, 3)))
    program = joined_in_place(program_of(model))
    assert results_of(program) == [("Convolution", 0), ("Convolution", 20), ("Move", 20)]


def test_rows_that_follow_each_other_have_no_pitch():
    random = np.random.default_rng(1)
    model = Model()
    data = model.input("int8", (1, 8, 8, 6), SCALE, ZERO)
    parts = [convolution(model, random, data, 6, 8) for _ in range(2)]
    joined = concatenation(model, *parts, axis=1)
    model.output(convolution(model, random, joined, 8, 4))
    assert results_of(joined_in_place(program_of(model))) == [("Convolution", 0)] * 3


def test_layers_that_only_a_slow_variant_writes_in_place_are_copied():
    random = np.random.default_rng(1)
    model = Model()
    data = model.input("int8", (1, 12, 12, 32), SCALE, ZERO)
    model.output(concatenation(model, depthwise(model, random, data, 32), convolution(model, random, data, 32, 16)))
    program = program_of(model)
    terms = {"result": 1.0, "data": 0.0, "call": 0.0, "code": 100.0}
    estimates = {
        "convolution": {name: {"product": 1.0, **terms} for name in ("portable", "dsp-bytes", "dsp-halves")},
        "depthwise": {"portable": {"product": 9.0, **terms}, "dsp-planes": {"product": 1.0, **terms}},
        "move": {"portable": {"product": 20.0, **terms}},
    }
    found = joined_in_place(program, Needs("dsp", Table("cortex-m4", {}, estimates)))
    pitches = {type(one): one.results[0].pitch for one in found.operations}
    assert pitches == {Depthwise: 0, Convolution: 48, Move: 48}
    assert all(one.results[0].pitch == 48 for one in joined_in_place(program).operations)


def test_nothing_changes_without_a_concatenation():
    model = Model()
    data = model.input("int8", (1, 4, 4, 6), SCALE, ZERO)
    model.output(convolution(model, np.random.default_rng(1), data, 6, 8))
    program = program_of(model)
    assert joined_in_place(program) is program
    assert [in_place(program, one) for one in program.operations] == [[]]


def test_nothing_is_in_place_where_that_needs_more_memory():
    """The joined tensor would be live beside the data of the last layer, which is larger than the other operand."""
    random = np.random.default_rng(1)
    model = Model()
    data = model.input("int8", (1, 8, 8, 4), SCALE, ZERO)
    first = convolution(model, random, data, 4, 4)
    wide = convolution(model, random, convolution(model, random, data, 4, 64), 64, 64)
    joined = concatenation(model, first, convolution(model, random, wide, 64, 56))
    model.output(convolution(model, random, joined, 60, 4))
    program = program_of(model)
    assert in_place(program, program.operations[4])
    assert joined_in_place(program) is program


def test_an_import_in_place(tmp_path):
    """The manifest is valid, and a run gives the golden vectors: of the base, and of the plans of all variants."""
    random = np.random.default_rng(1)
    model, joined = fire(random)
    model.output(convolution(model, random, joined, 20, 4))
    file = model.save(tmp_path / "fire.tflite")
    import_model(file, tmp_path / "model")
    text = (tmp_path / "model" / "manifest.yaml").read_text()
    # The base and three classes of processors, two layers each: an argument and a view.
    assert text.count("pitch: 20") == 16
    assert main(["check", str(tmp_path / "model" / "manifest.yaml")]) == 0
    assert main(["generate", str(tmp_path / "model" / "manifest.yaml"), "-o", str(tmp_path / "app")]) == 0
    vectors = np.load(tmp_path / "model" / "vectors.npz")
    arguments = []
    for option, name in (("--input", model.graph.inputs[0].name), ("--reference", model.graph.outputs[0].name)):
        np.save(tmp_path / f"{name}.npy", vectors[name][3])
        arguments += [option, f"{name}={tmp_path / name}.npy"]
    assert main(["run", str(tmp_path / "app"), "--host", *arguments]) == 0
