# SPDX-License-Identifier: Apache-2.0
"""Measure the candidates of layers on a board by its cycle counter: as models of one image after the other."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from opwest import pipeline
from opwest.base.diagnostics import Diagnostic, Diagnostics, OpwestError
from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.folder import write_folder
from opwest.compiler.ir.program import Operation
from opwest.compiler.output.emit import candidates
from opwest.compiler.processors import class_of
from opwest.compiler.selection.tuning_files import read_tables
from opwest.objects.rewriting import code_size
from opwest.project.request import Request
from opwest.render.boards import board_file
from opwest.runs.arrays import Runs
from opwest.runs.connection import connected, need_smpclient, prepare, served_model
from opwest.runs.link import LinkError
from opwest.runs.profile import Profile
from opwest.runs.progress import StageProgress
from opwest.runs.project_data import choose_model, project_record
from opwest.runs.session import run_model
from opwest.runs.west import Build, SpaceError, configuration_of
from opwest.tuning.candidates_model import DIFFERENCES, MODEL, CandidatesModel, Piece, candidates_model
from opwest.tuning.measure import named
from opwest.tuning.results import MeasurementError, Measurements, Progress, Result, WrongResultError

MAX_CONSTANTS = 128 << 10
"""The bytes of constants in an image, unless one layer has more."""
MAX_CYCLES = 100_000_000
"""The expected cycles of a run of an image, unless one layer has more: the answer to its request ends in time."""
MAX_CANDIDATES = 60
"""The number of candidates in an image: each takes about 100 bytes of RAM for its measurements."""
_KCONFIG = {"mve": {"CONFIG_FPU": "y"}}
"""By class of processors: options of the application. GCC has MVE only with the registers of the FPU."""


@dataclass(frozen=True)
class BoardRun:
    """Measurements of a model of candidates."""

    cycles: Mapping[int, int]
    """By step: the least of several runs."""
    differences: Sequence[int]
    """The output."""
    code: Mapping[str, int]
    """By C file: bytes of its object, without constants."""
    source: str
    """The board with its counter, and the compiler."""


class TooLargeError(Exception):
    """An image that does not fit in the memories of the board."""


Execute = Callable[[CandidatesModel], BoardRun]
"""Build the image of a model and run it. Raises TooLargeError or OpwestError."""


def measure_on_board(operations: Sequence[Operation], progress: Progress, core: str, execute: Execute) -> Measurements:
    """Run all candidates of operations. Images that do not fit are split; a layer that does not fit is left out.

    Raises MeasurementError, also for a wrong result.
    """
    pending = list(batches(operations, core))
    found: dict[tuple[Operation, str], Result] = {}
    left_out: dict[Operation, str] = {}
    source, done = "", 0
    while pending:
        batch = pending.pop(0)
        if all(piece.operation in left_out for piece in batch):
            continue
        count = sum(1 + len(piece.variants) for piece in batch)
        done += 1
        progress(f"image {done} of {done + len(pending)}: {count} candidates")
        model = candidates_model(batch, _KCONFIG.get(class_of(core), {}))
        try:
            run = execute(model)
        except TooLargeError as error:
            pieces = halves(batch)
            progress("the image does not fit on the board" + (": it is split" if pieces else ""))
            if not pieces:
                left_out[batch[0].operation] = str(error)
            pending[:0] = pieces
            continue
        source = run.source
        for result in _results(batch, model, run):
            before = found.get((result.operation, result.variant))
            if before is None or result.cycles < before.cycles:
                found[result.operation, result.variant] = result
    # The variants of a layer are compared with each other: all of one source.
    results = [one for one in found.values() if one.operation not in left_out]
    if not results:
        raise MeasurementError("\n".join(["no layer fits on the board", *dict.fromkeys(left_out.values())]))
    return Measurements(results, source, list(left_out))


def _results(batch: Sequence[Piece], model: CandidatesModel, run: BoardRun) -> Iterator[Result]:
    """Yield the measured candidates of an image. Raises MeasurementError for a wrong result."""
    for one in model.runs:
        operation = batch[one.piece].operation
        if any(run.differences[place] for place in one.comparisons):
            raise WrongResultError(operation, one.variant)
        yield Result(operation, one.variant, run.cycles[one.step], run.code.get(one.source, 0))
    if not any(run.cycles[one.step] for one in model.runs):
        raise MeasurementError(f"the counter does not advance: 0 cycles for every candidate ({run.source})")


def batches(operations: Sequence[Operation], core: str) -> Iterator[list[Piece]]:
    """Yield the layers of the images."""
    table = read_tables().of(core)
    batch: list[Piece] = []
    sizes, times, count = 0, 0.0, 0
    for operation in operations:
        names = [name for name in candidates(operation, class_of(core)) if name != "portable"]
        piece = Piece(operation, tuple(names))
        size = piece.constants(class_of(core))
        time = sum(table.cost(operation, name).cycles for name in ("portable", *names))
        is_full = sizes + size > MAX_CONSTANTS or times + time > MAX_CYCLES
        if batch and (is_full or count + 1 + len(names) > MAX_CANDIDATES):
            yield batch
            batch, sizes, times, count = [], 0, 0.0, 0
        batch.append(piece)
        sizes, times, count = sizes + size, times + time, count + 1 + len(names)
    if batch:
        yield batch


def halves(batch: Sequence[Piece]) -> list[list[Piece]]:
    """Return two smaller images with the same candidates; none if the image cannot be smaller."""
    if len(batch) > 1:
        middle = len(batch) // 2
        return [list(batch[:middle]), list(batch[middle:])]
    (piece,) = batch
    middle = len(piece.variants) // 2
    if not middle:
        return []
    return [[Piece(piece.operation, some)] for some in (piece.variants[:middle], piece.variants[middle:])]


RUNS = 5
"""The runs of an image: the least cycles of each step count."""
_COUNTERS = {
    "CONFIG_OPWEST_PROFILE_CLOCK_KERNEL": "the kernel's cycle counter",
    "CONFIG_OPWEST_PROFILE_CLOCK_TIMING": "cycle counter",
}


class BoardRunner:
    """Runs one image after the other; only the first build compiles Zephyr."""

    def __init__(self, folder: Path, options: argparse.Namespace, progress: StageProgress) -> None:
        """`folder`: the import; `options`: the board and the connection to it."""
        self._folder = folder / "build" / f"tune_{board_file(options.board)}"
        self._progress = progress
        names = ("board", "serial", "baud", "timeout", "zephyr_base", "given")
        self._options = argparse.Namespace(
            **{name: getattr(options, name) for name in names},
            directory=self._folder / "app",
            build_dir=self._folder / "image",
            operator=None,
            check_steps=False,
            profile=True,
            output_profile=None,
            no_build=False,
            no_flash=False,
        )

    def __call__(self, model: CandidatesModel) -> BoardRun:
        """Run a model of candidates. Raises TooLargeError or OpwestError."""
        self._check_ram(self._generate(model.files))
        try:
            need_smpclient()
            return self._run(model)
        except SpaceError as error:
            raise TooLargeError(error.message) from error
        except LinkError as error:
            raise OpwestError([Diagnostic("error", error.message, hint=error.hint)]) from error
        finally:
            self._progress.end()

    def _generate(self, files: Mapping[str, bytes]) -> int:
        """Write the sources of the application; return the bytes of its planned memory. Raises OpwestError."""
        source = self._folder / MODEL
        for folder in (source, self._options.directory):
            if folder.exists():
                shutil.rmtree(folder)
        write_folder(source, files)
        project = pipeline.run(Request((source / "manifest.yaml",), self._options.directory), Diagnostics())
        return sum(pool.size for pool in project.found[0].plan.pools.values())

    def _check_ram(self, needed: int) -> None:
        """Raise TooLargeError, without a build, for more memory than an earlier configuration has."""
        size = configuration_of(self._options.build_dir).get("CONFIG_SRAM_SIZE", "0")
        limit = int(size) << 10 if size.isdecimal() else 0
        if limit and needed > limit:
            raise TooLargeError(f"the data of the layers need {needed} bytes, the board has {limit} bytes of RAM")

    def _run(self, model: CandidatesModel) -> BoardRun:
        record = project_record(self._options.directory)
        assert record is not None
        build = prepare(self._options, record, self._progress, Diagnostics())
        with connected(self._options, build, self._progress) as link:
            self._progress.show(f"waiting for the image on {link.device}")
            served = served_model(link, choose_model(MODEL, self._options.directory, record), None)
            done = run_model(link, served, Runs({}, RUNS), progress=self._progress, profile=True)
        assert done.profile is not None
        cycles = {
            measure.step: measure.min
            for measure in done.profile.measures
            if measure.kind == "step" and measure.step is not None
        }
        if len(cycles) != model.steps:
            message = f"the image on '{link.device}' measured {len(cycles)} steps, expected {model.steps}"
            raise LinkError(message, "check the connection for lost characters")
        differences = [int(output) for output in done.outputs[DIFFERENCES]]
        return BoardRun(cycles, differences, dict(self._code(build, model)), self._source(build, done.profile))

    def _code(self, build: Build, model: CandidatesModel) -> Iterator[tuple[str, int]]:
        """Yield the C files of candidates with the bytes of their objects."""
        names = {run.source for run in model.runs}
        for path in build.folder.rglob("candidate_*.c.obj"):
            name = path.name.removesuffix(".obj")
            if name in names:  # others are from an earlier image
                yield name, code_size(path.read_bytes())

    def _source(self, build: Build, profile: Profile) -> str:
        """Return the board with its counter, and the compiler."""
        configuration = build.configuration()
        counter = next((text for name, text in _COUNTERS.items() if configuration.get(name) == "y"), "clock")
        speed = f" at {profile.frequency} Hz" if profile.frequency else ""
        # Such a board can be real, but its counter may then be that of the emulator.
        speed += ", configured for QEMU" if configuration.get("CONFIG_QEMU_TARGET") == "y" else ""
        compiler = build.compiler()
        words = [build.board, f"{counter}{speed}", *([] if compiler is None else [named(compiler)])]
        return ", ".join(words)
