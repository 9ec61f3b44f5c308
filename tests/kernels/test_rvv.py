# SPDX-License-Identifier: Apache-2.0
"""The variants for the vector extension of RISC-V in QEMU: equal to the reference bit for bit."""

import dataclasses
import itertools

import numpy as np
import pytest
import yaml
from campaign import sized
from in_process import succeed
from kernels import variants
from kernels.variants import FLAGS, candidates_of, images, variant_of
from models.commands import dense
from models.test_max_ram import convolutions
from opwest.compiler.emission.function import VARIANTS
from opwest.compiler.ir.operations import Elementwise
from opwest.compiler.output.emit import candidates, emit_program
from opwest.compiler.semantics.fixed_point import Rounding
from opwest.tuning import random_layers
from opwest.tuning.image import Candidate
from opwest.tuning.machines import machines
from opwest.tuning.measure import run
from requirements_support import need

CORE = "rv32-v"
KINDS = {
    "rvv-channels": ("convolution", "dense", "depthwise", "pool"),
    "rvv-products": ("dense",),
    "rvv-elements": ("elements", "add", "multiply"),
}
PAIRS = [(variant, kind) for variant, kinds in KINDS.items() for kind in kinds]
COUNT = sized(8, 200)


def layers(variant, layer, count=COUNT, seed=51, **keys):
    make = getattr(random_layers, layer)
    return candidates_of(make, variant, 20 * count, seed, most=count, dtype="int8", **keys)


@pytest.mark.parametrize(("variant", "kind"), PAIRS)
def test_random_layers_have_exact_results(variant, kind, tmp_path):
    found = layers(variant, kind)
    assert len(found) == COUNT and {variant_of(one) for one in found} == {variant}
    variants.check(found, CORE, tmp_path)


@pytest.mark.parametrize("length", [256, 1024])
def test_any_length_of_vector_registers(length, tmp_path):
    machine = machines()[CORE]
    need(machine.compiler[0], machine.emulator[0], "cc")
    emulator = tuple(word.replace("vlen=128", f"vlen={length}") for word in machine.emulator)
    assert emulator != machine.emulator
    longer = dataclasses.replace(machine, emulator=emulator)
    found = [one for variant, kind in PAIRS for one in layers(variant, kind, sized(2, 40), seed=52)]
    for number, image in enumerate(images(found)):
        for measured in run(image, longer, tmp_path / str(number), FLAGS):
            assert (measured.wrong, measured.guards) == (0, 0)


def test_code_does_not_depend_on_optimisation(tmp_path):
    found = [one for variant, kind in PAIRS for one in layers(variant, kind, 1, seed=53)]
    variants.check(found, CORE, tmp_path / "none", ("-O0", "-Wconversion", "-Werror"))
    variants.check(found, CORE, tmp_path / "size", ("-Os", "-Wconversion", "-Werror"))


@pytest.mark.parametrize("kind", ["add", "subtract", "multiply"])
def test_all_pairs_of_values(kind, tmp_path):
    """Each pair of int8 values, with zero points and limits at both ends."""
    pairs = np.asarray(list(itertools.product(range(-128, 128), repeat=2)), np.int8)
    found = []
    for number in range(sized(3, 40)):
        random = np.random.default_rng((54, number))
        made = random_layers.elements(random, (1, len(pairs)), kind)
        found.append(variants.candidate(made, "rvv-elements", number, [pairs[None, :, 0], pairs[None, :, 1]]))
    variants.check(found, CORE, tmp_path)


@pytest.mark.parametrize("multiplier", [2, 3, 8])
def test_several_results_of_a_channel(multiplier, tmp_path):
    """Channels are repeated in the copies of rows; a single channel is a convolution."""
    found = []
    for number, depth in enumerate((1, 3, 16, 40) * sized(1, 10)):
        random = np.random.default_rng((56, multiplier, number))
        made = random_layers.depthwise(random, (1, 5, 7, depth), multiplier=multiplier, kind="relu")
        inputs = random_layers.inputs_of(random, made, number)
        found.append(variants.candidate(made, "rvv-channels", number, inputs))
    assert {variant_of(one) for one in found} == {"rvv-channels"}
    variants.check(found, CORE, tmp_path)


@pytest.mark.parametrize("rounding", [Rounding.ONCE, Rounding.TWICE])
def test_every_kind_of_rounding(rounding, tmp_path):
    kinds = ("exponents", "left", "halves", "greatest", "one", "relu")
    found = []
    for variant, (number, kind) in itertools.product(("rvv-channels", "rvv-products"), enumerate(kinds * sized(1, 8))):
        random = np.random.default_rng((55, number))
        made = random_layers.dense(random, rows=1, kind=kind, rounding=rounding)
        inputs = random_layers.inputs_of(random, made, number)
        found.append(variants.candidate(made, variant, f"{variant}_{number}", inputs))
    assert sum(variant_of(one) != "portable" for one in found) > len(found) // 2
    variants.check(found, CORE, tmp_path)


def test_layers_that_the_variants_refuse():
    """Wide windows, int16 data."""
    random = np.random.default_rng(3)
    wide = random_layers.depthwise(random, (1, 4, 20, 3), (1, 13), 1, stride=(1, 1), same=True).operations[0]
    int16 = [getattr(random_layers, kind)(random, dtype="int16").operations[0] for kind in ("convolution", "pool")]
    for operation in (wide, *int16):
        assert not any(name.startswith("rvv") for name in candidates(operation, "rvv"))


SHAPES = [((3, 5, 7), (7,)), ((3, 5, 7), (5, 1)), ((1,), (2, 40)), ((4, 1, 33), (1, 6, 33)), ((1, 1), (1, 1))]


@pytest.mark.parametrize("kind", ["add", "subtract", "multiply"])
def test_operands_that_are_repeated(kind, tmp_path):
    """Rows and single elements, as either operand."""
    found = []
    for number, shapes in enumerate([pair[::turn] for turn in (1, -1) for pair in SHAPES]):
        random = np.random.default_rng((57, number))
        result = random_layers.value("output", "int8", np.broadcast_shapes(*shapes))
        function = random_layers.elements(random, result.shape, kind).operations[0].function
        operands = [random_layers.value("input", "int8", shape) for shape in shapes]
        made = random_layers.program(Elementwise("layer", tuple(operands), (result,), function))
        inputs = random_layers.inputs_of(random, made, number)
        for variant in ("portable", "rvv-elements"):
            prefix = f"c{number}_{variant.replace('-', '_')}_"
            emitted = emit_program(made, "made by a test", variant, prefix=prefix)
            assert emitted.steps[0].variant == variant
            found.append(Candidate(made, emitted, inputs, None, None if variant == "portable" else len(found) - 1))
    variants.check(found, CORE, tmp_path)


def usual(program, seed=3):
    """Return the program of a layer with the weights of a trained model."""
    [layer] = program.operations
    weights = np.random.default_rng(seed).normal(0, 25, layer.weights.shape)
    layer = dataclasses.replace(layer, weights=np.clip(np.rint(weights), -127, 127).astype(np.int8))
    return dataclasses.replace(program, operations=[layer])


SAME = {"stride": (1, 1), "same": True}
COSTS = [
    # Instructions for each product, or each element; a vector instruction counts one.
    ("rvv-channels", "convolution", {"shape": (1, 25, 5, 64), "size": (1, 1), "results": 64, **SAME}, 0.122),
    ("rvv-channels", "convolution", {"shape": (1, 16, 16, 16), "size": (3, 3), "results": 16, **SAME}, 0.275),
    ("rvv-channels", "dense", {"length": 128, "results": 128, "rows": 1}, 0.19),
    ("rvv-products", "dense", {"length": 256, "results": 2, "rows": 1}, 0.37),
    ("rvv-channels", "depthwise", {"shape": (1, 25, 5, 64), "size": (3, 3), "multiplier": 1, **SAME}, 0.35),
    ("rvv-elements", "elements", {"shape": (1, 4096), "kind": "add"}, 0.97),
    ("rvv-elements", "elements", {"shape": (1, 4096), "kind": "multiply"}, 0.72),
]


def test_costs(tmp_path):
    """At most the stated numbers, and at least 3 times fewer instructions than portable C."""
    found, products = [], []
    for number, (variant, kind, keys, _) in enumerate(COSTS):
        random = np.random.default_rng((5, number))
        made = getattr(random_layers, kind)(random, **({} if "kind" in keys else {"kind": "relu"}), **keys)
        made = made if kind == "elements" else usual(made)
        inputs = random_layers.inputs_of(random, made, 3)
        for name in ("portable", variant):
            found.append(variants.candidate(made, name, f"{number}_{name}", inputs))
        [layer] = made.operations
        size = 1 if kind == "elements" else layer.weights[0].size if kind != "depthwise" else layer.weights[..., 0].size
        products.append(layer.results[0].size * size)
    measured = variants.check(found, CORE, tmp_path, ("-O2",))
    for (variant, kind, keys, most), count, plain, own in zip(COSTS, products, *[iter(measured)] * 2, strict=True):
        assert own.instructions <= most * count, (variant, kind, keys, own.instructions / count)
        assert plain.instructions >= 3 * own.instructions, (variant, kind, keys)
        assert own.stack <= 200


@pytest.mark.parametrize(("model", "functions"), [(convolutions, {"rvv_channels_3"}), (dense, {"rvv_channels_1"})])
def test_an_import_for_the_extension(model, functions, tmp_path):
    """`--kernels rvv` chooses the variants; an import without it has none, because no board of Zephyr selects them."""
    path = tmp_path / "model.tflite"
    path.write_bytes(model("int8").build() if model is dense else model())
    names = {one.name for some in VARIANTS.values() for one in some if one.name.startswith("rvv")}
    words = [word for name in sorted(names) for word in ("--prefer", name)]
    succeed("import", path, "-o", tmp_path / "vector", "--vectors", "0", "--kernels", "rvv", *words)
    source = (tmp_path / "vector/operators.c").read_text()
    assert all(name in source for name in functions)
    manifest = yaml.safe_load((tmp_path / "vector/manifest.yaml").read_text())
    assert "variants" not in manifest
    succeed("import", path, "-o", tmp_path / "plain", "--vectors", "0")
    sources = list((tmp_path / "plain").rglob("operators.c"))
    assert sources and not any("rvv_" in source.read_text() for source in sources)
