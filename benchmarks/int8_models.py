# SPDX-License-Identifier: Apache-2.0
"""The int8 models of MLPerf Tiny as whole Zephyr images: opwest's variants, CMSIS-NN on the same graph, tflite-micro.

Each image is built with `west build` (-Os, newlib, no threads). main.c runs the model once on zeros. FLASH and RAM
are the linker's report of the image. A QEMU plugin counts from the call of <model>_run to its return, and each step.
Cycles are those of the model in generator/opwest/tuning/qemu/count.c, the same for both sides: not of silicon, and
without meaning for vector instructions, so they are left out for mps3/corstone300/an547.

CMSIS-NN: `opwest import --kernels cmsis-nn-... --rounding cmsis-nn`: each layer calls CMSIS-NN's function. tflite-micro
with CMSIS-NN: recorded figures of the same Zephyr tree, compiler and options. `untuned_models.py` makes models whose
layers are not in opwest's table of measurements.

Models: `--models DIR`, else OPWEST_MODELS, else ../shared/models next to the project.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import riscv
from common import Report, SkippedError, execute, opwest_command, parser, require
from untuned_models import write
from zephyr_images import EMULATOR, MACHINES, Counts, Images, riscv_toolchain

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
OPTIONS = ("-DCONFIG_NEWLIB_LIBC=y", "-DCONFIG_MULTITHREADING=n")
M3, M4, M55, RV32 = "mps2/an385", "mps2/an386", "mps3/corstone300/an547", "qemu_riscv32"


class Board(NamedTuple):
    """How a board is measured."""

    kernels: str
    """The value of --kernels for CMSIS-NN."""
    variant: str
    """The class of processors; empty for portable operators."""
    options: tuple[str, ...] = OPTIONS
    """Of the build."""
    has_cycles: bool = False
    """Whether the model of cycles applies."""


BOARDS = {
    M3: Board("cmsis-nn-none", "mla", has_cycles=True),
    M4: Board("cmsis-nn-dsp", "dsp", has_cycles=True),
    # GCC has MVE only with the registers of the FPU.
    M55: Board("cmsis-nn-mve", "mve", (*OPTIONS, "-DCONFIG_FPU=y")),
    # Distributions have no newlib for RISC-V.
    RV32: Board("cmsis-nn-none", "", ("-DCONFIG_MINIMAL_LIBC=y", "-DCONFIG_MULTITHREADING=n")),
}
MODELS = ("kws_int8", "ic_int8", "vww_int8", "ad01_int8")


class Peer(NamedTuple):
    """tflite-micro with CMSIS-NN: recorded."""

    instructions: int
    flash: int | None
    ram: int | None


PEERS = {
    (M3, "kws_int8"): Peer(10_550_000, 174_608, 32_224),
    (M3, "ic_int8"): Peer(41_760_000, 211_528, 64_384),
    (M3, "vww_int8"): Peer(32_090_000, 453_960, 110_112),
    (M3, "ad01_int8"): Peer(957_000, 348_424, 12_200),
    (M4, "kws_int8"): Peer(7_845_000, 161_152, 32_208),
    (M4, "ic_int8"): Peer(29_870_000, 226_636, 64_384),
    (M4, "vww_int8"): Peer(24_720_000, 469_712, 110_096),
    (M4, "ad01_int8"): Peer(583_000, 354_832, 12_184),
    (M55, "kws_int8"): Peer(1_786_000, 182_140, 36_832),
    (M55, "ic_int8"): Peer(4_814_000, 217_028, 64_512),
    (M55, "vww_int8"): Peer(6_437_000, 461_492, 110_256),
    (M55, "ad01_int8"): Peer(151_000, None, None),
}
SPEED, FLASH, UNLIMITED = "opwest", "opwest, --optimize flash", "opwest, --max-flash none --prefer dsp-halves"
MAX_INSTRUCTIONS = {
    (M4, "kws_int8", SPEED): 3.0e6,
    (M4, "ic_int8", SPEED): 12.0e6,
    (M4, "vww_int8", SPEED): 9.3e6,
    (M4, "ad01_int8", SPEED): 0.36e6,
    (M4, "ad01_int8", UNLIMITED): 0.23e6,
    (M55, "kws_int8", SPEED): 0.72e6,
    (M55, "ic_int8", SPEED): 2.2e6,
    (M55, "vww_int8", SPEED): 2.0e6,
    (M55, "ad01_int8", SPEED): 0.05e6,
}
MAX_CYCLES = {
    (M4, "kws_int8", SPEED): 4.3e6,
    (M4, "ic_int8", SPEED): 17.8e6,
    (M4, "vww_int8", SPEED): 12.8e6,
    (M4, "ad01_int8", SPEED): 0.47e6,
    (M3, "kws_int8", SPEED): 9.9e6,
    (M3, "ic_int8", SPEED): 41e6,
    (M3, "vww_int8", SPEED): 29e6,
    (M3, "ad01_int8", SPEED): 1.06e6,
}
MAX_RAM = 0.85
"""Of tflite-micro's."""
RECORDS = {"kws_int8": "ST 5.18 M", "ic_int8": "ST 19.8 M", "vww_int8": "ST 10.7 M", "ad01_int8": "Plumerai 0.486 M"}
"""Published cycles on silicon: Cortex-M4 at 120 MHz, MLPerf Tiny."""


class Image(NamedTuple):
    """A measured image."""

    whole: Counts
    steps: list[tuple[str, Counts]]
    flash: int
    ram: int
    arena: int


def import_words(engine: str, board: str) -> list[str]:
    """Return the options of the import."""
    if engine == "CMSIS-NN":
        return ["--kernels", BOARDS[board].kernels, "--rounding", "cmsis-nn"]
    words = {SPEED: [], FLASH: ["--optimize", "flash"], UNLIMITED: ["--max-flash", "none", "--prefer", "dsp-halves"]}[
        engine
    ]
    return [*words, "--io", "workspace"]


def measured(file: Path, words: list[str], images: Images, plugin: Path, work: Path, more: list[str]) -> Image:
    """Import with options, generate, build with more options, and count."""
    model, app = work / "model", work / "app"
    execute([*opwest_command(), "import", "tflite", file, "-o", model, "--vectors", "0", "-q", *words])
    execute([*opwest_command(), "generate", model / "manifest.yaml", "-o", app, "-q"])
    found = json.loads(execute([*opwest_command(), "check", "--json", model / "manifest.yaml"]))["result"]
    board = BOARDS[images.board]
    one = next((one for one in found if board.variant == one.get("variant")), found[0])
    arena = sum(pool["size"] for pool in one["pools"].values())
    image, flash, ram = images.build(app, work / "build", *board.options, *more)
    whole, steps = images.count(image, file.stem, plugin)
    return Image(whole, steps, flash, ram, arena)


def constants_of(file: Path) -> int:
    """Return the bytes of the constants in a TFLite file."""
    import tflite

    model = tflite.Model.GetRootAsModel(file.read_bytes(), 0)
    return sum(model.Buffers(number).DataLength() for number in range(model.BuffersLength()))


def cmsis_nn_modules(images: Images, work: Path) -> list[str]:
    """Return the options of the build that select the modules of CMSIS-NN."""
    from cmsis_nn_support import cmsis_nn_modules as modules

    if images.board == RV32:
        return riscv.cmsis_nn(work / "cmsis_nn")
    try:
        return modules(images.base, work)
    except FileNotFoundError as missing:
        raise SkippedError(str(missing)) from None


def main() -> int:
    """Measure and print; exit code 1 if a limit is not met."""
    options = parser(__doc__)
    options.add_argument("--models", type=Path, metavar="DIR", help="the directory with .tflite files")
    options.add_argument("--only", nargs="+", metavar="MODEL", help="names of models (default: all)")
    options.add_argument("--board", action="append", choices=BOARDS, help="repeatable (default: all)")
    options.add_argument("--link-printf", action="store_true", help="put newlib's printf into the images on Arm")
    given = options.parse_args()
    report = Report("int8 models")
    try:
        opwest_command()
        folder = given.models or Path(os.environ.get("OPWEST_MODELS", ROOT.parent / "shared" / "models"))
        with tempfile.TemporaryDirectory(prefix="opwest-int8-") as work:
            files = [folder / f"{name}.tflite" for name in MODELS] + write(Path(work) / "untuned")
            files = [file for file in files if file.stem in (given.only or [file.stem])]
            for file in [file for file in files if not file.is_file()]:
                report.skip(file.stem, f"{file} does not exist: set --models or OPWEST_MODELS")
                files.remove(file)
            for board in (given.board or BOARDS) if files else []:
                more = ["-DEXTRA_LDFLAGS=-Wl,-u,printf"] if given.link_printf and board != RV32 else []
                try:
                    measure_board(files, board, given.keep or Path(work), report, more)
                except SkippedError as reason:
                    report.skip(board, reason)
    except SkippedError as reason:
        report.skip("int8 models", reason)
    return report.finish(given.json)


def measure_board(files: list[Path], board: str, work: Path, report: Report, more: list[str]) -> None:
    """Measure all models on a board, with more options of the build."""
    from opwest.tuning.measure import built_plugin

    machine = MACHINES[board]
    require(*(f"{machine.prefix}{tool}" for tool in ("gcc", "objdump", "nm")), "cc", EMULATOR, machine.emulator[0])
    images = Images(board)
    place = work / board.replace("/", "_")
    place.mkdir(parents=True)
    if board == RV32:
        riscv_toolchain.toolchain(place / "toolchain")
        images.env |= riscv_toolchain.variables(place / "toolchain")
    plugin, modules = built_plugin(place), cmsis_nn_modules(images, place)
    found: dict[tuple[str, str], Image] = {}
    for file in files:
        engines = [SPEED, FLASH, *([UNLIMITED] if (board, file.stem, UNLIMITED) in MAX_INSTRUCTIONS else [])]
        for number, engine in enumerate([*engines, "CMSIS-NN"]):
            folder = place / f"{file.stem}_{number}"
            words, needed = import_words(engine, board), modules if engine == "CMSIS-NN" else []
            found[file.stem, engine] = measured(file, words, images, plugin, folder, [*needed, *more])
    has_cycles = BOARDS[board].has_cycles
    rows: list[list[Any]] = []
    for (name, engine), one in found.items():
        cycles = [one.whole.cycles] if has_cycles else []
        rows.append([f"{name}, {engine}", one.whole.instructions, *cycles, one.flash, one.ram, one.arena])
        peer = PEERS.get((board, name))
        if engine == "CMSIS-NN" and peer:
            none = ["-"] if has_cycles else []
            rows.append([f"{name}, tflite-micro", peer.instructions, *none, peer.flash or "-", peer.ram or "-", "-"])
    version = execute([f"{machine.prefix}gcc", "-dumpversion"]).strip()
    columns = ["model", "instructions", *(["modelled cycles"] if has_cycles else []), "FLASH", "RAM", "arena"]
    report.table(f"{board} in QEMU, not silicon; -Os, gcc {version}; bytes.", columns, rows)
    for file in files:
        print_steps(file.stem, board, found, report)
    for file in files:
        check(file, board, found, report)
    rows = [
        [name, found[name, SPEED].whole.cycles, record] for name, record in RECORDS.items() if (name, SPEED) in found
    ]
    if board == M4 and rows:
        report.table(
            "Modelled cycles beside published records on silicon (M4, 120 MHz).", ["model", "here", "record"], rows
        )


def print_steps(name: str, board: str, found: dict[tuple[str, str], Image], report: Report) -> None:
    """Print the steps of both sides; sums that opwest computes in a convolution are added to it on the other side."""
    own, other = found[name, SPEED].steps, found[name, "CMSIS-NN"].steps
    if len(own) != len(other):
        rows: list[list[Any]] = [[f"{i}: {step}", one.instructions] for i, (step, one) in enumerate(own)]
        report.table(f"{name} on {board}: opwest's steps.", ["step", "instructions"], rows)
        rows = [[f"{i}: {step}", one.instructions] for i, (step, one) in enumerate(other)]
        report.table(f"{name} on {board}: CMSIS-NN's steps.", ["step", "instructions"], rows)
        return
    rows = [
        [f"{i}: {step}", one.instructions, two.instructions, round(two.instructions / one.instructions, 2)]
        for i, ((step, one), (_, two)) in enumerate(zip(own, other, strict=True))
    ]
    report.table(f"{name} on {board}, steps.", ["step", "opwest", "CMSIS-NN", "ratio"], rows, "instructions")


def check(file: Path, board: str, found: dict[tuple[str, str], Image], report: Report) -> None:
    """Print whether the limits of a model are met."""
    name = file.stem
    for engine in (SPEED, UNLIMITED):
        one = found.get((name, engine))
        key = (board, name, engine)
        if one is not None and key in MAX_INSTRUCTIONS:
            report.limit(f"{name}, {board}, {engine}: instructions", one.whole.instructions, MAX_INSTRUCTIONS[key])
        if one is not None and key in MAX_CYCLES:
            report.limit(f"{name}, {board}, {engine}: modelled cycles", one.whole.cycles, MAX_CYCLES[key])
    own, flash = found[name, SPEED], found[name, FLASH]
    direct = found[name, "CMSIS-NN"].whole.instructions
    ratio = own.whole.instructions / direct
    if name not in MODELS and board in (M4, M55):
        least = 1.6 if "dense" in name else 1.8
        report.limit(f"{name}, {board}: instructions / CMSIS-NN's (at least {least} times fewer)", ratio, 1 / least)
    peer = PEERS.get((board, name))
    if peer is None or peer.flash is None or peer.ram is None:
        return
    report.limit(f"{name}, {board}: FLASH / tflite-micro's", own.flash / peer.flash, 1.0)
    report.limit(f"{name}, {board}: RAM / tflite-micro's", own.ram / peer.ram, MAX_RAM)
    weights = constants_of(file)
    rest = (flash.flash - weights) / (peer.flash - weights)
    report.limit(f"{name}, {board}, --optimize flash: FLASH without weights / tflite-micro's", rest, 0.5)


if __name__ == "__main__":
    sys.exit(main())
