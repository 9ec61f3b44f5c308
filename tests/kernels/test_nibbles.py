# SPDX-License-Identifier: Apache-2.0
"""Weights of 4 bits, two in a byte of flash: random layers of each variant, results with a pitch, imports."""

import json

import numpy as np
import pytest
from campaign import sized
from in_process import succeed
from kernels.test_every_variant import between_channels
from kernels.variants import candidates_of, check
from models.made import Model
from opwest.compiler.emission.nibbles import are_nibbles, packed_nibbles, words_of
from opwest.compiler.ir.operations import ConvolutionSum
from opwest.tuning import random_layers

CORES = {"portable-nibbles": "cortex-m0plus", "dsp-nibbles": "cortex-m4", "mve-nibbles": "cortex-m55"}


@pytest.mark.parametrize("variant", CORES)
def test_random_layers(variant, tmp_path):
    found = candidates_of(random_layers.nibble_convolution, variant, sized(16, 400), seed=9, most=sized(12, 400))
    assert len({type(one.program.operations[0]) for one in found}) == 2, "convolutions and their sums"
    check(found, CORES[variant], tmp_path)


def without_sum(random):
    while True:
        made = random_layers.nibble_convolution(random)
        if not isinstance(made.operations[0], ConvolutionSum):
            return made


@pytest.mark.parametrize("variant", CORES)
def test_only_the_channels_of_a_layer_change(variant, tmp_path):
    count = sized(16, 200)
    made = [between_channels(without_sum, variant, number) for number in range(count)]
    found = [one for name, one in made if name == variant]
    assert len(found) >= count // 4
    check(found, CORES[variant], tmp_path)


def test_bytes_and_words():
    weights = np.asarray([[-8, 7, 1, 0, -1, 2, 3, -2]], np.int8)
    assert packed_nibbles(weights[:, :3]).view(np.uint8).tolist() == [[0x78, 0x01]]
    assert words_of(weights, (0, 1, 4, 5, 2, 3, 6, 7)).view(np.uint32).tolist() == [[0x6B89A7F0]]
    assert are_nibbles(np.full((2, 128), 7)) and are_nibbles(np.full((2, 128), -8))
    assert not are_nibbles(np.full((2, 128), 8)) and not are_nibbles(np.full((2, 127), 7))


def network(random):
    """Return a file with int4 weights: a convolution and a fully connected layer."""
    model = Model()

    def layer(kind, data, shape, axis, scale, **options):
        weights = random.integers(-7, 8, shape).astype(np.int8)
        scales = random.uniform(0.5, 1.0, shape[0]) * 0.1 if axis is not None else 0.08
        flat = weights.reshape(-1).astype(np.uint8)
        raw = (flat[0::2] & 15 | flat[1::2] << 4).tobytes()
        by = model.constant(weights, scales, 0, axis or 0, dtype="int4", raw=raw)
        bias = model.constant(random.integers(-500, 500, shape[0]).astype(np.int32), data.scale * np.asarray(scales))
        return model.operator(kind, [data, by, bias], ("int8", scale, -3), **options)

    data = model.input("int8", (1, 9, 9, 8), 0.05, -3)
    window = {"padding": "SAME", "stride_h": 2, "stride_w": 2, "dilation_h_factor": 1, "dilation_w_factor": 1}
    window["fused_activation_function"] = "NONE"
    data = layer("CONV_2D", data, (16, 3, 3, 8), 0, 0.9, **window)
    data = model.operator("RESHAPE", [data, model.constant(np.asarray([1, 400], np.int32))], ("int8", 0.9, -3))
    data = layer("FULLY_CONNECTED", data, (12, 400), None, 12.0, fused_activation_function="NONE")
    return model.output(data)


def test_an_import_keeps_weights_packed(tmp_path):
    file = network(np.random.default_rng(3)).save(tmp_path / "net.tflite")
    shown = succeed("import", file, "-o", tmp_path / "net", "--compare", "2", "--verbose").stdout
    assert "no difference" in shown
    for variant in CORES:
        assert variant in shown or variant == "portable-nibbles"
    weights = 16 * 9 * 8 + 12 * 400
    rows = json.loads(succeed("check", tmp_path / "net" / "manifest.yaml", "--json").stdout)["result"]
    sizes = {row["variant"]: row["constant_bytes"] for row in rows}
    assert set(sizes) == {None, "dsp", "mve"}, "a Cortex-M3 has the operators of the base"
    for variant in sizes:
        # Biases, multipliers and shifts of 28 channels, and padding.
        assert weights / 2 <= sizes[variant] <= weights / 2 + 1200, sizes
    [model] = json.loads((tmp_path / "net" / "import.json").read_text())["models"]
    [base] = [one for one in model["implementations"] if one["variant"] is None]
    assert {step["reason"] for step in base["costs"][0]["steps"]} == {"weights of 4 bits stay packed"}
