# SPDX-License-Identifier: Apache-2.0
"""Plain imports of small models beside CMSIS-NN: kinds of models that opwest's table of measurements lacks.

A plain import is `opwest import tflite MODEL`, without options. CMSIS-NN: `--kernels cmsis-nn-... --rounding cmsis-nn`
of the same file: a layer calls CMSIS-NN's function, or is portable C if no function has the same results. Each side of
a board is one Zephyr image with all models (-Os, newlib, no threads). main.c runs each of them once on zeros. A QEMU
plugin counts instructions from the call of <model>_run to its return. QEMU is not silicon.

The models (held_out_models.py) need no data: random weights, sizes that no table contains.
"""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import held_out_models
from common import Report, SkippedError, execute, opwest_command, parser, require
from int8_models import BOARDS, M4, M55, cmsis_nn_modules
from zephyr_images import EMULATOR, MACHINES, Images

KINDS = tuple(make.__name__ for make in held_out_models.KINDS)
LEAST = {"separable": 1.8, "residual": 1.8, "dense": 1.6}
"""How many times fewer instructions than CMSIS-NN a kind requires; the others: not more."""
LEAST_TOTAL = 1.8
"""Of the sums over all kinds."""
MAX_INSTRUCTIONS = {(M4, "separable_int16"): 0.7e6, (M4, "residual_int16"): 0.82e6}


def main() -> int:
    """Measure and print; exit code 1 if a limit is not met."""
    options = parser(__doc__)
    options.add_argument("--only", nargs="+", choices=KINDS, help="kinds of models (default: all)")
    options.add_argument("--board", action="append", choices=(M4, M55), help="repeatable (default: both)")
    given = options.parse_args()
    report = Report("Default speed")
    try:
        opwest_command()
        with tempfile.TemporaryDirectory(prefix="opwest-speed-") as work:
            for board in given.board or (M4, M55):
                compare(board, given.only or KINDS, given.keep or Path(work), report)
    except SkippedError as reason:
        report.skip("default speed", reason)
    return report.finish(given.json)


def compare(board: str, names: Sequence[str], work: Path, report: Report) -> None:
    """Measure both sides on a board and check the limits."""
    from opwest.tuning.measure import built_plugin

    prefix = MACHINES[board].prefix
    require(*(f"{prefix}{tool}" for tool in ("gcc", "objdump", "nm")), "cc", EMULATOR)
    images = Images(board)
    place = work / board.replace("/", "_")
    place.mkdir(parents=True)
    files = held_out_models.write(place / "models", list(names))
    plugin, modules = built_plugin(place), cmsis_nn_modules(images, place)
    own = instructions(files, [], images, plugin, place / "opwest", [])
    words = ["--kernels", BOARDS[board].kernels, "--rounding", "cmsis-nn"]
    other = instructions(files, words, images, plugin, place / "cmsis_nn", modules)
    rows: list[list[Any]] = [[name, own[name], other[name], round(other[name] / own[name], 2)] for name in own]
    mine, theirs = sum(own.values()), sum(other.values())
    mean = math.exp(sum(math.log(other[name] / own[name]) for name in own) / len(own))
    rows += [["total", mine, theirs, round(theirs / mine, 2)], ["geometric mean", "", "", round(mean, 2)]]
    version = execute([f"{prefix}gcc", "-dumpversion"]).strip()
    title = f"{board} in QEMU, not silicon; plain imports, application -Os, operators -O2, gcc {version}; instructions."
    report.table(title, ["model", "opwest", "CMSIS-NN", "ratio"], rows)
    for name in own:
        least = LEAST.get(name, 1.0)
        report.limit(f"{name}, {board}: instructions / CMSIS-NN's", own[name] / other[name], 1 / least)
        if (board, name) in MAX_INSTRUCTIONS:
            report.limit(f"{name}, {board}: instructions", own[name], MAX_INSTRUCTIONS[board, name])
    if len(own) == len(KINDS):
        report.limit(f"all kinds, {board}: instructions / CMSIS-NN's", mine / theirs, 1 / LEAST_TOTAL)
    print(flush=True)


def instructions(
    files: Sequence[Path], words: list[str], images: Images, plugin: Path, work: Path, more: list[str]
) -> dict[str, int]:
    """Import the models with options, build one image of all, and count the instructions of each."""
    manifests = []
    for file in files:
        model = work / file.stem
        execute([*opwest_command(), "import", "tflite", file, "-o", model, "--vectors", "0", "-q", *words])
        manifests.append(model / "manifest.yaml")
    execute([*opwest_command(), "generate", *manifests, "-o", work / "app", "-q"])
    image, _, _ = images.build(work / "app", work / "build", *BOARDS[images.board].options, *more)
    return {file.stem: images.count(image, file.stem, plugin)[0].instructions for file in files}


if __name__ == "__main__":
    sys.exit(main())
