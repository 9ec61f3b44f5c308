# SPDX-License-Identifier: Apache-2.0
"""Budgets of an import: FLASH, RAM and modelled cycles of whole images for limits of flash and memory.

Three models of MLPerf Tiny on mps2/an386 in QEMU, with the options of int8_models.py. Each point
is imported, built with `west build` and run once. Cycles are those of generator/opwest/tuning/qemu/count.c, not
of silicon. More flash or memory must not make a model slower by more than a hundredth.

Models: `--models DIR`, else OPWEST_MODELS, else ../shared/models next to the project.
"""

from __future__ import annotations

import os
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

from common import Report, SkippedError, opwest_command, parser, require
from int8_models import M4, ROOT, Image, measured
from zephyr_images import EMULATOR, Images

POINTS = {
    "kws_int8": (
        *([f"--max-flash={size}KiB"] for size in (32, 33, 36, 38, 40)),
        ["--max-flash=none"],
        ["--max-ram=9344"],
        ["--optimize=flash"],
        ["--optimize=ram"],
    ),
    "vww_int8": (
        *([f"--max-flash={size}KiB"] for size in (62, 66, 70, 75, 80)),
        ["--max-flash=none"],
        ["--max-ram=55296"],
        ["--max-ram=50000"],
        ["--max-ram=46200"],
        ["--optimize=flash"],
        ["--optimize=ram"],
    ),
    "ic_int8": (
        ["--max-flash=none"],
        ["--max-ram=30000"],
        ["--max-ram=25000"],
        ["--optimize=ram"],
    ),
}
SLACK = 1.01


def main() -> int:
    """Measure and print; exit code 1 if a curve rises."""
    options = parser(__doc__)
    options.add_argument("--models", type=Path, metavar="DIR", help="the directory with .tflite files")
    given = options.parse_args()
    report = Report("Budgets")
    try:
        opwest_command()
        require("arm-none-eabi-gcc", "arm-none-eabi-objdump", "arm-none-eabi-nm", "cc", EMULATOR)
        folder = given.models or Path(os.environ.get("OPWEST_MODELS", ROOT.parent / "shared" / "models"))
        with tempfile.TemporaryDirectory(prefix="opwest-budgets-") as work:
            for name in POINTS:
                measure_model(folder / f"{name}.tflite", given.keep or Path(work), report)
    except SkippedError as reason:
        report.skip("budgets", reason)
    return report.finish(given.json)


def measure_model(file: Path, work: Path, report: Report) -> None:
    """Measure all points of a model."""
    from opwest.tuning.measure import built_plugin

    if not file.is_file():
        raise SkippedError(f"{file} does not exist: set --models or OPWEST_MODELS")
    images = Images(M4)
    place = work / file.stem
    place.mkdir(parents=True)
    plugin = built_plugin(place)
    found: dict[str, Image] = {}
    for number, words in enumerate(POINTS[file.stem]):
        options = [*words, "--io", "workspace"]
        found[" ".join(words).replace("=", " ")] = measured(file, options, images, plugin, place / str(number), [])
    rows = [[name, one.flash, one.ram, one.arena, one.whole.cycles] for name, one in found.items()]
    columns = ["import", "FLASH", "RAM", "arena", "modelled cycles"]
    report.table(f"{file.stem} on {M4} in QEMU, not silicon; bytes of the image.", columns, rows)
    curve = [one.whole.cycles for name, one in found.items() if name.startswith("--max-flash")]
    for number, (less, more) in enumerate(pairwise(curve)):
        report.limit(f"{file.stem}: cycles of point {number + 2} / point {number + 1}", more / less, SLACK)


if __name__ == "__main__":
    sys.exit(main())
