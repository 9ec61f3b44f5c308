# SPDX-License-Identifier: Apache-2.0
"""The variants in C that compute two products in one multiplication: equal to the reference bit for bit."""

import dataclasses
import itertools

import numpy as np
import pytest
from campaign import sized
from in_process import succeed
from kernels import variants
from kernels.test_rvv import usual
from kernels.variants import candidates_of, variant_of
from models.commands import check_vectors, dense
from models.test_max_ram import convolutions
from opwest.compiler.kernels.lanes.groups import SIZES, _divided, groups_of, parts_of
from opwest.compiler.output.emit import candidates
from opwest.compiler.selection.choose import choose
from opwest.compiler.selection.costs import Table, key_of
from opwest.compiler.semantics.fixed_point import Rounding
from opwest.tuning import random_layers

KINDS = [
    ("portable-pairs", "convolution"),
    ("portable-pairs", "dense"),
    ("portable-words", "dense"),
    ("portable-columns", "depthwise"),
]
CORES = ["rv32", "cortex-m0plus"]
COUNT = sized(6, 200)


def layers(variant, layer, count=COUNT, seed=71, **keys):
    make = getattr(random_layers, layer)
    return candidates_of(make, variant, 20 * count, seed, most=count, dtype="int8", **keys)


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize(("variant", "kind"), KINDS)
def test_random_layers_have_exact_results(variant, kind, core, tmp_path):
    found = layers(variant, kind)
    assert len(found) == COUNT and {variant_of(one) for one in found} == {variant}
    variants.check(found, core, tmp_path)


def test_sums_of_layers(tmp_path):
    found = candidates_of(random_layers.convolution_sum, "portable-pairs", 200, 72, most=sized(6, 120))
    assert len(found) == sized(6, 120)
    variants.check(found, "rv32", tmp_path)


def test_code_does_not_depend_on_optimisation(tmp_path):
    found = [one for variant, kind in KINDS for one in layers(variant, kind, 1, seed=73)]
    variants.check(found, "rv32", tmp_path / "none", ("-O0", "-Wconversion", "-Werror"))
    variants.check(found, "rv32", tmp_path / "size", ("-Os", "-Wconversion", "-Werror"))


def test_a_depthwise_convolution_of_one_channel_has_pairs(tmp_path):
    found = layers("portable-pairs", "depthwise", sized(4, 60), 77, shape=(2, 9, 7, 1))
    assert len(found) == sized(4, 60)
    variants.check(found, "rv32", tmp_path)


def test_every_number_of_rows_and_channels(tmp_path):
    """Tiles of 2, 4 and 6 rows, of 1 to 3 channels, with rows that the last tile lacks."""
    shapes = list(itertools.product((2, 3, 4, 5, 6, 7, 11, 12), sized((1, 2, 4), range(1, 9))))
    shapes += [(1, channels) for channels in range(1, sized(6, 20))]
    found = []
    for number, (rows, channels) in enumerate(shapes):
        random = np.random.default_rng((76, number))
        made = random_layers.dense(random, 9, channels, rows, rounding=Rounding.TWICE)
        variant = "portable-pairs" if rows > 1 else "portable-words"
        found.append(variants.candidate(made, variant, number, random_layers.inputs_of(random, made, number)))
    assert {variant_of(one) for one in found} == {"portable-pairs", "portable-words"}
    variants.check(found, "rv32", tmp_path)


def test_sums_at_the_limits_of_lanes(tmp_path):
    """Weights whose groups just fit, or just do not, with data at both ends."""
    found = []
    for number, (first, rest) in enumerate([(-128, -128), (-128, -127), (127, 128 - 255), (64, 64), (-32, -32)] * 2):
        random = np.random.default_rng((74, number))
        made = random_layers.dense(random, 17, 5, rows=1 + 3 * (number % 2), rounding=Rounding.TWICE, kind="relu")
        [layer] = made.operations
        weights = np.full(layer.weights.shape, rest, np.int8)
        weights[..., ::2] = first
        made = dataclasses.replace(made, operations=[dataclasses.replace(layer, weights=weights)])
        variant = "portable-pairs" if number % 2 else "portable-words"
        for case in (0, 1):
            inputs = random_layers.inputs_of(random, made, case)
            found.append(variants.candidate(made, variant, f"limit_{number}_{case}", inputs))
            assert variant_of(found[-1]) == variant
    variants.check(found, "rv32", tmp_path)


@pytest.mark.parametrize("size", SIZES)
def test_groups_fit_16_bits(size):
    for number in range(sized(6, 100)):
        random = np.random.default_rng((75, number))
        weights = random_layers.weights_of(random, (7, int(random.integers(1, 40))))
        groups = _divided(weights, size)
        assert np.array_equal(groups.weights + groups.rest, weights) and not (groups.weights * groups.rest).any()
        padded = np.pad(groups.weights.astype(np.int64), ((0, 0), (0, -weights.shape[1] % size)))
        each = padded.reshape(-1, size)
        ends = np.stack([-128 * each, 127 * each])
        assert ends.min(axis=0).sum(axis=1).min() >= -32768 and ends.max(axis=0).sum(axis=1).max() <= 32767


def test_small_weights_have_large_groups():
    small, great = (np.full((4, 64), weight, np.int8) for weight in (10, 127))
    parts = parts_of(4, 2)
    assert groups_of(small, parts, 2).size == max(SIZES) and not groups_of(small, parts, 2).is_patched
    assert groups_of(great, parts, 2).size == min(SIZES) and not groups_of(great, parts, 2).is_patched


def test_layers_that_the_variants_refuse():
    """int16 data, windows of many taps; rows of the other variant; classes of processors, which have faster ones."""
    random = np.random.default_rng(3)
    int16 = [getattr(random_layers, kind)(random, dtype="int16").operations[0] for kind in ("convolution", "dense")]
    large = random_layers.depthwise(random, (1, 8, 8, 3), (5, 5), 1).operations[0]
    long = random_layers.dense(random, 2048, 2, 2).operations[0]
    for operation in (*int16, large, long):
        assert not any(name.startswith("portable-") for name in candidates(operation, ""))
    single, several = (random_layers.dense(random, 16, 8, rows).operations[0] for rows in (1, 4))
    assert "portable-words" in candidates(single, "") and "portable-pairs" not in candidates(single, "")
    assert "portable-pairs" in candidates(several, "") and "portable-words" not in candidates(several, "")
    for processor in ("mla", "dsp", "mve", "rvv"):
        assert not any(name.startswith("portable-") for name in candidates(several, processor))


SAME = {"stride": (1, 1), "same": True}
COSTS = [
    # Instructions for each product on RV32IMAC, and how many times fewer than those of the first form in C.
    ("portable-pairs", "convolution", {"shape": (1, 25, 5, 64), "size": (1, 1), "results": 64, **SAME}, 2.06, 1.57),
    ("portable-pairs", "convolution", {"shape": (1, 16, 16, 32), "size": (3, 3), "results": 32, **SAME}, 1.95, 1.57),
    ("portable-words", "dense", {"length": 640, "results": 128, "rows": 1}, 2.02, 1.7),
    ("portable-words", "dense", {"length": 64, "results": 12, "rows": 1}, 2.35, 1.7),
    ("portable-columns", "depthwise", {"shape": (1, 24, 24, 8), "size": (3, 3), "multiplier": 1, **SAME}, 4.95, 1.6),
    ("portable-columns", "depthwise", {"shape": (1, 25, 5, 64), "size": (3, 3), "multiplier": 1, **SAME}, 6.0, 1.35),
]


@pytest.mark.parametrize("core", CORES)
def test_costs(core, tmp_path):
    """On RV32 at most the stated numbers; on a Cortex-M0+ hardly more cycles than the first form."""
    found, products = [], []
    for number, (variant, kind, keys, *_) in enumerate(COSTS):
        made = usual(getattr(random_layers, kind)(np.random.default_rng((5, number)), kind="relu", **keys))
        inputs = random_layers.inputs_of(np.random.default_rng(2), made, 3)
        for name in ("portable", variant):
            found.append(variants.candidate(made, name, f"{number}_{name}", inputs))
        [layer] = made.operations
        taps = layer.weights[..., 0].size if kind == "depthwise" else layer.weights[0].size
        products.append(layer.results[0].size * taps)
    measured = variants.check(found, core, tmp_path, ("-O2", "-fno-schedule-insns"))
    for (variant, kind, keys, most, ratio), count, plain, own in zip(
        COSTS, products, *[iter(measured)] * 2, strict=True
    ):
        shown = (variant, kind, keys, own.cycles / count, plain.cycles / own.cycles)
        assert core != "rv32" or (own.cycles <= most * count and plain.cycles >= ratio * own.cycles), shown
        # Few columns of a depthwise convolution: a Cortex-M0+ keeps their elements on the stack.
        assert own.cycles <= 1.03 * plain.cycles, shown


@pytest.mark.parametrize(("model", "text"), [(convolutions, "pack_pair_"), (dense, "op_dense")])
def test_costs_choose_the_operators_of_the_base(model, text, tmp_path):
    """The costs of the shipped table, and those that are measured for the layers of the model."""
    file = tmp_path / "model.tflite"
    file.write_bytes(model("int8").build() if model is dense else model())
    succeed("import", file, "-o", tmp_path / "first", "--vectors", "0")
    succeed("tune", tmp_path / "first", "--core", "rv32")
    table = tmp_path / "first/tuning.yaml"
    succeed("import", file, "-o", tmp_path / "tuned", "--tuning", table)
    for name in ("first", "tuned"):
        source = (tmp_path / name / "operators.c").read_text()
        assert text in source and "0x8000" in source
    check_vectors(tmp_path / "tuned")


def test_the_base_is_slower_on_no_other_core():
    """The costs of RV32 decide, unless those of the Cortex-M0+ are known to increase."""
    program = random_layers.dense(np.random.default_rng(3), 64, 12, 1, kind="relu", rounding=Rounding.ONCE)
    key = key_of(program.operations[0])
    fast, slow = ({key: {"portable": (1000, 200), "portable-words": (cycles, 900)}} for cycles in (500, 1100))
    table, unknown = Table("rv32", fast, {}), Table("cortex-m0plus", {}, {})
    for other, found in ((slow, "portable"), (fast, "portable-words")):
        chosen = choose(program, "", table, other=Table("cortex-m0plus", other, {}))
        assert [row.variant for row in chosen.rows] == [found]
        assert chosen.rows[0].why in ("portable-words is slower on a cortex-m0plus", "fastest, measured")
        assert ("slower" in chosen.rows[0].why) == (found == "portable")
    assert choose(program, "", table, other=unknown).rows[0].variant == "portable-words"
    preferred = choose(program, "", table, prefer=["portable-words"], other=Table("cortex-m0plus", slow, {}))
    assert preferred.rows[0].variant == "portable-words"


def test_a_limit_of_flash_excludes_packed_weights(tmp_path):
    file = tmp_path / "model.tflite"
    file.write_bytes(dense("int8", results=200).build())
    words = ["import", file, "--vectors", "0", "--prefer", "portable-words"]
    succeed(*words, "-o", tmp_path / "free")
    assert "const uint32_t *restrict weights" in (tmp_path / "free/operators.c").read_text()
    succeed("import", file, "--vectors", "0", "-o", tmp_path / "least", "--optimize", "flash")
    assert "const uint32_t *restrict weights" not in (tmp_path / "least/operators.c").read_text()
