# SPDX-License-Identifier: Apache-2.0
"""Kernels with an interrupt every few hundred instructions: results, masks of interrupts, the stack."""

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from campaign import sized
from kernels import random_elements
from opwest.importers.models.emit.emit import emit_program
from opwest.importers.models.emit.registry import candidates
from opwest.tuning import random_layers
from opwest.tuning.emulator import run
from opwest.tuning.image import Candidate
from opwest.tuning.machines import MACHINES
from requirements_support import need

need("arm-none-eabi-gcc", "qemu-system-arm", "cc")

CORES = {"cortex-m3": "mla", "cortex-m4": "dsp", "cortex-m55": "mve"}
KINDS = ("convolution", "dense", "depthwise", "pool", "addition", "product")
STACK = 300
"""The greatest use of stack, in bytes, with the arguments: docs/importing-models.md."""


def layers(core, count):
    """Return a candidate for each variant of random layers: its results are those of the portable one."""
    found = []
    for number in range(count):
        for place, kind in enumerate(KINDS):
            make = getattr(random_layers, kind, None) or getattr(random_elements, kind)
            random = np.random.default_rng((21, number, place))
            made = make(random)
            inputs = random_layers.inputs_of(random, made, number)
            reference = None
            for variant in candidates(made.operations[0], CORES[core]):
                emitted = emit_program(made, "A layer.", variant, prefix=f"c{len(found)}_")
                found.append(Candidate(made, emitted, inputs, None, reference))
                reference = len(found) - 1 if reference is None else reference
    return found


@pytest.mark.parametrize("core", CORES)
def test_interrupts_do_not_change_results(core, tmp_path):
    given = layers(core, sized(2, 20))
    handler = Path(__file__).with_name("interrupts.c")
    # With -icount, QEMU interrupts at an instruction, and at the same one in each run.
    found = run(given, MACHINES[core], tmp_path / "interrupted", ("-Os",), [handler], ["-icount", "shift=0"])
    plain = run(given, MACHINES[core], tmp_path / "plain")
    names = [one.emitted.steps[0].variant for one in given]
    assert [(name, one.wrong, one.guards) for name, one in zip(names, found, strict=True)] == [
        (name, 0, 0) for name in names
    ]
    # The plugin also counts the handler, more than 80 instructions: at least one interrupt in 1,000 instructions.
    total = sum(one.instructions for one in plain)
    assert sum(one.instructions for one in found) - total > 80 * total / 1000


@pytest.mark.parametrize("core", CORES)
def test_stack(core, tmp_path):
    given = layers(core, sized(2, 20))
    found = run(given, MACHINES[core], tmp_path)
    used = {one.emitted.steps[0].variant: 0 for one in given}
    for one, measured in zip(given, found, strict=True):
        name = one.emitted.steps[0].variant
        used[name] = max(used[name], measured.stack)
    assert all(8 <= one <= STACK for one in used.values()), used


@pytest.mark.parametrize("core", CORES)
def test_no_instruction_delays_interrupts_or_moves_the_stack(core, tmp_path):
    """Interrupts are not masked, and the stack pointer is only the stack pointer."""
    machine = MACHINES[core]
    source, built = tmp_path / "layers.c", tmp_path / "layers.o"
    for one in layers(core, sized(2, 20)):
        source.write_text(one.emitted.source)
        words = [*machine.compiler, "-std=c11", "-ffreestanding", "-Os", "-c", str(source), "-o", str(built)]
        subprocess.run(words, check=True)
        listing = subprocess.run(
            ["arm-none-eabi-objdump", "-d", "--no-show-raw-insn", str(built)],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        lines = [line.split("\t", 1)[1].strip() for line in listing.splitlines() if re.match(r" +[0-9a-f]+:\t", line)]
        assert lines
        assert [line for line in lines if re.match(r"(cps|msr|mrs|svc|wfi|wfe|bkpt|ldrex|strex|dsb|isb)", line)] == []
        # Only push, pop, add, sub and moves from and to the frame pointer write it: it is not a counter.
        written = [line for line in lines if re.match(r"(?!str|stm|vst|cmp)[a-z.0-9]+\tsp,", line)]
        assert [line for line in written if not re.match(r"(add|sub|mov)[a-z.]*\tsp, (sp|r7|r11|#)", line)] == []
        # A handler overwrites the memory below the stack pointer.
        assert [line for line in lines if re.search(r"\[sp, #-\d+\](?!!)", line)] == []
