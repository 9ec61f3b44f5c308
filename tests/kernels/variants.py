# SPDX-License-Identifier: Apache-2.0
"""Random layers in a variant on a core, in images for QEMU."""

import dataclasses

import numpy as np
from kernels import reference
from opwest.compiler.output.emit import Emitted, Step, emit_program
from opwest.tuning import random_layers
from opwest.tuning.image import Candidate
from opwest.tuning.machines import machines
from opwest.tuning.measure import run
from requirements_support import need

FLAGS = ("-O2", "-Wconversion", "-Werror")


def candidate(program, variant, prefix, inputs, **options):
    expected = reference.results_of(program.operations[0], *inputs)
    prefix = f"layer_{prefix}_".replace("-", "_")
    emitted = emit_program(program, "made by a test", variant, prefix=prefix, **options)
    return Candidate(program, emitted, inputs, [expected])


def variant_of(one):
    return one.emitted.steps[0].variant


def candidates_of(make, variant, count, seed, accepts_portable=False, most=None, **keys):
    """Return candidates for those of `count` layers that the variant accepts, the first `most` of them."""
    found = []
    for number in range(count):
        if len(found) == most:
            break
        random = np.random.default_rng((seed, number))
        program = make(random, **keys)
        inputs = random_layers.inputs_of(random, program, number)
        one = candidate(program, variant, f"{variant}_{make.__name__}_{keys.get('dtype', '')}_{number}", inputs)
        if accepts_portable or variant_of(one) != "portable":
            found.append(one)
    return found


def in_place(one, data, result):
    """Return a candidate whose result begins at the start of its data."""
    [step] = one.emitted.steps
    arguments = tuple(data if argument is result else argument for argument in step.arguments)
    made = one.program
    made.outputs = [data]
    changed = Step(step.function, step.symbol, arguments, step.label, step.variant)
    whole = np.zeros(data.shape, data.dtype)
    flat = one.outputs[0].reshape(-1)
    # Data behind the results keep their values.
    whole.reshape(-1)[:] = one.inputs[0].reshape(-1)
    whole.reshape(-1)[: flat.size] = flat
    return Candidate(made, Emitted((changed,), one.emitted.source, one.emitted.external), one.inputs, [whole])


PER_IMAGE = 16
"""The candidates of an image. More of a campaign do not fit in the memories of the machines: 512 KiB for code."""


def images(candidates):
    """Return the candidates of each image; those with the outputs of another one are in its image."""
    parts, begin = [[]], 0
    for number, one in enumerate(candidates):
        if one.like is None and len(parts[-1]) >= PER_IMAGE:
            parts.append([])
            begin = number
        parts[-1].append(one if one.like is None else dataclasses.replace(one, like=one.like - begin))
    return parts


def check(candidates, core, folder, flags=FLAGS):
    """Run candidates; every result and every byte around it must be right. Return what was measured."""
    need(machines()[core].compiler[0], machines()[core].emulator[0], "cc")
    found = []
    for number, image in enumerate(images(candidates)):
        found += run(image, machines()[core], folder / f"image{number}", flags)
    for one, measured in zip(candidates, found, strict=True):
        operations = [getattr(operation, "layers", operation) for operation in one.program.operations]
        assert (measured.wrong, measured.guards) == (0, 0), (measured, variant_of(one), operations)
    return found
