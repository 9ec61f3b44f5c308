# SPDX-License-Identifier: Apache-2.0
"""Layers with windows that are partly or completely in the padding, in each variant, in QEMU and on this machine."""

import dataclasses

import numpy as np
import pytest
from campaign import sized
from kernels import reference
from kernels.variants import FLAGS
from opwest.importers.models.emit.emit import emit_program
from opwest.importers.models.emit.registry import VARIANTS
from opwest.importers.models.execute.run import run_program
from opwest.importers.models.ir.operations import Convolution, Depthwise
from opwest.importers.models.operators.windows import Window
from opwest.tuning import random_layers
from opwest.tuning.emulator import run
from opwest.tuning.image import Candidate
from opwest.tuning.machines import MACHINES
from requirements_support import need

need("arm-none-eabi-gcc", "qemu-system-arm", "cc")
CORES = {"portable": "cortex-m0plus", "mla": "cortex-m3", "dsp": "cortex-m4", "mve": "cortex-m55"}
KINDS = {Convolution: random_layers.convolution, Depthwise: random_layers.depthwise}
CASES = [
    (kind, name)
    for kind in KINDS
    for name in dict.fromkeys(one.name for one in VARIANTS[kind])
    if name.partition("-")[0] in CORES
]


def layer(kind, number, dtype):
    """Return a layer over a few pixels, with up to three rows and columns of padding on each side."""
    random = np.random.default_rng((17, number))
    place = random.random()
    image = (1, 1) if place < 0.5 else tuple(map(int, random.integers(1, 5, 2)))
    size = (1, 1) if place < 0.3 or random.random() < 0.3 else tuple(map(int, random.integers(1, 4, 2)))
    batch = 1 if place < 0.3 else int(random.choice([1, 1, 2]))
    shape = (batch, *image, int(random.choice([1, 3, 4, 8, 16, 17])))
    made = KINDS[kind](random, shape=shape, size=size, dtype=dtype, same=True, dilation=(1, 1))
    [operation] = made.operations
    size = operation.window.size
    most = 1 if random.random() < 0.25 else 4
    edges = [[int(one) for one in random.integers(0, most, 2)] for _ in range(2)]
    stride = tuple(map(int, random.integers(1, 4, 2)))
    if place < 0.15:  # one pixel that its only window does not reach
        stride, edges = (2, 2), [[0, 0], [1, 0]]
    counts = [(image[axis] + sum(edges[axis]) - size[axis]) // stride[axis] + 1 for axis in range(2)]
    if min(counts) < 1:
        return random, None
    window = Window(size, stride, (1, 1), (edges[0][0], edges[1][0]), tuple(counts))
    result = random_layers.value("output", dtype, (batch, *counts, operation.results[0].shape[3]))
    return random, random_layers.program(dataclasses.replace(operation, window=window, results=(result,)))


@pytest.mark.parametrize(("kind", "variant"), CASES, ids=lambda one: one if isinstance(one, str) else one.__name__)
def test_windows_in_the_padding(tmp_path, kind, variant):
    found = []
    dtypes = ("int16",) if variant in ("dsp-wide", "mve-long", "mve-widened") else ("int8", "int16")
    for number in range(sized(80, 400)):
        dtype = dtypes[number % len(dtypes)]
        random, program = layer(kind, number, dtype)
        if program is None:
            continue
        [operation] = program.operations
        inputs = random_layers.inputs_of(random, program, number)
        expected = reference.results_of(operation, *inputs)
        [executed] = run_program(program, inputs, {})
        assert np.array_equal(executed, expected), operation
        emitted = emit_program(program, "made by a test", variant, prefix=f"layer_{number}_")
        if emitted.steps[0].variant == variant:
            found.append(Candidate(program, emitted, inputs, [expected]))
    core = MACHINES[CORES[variant.partition("-")[0]]]
    for one, measured in zip(found, run(found, core, tmp_path, FLAGS), strict=True):
        assert (measured.wrong, measured.guards) == (0, 0), (measured, one.program.operations[0])
    assert len(found) > 2, len(found)


def test_calls_of_cmsis_nn():
    """A 1x1 convolution of one pixel is a fully connected layer only if its window is not in the padding."""
    seen = set()
    for number in range(600):
        _, program = layer(Convolution, number, "int8")
        if program is None:
            continue
        [operation] = program.operations
        emitted = emit_program(program, "made by a test", "cmsis-nn-none")
        if "arm_fully_connected_s8" in emitted.source:
            assert not operation.window.is_padded((1, 1)), operation
            seen.add("fully connected")
        elif emitted.steps[0].variant == "cmsis-nn-none":
            seen.add("convolution")
    assert seen == {"fully connected", "convolution"}
