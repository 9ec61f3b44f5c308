# SPDX-License-Identifier: Apache-2.0
"""The operators of a program for each class of processors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from opwest.diagnostics import OpwestError
from opwest.importers.faults import fault
from opwest.importers.models.choice.arena import arena
from opwest.importers.models.choice.choose import FLASH, RAM, SPEED, Choice, choose
from opwest.importers.models.choice.limit import default_limit
from opwest.importers.models.choice.memory import arena_of, within
from opwest.importers.models.choice.report import table_text
from opwest.importers.models.choice.tables import Tables, read_tables
from opwest.importers.models.emit.emit import emit_program
from opwest.importers.models.emit.registry import PROCESSORS, VARIANTS, library_variant
from opwest.importers.models.ir.program import Operation, Program
from opwest.importers.models.manifest import Implementation
from opwest.importers.models.names import name_values
from opwest.importers.models.processors import Processor, processors
from opwest.importers.models.request import LIBRARIES, UNLIMITED, Options


def implementations(
    program: Program, heading: str, options: Options
) -> tuple[Implementation, Sequence[Implementation], str]:
    """Return the base, the implementations that differ from it, and the table of the choices. Raises OpwestError."""
    is_auto = options.kernels == "auto"
    _check_candidates(options)
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
        size = arena(program, emitted, options.caller_memory).plan.size
        tables.append(table_text(processor.name, core_of(processor, measurements), choice, size))
    if options.max_ram is not None:
        size = arena(program, base.emitted, options.caller_memory).plan.size
        beyond = ", more than --max-ram" if size > options.max_ram else ""
        tables.append(f"all other processors: portable C, {size:,} bytes of memory{beyond}")
    return base, found, "\n".join(tables)


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


def core_of(processor: Processor, measurements: Tables) -> str:
    """Return the core whose costs decide for a class of processors."""
    return measurements.classes.get(processor.name, processor.core)


def chosen(program: Program, processor: Processor, options: Options, measurements: Tables) -> Choice:
    """Return the variants of a program for a class of processors. Raises OpwestError."""
    table = measurements.of(core_of(processor, measurements))
    prefer = [library_variant(one, processor.name) if one in LIBRARIES else one for one in options.prefer]

    def best(objective: str, flash: int | None, scratch: Mapping[Operation, int] | None = None) -> Choice | None:
        return choose(program, processor.name, table, objective, flash, scratch, prefer, options.libraries)

    def fitting(objective: str, flash: int | None) -> Choice | None:
        """Return the best choice within the limits of flash and memory."""
        memory = options.max_ram
        if objective == RAM:
            # The least scratch memory is not the least memory if fewer results replace their data.
            found = [one for one in (best(RAM, flash), best(FLASH, flash), best(SPEED, flash)) if one is not None]
            sizes = [arena_of(program, one, options.caller_memory) for one in found]
            if not found or (memory is not None and min(sizes) > memory):
                return None
            least = found[sizes.index(min(sizes))]
            # The fastest variants that need no more memory.
            fastest = within(program, lambda scratch: best(SPEED, flash, scratch), min(sizes), options.caller_memory)
            return fastest if fastest is not None and fastest.cycles < least.cycles else least
        if memory is None:
            return best(objective, flash)
        return within(program, lambda scratch: best(objective, flash, scratch), memory, options.caller_memory)

    is_default = options.max_flash is None and options.optimize == SPEED
    limit = default_limit(program) if is_default else options.max_flash
    found = fitting(options.optimize, None if limit == UNLIMITED else limit)
    least = best(FLASH, None)
    if found is None and least is not None and is_default:
        # Without a limit of the user, a model with much code gets the least flash that is possible.
        found = fitting(options.optimize, least.flash) or fitting(options.optimize, None)
    if found is None:
        raise _unfit(program, processor, options, [one for one in (least, best(RAM, None)) if one is not None])
    return found


def _unfit(program: Program, processor: Processor, options: Options, least: Sequence[Choice]) -> OpwestError:
    """Return the error of limits that no choice keeps; `least`: the choices with the least flash and scratch memory."""
    given = [("--max-flash", options.max_flash), ("--max-ram", options.max_ram)]
    limits = " ".join(f"{name} {value}" for name, value in given if value not in (None, UNLIMITED))
    expected = []
    if options.max_flash is not None and least:
        expected.append(f"--max-flash of at least {min(one.flash for one in least)} bytes")
    if options.max_ram is not None and least:
        size = min(arena_of(program, one, options.caller_memory) for one in least)
        expected.append(f"--max-ram of at least {size} bytes")
    return fault(f"{limits}: no choice of operators for {processor.name} fits", expected=" and ".join(expected))
