# SPDX-License-Identifier: Apache-2.0
"""Compare variants of operators with the portable ones on random layers in QEMU.

    python -m opwest.tuning.check --core cortex-m4 dsp-bytes [VARIANT...]
    python -m opwest.tuning.check --core cortex-m4 --cmsis-nn DIR cmsis-nn-dsp

The layers contain the numbers that break kernels: weights and data at both ends, shifts from -31 to 30, several shifts
in a layer, zero points at both ends, padding, dilation. Prints for each variant the layers that it accepts and the
modelled cycles beside those of the portable variant; exit code 1 if a result differs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from opwest.base.diagnostics import OpwestError
from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.compiler.emission.function import VARIANTS
from opwest.compiler.ir.program import Program
from opwest.compiler.output.emit import candidates, emit_program, load_plugins
from opwest.compiler.processors import class_of
from opwest.compiler.request import LIBRARIES
from opwest.objects.targets import measured_cores
from opwest.tuning import random_layers
from opwest.tuning.image import Candidate
from opwest.tuning.machines import machines
from opwest.tuning.measure import LIBRARY, EmulatorError, compiled, run
from opwest.tuning.tolerance import limits_for
from opwest.zephyr.cmsis_nn import checked_cmsis_nn

BATCH = 40
"""The layers in an image."""
TRIES = 20
"""The random layers of a kind for each that the variant must accept."""


@dataclass(frozen=True)
class Checked:
    """The result for a variant."""

    variant: str
    layers: int
    wrong: tuple[str, ...]
    """The layers with wrong results, or with writes outside of their memory."""
    cycles: int
    portable: int
    """The cycles of the portable variant."""


def check(variant: str, core: str, count: int, work: Path, cmsis_nn: Path | None = None) -> Checked:
    """Run random layers that a variant accepts, beside the portable variant. Raises EmulatorError.

    `cmsis_nn`: the directory of CMSIS-NN, for the variants that call it.
    """
    layers = list(_layers(variant, class_of(core), count))
    machine = machines()[core]
    if cmsis_nn is not None:
        machine = compiled(cmsis_nn, [made.operations[0] for made, _ in layers], core, work / LIBRARY).machine
    wrong, cycles, portable = [], 0, 0
    for start in range(0, len(layers), BATCH):
        some = layers[start : start + BATCH]
        measured = run(list(_candidates(some, variant)), machine, work / f"{variant}_{start}")
        for number, (made, _) in enumerate(some):
            reference, candidate = measured[2 * number], measured[2 * number + 1]
            if candidate.wrong or candidate.guards:
                wrong.append(str(made.operations[0]))
            cycles, portable = cycles + candidate.cycles, portable + reference.cycles
    return Checked(variant, len(layers), tuple(wrong), cycles, portable)


def _layers(variant: str, processor: str, count: int) -> Iterator[tuple[Program, int]]:
    """Yield random layers that the variant accepts, with the numbers of their inputs."""
    accepted = 0
    for number in range(count * TRIES):
        for place, maker in enumerate(random_layers.MAKERS):
            for dtype in maker.dtypes:
                made = maker.make(np.random.default_rng((number, place, len(dtype))), dtype=dtype)
                if variant not in {kernel.name for kernel in VARIANTS[type(made.operations[0])]}:
                    continue
                if variant in candidates(made.operations[0], processor, LIBRARIES) and accepted < count:
                    accepted += 1
                    yield made, number
        if accepted >= count:
            return


def _candidates(layers: Sequence[tuple[Program, int]], variant: str) -> Iterator[Candidate]:
    for place, (made, number) in enumerate(layers):
        inputs = random_layers.inputs_of(np.random.default_rng(number), made, number)
        for name in ("portable", variant):
            prefix = f"c{place}_{name.replace('-', '_')}_"
            emitted = emit_program(made, "A random layer.", name, prefix=prefix)
            limits = limits_for(made, name, inputs)
            yield Candidate(made, emitted, inputs, None, None if name == "portable" else 2 * place, limits)


def main(arguments: Sequence[str] | None = None) -> int:
    """Check variants; print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--core", choices=measured_cores(), required=True)
    parser.add_argument("--layers", type=int, default=200, metavar="N", help="layers for each variant (default: 200)")
    parser.add_argument("--cmsis-nn", type=Path, metavar="DIR", help="CMSIS-NN, for the variants that call it")
    parser.add_argument("variants", metavar="VARIANT", nargs="+")
    options = parser.parse_args(arguments)
    try:
        load_plugins()
        names = {kernel.name for variants in VARIANTS.values() for kernel in variants}
        for name in options.variants:
            if name not in names:
                parser.error(f"unknown variant '{name}'")
            if name.startswith(LIBRARY) and options.cmsis_nn is None:
                parser.error(f"variant '{name}' calls CMSIS-NN: --cmsis-nn DIR")
        root = None if options.cmsis_nn is None else checked_cmsis_nn(options.cmsis_nn)
        with tempfile.TemporaryDirectory() as work:
            results = [check(name, options.core, options.layers, Path(work), root) for name in options.variants]
    except OpwestError as error:
        print("\n".join(f"error: {diagnostic.message}" for diagnostic in error.diagnostics), file=sys.stderr)
        return 1
    except EmulatorError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for result in results:
        ratio = (
            f"{result.portable / result.cycles:.2f} times fewer modelled cycles than portable" if result.cycles else ""
        )
        print(
            f"{result.variant} on {options.core}: {counted(result.layers, 'layer')}, {len(result.wrong)} wrong; {ratio}"
        )
        for layer in result.wrong[:3]:
            print(f"  wrong: {layer[:300]}")
    return int(any(result.wrong or not result.layers for result in results))


if __name__ == "__main__":
    sys.exit(main())
