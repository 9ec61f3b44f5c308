# SPDX-License-Identifier: Apache-2.0
"""The operators of a program for each class of processors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from opwest.importers.faults import fault
from opwest.importers.models.choice.choose import Choice, choose
from opwest.importers.models.choice.report import table_text
from opwest.importers.models.choice.table import read_table
from opwest.importers.models.emit.emit import emit_program
from opwest.importers.models.ir.program import Program
from opwest.importers.models.manifest import Implementation
from opwest.importers.models.names import name_values
from opwest.importers.models.processors import Processor, processors
from opwest.importers.models.request import Options


def implementations(
    program: Program, heading: str, options: Options
) -> tuple[Implementation, Sequence[Implementation], str]:
    """Return the base, the implementations that differ from it, and the table of the choices. Raises OpwestError."""
    is_auto = options.kernels == "auto"
    emitted = emit_program(program, heading, "portable" if is_auto else options.kernels)
    base = Implementation(emitted, name_values(program, emitted))
    if not is_auto:
        return base, (), ""
    found, tables = [], []
    for processor in processors():
        choice = _choice(program, processor, options)
        if all(row.variant == "portable" for row in choice.rows):
            continue
        emitted = emit_program(program, heading, choice.variants)
        found.append(Implementation(emitted, name_values(program, emitted), processor))
        tables.append(table_text(processor, choice))
    return base, found, "\n".join(tables)


def _choice(program: Program, processor: Processor, options: Options) -> Choice:
    table = read_table(processor.core, map(Path, options.tuning))
    found = choose(program, processor.name, table, options.optimize, options.max_flash)
    if found is None:
        least = choose(program, processor.name, table, "flash")
        bytes_ = "" if least is None else f"at least {least.flash} bytes"
        raise fault(
            f"--max-flash {options.max_flash}: no choice of operators for {processor.name} fits",
            expected=bytes_ or None,
        )
    return found
