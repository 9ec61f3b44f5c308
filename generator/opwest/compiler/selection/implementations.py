# SPDX-License-Identifier: Apache-2.0
"""The operators of a program for each class of processors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from opwest.compiler.emission.registry import PROCESSORS, VARIANTS
from opwest.compiler.faults import fault
from opwest.compiler.ir.program import Operation, Program
from opwest.compiler.ir.stripes import Striped
from opwest.compiler.output.emit import emit_program
from opwest.compiler.output.manifest import Implementation, name_values
from opwest.compiler.processors import Processor, processors
from opwest.compiler.request import LIBRARIES, Options
from opwest.compiler.selection.block import Layouts
from opwest.compiler.selection.decide import Decision, core_of, decided, decided_without_class
from opwest.compiler.selection.report import layer, table_text
from opwest.compiler.selection.tuning_files import read_tables


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
    found, tables = [], []
    for processor in processors() if options.kernels == "auto" else ():
        one = decided(program, layouts, processor, options, measurements)
        if all(row.variant == "portable" for row in one.choice.rows):
            continue
        found.append(_implementation(one.program, one.choice.variants, heading, processor))
        tables.append(table_text(processor.name, core_of(processor, measurements), one.choice, one.memory))
    if options.max_ram is not None or _blocks(general):
        tables.append(_general_text(general, options.max_ram))
    return base, found, "\n".join(tables)


def _implementation(
    program: Program, preferred: str | Mapping[Operation, str], heading: str, processor: Processor | None = None
) -> Implementation:
    emitted = emit_program(program, heading, preferred)
    return Implementation(emitted, name_values(program, emitted), processor, program=program)


def _check_candidates(options: Options) -> None:
    """Raise OpwestError for a variant that no operator has, and for libraries that the options exclude."""
    if options.libraries and options.kernels != "auto":
        given = f"--with {options.libraries[0]} and --kernels {options.kernels}"
        raise fault(f"{given}: the second one chooses no variants", expected="one of them")
    known = {one.name for some in VARIANTS.values() for one in some if one.name.split("-")[0] in PROCESSORS}
    known.update(options.libraries)
    for name in options.prefer:
        if name in LIBRARIES and name not in known:
            raise fault(f"--prefer {name}: the import does not use {name}", expected=f"--with {name}")
        if name not in known:
            raise fault(f"--prefer: unknown variant '{name}'", hint=f"variants: {', '.join(sorted(known))}")


def _blocks(decision: Decision) -> list[str]:
    return [layer(one.label) for one in decision.program.operations if isinstance(one, Striped)]


def _general_text(general: Decision, limit: int | None) -> str:
    """Return the line about processors without a class."""
    beyond = ", more than --max-ram" if limit is not None and general.memory > limit else ""
    blocks = _blocks(general)
    striped = f"; layers {'; '.join(blocks)}" if blocks else ""
    return f"all other processors: portable C, {general.memory:,} bytes of memory{beyond}{striped}"
