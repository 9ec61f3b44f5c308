# SPDX-License-Identifier: Apache-2.0
"""`opwest tune`: measure all variants of the layers of an imported model, and store them in its tuning.yaml."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from opwest.importers.faults import fault
from opwest.importers.models.choice.geometry import key_of
from opwest.importers.models.choice.table import Table
from opwest.importers.models.choice.tables import Tables, merged, read_file, read_tables, text_of
from opwest.importers.models.emit.registry import candidates
from opwest.importers.models.implementations import chosen
from opwest.importers.models.ir.program import Operation, Program
from opwest.importers.models.prepare import prepare, program_of
from opwest.importers.models.processors import CORES, Processor, processors
from opwest.importers.models.record import Record, read_record
from opwest.importers.models.request import KERNELS
from opwest.records import dataclass
from opwest.tuning.measure import distinct
from opwest.tuning.placement import Offer, offers
from opwest.tuning.results import Measure, MeasurementError, Progress, table_of
from opwest.write.faults import system_faults

FILE = "tuning.yaml"


@dataclass(frozen=True, eq=False)
class Layer:
    """A layer with the costs of its variants."""

    label: str
    before: str
    """The variant that the tables of the import choose."""
    after: str
    """The variant that the measurements choose too."""
    cycles: Mapping[str, int]
    """By variant."""


@dataclass(frozen=True, eq=False)
class Tuned:
    """The result."""

    file: Path
    record: Record
    layers: Sequence[Layer]
    """Those that were measured."""
    candidates: int
    """The number of measured variants of different layers."""
    source: str
    """That of the measurements."""
    left_out: Sequence[str]
    """The labels of the layers that could not be measured: their costs are those of other tables."""
    offers: Sequence[Offer]


def tune(folder: Path, core: str, measure: Measure, places: bool, progress: Progress) -> Tuned:
    """Measure the variants of the layers of an import; write its tuning.yaml. Raises OpwestError.

    `core`: the core of the measurements. `places`: whether the loads from the constants of the chosen variants are
    counted too, in QEMU.
    """
    record = read_record(folder)
    file = folder / FILE
    old = [read_file(file)] if file.exists() else []
    options = record.options
    if options.kernels != KERNELS[0]:
        message = f"the import has --kernels {options.kernels}: it chooses no variants"
        raise fault(message, str(folder), hint="import the model without --kernels")
    prepared = prepare(record.model, options, progress)
    programs = [program_of(graph, options, str(record.model)) for graph in prepared.graphs]
    processor = next((one for one in processors() if one.name == CORES[core]), None)
    classes = {} if processor is None or processor.core == core else {processor.name: core}
    made: list[Offer] = []
    try:
        done = measure(distinct(programs), progress)
        # Estimates from the layers of one model would be worse than opwest's own.
        table = table_of(done.results, core, done.source, has_estimates=False)
        tables = merged([*(_without(one, table) for one in old), Tables({core: table}, classes)])
        given = read_tables(map(Path, options.tuning))
        before = Tables(given.cores, {**given.classes, **classes})
        after = merged([given, tables])
        variants = [_variants(program, processor, record, (before, after)) for program in programs]
        if places:
            with tempfile.TemporaryDirectory(prefix="opwest-tune-") as work:
                for _, last in variants:
                    made += offers(last, core, Path(work), progress)
    except MeasurementError as error:
        raise fault(f"cannot measure: {error}", hint=error.hint) from None
    _write(file, text_of(tables).encode())
    layers, left_out = [], []
    absent = set(map(key_of, done.left_out))
    for program, (first, last) in zip(programs, variants, strict=True):
        for operation in program.operations:
            cost = {name: after.of(core).cost(operation, name) for name in candidates(operation, CORES[core])}
            cycles = {name: round(one.cycles) for name, one in cost.items()}
            # Cycles of another source cannot be compared with measured ones, nor added to them.
            if key_of(operation) in absent:
                left_out.append(operation.label)
            else:
                layers.append(Layer(operation.label, first[operation], last[operation], cycles))
    return Tuned(file, record, layers, len(done.results), done.source, left_out, made)


def _without(tables: Tables, new: Table) -> Tables:
    """Return measurements without those of the core of a new table, if these are of another source."""
    cores = {name: one for name, one in tables.cores.items() if name != new.core or one.measured == new.measured}
    return Tables(cores, tables.classes)


def _variants(
    program: Program, processor: Processor | None, record: Record, tables: Sequence[Tables]
) -> tuple[Mapping[Operation, str], Mapping[Operation, str]]:
    """Return the variants that the tables before and after the measurements choose."""
    if processor is None:
        portable = dict.fromkeys(program.operations, "portable")
        return portable, portable
    before, after = (chosen(program, processor, record.options, one).variants for one in tables)
    return before, after


def _write(file: Path, content: bytes) -> None:
    """Replace a file, completely or not at all."""
    with system_faults(file, "cannot write the table of measurements"):
        draft = file.with_name(f".{file.name}.opwest-draft")
        draft.write_bytes(content)
        draft.replace(file)
