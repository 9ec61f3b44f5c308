# SPDX-License-Identifier: Apache-2.0
"""Trained models through `opwest import tflite`: memory, size of whole Zephyr images, instructions of one inference.

Each model is imported (portable C operators), generated and built with `west build` for mps2/an385, without changes:
main.c runs the model once on zeros and prints the result. FLASH and RAM are the linker's report of the whole image. A
QEMU plugin counts instructions from the call of <model>_run in main to its return. int8_models.py measures the variants
for classes of processors.

Models: `--models DIR`, else OPWEST_MODELS, else ../shared/models next to the project.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from common import Report, SkippedError, execute, measure, opwest_command, parser, require
from zephyr_images import EMULATOR, Images

ROOT = Path(__file__).resolve().parents[1]
BOARD = "mps2/an385"
# tflite-micro on the same Zephyr tree, compiler and board with -DCONFIG_MULTITHREADING=n, outputs equal to LiteRT's,
# counted by a QEMU plugin from one mark to the next around an inference: instructions, FLASH, RAM, used arena, which
# also contains inputs, outputs and tables of the interpreter.
REFERENCE, CMSIS_NN = "tflite-micro, reference kernels", "tflite-micro, CMSIS-NN"
PEERS: dict[str, dict[str, tuple[int, int, int, int]]] = {
    "hello_world_int8": {REFERENCE: (8_057, 68_728, 9_336, 784), CMSIS_NN: (4_002, 77_072, 10_768, 868)},
}
SMALL = ("-DCONFIG_MINIMAL_LIBC=y",)
ALONE = "-DCONFIG_MULTITHREADING=n"
FULL = ("-DCONFIG_NEWLIB_LIBC=y", ALONE)
"""For models that call functions such as expf. Debian's newlib has no locks for threads."""
SMALLEST = ("hello_world_int8",)
"""Models that are also built with the smallest configuration."""
ALLOWED: dict[tuple[str, str, str], float] = {}
"""Limits above 1."""
MAX_INSTRUCTIONS = {"kws_int8": 11_000_000, "ad01_int8": 800_000}
"""Of an inference with portable C."""
RUNS = 3
MAX_SECONDS = 5.0
"""Of processor time for a plan."""
MAX_IMPORT_SECONDS = 2.0
"""Of processor time for an import with golden vectors."""
SECONDS = 300


def import_model(file: Path, folder: Path) -> dict[str, Any]:
    """Import a model as portable C; return the report of the import."""
    words = ["import", "tflite", file, "-o", folder, "--model", file.stem, "--vectors", "0", "--json"]
    words += ["--kernels", "portable"]
    return dict(json.loads(execute([*opwest_command(), *words]))["result"])


def pools(manifest: Path) -> tuple[int, int]:
    """Return the bytes that opwest plans between steps, and the lower bound of every plan."""
    [model] = json.loads(execute([*opwest_command(), "check", "--json", manifest]))["result"]
    found = model["pools"]
    return sum(p["bytes"] for p in found), sum(p["lower_bound_bytes"] for p in found)


def needs_libm(application: Path) -> bool:
    """Return whether a model requires a full C library in Zephyr."""
    return any("REQUIRES_FULL_LIBC" in file.read_text() for file in application.glob("models/*/Kconfig"))


def models_of(given: Path | None) -> list[Path]:
    """Return the model files."""
    folder = given or Path(os.environ.get("OPWEST_MODELS", ROOT.parent / "shared" / "models"))
    found = sorted(folder.glob("*.tflite"))
    if not found:
        raise SkippedError(f"no .tflite file in {folder}: set --models or OPWEST_MODELS to a directory with models")
    return found


def main() -> int:
    """Measure and print; exit code 1 if a limit is not met."""
    options = parser(__doc__)
    options.add_argument("--models", type=Path, metavar="DIR", help="the directory with .tflite files")
    given = options.parse_args()
    report = Report("Imported models")
    try:
        opwest_command()
        files = models_of(given.models)
        if given.keep is not None:
            run(files, given.keep, report)
        else:
            with tempfile.TemporaryDirectory(prefix="opwest-models-") as work:
                run(files, Path(work), report)
    except SkippedError as reason:
        report.skip("imported models", reason)
    return report.finish(given.json)


def run(files: list[Path], work: Path, report: Report) -> None:
    """Measure every model in a directory."""
    rows: list[list[Any]] = []
    planning: dict[str, float] = {}
    importing: dict[str, float] = {}
    for file in files:
        folder = work / file.stem
        words = [*opwest_command(), "import", "tflite", file, "-q", "-o"]
        importing[file.stem] = min(measure([*words, folder / f"timed_{run}"]).cpu for run in range(RUNS))
        done = import_model(file, folder / "model")
        size, bound = pools(folder / "model" / "manifest.yaml")
        rows.append([file.stem, done["step_count"], done["constant_bytes"], size, bound])
        planning[file.stem] = measure([*opwest_command(), "check", folder / "model" / "manifest.yaml"]).cpu
        execute([*opwest_command(), "generate", folder / "model" / "manifest.yaml", "-o", folder / "app"])
    columns = ["model", "steps", "constants", "arena", "lower bound"]
    report.table("Bytes, without the model's inputs and outputs.", columns, rows)
    for name, _, _, size, bound in rows:
        report.limit(f"{name}: arena / lower bound", size / bound if bound else 1.0, 1.0)
    for name, seconds in importing.items():
        report.limit(f"{name}: processor time of `opwest import`", seconds, MAX_IMPORT_SECONDS, " s")
    for name, seconds in planning.items():
        report.limit(f"{name}: processor time of `opwest check`, which plans it", seconds, MAX_SECONDS, " s")
    print()
    try:
        require("arm-none-eabi-gcc", "arm-none-eabi-objdump", "arm-none-eabi-nm", EMULATOR)
        measure_images({str(row[0]): int(row[3]) for row in rows}, work, report, Images(BOARD))
    except SkippedError as reason:
        report.skip("images", reason)


def measure_images(arenas: dict[str, int], work: Path, report: Report, images: Images) -> None:
    """Build and count."""
    from opwest.tuning.measure import built_plugin

    rows = []
    plugin = built_plugin(work)
    variants = [(name, FULL if needs_libm(work / name / "app") else SMALL) for name in arenas]
    variants += [(name, (*SMALL, ALONE)) for name in SMALLEST if name in arenas]
    variants += [(name, FULL) for name in PEERS if name in arenas and (name, FULL) not in variants]
    for number, (name, options) in enumerate(variants):
        image, flash, ram = images.build(work / name / "app", work / f"build_{number}", *options)
        # The minimum of several runs, without an interrupt of Zephyr's clock.
        least = min(images.count(image, name, plugin)[0].instructions for _ in range(RUNS))
        rows.append([name, " ".join(options), least, flash, ram])
    columns = ["model", "options of the build", "instructions", "FLASH", "RAM"]
    version = execute(["arm-none-eabi-gcc", "-dumpversion"]).strip()
    report.table(
        f"Whole images for {BOARD}, Zephyr's default options (application -Os, operators -O2), gcc {version}.",
        columns,
        rows,
    )
    for name, _, least, _, _ in rows:
        if name in MAX_INSTRUCTIONS:
            report.limit(f"{name}, instructions", least, MAX_INSTRUCTIONS[name])
    own = {row[0]: (*row[2:], arenas[row[0]]) for row in rows if row[1] == " ".join(FULL) and row[0] in PEERS}
    if own:
        compare(own, report)


def compare(own: dict[str, tuple[int, ...]], report: Report) -> None:
    """Compare models with tflite-micro; a larger figure is a limit that is not met."""
    columns, rows = ["model", "", "instructions", "FLASH", "RAM", "arena"], []
    for name, figures in own.items():
        rows += [[name, "opwest", *figures], *(["", peer, *others] for peer, others in PEERS[name].items())]
    report.table(f"Compared with tflite-micro, all with newlib and {ALONE}.", columns, rows)
    for name, figures in own.items():
        for peer, others in PEERS[name].items():
            for what, mine, other in zip(columns[2:], figures, others, strict=True):
                report.limit(f"{name}, {what}, opwest / {peer}", mine / other, ALLOWED.get((name, peer, what), 1.0))
    print()


if __name__ == "__main__":
    sys.exit(main())
