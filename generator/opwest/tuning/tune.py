# SPDX-License-Identifier: Apache-2.0
"""`opwest tune`: measure all variants of the layers of an imported model, and store them in its tuning.yaml."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted, table_lines
from opwest.compiler.faults import fault
from opwest.compiler.ir.program import Operation, Program
from opwest.compiler.ir.stripes import Striped
from opwest.compiler.output.emit import candidates, emit_program
from opwest.compiler.output.placement import layers_of
from opwest.compiler.processors import ProcessorClass, class_of, processor_classes
from opwest.compiler.request import KERNELS, LIBRARIES, Options
from opwest.compiler.selection.choose import constant_bytes
from opwest.compiler.selection.costs import Table, key_of
from opwest.compiler.selection.implementations import decided, decided_without_class, flash_of_class
from opwest.compiler.selection.joins import joined_in_place
from opwest.compiler.selection.tuning_files import Tables, merged, read_file, read_tables, text_of
from opwest.imports.import_json import ImportJson, read_import_json
from opwest.imports.prepare import prepare, program_of
from opwest.objects.flash import Flash
from opwest.project.disk import system_faults, write_whole
from opwest.tuning.image import Candidate
from opwest.tuning.machines import machines
from opwest.tuning.measure import LIBRARY, CmsisNn, alone, compiled, distinct, inputs_of, measure_in_qemu, run
from opwest.tuning.results import Measure, MeasurementError, Progress, table_of
from opwest.zephyr.cmsis_nn import checked_cmsis_nn


@dataclass(frozen=True)
class PlacementOffer:
    """The constants of a layer in RAM."""

    layer: str
    """The value for `opwest import --place`."""
    variant: str
    ram: int
    """Bytes of RAM: the cost."""
    reads: int
    """The number of loads from the constants in a run of the layer."""
    saved: int
    """The modelled cycles that RAM without wait states saves in a run of the layer."""


def offers(
    variants: Mapping[Operation, str],
    core: str,
    work: Path,
    flash: Flash,
    progress: Callable[[str], None] = lambda _: None,
    library: CmsisNn | None = None,
) -> list[PlacementOffer]:
    """Run the chosen variant of each layer in QEMU; return the layers with constants. Raises EmulatorError."""
    distinct = {(key_of(operation), variant): operation for operation, variant in variants.items()}
    progress(f"loads from constants: {counted(len(distinct), 'layer')} in one image")
    machine = machines()[core] if library is None else library.machine
    layers = list(_candidates(list(distinct.values()), variants, flash))
    in_flash, in_ram = (
        dict(zip(distinct, run(layers, machine, work, flash=flash, content_in_flash=constants), strict=True))
        for constants in (True, False)
    )
    placements = []
    for operation, variant in variants.items():
        size = constant_bytes(candidates(operation, class_of(core), LIBRARIES)[variant])
        if size:
            key = key_of(operation), variant
            saved = in_flash[key].flash_cycles - in_ram[key].flash_cycles
            name = ",".join(layers_of(operation.label))
            placements.append(PlacementOffer(name, variant, size, in_flash[key].constants, saved))
    return placements


def offers_text(given: Sequence[PlacementOffer], core: str, flash: Flash) -> str:
    """Return the table, the greatest gain for a byte first; ends without a line end."""
    order = sorted(given, key=lambda offer: (-offer.saved / offer.ram, offer.layer))
    heads = ("layer", "variant", "loads", "cycles saved", "bytes of RAM")
    rows = [(offer.layer, offer.variant, f"{offer.reads:,}", f"{offer.saved:,}", f"{offer.ram:,}") for offer in order]
    lines = [f"constants in RAM ({core}, flash {flash.text}; of a model, from instructions counted in QEMU)"]
    lines += [f"  {line}" for line in table_lines([heads, *rows], right=(2, 3, 4))]
    lines.append("  opwest import --place LAYERS=sram copies the constants of layers when the model is opened")
    return "\n".join(lines)


def _candidates(
    operations: Sequence[Operation], variants: Mapping[Operation, str], flash: Flash
) -> Iterator[Candidate]:
    for number, operation in enumerate(operations):
        program = alone(operation)
        prefix = f"c{number}_"
        emitted = emit_program(program, "A layer.", variants[operation], prefix, flash.loop_bytes)
        yield Candidate(program, emitted, inputs_of(program), None)


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
    without_stalls: int | None = None
    """The cycles of `after` without wait states of flash."""


@dataclass(frozen=True, eq=False)
class Tuned:
    """The result."""

    file: Path
    imported: ImportJson
    libraries: Sequence[str]
    """The libraries whose functions are candidates of `after`."""
    layers: Sequence[Layer]
    """Those that were measured."""
    candidates: int
    """The number of measured variants of different layers."""
    source: str
    """That of the measurements."""
    left_out: Sequence[str]
    """The labels of the layers that could not be measured: their costs are those of other tables."""
    offers: Sequence[PlacementOffer]
    uncounted: Sequence[str]
    """The labels of the layers without an offer because they call CMSIS-NN, which was not given."""
    flash: Flash
    """The flash of the costs."""


def tune(
    folder: Path, core: str, measure: Measure, flash: Flash | None, progress: Progress, cmsis_nn: Path | None = None
) -> Tuned:
    """Measure the variants of the layers of an import; write its tuning.yaml. Raises OpwestError.

    `core`: the core of the measurements. `flash`: that of the costs; None: that of the import. With wait states of a
    given flash, what constants of the chosen variants in RAM save is measured too, in QEMU. `cmsis_nn`: the directory
    of CMSIS-NN, whose functions are measured too, in QEMU instead of by `measure`.
    """
    root = None if cmsis_nn is None else checked_cmsis_nn(cmsis_nn)
    imported = read_import_json(folder)
    file = folder / FILE
    old = [read_file(file)] if file.exists() else []
    options = imported.options
    if options.kernels != KERNELS[0]:
        message = f"the import has --kernels {options.kernels}: it chooses no variants"
        raise fault(message, str(folder), hint="import the model without --kernels")
    if flash is not None:
        options = dataclasses.replace(options, given_flash=flash.text)
    libraries = tuple(dict.fromkeys([*options.libraries, *(() if root is None else (LIBRARY,))]))
    prepared = prepare(imported.model, options, progress)
    programs = [program_of(graph, options, str(imported.model)) for graph in prepared.graphs]
    processor = next((class_ for class_ in processor_classes() if class_.name == class_of(core)), None)
    classes = {} if processor is None or processor.core == core else {processor.name: core}
    given = read_tables(map(Path, options.tuning))
    before = Tables(given.cores, {**given.classes, **classes})
    wider = dataclasses.replace(options, libraries=libraries)
    shown = flash_of_class("" if processor is None else processor.name, options)
    made: list[PlacementOffer] = []
    uncounted: list[str] = []
    with tempfile.TemporaryDirectory(prefix="opwest-tune-") as work:
        try:
            library = None
            first = [_variants(program, processor, options, before) for program in programs]
            operations = distinct(_measured(programs, first))
            if root is None:
                done = measure(operations, progress, options.flash)
            else:
                progress(f"compiling CMSIS-NN for {core}")
                library = compiled(root, operations, core, Path(work) / LIBRARY)
                done = measure_in_qemu(operations, progress, options.flash, core, library)
            # Estimates from the layers of one model would be worse than opwest's own.
            table = table_of(done, core, has_estimates=False)
            tables = merged([*(_without(entry, table) for entry in old), Tables({core: table}, classes)])
            after = merged([given, tables])
            last = [_variants(program, processor, wider, after) for program in programs]
            with system_faults(file, "cannot write the table of measurements"):
                write_whole(file, text_of(tables).encode())
            if flash is not None and flash.wait_states:
                for entry in last:
                    called = {} if library else {key: name for key, name in entry.items() if name.startswith(LIBRARY)}
                    uncounted += [operation.label for operation in called]
                    counted = {operation: name for operation, name in entry.items() if operation not in called}
                    made += offers(counted, core, Path(work) / "places", flash, progress, library)
        except MeasurementError as error:
            raise fault(f"cannot measure: {error}", hint=error.hint) from None
    layers, left_out = [], []
    absent = set(map(key_of, done.left_out))
    without = {
        (key_of(result.operation), result.variant): result.cycles
        for result in done.results
        if result.stalls is not None
    }
    for old_variants, variants in zip(first, last, strict=True):
        earlier = {(entry.label, type(entry)): variant for entry, variant in old_variants.items()}
        for operation, variant in variants.items():
            # Cycles of another source cannot be compared with measured ones, nor added to them.
            if key_of(operation) in absent:
                left_out.append(operation.label)
                continue
            names = candidates(operation, class_of(core), libraries)
            cost = {name: after.of(core).at(shown).cost(operation, name) for name in names}
            # A layer that writes its results to another place has the same label.
            other = earlier.get((operation.label, type(operation)), variant)
            name = old_variants.get(operation, other if other in cost else variant)
            used = (name, variant)
            cycles = {name: round(entry.cycles) for name, entry in cost.items() if entry.is_measured or name in used}
            layers.append(Layer(operation.label, *used, cycles, without.get((key_of(operation), variant))))
    return Tuned(file, imported, libraries, layers, len(done.results), done.source, left_out, made, uncounted, shown)


def _without(tables: Tables, new: Table) -> Tables:
    """Return measurements without those of the core of a new table, if these are of another source."""
    cores = {name: table for name, table in tables.cores.items() if name != new.core or table.measured == new.measured}
    return Tables(cores, tables.classes)


def _measured(programs: Sequence[Program], chosen: Sequence[Mapping[Operation, str]]) -> list[Program]:
    """Return the programs with the operations to measure.

    Layers that can write in place are measured in both ways, and layers in stripes for the rows of their calls.
    """
    parts = [
        part.operation
        for some in chosen
        for operation in some
        if isinstance(operation, Striped)
        for part in operation.layers
    ]
    return [*programs, *map(joined_in_place, programs), Program(operations=parts)]


def _variants(
    program: Program, processor: ProcessorClass | None, options: Options, tables: Tables
) -> Mapping[Operation, str]:
    """Return the operations of a program, and their variants, that tables result in."""
    if processor is None:
        return decided_without_class(program, options, tables).choice.variants
    return decided(program, processor, options, tables).choice.variants
