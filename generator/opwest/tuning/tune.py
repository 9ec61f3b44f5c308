# SPDX-License-Identifier: Apache-2.0
"""`opwest tune`: measure all variants of the layers of an imported model, and store them in its tuning.yaml."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from opwest.importers.faults import fault
from opwest.importers.models.choice.block import Layouts
from opwest.importers.models.choice.decide import decided
from opwest.importers.models.choice.joins import joined_in_place
from opwest.importers.models.choice.tables import Tables, merged, read_file, read_tables, text_of
from opwest.importers.models.emit.registry import candidates
from opwest.importers.models.ir.program import Operation, Program
from opwest.importers.models.prepare import prepare, program_of
from opwest.importers.models.processors import CORES, Processor, processors
from opwest.importers.models.record import Record, read_record
from opwest.importers.models.request import KERNELS
from opwest.records import dataclass
from opwest.tuning.emulator import EmulatorError
from opwest.tuning.machines import MACHINES
from opwest.tuning.measure import distinct, measure, table_of
from opwest.tuning.placement import Offer, offers
from opwest.tuning.tools import tools_of
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
    candidates: int
    """The number of measured variants of different layers."""
    offers: Sequence[Offer]


def tune(folder: Path, core: str, places: bool, progress: Callable[[str], None]) -> Tuned:
    """Measure the variants of the layers of an import on a core; write its tuning.yaml. Raises OpwestError.

    `places`: whether the loads from the constants of the chosen variants are counted too.
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
    with tempfile.TemporaryDirectory(prefix="opwest-tune-") as work:
        try:
            # Layers that can write in place are measured in both ways.
            ways = [*programs, *map(joined_in_place, programs)]
            results = measure(distinct(ways), core, Path(work), progress)
            classes = {} if processor is None or processor.core == core else {processor.name: core}
            # Estimates from the layers of one model would be worse than opwest's own.
            found = Tables({core: table_of(results, core, tools_of(MACHINES[core]), has_estimates=False)}, classes)
            tables = merged([*old, found])
            given = read_tables(map(Path, options.tuning))
            before = Tables(given.cores, {**given.classes, **classes})
            after = merged([given, tables])
            variants = [_variants(program, processor, record, (before, after)) for program in programs]
            made: list[Offer] = []
            if places:
                for _, last in variants:
                    made += offers(last, core, Path(work) / "places", progress)
        except EmulatorError as error:
            raise fault(f"cannot measure: {error}", hint="docs/tuning.md lists the programs that are needed") from None
    _write(file, text_of(tables).encode())
    layers = []
    for first, last in variants:
        earlier = {(one.label, type(one)): variant for one, variant in first.items()}
        for operation, variant in last.items():
            cost = {name: after.of(core).cost(operation, name) for name in candidates(operation, CORES[core])}
            cycles = {name: round(one.cycles) for name, one in cost.items()}
            # A layer that writes its results to another place has the same label.
            other = earlier.get((operation.label, type(operation)), variant)
            name = first.get(operation, other if other in cycles else variant)
            layers.append(Layer(operation.label, name, variant, cycles))
    return Tuned(file, record, layers, len(results), made)


def _variants(
    program: Program, processor: Processor | None, record: Record, tables: Sequence[Tables]
) -> tuple[Mapping[Operation, str], Mapping[Operation, str]]:
    """Return the operations and variants that the tables before and after the measurements choose."""
    if processor is None:
        portable = dict.fromkeys(joined_in_place(program).operations, "portable")
        return portable, portable
    layouts = Layouts()
    before, after = (decided(program, layouts, processor, record.options, one).choice.variants for one in tables)
    return before, after


def _write(file: Path, content: bytes) -> None:
    """Replace a file, completely or not at all."""
    with system_faults(file, "cannot write the table of measurements"):
        draft = file.with_name(f".{file.name}.opwest-draft")
        draft.write_bytes(content)
        draft.replace(file)
