# SPDX-License-Identifier: Apache-2.0
"""The variants for Armv7-M without the DSP extension, in QEMU, against numpy: random layers and chosen ones."""

import dataclasses

import numpy as np
import pytest
from campaign import sized
from kernels import reference, variants
from kernels.variants import check, variant_of
from opwest.compiler.ir.operations import Sums
from opwest.compiler.output.emit import emit_program
from opwest.compiler.semantics.fixed_point import Multiplier, Requantisation, Rounding
from opwest.tuning import random_layers
from opwest.tuning.image import Candidate

COUNT = sized(12, 240)


def candidate(made, variant, number, case):
    return variants.candidate(
        made, variant, number, random_layers.inputs_of(np.random.default_rng((3, number)), made, case)
    )


KINDS = {
    ("convolution", "mla"): 0,
    ("convolution", "mla-bytes"): 0,
    ("dense", "mla"): 0,
    ("dense", "mla-bytes"): 0,
    ("depthwise", "mla"): 0,
    ("add", "mla"): COUNT // 3,
    ("multiply", "mla"): COUNT // 3,
    ("pool", "mla"): 0,
}
"""The greatest number of layers that stay portable."""
LEVELS = [(("-Os", "-O0", "-O2")[number % 3], *kind) for number, kind in enumerate(KINDS)]


@pytest.mark.parametrize(
    ("level", "kind", "variant"), sized(LEVELS, [(level, *kind) for level in ("-O0", "-Os", "-O2") for kind in KINDS])
)
def test_random_layers(level, kind, variant, tmp_path):
    made = []
    for number in range(COUNT):
        random = np.random.default_rng((level == "-O2", number, 77))
        if kind in ("add", "multiply"):
            made.append(random_layers.elements(random, (1, 14 + 27 * number % 400), kind))
        else:
            made.append(getattr(random_layers, kind)(random))
    candidates = [candidate(one, variant, number, number) for number, one in enumerate(made)]
    assert sum(variant_of(one) == "portable" for one in candidates) <= KINDS[kind, variant]
    check(candidates, "cortex-m3", tmp_path, (level,))


def test_bytes_are_copied_only_if_results_can_replace_a_part_of_the_data():
    """Data of one tile is not copied: the copy would have more bytes than separate results."""
    found = set()
    for number in range(120):
        made = random_layers.dense(np.random.default_rng((78, number)))
        operation = made.operations[0]
        data, result = operation.inputs[0], operation.results[0]
        rows = result.size // operation.weights.shape[0]
        function = emit_program(made, "test", "mla-bytes").steps[0].function
        parameters = {one.name: one for one in function.parameters}
        is_copied = rows > 2 and result.size <= data.size
        assert ("rows" in parameters) == is_copied
        assert "data" not in parameters["result"].in_place or is_copied
        assert ("mla_copy" in "".join((function.body, *function.definitions))) == is_copied
        found.add((is_copied, result.size <= data.size))
    assert {(False, True), (False, False)} <= found


@pytest.mark.parametrize("way", ["known", "patched", "rounded"])
def test_ways_to_know_the_low_lane(way, monkeypatch, tmp_path):
    """Layers with small weights, with few large ones, with many large ones."""

    def weights_of(random, shape):
        found = random.integers(-10, 11, shape)
        large = random.random(shape) < {"known": 0, "patched": 0.03, "rounded": 1}[way]
        return np.where(large, random.choice([-127, 126], shape), found).astype(np.int8)

    monkeypatch.setattr(random_layers.layers, "weights_of", weights_of)
    layers = (
        ((1, 5, 5, 32), (1, 1), 16),
        ((1, 5, 7, 8), (3, 3), 7),
        ((1, 9, 6, 3), (3, 3), 8),
        ((1, 12, 5, 1), (7, 4), 5),
    )
    candidates = []
    for number, case in np.ndindex(len(layers), 4):
        made = random_layers.convolution(np.random.default_rng((number, case)), *layers[number])
        candidates.append(candidate(made, "mla", len(candidates), case))
    assert sum(f"mla_{way}_" in one.emitted.source for one in candidates) >= len(candidates) // 2
    check(candidates, "cortex-m3", tmp_path, ("-O2",))


def test_channels_with_constant_results(tmp_path):
    """Weights of zeros with biases of 2**30: the results are exact although their scaling is not."""
    random = np.random.default_rng(5)
    made = random_layers.convolution(random, (1, 4, 4, 8), (1, 1), 6, "ordinary")
    [layer] = made.operations
    weights = layer.weights.copy()
    weights[:3] = 0
    bias = np.asarray([1 << 30, -(1 << 30), 5, 100, -100, 0])
    shifts = [-27, -26, -3, -8, -8, -8]
    finish = Requantisation(tuple(Multiplier(1320764593, one) for one in shifts), Rounding.TWICE, -128, -128, 127)
    changed = dataclasses.replace(layer, weights=weights, bias=bias, finish=finish)
    emitted = candidate(random_layers.program(changed), "mla", 0, 2)
    assert "_sums" not in emitted.emitted.source
    check([emitted], "cortex-m3", tmp_path, ("-O2",))


def test_sums_are_results(tmp_path):
    """The results are int32 sums."""
    random = np.random.default_rng(6)
    candidates = []
    for number, variant in enumerate(["mla", "mla-bytes"] * 3):
        made = random_layers.convolution(random, (1, 5, 5, 7), (1, 1) if number < 2 else (3, 2), 5)
        [one] = made.operations
        result = random_layers.value("output", "int32", one.results[0].shape)
        layer = dataclasses.replace(one, results=(result,), finish=Sums())
        made = random_layers.program(layer)
        data = random_layers.inputs_of(random, made, 2)
        sums = reference.patches(data[0].astype(np.float64) - layer.zero, layer.window, 0)
        flat = layer.weights.reshape(5, -1).astype(np.float64)
        wanted = np.rint(sums.reshape(-1, flat.shape[1]) @ flat.T).astype(np.int64)
        wanted = wanted + (0 if layer.bias is None else layer.bias)
        emitted = emit_program(made, "test", variant, prefix=f"p{number}_")
        assert emitted.steps[0].variant.startswith("mla")
        candidates.append(Candidate(made, emitted, data, [wanted.astype(np.int32).reshape(result.shape)]))
    check(candidates, "cortex-m3", tmp_path, ("-O2",))


def test_results_replace_data(tmp_path):
    """Layers that declare it compute the same results in the memory of their data."""
    candidates = []
    for number in range(30):
        random = np.random.default_rng((9, number))
        if number % 2:
            made = random_layers.depthwise(random, multiplier=1, stride=(1 + number % 3, 1))
        else:
            made = random_layers.convolution(random, (1, 5, 5, 16), (1, 1), 16, stride=(1, 1))
        [operation] = made.operations
        if operation.results[0].size > operation.inputs[0].size:
            continue
        one = candidate(made, ("mla", "mla-bytes")[number % 4 // 2], number, number)
        [step] = one.emitted.steps
        if not any(parameter.in_place for parameter in step.function.parameters):
            continue
        # The result is a part of the data.
        data, result = operation.inputs[0], operation.results[0]
        source = one.emitted.source
        assert "restrict result" not in source.split(step.symbol)[1]
        candidates.append(variants.in_place(one, data, result))
    assert len(candidates) > 10
    check(candidates, "cortex-m3", tmp_path, ("-O2",))


@pytest.mark.parametrize(("make", "results"), [(random_layers.convolution, 8), (random_layers.depthwise, 1)])
def test_layers_of_equal_shapes_share_functions(make, results):
    """Two layers with other weights and multipliers are one function."""
    functions = set()
    for seed in range(2):
        made = make(np.random.default_rng(seed), (1, 5, 5, 8), (3, 3), results, stride=(1, 1))
        [one] = made.operations
        fixed = tuple(Multiplier((1 << 30) + seed * 977 + place, -9 - seed) for place in range(8))
        finish = Requantisation(fixed, Rounding.TWICE, -128, -128, 127)
        keys = {"label": "layer", "weights": np.clip(one.weights, -40, 40), "zero": -128, "finish": finish}
        changed = dataclasses.replace(one, **keys)
        functions.add(emit_program(random_layers.program(changed), "test", "mla").steps[0].function)
    assert len(functions) == 1
