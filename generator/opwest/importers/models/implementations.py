# SPDX-License-Identifier: Apache-2.0
"""The operators of a program for each class of processors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from opwest.diagnostics import OpwestError
from opwest.importers.faults import fault
from opwest.importers.models.choice.arena import arena
from opwest.importers.models.choice.choose import FLASH, RAM, SPEED, WORTH, Choice, choose
from opwest.importers.models.choice.joins import Needs, joined_in_place
from opwest.importers.models.choice.limit import default_limit
from opwest.importers.models.choice.memory import arena_of, within
from opwest.importers.models.choice.report import table_text
from opwest.importers.models.choice.table import Table
from opwest.importers.models.choice.tables import Tables, read_tables
from opwest.importers.models.emit.emit import emit_program
from opwest.importers.models.emit.registry import PROCESSORS, VARIANTS
from opwest.importers.models.ir.program import Operation, Program
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
    # Stores between other channels are as fast as others for the portable variants; CMSIS-NN has none.
    is_portable = is_auto or options.kernels == "portable"
    general = joined_in_place(program, caller_memory=options.caller_memory) if is_portable else program
    emitted = emit_program(general, heading, "portable" if is_auto else options.kernels)
    base = Implementation(emitted, name_values(general, emitted))
    if not is_auto:
        return base, (), ""
    measurements = read_tables(map(Path, options.tuning))
    found, tables = [], []
    for processor in processors():
        own, choice = chosen(program, processor, options, measurements)
        if all(row.variant == "portable" for row in choice.rows):
            continue
        emitted = emit_program(own, heading, choice.variants)
        found.append(Implementation(emitted, name_values(own, emitted), processor))
        size = arena(own, emitted, options.caller_memory).plan.size
        tables.append(table_text(processor.name, core_of(processor, measurements), choice, size))
    if options.max_ram is not None:
        size = arena(general, base.emitted, options.caller_memory).plan.size
        beyond = ", more than --max-ram" if size > options.max_ram else ""
        tables.append(f"all other processors: portable C, {size:,} bytes of memory{beyond}")
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


def chosen(program: Program, processor: Processor, options: Options, measurements: Tables) -> tuple[Program, Choice]:
    """Return the program of a class of processors, and its variants. Raises OpwestError.

    Concatenations of channels are in place where that saves time. For the least flash or memory, or a limit of
    memory, all that can be are in place, or none, if that is better.
    """
    table, memory = measurements.of(core_of(processor, measurements)), options.caller_memory
    fast = joined_in_place(program, Needs(processor.name, table), caller_memory=memory)
    ways = [fast, program]
    if options.optimize != SPEED or options.max_ram is not None:
        ways.append(joined_in_place(program, caller_memory=memory))
    found, faults = [], []
    for one in dict.fromkeys(ways):
        try:
            found.append((one, _chosen(one, processor, options, table)))
        except OpwestError as error:
            faults.append(error)
    if not found:
        raise faults[0]
    if options.optimize == FLASH:
        return min(found, key=lambda one: (one[1].flash, one[1].cycles))
    if options.optimize == RAM:
        return min(found, key=lambda one: (arena_of(one[0], one[1], memory), one[1].cycles))
    # Layers that write at different distances share less code.
    return min(found, key=lambda one: one[1].cycles + one[1].flash / WORTH)


def _chosen(program: Program, processor: Processor, options: Options, table: Table) -> Choice:
    """Return the variants of a program for a class of processors. Raises OpwestError."""

    def best(objective: str, flash: int | None, scratch: Mapping[Operation, int] | None = None) -> Choice | None:
        return choose(program, processor.name, table, objective, flash, scratch, options.prefer)

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
