# SPDX-License-Identifier: Apache-2.0
"""Kernels with an interrupt every few hundred instructions: results, masks of interrupts, the stack."""

import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from campaign import sized
from opwest.compiler.output.emit import candidates, emit_program
from opwest.tuning import random_layers
from opwest.tuning.image import Candidate
from opwest.tuning.machines import machines
from opwest.tuning.measure import run
from opwest.tuning.tolerance import limits_for
from requirements_support import need

need("arm-none-eabi-gcc", "qemu-system-arm", "cc")

CORES = {"cortex-m3": "mla", "cortex-m4": "dsp", "cortex-m55": "mve"}


MAKERS = {
    "convolution": random_layers.convolution,
    "dense": random_layers.dense,
    "depthwise": random_layers.depthwise,
    "pool": random_layers.pool,
    "add": random_layers.add,
    "multiply": random_layers.multiply,
    "matrix": random_layers.matrix_product,
    "transposed": random_layers.transposed_convolution,
    "grouped": random_layers.grouped_convolution,
    "hybrid": random_layers.hybrid_convolution,
    "float convolution": random_layers.float_convolution,
    "float dense": random_layers.float_dense,
    "float depthwise": random_layers.float_depthwise,
    "float elements": random_layers.float_elements,
    "float pool": random_layers.float_pool,
    "float product": random_layers.float_product,
}
STACK = 300
"""The greatest use of stack, in bytes, with the arguments: docs/contributing/imports.md."""


def layers_of(core, count):
    """Return a candidate for each variant of random layers: its results are those of the portable one."""
    found = []
    for number in range(count):
        for place, kind in enumerate(MAKERS):
            random = np.random.default_rng((21, number, place))
            made = MAKERS[kind](random, **({"size": 99} if kind in ("add", "multiply") else {}))
            inputs = random_layers.inputs_of(random, made, number)
            reference = None
            for variant in candidates(made.operations[0], CORES[core]):
                emitted = emit_program(made, "A layer.", variant, prefix=f"c{len(found)}_")
                limits = limits_for(made, variant, inputs)
                found.append(Candidate(made, emitted, inputs, None, reference, limits))
                reference = len(found) - 1 if reference is None else reference
    return found


@pytest.fixture(scope="module", params=CORES)
def layers(request, tmp_path_factory):
    """Layers that ran without interrupts."""
    given, folder = layers_of(request.param, sized(1, 20)), tmp_path_factory.mktemp(request.param)
    machine, names = machines()[request.param], [one.emitted.steps[0].variant for one in given]
    return SimpleNamespace(
        machine=machine, given=given, folder=folder, names=names, measured=run(given, machine, folder)
    )


def test_interrupts_do_not_change_results(layers, tmp_path):
    handler = Path(__file__).with_name("interrupts.c")
    # With -icount, QEMU interrupts at an instruction, and at the same one in each run.
    found = run(layers.given, layers.machine, tmp_path, ("-O2",), [handler], ["-icount", "shift=0"])
    assert [(name, one.wrong, one.guards) for name, one in zip(layers.names, found, strict=True)] == [
        (name, 0, 0) for name in layers.names
    ]
    # The plugin also counts the handler, more than 80 instructions: at least one interrupt in 1,000 instructions.
    total = sum(one.instructions for one in layers.measured)
    assert sum(one.instructions for one in found) - total > 80 * total / 1000


def test_stack(layers):
    used = dict.fromkeys(layers.names, 0)
    for name, measured in zip(layers.names, layers.measured, strict=True):
        used[name] = max(used[name], measured.stack)
    assert all(8 <= one <= STACK for one in used.values()), used


def test_no_instruction_delays_interrupts_or_moves_the_stack(layers):
    """Interrupts are not masked, and the stack pointer is only the stack pointer."""
    objects = [layers.folder / f"operators_{number}.o" for number in range(len(layers.given))]
    for one in objects:
        words = ["arm-none-eabi-objdump", "-d", "--no-show-raw-insn", one]
        listing = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        lines = [line.split("\t", 1)[1].strip() for line in listing.splitlines() if re.match(r" +[0-9a-f]+:\t", line)]
        assert lines
        assert [line for line in lines if re.match(r"(cps|msr|mrs|svc|wfi|wfe|bkpt|ldrex|strex|dsb|isb)", line)] == []
        # Only push, pop, add, sub and moves from and to the frame pointer write it: it is not a counter.
        written = [line for line in lines if re.match(r"(?!str|stm|vst|cmp)[a-z.0-9]+\tsp,", line)]
        assert [line for line in written if not re.match(r"(add|sub|mov)[a-z.]*\tsp, (sp|r7|r11|#)", line)] == []
        # A handler overwrites the memory below the stack pointer.
        assert [line for line in lines if re.search(r"\[sp, #-\d+\](?!!)", line)] == []
