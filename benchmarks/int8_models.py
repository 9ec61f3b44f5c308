# SPDX-License-Identifier: Apache-2.0
"""The int8 models of MLPerf Tiny as whole Zephyr images: opwest's variants, CMSIS-NN, tflite-micro.

Each image is built with `west build` (-Os, newlib, no threads). main.c runs the model once on zeros. FLASH and RAM
are the linker's report of the image. A QEMU plugin counts from the call of <model>_run to its return, and each step.
Cycles are those of the model in generator/opwest/tuning/qemu/count.c, the same for both sides: not of silicon, and
without meaning for vector instructions, so they are left out for mps3/corstone300/an547. On mps2/an386 the same model
also simulates a flash memory with five wait states behind caches (FLASHES); on mps2/an500 it is that of dual issue.

FLASH has two parts, both read from the image: the constants of the model as linked, and the rest (Zephyr, the C
library, operators). In tflite-micro's images the constants are the file of the model, which is linked as an array.

CMSIS-NN: `opwest import --kernels cmsis-nn-... --rounding cmsis-nn`: each layer calls CMSIS-NN's function, on the graph
after opwest's passes. In vww these drop channels that cannot influence the result. tflite-micro runs the graph of the
file with CMSIS-NN: recorded figures of the same Zephyr tree, compiler and options. With `--no-optimisations` six layers
of vww would be portable operators, because CMSIS-NN's shifts could overflow.
default_speed.py measures models whose layers are not in opwest's table of measurements.

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
from zephyr_images import EMULATOR, MACHINES, Counts, Images, constants_of, riscv_toolchain

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
OPTIONS = ("-DCONFIG_NEWLIB_LIBC=y", "-DCONFIG_MULTITHREADING=n")
M3, M4, M7 = "mps2/an385", "mps2/an386", "mps2/an500"
M55, RV32 = "mps3/corstone300/an547", "qemu_riscv32"


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
    M7: Board("cmsis-nn-dsp", "dsp", has_cycles=True),
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
CMSIS_NN, MICRO = "CMSIS-NN on opwest's graph", "tflite-micro with CMSIS-NN on the file's graph"
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
    (M7, "kws_int8", SPEED): 3.17e6,
    (M7, "ic_int8", SPEED): 11.4e6,
    (M7, "vww_int8", SPEED): 6.67e6,
    (M7, "ad01_int8", SPEED): 0.303e6,
    (M3, "kws_int8", SPEED): 9.9e6,
    (M3, "ic_int8", SPEED): 41e6,
    (M3, "vww_int8", SPEED): 29e6,
    (M3, "ad01_int8", SPEED): 1.06e6,
}
_CACHED = "flash_from=0x0,flash_to=0x400000,wait_states=5,icache=1024,dcache=256,prefetch=1"
FLASHES = {"128-bit flash": f"{_CACHED},line=16", "64-bit flash": f"{_CACHED},line=8"}
"""Simulated memories, on mps2/an386: caches of ST's M4 (1 KiB of code, 256 B of data), five wait states."""
MAX_SIMULATED = {
    ("128-bit flash", "kws_int8"): 4.3e6,
    ("128-bit flash", "ic_int8"): 18.0e6,
    ("128-bit flash", "vww_int8"): 7.6e6,
    ("128-bit flash", "ad01_int8"): 0.45e6,
    ("64-bit flash", "kws_int8"): 4.8e6,
    ("64-bit flash", "ic_int8"): 22.0e6,
}
"""Cycles."""
MAX_RAM = 0.85
"""Of tflite-micro's."""
MAX_REST = 0.5
"""Of tflite-micro's FLASH without the constants."""
RECORDS = {
    M4: {"kws_int8": "ST 5.18 M", "ic_int8": "ST 19.8 M", "vww_int8": "ST 10.7 M", "ad01_int8": "Plumerai 0.486 M"},
    M7: {"kws_int8": "ST 3.17 M", "ic_int8": "ST 11.4 M", "vww_int8": "ST 6.67 M", "ad01_int8": "Bosch 0.303 M"},
}
"""Published cycles on silicon by board of the same core: MLPerf Tiny, closed division, rounds 1.1 and 1.2."""


class Image(NamedTuple):
    """A measured image; sizes in bytes."""

    whole: Counts
    steps: list[tuple[str, Counts]]
    flash: int
    constants: int
    """The part of `flash` that the constants of the model occupy."""
    ram: int
    arena: int
    simulated: dict[str, int]
    """Cycles with each of FLASHES."""


def import_words(engine: str, board: str) -> list[str]:
    """Return the options of the import."""
    if engine == CMSIS_NN:
        return ["--kernels", BOARDS[board].kernels, "--rounding", "cmsis-nn"]
    words = {SPEED: [], FLASH: ["--optimize", "flash"], UNLIMITED: ["--max-flash", "none", "--prefer", "dsp-halves"]}[
        engine
    ]
    return [*words, "--io", "workspace"]


def engines_of(name: str, board: str) -> list[str]:
    """Return what is measured of a model."""
    return [SPEED, FLASH, *([UNLIMITED] if (board, name, UNLIMITED) in MAX_INSTRUCTIONS else []), CMSIS_NN]


def measured(
    file: Path,
    words: list[str],
    images: Images,
    plugin: Path,
    work: Path,
    more: list[str],
    flashes: dict[str, str] | None = None,
) -> Image:
    """Import with options, generate, build with more options, and count, also with simulated memories."""
    model, app = work / "model", work / "app"
    execute([*opwest_command(), "import", "tflite", file, "-o", model, "--vectors", "0", "-q", *words])
    execute([*opwest_command(), "generate", model / "manifest.yaml", "-o", app, "-q"])
    variants = json.loads(execute([*opwest_command(), "check", "--json", model / "manifest.yaml"]))["result"]
    board = BOARDS[images.board]
    chosen = next((variant for variant in variants if board.variant == variant["variant"]), variants[0])
    arena = sum(pool["bytes"] for pool in chosen["pools"])
    image, flash, ram = images.build(app, work / "build", *board.options, *more)
    whole, steps = images.count(image, file.stem, plugin)
    simulated = {
        name: images.count(image, file.stem, plugin, options)[0].flash_cycles
        for name, options in (flashes or {}).items()
    }
    return Image(whole, steps, flash, constants_of(image, file.stem, images.machine.prefix), ram, arena, simulated)


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
    options.add_argument("--only", nargs="+", choices=MODELS, help="models (default: all)")
    options.add_argument("--board", action="append", choices=BOARDS, help="repeatable (default: all)")
    options.add_argument("--link-printf", action="store_true", help="put newlib's printf into the images on Arm")
    given = options.parse_args()
    report = Report("int8 models")
    try:
        opwest_command()
        folder = given.models or Path(os.environ.get("OPWEST_MODELS", ROOT.parent / "shared" / "models"))
        with tempfile.TemporaryDirectory(prefix="opwest-int8-") as work:
            files = [folder / f"{name}.tflite" for name in MODELS if name in (given.only or MODELS)]
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
    results: dict[tuple[str, str], Image] = {}
    for file in files:
        for number, engine in enumerate(engines_of(file.stem, board)):
            folder = place / f"{file.stem}_{number}"
            needed = [*(modules if engine == CMSIS_NN else []), *more]
            flashes = FLASHES if board == M4 else {}
            results[file.stem, engine] = measured(
                file, import_words(engine, board), images, plugin, folder, needed, flashes
            )
    print_images(files, board, results, report)
    for file in files:
        print_steps(file.stem, board, results, report)
    for file in files:
        check(file, board, results, report)


def print_images(files: list[Path], board: str, results: dict[tuple[str, str], Image], report: Report) -> None:
    """Print the table of a board, and on M4 the records."""
    has_cycles = BOARDS[board].has_cycles
    simulated = list(FLASHES) if board == M4 else []
    rows: list[list[Any]] = []
    for file in files:
        name = file.stem
        for engine in engines_of(name, board):
            image = results[name, engine]
            cycles = [*([image.whole.cycles] if has_cycles else []), *(image.simulated[kind] for kind in simulated)]
            sizes = [image.flash, image.constants, image.flash - image.constants, image.ram, image.arena]
            rows.append([f"{name}, {engine}", image.whole.instructions, *cycles, *sizes])
        peer = PEERS.get((board, name))
        if peer:
            constants = file.stat().st_size
            sizes = [peer.flash, constants, peer.flash - constants] if peer.flash else ["-", "-", "-"]
            none = ["-"] * (len(simulated) + int(has_cycles))
            rows.append([f"{name}, {MICRO}", peer.instructions, *none, *sizes, peer.ram or "-", "-"])
    version = execute([f"{MACHINES[board].prefix}gcc", "-dumpversion"]).strip()
    columns = ["model", "instructions", *(["modelled cycles"] if has_cycles else [])]
    columns += [f"simulated cycles, {kind}" for kind in simulated]
    columns += ["FLASH", "constants", "rest of FLASH", "RAM", "arena"]
    report.table(f"{board} in QEMU, not silicon; application -Os, operators -O2, gcc {version}; bytes.", columns, rows)
    records = [name for name in RECORDS.get(board, {}) if (name, SPEED) in results]
    if records:
        rows = []
        for name in records:
            image = results[name, SPEED]
            rows.append([name, image.whole.cycles, *image.simulated.values(), RECORDS[board][name]])
        title = f"{board}: cycles of the model beside published records on silicon (MLPerf Tiny)."
        report.table(title, ["model", "no wait states", *simulated, "record"], rows)


def print_steps(name: str, board: str, results: dict[tuple[str, str], Image], report: Report) -> None:
    """Print the steps of both sides; sums that opwest computes in a convolution are added to it on the other side."""
    own, other = results[name, SPEED].steps, results[name, CMSIS_NN].steps
    rows: list[list[Any]]
    if len(own) != len(other):
        for side, steps in (("opwest", own), ("CMSIS-NN", other)):
            rows = [[f"{i}: {step}", counts.instructions] for i, (step, counts) in enumerate(steps)]
            report.table(f"{name} on {board}: {side}'s steps.", ["step", "instructions"], rows, is_detail=True)
        return
    rows = [
        [f"{i}: {step}", mine.instructions, theirs.instructions, round(theirs.instructions / mine.instructions, 2)]
        for i, ((step, mine), (_, theirs)) in enumerate(zip(own, other, strict=True))
    ]
    columns = ["step", "opwest", "CMSIS-NN", "ratio"]
    report.table(f"{name} on {board}, steps.", columns, rows, "instructions", is_detail=True)


def check(file: Path, board: str, results: dict[tuple[str, str], Image], report: Report) -> None:
    """Print whether the limits of a model are met."""
    name = file.stem
    for engine in (SPEED, UNLIMITED):
        image = results.get((name, engine))
        key = (board, name, engine)
        if image is not None and key in MAX_INSTRUCTIONS:
            report.limit(f"{name}, {board}, {engine}: instructions", image.whole.instructions, MAX_INSTRUCTIONS[key])
        if image is not None and key in MAX_CYCLES:
            report.limit(f"{name}, {board}, {engine}: modelled cycles", image.whole.cycles, MAX_CYCLES[key])
    own, smallest = results[name, SPEED], results[name, FLASH]
    for kind, cycles in own.simulated.items():
        if (kind, name) in MAX_SIMULATED:
            report.limit(f"{name}, {board}, {kind}: simulated cycles", cycles, MAX_SIMULATED[kind, name])
    peer = PEERS.get((board, name))
    if peer is None or peer.flash is None or peer.ram is None:
        return
    report.limit(f"{name}, {board}: FLASH / tflite-micro's", own.flash / peer.flash, 1.0)
    report.limit(f"{name}, {board}: RAM / tflite-micro's", own.ram / peer.ram, MAX_RAM)
    rest, peers = smallest.flash - smallest.constants, peer.flash - file.stat().st_size
    report.limit(f"{name}, {board}, {FLASH}: FLASH without constants / tflite-micro's", rest / peers, MAX_REST)


if __name__ == "__main__":
    sys.exit(main())
