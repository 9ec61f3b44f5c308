# SPDX-License-Identifier: Apache-2.0
"""The variants for processors with the vector extension, on random layers in QEMU."""

import subprocess

import numpy as np
import pytest
from campaign import sized
from kernels import reference
from opwest.importers.models.emit.emit import emit_program
from opwest.importers.models.operators.fixed_point import Rounding
from opwest.tuning import random_layers
from opwest.tuning.emulator import run
from opwest.tuning.image import Candidate
from opwest.tuning.machines import MACHINES
from requirements_support import need

LAYERS = sized(6, 240)
VARIANTS = {
    ("convolution", "int8"): {"mve-rows"},
    ("convolution", "int16"): {"mve-long", "mve-rows"},
    ("dense", "int8"): {"mve-rows", "mve-dense"},
    ("dense", "int16"): {"mve-dense", "mve-long", "mve-rows"},
    ("depthwise", "int8"): {"mve-tiles", "mve-widened"},
    ("depthwise", "int16"): {"mve-widened"},
    ("pool", "int8"): {"mve-lanes"},
    ("add", "int8"): {"mve-words"},
    ("add", "int16"): {"mve-words"},
    ("multiply", "int8"): {"mve-words"},
    ("multiply", "int16"): {"mve-words"},
}
WARNINGS = ("-Os", "-Wconversion", "-Werror")
CLANG = "clang --target=thumbv8.1m.main-none-eabihf -mcpu=cortex-m55 -std=c11 -ffreestanding -Wall -Wextra -Wconversion"


def candidate(layer, dtype, number, preferred="mve", **keys):
    random = np.random.default_rng((5, number))
    made = getattr(random_layers, layer)(random, dtype=dtype, **keys)
    given = random_layers.inputs_of(random, made, number)
    expected = reference.results_of(made.operations[0], *given)
    emitted = emit_program(made, "Random layers.", preferred, prefix=f"p{number}_")
    return Candidate(made, emitted, given, [expected])


def check(candidates, folder, flags=WARNINGS):
    need("arm-none-eabi-gcc", "qemu-system-arm")
    measured = run(candidates, MACHINES["cortex-m55"], folder, flags)
    assert [(one.wrong, one.guards) for one in measured] == [(0, 0)] * len(candidates)


@pytest.mark.parametrize(("kind", "dtype"), VARIANTS)
def test_random_layers_have_exact_results(kind, dtype, tmp_path):
    candidates = [candidate(kind, dtype, number) for number in range(LAYERS)]
    assert {one.emitted.steps[0].variant for one in candidates} == VARIANTS[kind, dtype]
    check(candidates, tmp_path)


def test_code_does_not_depend_on_optimisation(tmp_path):
    candidates = [
        candidate(kind, "int8", number) for number, kind in enumerate(["convolution", "dense", "depthwise"] * 2)
    ]
    check(candidates, tmp_path / "none", ("-O0", "-Werror"))
    check(candidates, tmp_path / "all", ("-O3", "-Werror"))


def test_rows_are_longer_than_the_unrolled_code(tmp_path):
    shapes = [(9, 5, 2), (200, 9, 3), (640, 4, 3), (5000, 3, 2), (1000, 11, 1), (4100, 8, 1)]
    check(
        [
            candidate("dense", "int8", number, length=length, results=results, rows=rows, kind="ordinary")
            for number, (length, results, rows) in enumerate(shapes)
        ],
        tmp_path,
    )


def test_single_roundings_are_exact(tmp_path):
    kinds = ("exponents", "left", "halves", "greatest", "one", "relu")
    found = [candidate("dense", "int8", n, kind=kind, rounding=Rounding.ONCE) for n, kind in enumerate(kinds)]
    check(found, tmp_path)


def test_sums_of_64_bits_are_exact(tmp_path):
    kinds = ("convolution", "dense") * 3
    found = [candidate(kind, "int16", number, "mve-long") for number, kind in enumerate(kinds)]
    assert {one.emitted.steps[0].variant for one in found} == {"mve-long"}
    check(found, tmp_path)


def test_a_window_that_is_the_image_is_a_single_row(tmp_path):
    keys = {"stride": (1, 1), "dilation": (1, 1)}
    whole = candidate("convolution", "int8", 0, shape=(1, 2, 3, 5), size=(2, 3), same=False, **keys)
    padded = candidate("convolution", "int8", 1, shape=(1, 1, 1, 5), size=(3, 3), same=True, **keys)
    assert [one.emitted.steps[0].variant for one in (whole, padded)] == ["mve-dense", "mve-rows"]
    check([whole, padded], tmp_path)


def test_layers_that_differ_in_their_numbers_share_a_function():
    shape = {"size": (3, 3), "kind": "relu", "stride": (1, 1), "dilation": (1, 1), "same": True}
    made = [random_layers.convolution(np.random.default_rng(n), (1, 6, 6, 16), results=8, **shape) for n in range(9)]
    # A clamp has instructions of its own.
    plain = [one for one in made if one.operations[0].finish.high == 127]
    assert len(plain) > 1
    assert len({_function(one) for one in plain}) == 1


def _function(made):
    [step] = emit_program(made, "Test.", "mve").steps
    return step.function


def test_results_replace_the_data_where_they_are_written_later():
    plain = random_layers.convolution(
        np.random.default_rng(1), (1, 6, 6, 16), (1, 1), 16, stride=(1, 1), dilation=(1, 1)
    )
    wider = random_layers.convolution(
        np.random.default_rng(1), (1, 6, 6, 16), (1, 1), 20, stride=(1, 1), dilation=(1, 1)
    )
    assert [_in_place(one) for one in (plain, wider)] == [("data",), ()]


def _in_place(made):
    return next(one.in_place for one in _function(made).parameters if one.direction == "out")


@pytest.mark.parametrize(
    ("kind", "seeds"), [("convolution", 4), ("dense", 4), ("depthwise", 4), ("pool", 2), ("add", 2)]
)
def test_clang_compiles_the_variants_without_warnings(kind, seeds, tmp_path):
    need("clang")
    for number in range(seeds):
        source = tmp_path / f"{kind}_{number}.c"
        # A definition without a declaration before it has a warning of its own.
        source.write_text(candidate(kind, "int8", number).emitted.source)
        words = [*CLANG.split(), "-Werror", "-Os", "-c", str(source), "-o", str(tmp_path / "made.o")]
        assert subprocess.run(words, capture_output=True, text=True, check=False).stderr == ""
