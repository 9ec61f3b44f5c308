# SPDX-License-Identifier: Apache-2.0
"""Measure the candidates of layers on a board by its cycle counter: as models of one image after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from opwest.importers.models.choice.tables import read_tables
from opwest.importers.models.emit.registry import candidates
from opwest.importers.models.ir.program import Operation
from opwest.importers.models.processors import CORES
from opwest.records import dataclass
from opwest.tuning.candidates_model import CandidatesModel, Piece, candidates_model
from opwest.tuning.results import MeasurementError, Measurements, Progress, Result, WrongResultError

MOST_CONSTANTS = 128 << 10
"""The bytes of constants in an image, unless one layer has more."""
MOST_CYCLES = 100_000_000
"""The expected cycles of a run of an image, unless one layer has more: the answer to its request ends in time."""
MOST_CANDIDATES = 60
"""The number of candidates in an image: each takes about 100 bytes of RAM for its measurements."""
_KCONFIG = {"cortex-m55": {"CONFIG_FPU": "y"}}
"""By core: options of the application. GCC has MVE only with the registers of the FPU."""


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
        model = candidates_model(batch, _KCONFIG.get(core, {}))
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
        for one in _results(batch, model, run):
            before = found.get((one.operation, one.variant))
            if before is None or one.cycles < before.cycles:
                found[one.operation, one.variant] = one
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
        names = [name for name in candidates(operation, CORES[core]) if name != "portable"]
        piece = Piece(operation, tuple(names))
        size = piece.constants(CORES[core])
        time = sum(table.cost(operation, name).cycles for name in ("portable", *names))
        is_full = sizes + size > MOST_CONSTANTS or times + time > MOST_CYCLES
        if batch and (is_full or count + 1 + len(names) > MOST_CANDIDATES):
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
