# SPDX-License-Identifier: Apache-2.0
"""The inner loops of kernels: their bytes of code, and their results for each size of a cache."""

import dataclasses
import itertools
import re
import subprocess

import numpy as np
import pytest
from campaign import sized
from kernels import variants
from kernels.variants import check
from opwest.compiler.ir.operations import Convolution
from opwest.compiler.kernels.assembly import steps_of_loop
from opwest.compiler.kernels.dsp.streamed import MAX_STEPS
from opwest.compiler.output.emit import LOOP_BYTES, candidates, emit_program
from opwest.tuning import random_layers
from requirements_support import need

KINDS = [
    ("convolution", "dsp-bytes", "cortex-m4"),
    ("convolution", "dsp-halves", "cortex-m4"),
    ("convolution", "dsp-wide", "cortex-m4"),
    ("dense", "dsp-bytes", "cortex-m4"),
    ("dense", "dsp-halves", "cortex-m4"),
    ("dense", "dsp-wide", "cortex-m4"),
    ("convolution", "mla-pairs", "cortex-m3"),
]
TYPES = ("int8", "int16")
LOOP = re.compile(r"^\w+ (\w+) t ((?:tile|products|sums|mla_(?:known|patched|rounded))_\w+)$", re.MULTILINE)


def layers(kind, variant, count):
    """Return layers of a variant with many taps, so that their loops have several turns."""
    made = (layer(kind, variant, number) for number in range(20 * count))
    accepted = (each for each in made if variant in candidates(each.operations[0], variant.partition("-")[0]))
    return list(itertools.islice(accepted, count))


def layer(kind, variant, number):
    random, dtype = np.random.default_rng((37, number)), "int16" if variant == "dsp-wide" else "int8"
    if kind == "dense":
        taps, results = [(640, 12), (203, 50), (128, 64), (1000, 5)][number % 4]
        return random_layers.dense(random, taps, results, 1, "ordinary", dtype)
    shape, size = [((1, 6, 5, 24), (3, 3)), ((1, 4, 7, 100), (1, 1)), ((2, 5, 5, 7), (3, 4))][number % 3]
    return random_layers.convolution(random, shape, size, 7 + number % 3, "ordinary", dtype, dilation=(1, 1))


@pytest.mark.parametrize(("kind", "variant", "core"), KINDS)
def test_code_fits_in_the_cache(kind, variant, core, tmp_path):
    need("arm-none-eabi-gcc")
    sizes = {LOOP_BYTES: [], None: []}
    for made, limit in itertools.product(layers(kind, variant, 6), sizes):
        source, output = tmp_path / "operators.c", tmp_path / "operators.o"
        source.write_text(emit_program(made, "test", variant, loop_bytes=limit).source)
        command = ["arm-none-eabi-gcc", "-mthumb", f"-mcpu={core}", "-O2", "-c", source, "-o", output]
        subprocess.run(command, check=True)
        symbols = subprocess.run(["arm-none-eabi-nm", "-S", output], capture_output=True, text=True, check=True).stdout
        functions = [int(size, 16) for size, _ in LOOP.findall(symbols)]
        assert functions, symbols
        sizes[limit] += functions
    assert max(sizes[LOOP_BYTES]) <= 1024 - 64  # a kilobyte with the code that calls the loop
    assert max(sizes[None]) > 1024


@pytest.mark.parametrize(("kind", "variant", "core"), KINDS)
@pytest.mark.parametrize("limit", [None, 600, 1])
def test_results_do_not_depend_on_the_loop(kind, variant, core, limit, tmp_path):
    made = layers(kind, variant, sized(3, 24))
    inputs = [
        random_layers.inputs_of(np.random.default_rng((number, 5)), each, number) for number, each in enumerate(made)
    ]
    images = [
        variants.candidate(each, variant, number, arrays, loop_bytes=limit)
        for number, (each, arrays) in enumerate(zip(made, inputs, strict=True))
    ]
    check(images, core, tmp_path)


def test_loops_of_a_layer_with_a_sum_have_their_own_name():
    """The sum needs a part of the cache: the loop of the same tile is shorter than without it."""
    made = random_layers.convolution_sum(
        np.random.default_rng(3), shape=(1, 6, 6, 16), size=(3, 3), results=16, kind="relu", dilation=(1, 1)
    )
    [added] = made.operations
    plain = {field.name: getattr(added, field.name) for field in dataclasses.fields(Convolution)}
    plain |= {"inputs": added.inputs[:1], "weights": np.clip(added.weights, -40, 40)}
    both = [Convolution(**plain), dataclasses.replace(added, weights=plain["weights"])]
    made.operations = both
    source = emit_program(made, "test", "dsp-bytes").source
    names = re.findall(r"^static OPWEST_NAKED \w+ \*?(\w+)\(", source, re.MULTILINE)
    assert len([name for name in names if name.startswith("tile_")]) == 2 and len(names) == len(set(names)), names


@pytest.mark.parametrize("processor", ["mla", "dsp", "mve"])
def test_static_functions_have_different_names_and_memory_does_not_depend_on_loops(processor):
    """Variants are chosen and planned without the limit of the code."""
    makers = [random_layers.convolution, random_layers.dense, random_layers.depthwise, random_layers.pool]
    for seed in range(sized(6, 100)):
        made = [
            make(np.random.default_rng((seed, n)), dtype=dtype) for n in range(4) for make in makers for dtype in TYPES
        ]
        made += [random_layers.convolution_sum(np.random.default_rng((seed, number))) for number in range(6)]
        made[0].operations = [operation for each in made for operation in each.operations]
        memory = []
        for limit in (LOOP_BYTES, None, 500):
            emitted = emit_program(made[0], "test", processor, loop_bytes=limit)
            names = re.findall(r"^static [^;=]*?\b(\w+)\([^()]*\)$", emitted.source, re.MULTILINE)
            assert len(names) > 9 and len(names) == len(set(names)), sorted(names)
            memory.append(
                [(step.function.parameters, [value.size for value in step.arguments]) for step in emitted.steps]
            )
        assert memory[0] == memory[1] == memory[2]


@pytest.mark.parametrize(
    ("steps", "room", "turn"),
    [
        (32, None, 32),
        (40, None, 40),
        (72, 12 * 48, 12),
        (32, 12 * 48, 10),
        (32, 32 * 48, 32),
        (288, 13 * 48, 12),
        (7, 1, 1),
    ],
)
def test_steps_of_a_turn(steps, room, turn):
    """The fewest branches: 72 steps of 48 bytes in 576 bytes are 6 turns of 12, 32 steps 3 turns of 10 and 2 steps."""
    chosen = steps_of_loop(steps, 48, room, MAX_STEPS)
    assert steps // chosen == steps // turn and (chosen == turn or steps // turn == 1)
