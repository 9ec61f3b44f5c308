# SPDX-License-Identifier: Apache-2.0
"""Trained models through `opwest import tflite`: memory, size of whole Zephyr images, instructions of one inference.

Each model is imported (C operators), generated and built with `west build` for mps2/an385, without changes: main.c runs
the model once on zeros and prints the result. FLASH and RAM are the linker's report of the whole image. A QEMU plugin
counts instructions from the call of <model>_run in main to its return. With `--kernels cmsis-nn-none` the models call
CMSIS-NN, also for fully connected layers (`--rounding cmsis-nn`); only the rows beside tflite-micro are measured.

Models: `--models DIR`, else OPWEST_MODELS, else ../shared/models next to the project.
"""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from common import ProcessError, Report, SkippedError, execute, measure, opwest_command, parser, require
from cortex_m3_qemu import EMULATOR, supported_plugin, symbols

ROOT = Path(__file__).resolve().parents[1]
BOARD = "mps2/an385"
# tflite-micro on the same Zephyr tree, compiler and board with -DCONFIG_MULTITHREADING=n, outputs equal to LiteRT's,
# counted by a QEMU plugin from one mark to the next around an inference: instructions, FLASH, RAM, used arena. Of the
# reference kernels only hello_world was measured; on convolutions they take 17 to 20 times as many as CMSIS-NN. Their
# arena also contains inputs, outputs and tables of the interpreter.
REFERENCE, CMSIS_NN = "tflite-micro, reference kernels", "tflite-micro, CMSIS-NN"
PEERS: dict[str, dict[str, tuple[int, int, int, int]]] = {
    "hello_world_int8": {REFERENCE: (8_057, 68_728, 9_336, 784), CMSIS_NN: (4_002, 77_072, 10_768, 868)},
    "kws_int8": {CMSIS_NN: (10_550_000, 177_180, 32_648, 23_044)},
    "ad01_int8": {CMSIS_NN: (957_000, 351_340, 12_656, 2_756)},
    "ic_int8": {CMSIS_NN: (41_760_000, 211_528, 64_384, 55_008)},
    "vww_int8": {CMSIS_NN: (32_090_000, 453_960, 110_112, 100_720)},
}
PORTABLE = "portable"
SMALL = ("-DCONFIG_MINIMAL_LIBC=y",)
ALONE = "-DCONFIG_MULTITHREADING=n"
FULL = ("-DCONFIG_NEWLIB_LIBC=y", ALONE)
"""For models that call functions such as expf. Debian's newlib has no locks for threads."""
SMALLEST = ("hello_world_int8",)
"""Models that are also built with the smallest configuration."""
ALLOWED: dict[tuple[str, str, str], float] = {}
"""Limits above 1."""
MOST_INSTRUCTIONS = {"kws_int8": 11_000_000, "ad01_int8": 800_000}
"""Of an inference with portable C."""
RUNS = 3
MOST_SECONDS = 5.0
"""Of processor time for a plan."""
MOST_IMPORT_SECONDS = 2.0
"""Of processor time for an import with golden vectors."""
SECONDS = 300


def import_model(file: Path, folder: Path, kernels: str) -> dict[str, Any]:
    """Import a model; return the report of the import."""
    words = ["import", "tflite", file, "-o", folder, "--model", file.stem, "--vectors", "0", "--json"]
    if kernels != PORTABLE:
        words += ["--kernels", kernels, "--rounding", "cmsis-nn"]
    return dict(json.loads(execute([*opwest_command(), *words]))["result"])


def pools(manifest: Path) -> tuple[int, int]:
    """Return the bytes that opwest plans between steps, and the lower bound of every plan."""
    [model] = json.loads(execute([*opwest_command(), "check", "--json", manifest]))["result"]
    found = model["pools"].values()
    return sum(p["size"] for p in found), sum(p["lower_bound"] for p in found)


class Images:
    """Images of a Zephyr workspace."""

    def __init__(self) -> None:
        from opwest.board.west import Build, find_west, missing_tools
        from opwest.zephyr.workspace import find_workspace

        base = Path(os.environ.get("ZEPHYR_BASE") or Path.home() / "zephyrproject" / "zephyr")
        workspace = find_workspace(base) if (base / "VERSION").is_file() else None
        if workspace is None:
            raise SkippedError(f"no Zephyr workspace: {base} does not exist; set ZEPHYR_BASE")
        west = find_west(workspace)
        missing = [*missing_tools(), *([] if west else ["west"])]
        if west is None or missing:
            raise SkippedError(f"{', '.join(missing)} not found")
        self.west, self.top = west, workspace.top
        nowhere = Path()
        self.env = Build(workspace, west, nowhere, BOARD, nowhere, lambda _: None, nowhere).environment
        if "ZEPHYR_SDK_INSTALL_DIR" not in self.env:
            self.env.setdefault("ZEPHYR_TOOLCHAIN_VARIANT", "gnuarmemb")
            self.env.setdefault("GNUARMEMB_TOOLCHAIN_PATH", "/usr")

    def build(self, application: Path, folder: Path, *options: str) -> tuple[Path, int, int]:
        """Build; return the image, and the bytes of FLASH and RAM in it."""
        words = [self.west, "build", "-p", "-b", BOARD, "-d", folder, application, "--", *options]
        log = execute(words, cwd=self.top, env=self.env)
        units = {"B": 1, "KB": 1 << 10, "MB": 1 << 20}
        rows = re.findall(r"^\s*(FLASH|RAM):\s+(\d+) (B|KB|MB)", log, re.MULTILINE)
        found = {name: int(size) * units[unit] for name, size, unit in rows}
        return folder / "zephyr" / "zephyr.elf", found["FLASH"], found["RAM"]


def count(image: Path, model: str, plugin: Path) -> int:
    """Return the instructions of one run."""
    call, after = call_of_run(image, model)
    out = image.with_suffix(".counts")
    out.unlink(missing_ok=True)
    arguments = f"{plugin},from={call:#x},to={after:#x},out={out}"
    command = [EMULATOR, "-M", "mps2-an385", "-nographic", "-monitor", "none", "-kernel", image, "-plugin", arguments]
    process = subprocess.Popen(
        [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        for _ in range(SECONDS * 10):
            if process.poll() is not None:
                output = process.stdout.read().decode(errors="replace") if process.stdout else ""
                raise ProcessError(f"{EMULATOR} ended:\n{output}")
            text = out.read_text() if out.exists() else ""
            if text.endswith("\n"):
                return int(text.split()[0])
            time.sleep(0.1)
    finally:
        process.kill()
        process.communicate()
    raise ProcessError(f"{image}: no inference within {SECONDS} s")


def call_of_run(image: Path, model: str) -> tuple[int, int]:
    """Return the addresses of the instruction that calls run, and of the one after it."""
    if f"{model}_run" not in symbols(image):
        raise ProcessError(f"{image} has no {model}_run")
    listing = execute(["arm-none-eabi-objdump", "-d", "--no-show-raw-insn", image])
    found = re.findall(rf"^\s*([0-9a-f]+):\s+bl\s+\S+ <{model}_run>\n\s*([0-9a-f]+):", listing, re.MULTILINE)
    if len(found) != 1:
        raise ProcessError(f"{image}: {len(found)} calls of {model}_run, 1 expected")
    return int(found[0][0], 16), int(found[0][1], 16)


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
    options.add_argument("--kernels", choices=[PORTABLE, "cmsis-nn-none"], default=PORTABLE, help="as of opwest import")
    given = options.parse_args()
    report = Report("Imported models")
    try:
        opwest_command()
        files = models_of(given.models)
        if given.keep is not None:
            run(files, given.keep, report, given.kernels)
        else:
            with tempfile.TemporaryDirectory(prefix="opwest-models-") as work:
                run(files, Path(work), report, given.kernels)
    except SkippedError as reason:
        report.skip("imported models", reason)
    return report.finish(given.json)


def run(files: list[Path], work: Path, report: Report, kernels: str) -> None:
    """Measure every model in a directory."""
    rows: list[list[Any]] = []
    planning: dict[str, float] = {}
    importing: dict[str, float] = {}
    for file in files:
        folder = work / file.stem
        words = [*opwest_command(), "import", "tflite", file, "-q", "-o"]
        importing[file.stem] = min(measure([*words, folder / f"timed_{run}"]).cpu for run in range(RUNS))
        done = import_model(file, folder / "model", kernels)
        size, bound = pools(folder / "model" / "manifest.yaml")
        rows.append([file.stem, done["steps"], done["constant_bytes"], size, bound])
        planning[file.stem] = measure([*opwest_command(), "check", folder / "model" / "manifest.yaml"]).cpu
        execute([*opwest_command(), "generate", folder / "model" / "manifest.yaml", "-o", folder / "app"])
    columns = ["model", "steps", "constants", "arena", "lower bound"]
    report.table("Bytes, without the model's inputs and outputs.", columns, rows)
    for name, _, _, size, bound in rows:
        report.limit(f"{name}: arena / lower bound", size / bound if bound else 1.0, 1.0)
    for name, seconds in importing.items():
        report.limit(f"{name}: processor time of `opwest import`", seconds, MOST_IMPORT_SECONDS, " s")
    for name, seconds in planning.items():
        report.limit(f"{name}: processor time of `opwest check`, which plans it", seconds, MOST_SECONDS, " s")
    print()
    try:
        require("arm-none-eabi-gcc", "arm-none-eabi-objdump", "arm-none-eabi-nm", EMULATOR)
        measure_images({str(row[0]): int(row[3]) for row in rows}, work, report, Images(), kernels)
    except SkippedError as reason:
        report.skip("images", reason)


def measure_images(arenas: dict[str, int], work: Path, report: Report, images: Images, kernels: str) -> None:
    """Build and count."""
    plugin, rows = None, []
    variants: list[tuple[str, tuple[str, ...]]] = []
    if kernels == PORTABLE:
        variants += [(name, FULL if needs_libm(work / name / "app") else SMALL) for name in arenas]
        variants += [(name, (*SMALL, ALONE)) for name in SMALLEST if name in arenas]
    variants += [(name, FULL) for name in PEERS if name in arenas and (name, FULL) not in variants]
    for number, (name, options) in enumerate(variants):
        image, flash, ram = images.build(work / name / "app", work / f"build_{number}", *options)
        plugin = plugin or supported_plugin(work, functools.partial(count, image, name))
        # The minimum of several runs, without an interrupt of Zephyr's clock.
        least = min(count(image, name, plugin) for _ in range(RUNS))
        rows.append([name, " ".join(options), least, flash, ram])
    columns = ["model", "options of the build", "instructions", "FLASH", "RAM"]
    version = execute(["arm-none-eabi-gcc", "-dumpversion"]).strip()
    report.table(f"Whole images for {BOARD}, Zephyr's default flags (-Os), gcc {version}.", columns, rows)
    own = {row[0]: (*row[2:], arenas[row[0]]) for row in rows if row[1] == " ".join(FULL) and row[0] in PEERS}
    if own:
        compare(own, report, kernels)


def compare(own: dict[str, tuple[int, ...]], report: Report, kernels: str) -> None:
    """Compare models with tflite-micro; a larger figure is a limit that is not met."""
    columns, rows = ["model", "", "instructions", "FLASH", "RAM", "arena"], []
    for name, figures in own.items():
        rows += [[name, f"opwest, {kernels}", *figures], *(["", peer, *others] for peer, others in PEERS[name].items())]
    report.table(f"Compared with tflite-micro, all with newlib and {ALONE}.", columns, rows)
    for name, figures in own.items():
        if kernels != PORTABLE:
            continue
        if name in MOST_INSTRUCTIONS:
            report.limit(f"{name}, instructions", figures[0], MOST_INSTRUCTIONS[name])
        for peer, others in PEERS[name].items():
            for what, mine, other in zip(columns[2:], figures, others, strict=True):
                report.limit(f"{name}, {what}, opwest / {peer}", mine / other, ALLOWED.get((name, peer, what), 1.0))
    print()


if __name__ == "__main__":
    sys.exit(main())
