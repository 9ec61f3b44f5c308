# SPDX-License-Identifier: Apache-2.0
"""Channels that are constant or not read are removed; channels that are joined are written in place. The results
do not change.
"""

import numpy as np
import pytest
from campaign import sized
from in_process import succeed
from models.campaigns import cases_of, graph_of
from models.executor import Library, interpreted, program_of
from models.made import Model
from models.oracle import litert
from opwest.base.diagnostics import Diagnostics
from opwest.compiler.ir.movement import Move
from opwest.compiler.ir.operations import Convolution, Depthwise
from opwest.compiler.lowering.builder import lower_graph
from opwest.compiler.selection.costs import Table, key_of, key_without_pitch
from opwest.compiler.selection.joins import Needs, in_place, joined_in_place
from opwest.imports.convert import import_model

SCALE, ZERO = 0.05, -128
SQUARE = {"padding": "SAME", "stride_h": 1, "stride_w": 1}


class Net(Model):
    """A model whose tensors have one scale, and know their channels."""

    def __init__(self, random, *shape):
        super().__init__()
        self.random = random
        self.data = self.input("int8", shape, SCALE, ZERO)
        self.data.channels = shape[-1]

    def layer(self, kind, inputs, channels, activation="NONE", zero=ZERO, **options):
        options["fused_activation_function"] = activation
        result = self.operator(kind, inputs, ("int8", SCALE, zero), **options)
        result.channels = channels
        return result

    def weighted(self, kind, data, weights, scales, axis, bias=None, activation="RELU", **options):
        bias = self.random.integers(-300, 300, len(scales)) if bias is None else bias
        constants = (
            self.constant(weights.astype(np.int8), scales, 0, axis),
            self.constant(np.int32(bias), SCALE * scales),
        )
        return self.layer(kind, [data, *constants], len(scales), activation, **SQUARE, **options)

    def convolution(self, data, results, size=1):
        shape = (results, size, size, data.channels)
        weights = np.clip(np.rint(self.random.normal(0, 30, shape)), -127, 127)
        scales = self.random.uniform(0.5, 1.5, results) * 0.02 / np.sqrt(size * size * data.channels)
        return self.weighted("CONV_2D", data, weights, scales, 0)

    def depthwise(self, data):
        weights = self.random.integers(-90, 90, (1, 3, 3, data.channels))
        scales = np.full(data.channels, 0.004)
        return self.weighted("DEPTHWISE_CONV_2D", data, weights, scales, 3, depth_multiplier=1)

    def pool(self, data, kind):
        return self.layer(kind, [data], data.channels, filter_width=3, filter_height=3, **SQUARE)

    def concatenation(self, *tensors, axis=3):
        channels = sum(one.channels for one in tensors) if axis == 3 else tensors[0].channels
        return self.layer("CONCATENATION", tensors, channels, axis=axis)

    def operand(self, data):
        results = int(self.random.integers(1, 13))
        kind = int(self.random.integers(0, 7))
        if kind == 0:
            return self.depthwise(data)
        if kind == 1:
            return self.pool(data, str(self.random.choice(["MAX_POOL_2D", "AVERAGE_POOL_2D"])))
        if kind == 2:
            return self.layer("ADD", [data, self.convolution(data, data.channels)], data.channels)
        if kind == 3:
            order = self.constant(np.asarray([0, 2, 1, 3], np.int32))
            transposed = self.operator("TRANSPOSE", [data, order], ("int8", SCALE, ZERO))
            transposed.channels = data.channels
            return transposed
        return self.convolution(data, results, int(self.random.choice([1, 1, 3])))


def appended(model, data, kind, results, dead, zero=ZERO):
    """Append a layer whose channels `dead` have weights of 0, and a large bias below zero or above."""
    is_depthwise = kind == "DEPTHWISE_CONV_2D"
    shape = (1, 3, 3, results) if is_depthwise else (results, 1, 1, data.channels)
    weights = model.random.integers(-127, 128, shape)
    bias = model.random.integers(-900, 900, results)
    scales = model.random.uniform(0.001, 0.002, results)
    for place, value in dead.items():
        weights[(..., place) if is_depthwise else place] = 0
        bias[place] = value
        scales[place] *= 2.0**-20
    options = {"zero": zero, "activation": "RELU" if zero == ZERO else "NONE"}
    options |= {"depth_multiplier": 1} if is_depthwise else {}
    return model.weighted(kind, data, weights, scales, 3 if is_depthwise else 0, bias, **options)


def separable(random, dead, between, zero=ZERO):
    """Return a model: 1x1, depthwise, 1x1; `dead` channels of the first, `between` of the depthwise layer."""
    model = Net(random, 1, 6, 5, 8)
    model.data.zero = 3
    one = appended(model, model.data, "CONV_2D", 16, dead, zero)
    two = appended(model, one, "DEPTHWISE_CONV_2D", 16, between, zero)
    return model.output(appended(model, two, "CONV_2D", 8, {}))


def check_removal(model, random, folder, count):
    """Compare the emitted program with the interpreter of the graph, which has all channels."""
    graph = graph_of(model.build())
    program = program_of(graph)
    library = Library([program], folder)
    for _ in range(count):
        inputs = [random.integers(-128, 128, one.shape).astype(np.int8) for one in graph.inputs]
        expected = interpreted(graph, inputs)
        for one, other in zip(expected, library.run(0, inputs), strict=True):
            np.testing.assert_array_equal(one, other)
    return program


def channels_of(program):
    return [one.results[0].shape[3] for one in program.operations if isinstance(one, Convolution | Depthwise)]


BELOW, ABOVE = -(1 << 30), 1 << 30


@pytest.mark.parametrize(
    ("dead", "between", "expected"),
    [
        (dict.fromkeys(range(3, 11), BELOW), {}, [8, 8, 8]),
        # Channels without readers.
        ({}, dict.fromkeys(range(12), BELOW), [4, 4, 8]),
        # The padding of the depthwise layer has another value than the constant channels.
        (dict.fromkeys(range(8), ABOVE), {}, [16, 16, 8]),
        # One channel remains.
        (dict.fromkeys(range(16), BELOW), {}, [4, 4, 8]),
    ],
)
def test_constant_channels_are_removed(dead, between, expected, tmp_path):
    random = np.random.default_rng(1)
    program = check_removal(separable(random, dead, between), random, tmp_path, 20)
    assert channels_of(program) == expected


@pytest.mark.parametrize("zero", [ZERO, 7])
def test_random_unused_channels(tmp_path, zero):
    for seed in range(sized(3, 8)):
        random = np.random.default_rng(seed)
        some = {int(one): int(random.choice([BELOW, ABOVE, 0])) for one in random.integers(0, 16, 9)}
        others = {int(one): int(random.choice([BELOW, ABOVE, 0])) for one in random.integers(0, 16, 5)}
        (tmp_path / str(seed)).mkdir()
        check_removal(separable(random, some, others, zero), random, tmp_path / str(seed), 4)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_constant_that_exceeds_the_bias_remains(sign, tmp_path):
    """The bias and the constant channel have a sum of 33 bits; the other channel returns it to 32 bits."""
    random, model = np.random.default_rng(6), Model()
    data = model.input("int8", (1, 4, 4, 1), 0.05, -128)
    # Channel 0 is 72 to 98, channel 1 is 127; real zero is -128.
    weights = model.constant(np.asarray([1, 0], np.int8).reshape(2, 1, 1, 1), 0.1)
    bias = model.constant(np.asarray([2000, 1 << 30], np.int32), 0.05 * 0.1)
    both = model.operator("CONV_2D", [data, weights, bias], ("int8", 0.05, -128), **SQUARE)
    weights = model.constant(np.asarray([-127 * sign, 50 * sign], np.int8).reshape(1, 1, 1, 2), 0.01)
    bias = model.constant(np.asarray([sign * ((1 << 31) - 1000)], np.int32), 0.05 * 0.01)
    model.ending_with("CONV_2D", [both, weights, bias], ("int8", 2e5, 0), **SQUARE)
    assert channels_of(check_removal(model, random, tmp_path, 2)) == [2, 1]


def random_model(random):
    """Return a model with one to three concatenations of two to four operands."""
    side = int(random.integers(1, 7))
    channels = int(random.integers(1, 10))
    model = Net(random, int(random.choice([1, 1, 2])), side, side, channels)
    known = [model.data]
    for _ in range(int(random.integers(1, 4))):
        tensors = []
        for _ in range(int(random.integers(2, 5))):
            # An earlier tensor has other readers, is the input, an operand twice or a concatenation.
            source = known[int(random.integers(0, len(known)))]
            tensors.append(source if random.random() < 0.25 else model.operand(source))
            known.append(tensors[-1])
        known.append(model.concatenation(*tensors))
    return model.output(known[-1], *([known[1]] if random.random() < 0.3 else []))


def lowered(model):
    return lower_graph(graph_of(model.build()), "made.tflite", Diagnostics())


def joined(model):
    return joined_in_place(lowered(model))


def compare(models, programs, folder):
    library = Library(programs, folder)
    random = np.random.default_rng(3)
    for number, model in enumerate(models):
        content = model.build()
        cases = cases_of(graph_of(content), random)
        for case, wanted in zip(cases, litert(content, cases), strict=True):
            for one, other in zip(wanted, library.run(number, case), strict=True):
                np.testing.assert_array_equal(one, other.reshape(one.shape), f"model {number}")


def test_random_models(tmp_path):
    models = [random_model(np.random.default_rng((5, number))) for number in range(sized(5, 600))]
    before = [lowered(model) for model in models]
    after = [joined_in_place(one) for one in before]
    assert sum(one is not other for one, other in zip(before, after, strict=True)) > len(models) // 3
    compare(models, after, tmp_path)


def test_some_operands_in_place(tmp_path):
    """Each operand is written in place or copied, whatever the others are."""
    models = [random_model(np.random.default_rng((6, number))) for number in range(sized(4, 400))]
    chosen = np.random.default_rng(1)

    class Any(Needs):
        def is_faster(self, after, before):
            return bool(chosen.random() < 0.5)

    after = [joined_in_place(lowered(model), Any()) for model in models]
    compare(models, after, tmp_path)


def net(*shape):
    return Net(np.random.default_rng(1), *shape)


def fire():
    """Return a model with two convolutions of the same data whose channels are joined, and the joined tensor."""
    model = net(1, 8, 8, 6)
    return model, model.concatenation(model.convolution(model.data, 8), model.convolution(model.data, 12, 3))


def results_of(program):
    return [(type(one).__name__, one.results[0].pitch) for one in program.operations]


def test_no_copy_remains():
    model, both = fire()
    program = joined(model.output(model.convolution(both, 4)))
    assert results_of(program) == [("Convolution", 20), ("Convolution", 20), ("Convolution", 0)]
    assert [" pitch 20 " in key_of(one) for one in program.operations] == [True, True, False]
    assert key_without_pitch(program.operations[0]) == key_of(lowered(model).operations[0])
    first, second = (one.results[0] for one in program.operations[:2])
    assert first.root is second.root is program.operations[2].inputs[0]
    assert (first.offset, second.offset) == (0, 8)


def test_an_output_is_written_in_place():
    model, both = fire()
    program = joined(model.output(both))
    assert not any(isinstance(one, Move) for one in program.operations)
    assert {one.results[0].root for one in program.operations} == set(program.outputs)


def test_a_concatenation_in_a_concatenation():
    model, both = fire()
    program = joined(model.output(model.concatenation(model.convolution(model.data, 4), both)))
    assert [one.results[0].offset for one in program.operations] == [4, 12, 0]
    assert {one.results[0].pitch for one in program.operations} == {24}


def test_a_tensor_with_other_readers_is_copied():
    model = net(1, 8, 8, 6)
    one = model.convolution(model.data, 8)
    program = joined(model.output(model.concatenation(one, model.convolution(one, 12, 3))))
    assert results_of(program) == [("Convolution", 0), ("Convolution", 20), ("Move", 20)]


def test_rows_that_follow_each_other_have_no_pitch():
    model = net(1, 8, 8, 6)
    rows = model.concatenation(*(model.convolution(model.data, 8) for _ in range(2)), axis=1)
    assert results_of(joined(model.output(model.convolution(rows, 4)))) == [("Convolution", 0)] * 3


def test_layers_that_only_a_slow_variant_writes_in_place_are_copied():
    model = net(1, 12, 12, 32)
    model.output(model.concatenation(model.depthwise(model.data), model.convolution(model.data, 16)))
    terms = {"result": 1.0, "data": 0.0, "call": 0.0, "code": 100.0}
    estimates = {
        "convolution": {name: {"product": 1.0, **terms} for name in ("portable", "dsp-bytes", "dsp-halves")},
        "depthwise": {"portable": {"product": 9.0, **terms}, "dsp-planes": {"product": 1.0, **terms}},
        "move": {"portable": {"product": 20.0, **terms}},
    }
    found = joined_in_place(lowered(model), Needs("dsp", Table("cortex-m4", {}, estimates)))
    assert dict(results_of(found)) == {"Depthwise": 0, "Convolution": 48, "Move": 48}
    assert all(pitch == 48 for _, pitch in results_of(joined(model)))


def test_nothing_changes_without_a_concatenation():
    model = net(1, 4, 4, 6)
    program = lowered(model.output(model.convolution(model.data, 8)))
    assert joined_in_place(program) is program
    assert [in_place(program, one) for one in program.operations] == [[]]


def test_nothing_is_in_place_where_that_needs_more_memory():
    """The joined tensor would be live beside the data of the last layer, which is larger than the other operand."""
    model = net(1, 8, 8, 4)
    first = model.convolution(model.data, 4)
    wide = model.convolution(model.convolution(model.data, 64), 64)
    both = model.concatenation(first, model.convolution(wide, 56))
    program = lowered(model.output(model.convolution(both, 4)))
    assert in_place(program, program.operations[4])
    assert joined_in_place(program) is program


def test_an_import_in_place(tmp_path):
    """The manifest is valid, and a run gives the golden vectors: of the base, and of the plans of all variants."""
    model, both = fire()
    manifest = tmp_path / "model/manifest.yaml"
    import_model(model.output(model.convolution(both, 4)).save(tmp_path / "fire.tflite"), tmp_path / "model")
    # The base and three classes of processors, two layers each: an argument and a view.
    assert manifest.read_text().count("pitch: 20") == 16
    succeed("check", manifest)
    succeed("generate", manifest, "-o", tmp_path / "app")
    vectors = np.load(tmp_path / "model/vectors.npz")
    words = []
    for option, tensor in (("--input", model.data), ("--reference", model.graph.outputs[0])):
        np.save(tmp_path / f"{tensor.name}.npy", vectors[tensor.name][3])
        words += [option, f"{tensor.name}={tmp_path / tensor.name}.npy"]
    succeed("run", tmp_path / "app", "--host", *words)
