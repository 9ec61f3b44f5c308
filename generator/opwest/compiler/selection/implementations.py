# SPDX-License-Identifier: Apache-2.0
"""The operators of a program for each class of processors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from opwest.compiler.emission.function import PROCESSORS, VARIANTS
from opwest.compiler.faults import fault
from opwest.compiler.ir.operations import UserCall
from opwest.compiler.ir.program import Operation, Program
from opwest.compiler.ir.stripes import Striped
from opwest.compiler.output.emit import emit_program
from opwest.compiler.output.manifest import Implementation, name_values
from opwest.compiler.processors import ProcessorClass, processor_classes
from opwest.compiler.request import LIBRARIES, Options
from opwest.compiler.selection.block import Layouts
from opwest.compiler.selection.choose import Choice
from opwest.compiler.selection.decide import Decision, core_of, decided, decided_without_class
from opwest.compiler.selection.tuning_files import read_tables


def layer(label: str) -> str:
    """Return the number and the operator of a label, without the name of its result."""
    return label.partition(", result ")[0]


def table_text(processor: str, core: str, choice: Choice, memory: int) -> str:
    """Return the table of a class of processors with the bytes of the planned memory; ends without a line end.

    Operators of the user are left out: their costs are unknown.
    """
    own = [row for row in choice.rows if not isinstance(row.operation, UserCall)]
    heads = ("layer", "variant", "cycles", "flash", "scratch", "why")
    sums = (sum(row.cost.cycles for row in own), sum(row.flash for row in own), max(row.scratch for row in own))
    numbers = [
        *((layer(row.operation.label), row.variant, row.cost.cycles, row.flash, row.scratch, row.why) for row in own),
        ("all", "", *sums, ""),
    ]
    rows = [
        (label, variant, f"{cycles:,.0f}", f"{flash:,}", f"{scratch:,}", why)
        for label, variant, cycles, flash, scratch, why in numbers
    ]
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    lines = [f"{processor} ({_source(core, choice)}; bytes)"]
    for row in (heads, *rows):
        cells = [
            cell.rjust(width) if 2 <= i <= 4 else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(f"  {'  '.join(cells).rstrip()}")
    lines.append(f"  {memory:,} bytes of memory for tensors between layers and scratch memory")
    if choice.gap:
        lines.append(f"  at most {choice.gap:.2%} above the least cycles")
    return "\n".join(lines)


def _source(core: str, choice: Choice) -> str:
    """Return where the cycles of the rows are from."""
    model = f"a {core} in QEMU's model, not of silicon"
    boards = dict.fromkeys(row.cost.source for row in choice.rows if row.cost.is_of_board)
    if not boards:
        return f"cycles of {model}"
    others = [layer(row.operation.label) for row in choice.rows if not row.cost.is_of_board]
    rest = f"; of layers {', '.join(others)}: of {model}" if others else ""
    return f"cycles of {' and '.join(boards)}{rest}"


def implementations(
    program: Program, heading: str, options: Options
) -> tuple[Implementation, Sequence[Implementation], str]:
    """Return the base, the implementations that differ from it, and the table of the choices. Raises OpwestError."""
    _check_candidates(options)
    if options.kernels not in ("auto", "portable"):
        return _implementation(program, options.kernels, heading), (), ""
    measurements, layouts = read_tables(map(Path, options.tuning)), Layouts()
    general = decided_without_class(program, layouts, options, measurements)
    base = _implementation(general.program, "portable", heading)
    variants, tables = [], []
    for processor in processor_classes() if options.kernels == "auto" else ():
        decision = decided(program, layouts, processor, options, measurements)
        if all(row.variant == "portable" for row in decision.choice.rows):
            continue
        variants.append(_implementation(decision.program, decision.choice.variants, heading, processor))
        tables.append(table_text(processor.name, core_of(processor, measurements), decision.choice, decision.memory))
    if options.max_ram is not None or _blocks(general):
        tables.append(_general_text(general, options.max_ram))
    return base, variants, "\n".join(tables)


def _implementation(
    program: Program, preferred: str | Mapping[Operation, str], heading: str, processor: ProcessorClass | None = None
) -> Implementation:
    emitted = emit_program(program, heading, preferred)
    return Implementation(emitted, name_values(program, emitted), processor, program=program)


def _check_candidates(options: Options) -> None:
    """Raise OpwestError for a variant that no operator has, and for libraries that the options exclude."""
    if options.libraries and options.kernels != "auto":
        given = f"--with {options.libraries[0]} and --kernels {options.kernels}"
        raise fault(f"{given}: the second one chooses no variants", expected="one of them")
    known = {
        variant.name
        for variants in VARIANTS.values()
        for variant in variants
        if variant.name.split("-")[0] in PROCESSORS
    }
    known.update(options.libraries)
    for name in options.prefer:
        if name in LIBRARIES and name not in known:
            raise fault(f"--prefer {name}: the import does not use {name}", expected=f"--with {name}")
        if name not in known:
            raise fault(f"--prefer: unknown variant '{name}'", hint=f"variants: {', '.join(sorted(known))}")


def _blocks(decision: Decision) -> list[str]:
    return [layer(operation.label) for operation in decision.program.operations if isinstance(operation, Striped)]


def _general_text(general: Decision, limit: int | None) -> str:
    """Return the line about processors without a class."""
    beyond = ", more than --max-ram" if limit is not None and general.memory > limit else ""
    blocks = _blocks(general)
    striped = f"; layers {'; '.join(blocks)}" if blocks else ""
    return f"all other processors: portable C, {general.memory:,} bytes of memory{beyond}{striped}"
