# SPDX-License-Identifier: Apache-2.0
"""Operators beside the convolutions of MLPerf Tiny: plain imports of small models, as whole Zephyr images in QEMU.

Each board has one image with all models (operator_models.py: random weights), built with `west build` (-Os, newlib, no
threads). main.c runs each model once on zeros. A QEMU plugin counts from the call of <model>_run to its return. Cycles
are those of the model in generator/opwest/tuning/qemu/count.c, for mps2/an386 only: not of silicon.

The vector extension of RISC-V is measured without an operating system, because Zephyr's boards in QEMU lack it: layers
of random numbers, each beside the portable C in one image.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import operator_models
from common import Report, SkippedError, execute, opwest_command, parser, require
from int8_models import BOARDS, M4, M55
from zephyr_images import EMULATOR, MACHINES, Counts, Images

MAX_INSTRUCTIONS = {
    (M4, "transformer"): 3.5e6,
    (M55, "transformer"): 1.2e6,
    (M4, "lstm"): 0.28e6,
    (M55, "gru"): 0.25e6,
}
MAX_PER_MAC = {
    (M4, "matrix_product"): 1.3,
    (M55, "matrix_product"): 0.2,
    (M4, "transposed"): 1.4,
    (M55, "transposed"): 0.3,
    (M4, "grouped"): 1.5,
    (M55, "grouped"): 0.4,
    (M55, "residual_float"): 0.5,
}
"""Instructions for each multiplication."""
MAX_CYCLES_PER_MAC = {(M4, "residual_float"): 3.5}
OPTIONS = {M4: ("-DCONFIG_FPU=y",), M55: ()}
"""Of the build, beside those of BOARDS."""
VECTORS = "rv32-v"
"""The core with the vector extension of RISC-V."""
LEAST_OF_VECTORS = 3.0
"""How many times fewer instructions than the portable C a layer with vectors requires."""


def main() -> int:
    """Measure and print; exit code 1 if a limit is not met."""
    options = parser(__doc__)
    options.add_argument("--only", nargs="+", choices=operator_models.KINDS, help="models (default: all)")
    options.add_argument("--board", action="append", choices=(M4, M55, VECTORS), help="repeatable (default: all)")
    given = options.parse_args()
    report = Report("Operators")
    try:
        opwest_command()
        with tempfile.TemporaryDirectory(prefix="opwest-operators-") as work:
            for board in given.board or (M4, M55, VECTORS):
                place = (given.keep or Path(work)) / board.replace("/", "_")
                place.mkdir(parents=True)
                if board == VECTORS:
                    measure_vectors(place, report)
                else:
                    measure_board(board, given.only or list(operator_models.KINDS), place, report)
    except SkippedError as reason:
        report.skip("operators", reason)
    return report.finish(given.json)


def measure_board(board: str, names: Sequence[str], work: Path, report: Report) -> None:
    """Measure models on a board and check the limits."""
    from opwest.tuning.measure import built_plugin

    prefix = MACHINES[board].prefix
    require(*(f"{prefix}{tool}" for tool in ("gcc", "objdump", "nm")), "cc", EMULATOR)
    images, plugin = Images(board), built_plugin(work)
    manifests, macs = [], {}
    for name in names:
        file, model = work / f"{name}.tflite", work / name
        file.write_bytes(operator_models.KINDS[name]())
        execute([*opwest_command(), "import", "tflite", file, "-o", model, "--vectors", "0", "-q"])
        manifests.append(model / "manifest.yaml")
        [imported] = json.loads((model / "import.json").read_text())["models"]
        macs[name] = sum(layer["macs"] for layer in imported["layers"])
    execute([*opwest_command(), "generate", *manifests, "-o", work / "app", "-q"])
    image, _, _ = images.build(work / "app", work / "build", *BOARDS[board].options, *OPTIONS[board])
    counts = {name: images.count(image, name, plugin)[0] for name in names}
    has_cycles = BOARDS[board].has_cycles
    rows = [_row(name, counts[name], macs[name], has_cycles=has_cycles) for name in names]
    version = execute([f"{prefix}gcc", "-dumpversion"]).strip()
    title = f"{board} in QEMU, not silicon; plain imports, application -Os, operators -O2, gcc {version}."
    columns = ["model", "multiplications", "instructions", "for each"]
    report.table(title, [*columns, *(["modelled cycles", "for each"] if has_cycles else [])], rows)
    for name in names:
        instructions, key = counts[name].instructions, (board, name)
        if key in MAX_INSTRUCTIONS:
            report.limit(f"{name}, {board}: instructions", instructions, MAX_INSTRUCTIONS[key])
        if key in MAX_PER_MAC:
            each = instructions / macs[name]
            report.limit(f"{name}, {board}: instructions for each multiplication", each, MAX_PER_MAC[key])
        if key in MAX_CYCLES_PER_MAC:
            each = counts[name].cycles / macs[name]
            report.limit(f"{name}, {board}: modelled cycles for each multiplication", each, MAX_CYCLES_PER_MAC[key])
    print(flush=True)


def _row(name: str, counts: Counts, macs: int, *, has_cycles: bool) -> list[Any]:
    row = [name, macs, counts.instructions, round(counts.instructions / macs, 3)]
    return [*row, counts.cycles, round(counts.cycles / macs, 3)] if has_cycles else row


def measure_vectors(work: Path, report: Report) -> None:
    """Measure layers with the vector extension of RISC-V and check the limit."""
    from opwest.tuning import random_layers
    from opwest.tuning.machines import machines
    from opwest.tuning.measure import measure, tools_of

    machine = machines()[VECTORS]
    require(machine.compiler[0], machine.emulator[0], "cc")
    random = np.random.default_rng(20)
    keys: dict[str, Any] = {"kind": "ordinary", "dtype": "int8"}
    layers = {
        "convolution": random_layers.convolution(random, (1, 10, 10, 16), (3, 3), 16, stride=(1, 1), same=True, **keys),
        "depthwise": random_layers.depthwise(random, (1, 12, 12, 32), (3, 3), 1, stride=(1, 1), same=True, **keys),
        "dense": random_layers.dense(random, 256, 32, 1, **keys),
        "add": random_layers.add(random, 2048),
    }
    rows: list[list[Any]] = []
    ratios = {}
    for name, made in layers.items():
        results = measure(made.operations, VECTORS, work / name).results
        counts = {result.variant: result.cycles for result in results}
        best = min((variant for variant in counts if variant != "portable"), key=lambda variant: counts[variant])
        ratios[name] = counts["portable"] / counts[best]
        rows.append([name, best, counts[best], counts["portable"], round(ratios[name], 2)])
    title = f"{VECTORS} in QEMU without an operating system, not silicon; {tools_of(machine)}; instructions."
    report.table(title, ["layer", "variant", "instructions", "portable C", "ratio"], rows)
    for name, ratio in ratios.items():
        report.limit(f"{name}, {VECTORS}: instructions / the portable C's", 1 / ratio, 1 / LEAST_OF_VECTORS)


if __name__ == "__main__":
    sys.exit(main())
