# SPDX-License-Identifier: Apache-2.0
"""Instructions and bytes of the checks of `run: checks:` on mps2/an385 (Cortex-M3), with and without each.

A model with one operator, which copies 32 bytes, and hello_world_int8 of `--models DIR` are generated with each
combination of `busy` and `buffers`, and built with `west build` without other changes. A QEMU plugin counts every
instruction from the call of <model>_run in main to its return, operators included; the least of three runs has no
interrupt of Zephyr's clock. FLASH is the linker's report of the whole image; `functions` are open, run and close in
it; `workspace` is the structure in RAM, to which the image adds the alignment of its sections. The counts are
instructions, not cycles, because QEMU models no pipeline.

Models: `--models DIR`, else OPWEST_MODELS, else ../shared/models next to the project.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from common import Report, SkippedError, execute, opwest_command, parser, require
from imported_models import BOARD, RUNS, SMALL, import_model, models_of
from zephyr_images import ARM, EMULATOR, Images

CHECKS = {
    "neither": "{busy: false, buffers: false}",
    "busy": "{busy: true, buffers: false}",
    "buffers": "{busy: false, buffers: true}",
    "both": "{busy: true, buffers: true}",
}
NAMES = ("hello_world_int8",)
OPERATOR = """#include <stdint.h>
int32_t copy(const int8_t *x, int8_t *y);
int32_t copy(const int8_t *x, int8_t *y)
{
	for (int i = 0; i < 32; i++) {
		y[i] = x[i];
	}
	return 0;
}
"""
MANIFEST = """version: 1
model: one
boards: [mps2/an385]
objects: [{files: [copy.c]}]
operators:
  copy:
    args:
      - {name: x, dtype: int8, shape: [32]}
      - {name: y, dtype: int8, shape: [32], direction: out}
run:
  inputs: {x: {dtype: int8, shape: [32], external: true}}
  outputs: {y: {dtype: int8, shape: [32], external: true}}
  steps:
    - {call: copy, args: [x, between]}
    - {call: copy, args: [between, y]}
"""


def bytes_of(image: Path, symbols: str) -> int:
    """Return the size of the symbols that match an expression."""
    listing = execute([f"{ARM}nm", "-S", image])
    return sum(int(size, 16) for size in re.findall(rf"^\S+ (\S+) \w (?:{symbols})$", listing, re.MULTILINE))


def manifests(work: Path, given: Path | None, report: Report) -> dict[str, Path]:
    """Return the manifests of the models."""
    own = work / "one" / "manifest.yaml"
    own.parent.mkdir(parents=True)
    (own.parent / "copy.c").write_text(OPERATOR)
    own.write_text(MANIFEST)
    found = {"one": own}
    try:
        files = [file for file in models_of(given) if file.stem in NAMES]
    except SkippedError as reason:
        report.skip("imported models", reason)
        return found
    for file in files:
        import_model(file, work / file.stem)
        found[file.stem] = work / file.stem / "manifest.yaml"
    return found


def main() -> int:
    """Measure and print."""
    options = parser(__doc__)
    options.add_argument("--models", type=Path, metavar="DIR", help="the directory with .tflite files")
    given = options.parse_args()
    report = Report("Checks of run")
    try:
        require("arm-none-eabi-gcc", "arm-none-eabi-objdump", "arm-none-eabi-nm", EMULATOR)
        opwest_command()
        images = Images(BOARD)
        if given.keep is not None:
            run(given.models, given.keep, report, images)
        else:
            with tempfile.TemporaryDirectory(prefix="opwest-checks-") as work:
                run(given.models, Path(work), report, images)
    except SkippedError as reason:
        report.skip("checks of run", reason)
    return report.finish(given.json)


def run(models: Path | None, work: Path, report: Report, images: Images) -> None:
    """Build and count every combination."""
    from opwest.tuning.measure import built_plugin

    plugin = built_plugin(work)
    rows = []
    for name, manifest in manifests(work, models, report).items():
        text = manifest.read_text()
        for checks, value in CHECKS.items():
            manifest.write_text(text.replace("\nrun:\n", f"\nrun:\n  checks: {value}\n", 1))
            application = work / f"{name}_{checks}"
            execute([*opwest_command(), "generate", manifest, "-o", application])
            image, flash, _ = images.build(application, work / f"build_{name}_{checks}", *SMALL)
            least = min(images.count(image, name, plugin)[0].instructions for _ in range(RUNS))
            sizes = [bytes_of(image, f"{name}_(?:open|run|close)"), bytes_of(image, f"{name}_workspace")]
            rows.append([f"{name}, {checks}", least, *sizes, flash])
    report.table(
        "Instructions of one run with its operators, and bytes.",
        ["model, checks", "instructions", "bytes of functions", "bytes of workspace", "bytes of FLASH"],
        rows,
    )


if __name__ == "__main__":
    sys.exit(main())
