# SPDX-License-Identifier: Apache-2.0
"""The operators of a program for each class of processors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from opwest.importers.faults import fault
from opwest.importers.models.choice.choose import Choice, choose
from opwest.importers.models.choice.limit import default_limit
from opwest.importers.models.choice.report import table_text
from opwest.importers.models.choice.tables import Tables, read_tables
from opwest.importers.models.emit.emit import emit_program
from opwest.importers.models.emit.registry import PROCESSORS, VARIANTS
from opwest.importers.models.ir.program import Program
from opwest.importers.models.manifest import Implementation
from opwest.importers.models.names import name_values
from opwest.importers.models.processors import Processor, processors
from opwest.importers.models.request import UNLIMITED, Options


def implementations(
    program: Program, heading: str, options: Options
) -> tuple[Implementation, Sequence[Implementation], str]:
    """Return the base, the implementations that differ from it, and the table of the choices. Raises OpwestError."""
    is_auto = options.kernels == "auto"
    _check_preferred(options.prefer)
    emitted = emit_program(program, heading, "portable" if is_auto else options.kernels)
    base = Implementation(emitted, name_values(program, emitted))
    if not is_auto:
        return base, (), ""
    measurements = read_tables(map(Path, options.tuning))
    found, tables = [], []
    for processor in processors():
        choice = chosen(program, processor, options, measurements)
        if all(row.variant == "portable" for row in choice.rows):
            continue
        emitted = emit_program(program, heading, choice.variants)
        found.append(Implementation(emitted, name_values(program, emitted), processor))
        tables.append(table_text(processor.name, core_of(processor, measurements), choice))
    return base, found, "\n".join(tables)


def _check_preferred(names: Sequence[str]) -> None:
    """Raise OpwestError for a variant that no operator has."""
    known = {one.name for some in VARIANTS.values() for one in some if one.name.split("-")[0] in PROCESSORS}
    for name in names:
        if name not in known:
            raise fault(f"--prefer: unknown variant '{name}'", hint=f"variants: {', '.join(sorted(known))}")


def core_of(processor: Processor, measurements: Tables) -> str:
    """Return the core whose costs decide for a class of processors."""
    return measurements.classes.get(processor.name, processor.core)


def chosen(program: Program, processor: Processor, options: Options, measurements: Tables) -> Choice:
    """Return the variants of a program for a class of processors. Raises OpwestError."""
    table = measurements.of(core_of(processor, measurements))

    def best(objective: str, limit: int | None) -> Choice | None:
        return choose(program, processor.name, table, objective, limit, prefer=options.prefer)

    is_default = options.max_flash is None and options.optimize == "speed"
    limit = default_limit(program) if is_default else options.max_flash
    found = best(options.optimize, None if limit == UNLIMITED else limit)
    if found is None:
        least = best("flash", None)
        if least is not None and is_default:
            # Without a limit of the user, a model with much code gets the least flash that is possible.
            found = best(options.optimize, least.flash)
        if found is None:
            raise fault(
                f"--max-flash {options.max_flash}: no choice of operators for {processor.name} fits",
                expected=None if least is None else f"at least {least.flash} bytes",
            )
    return found
