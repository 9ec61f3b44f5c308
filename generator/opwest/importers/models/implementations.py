# SPDX-License-Identifier: Apache-2.0
"""The operators of a program for each class of processors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from opwest.diagnostics import OpwestError
from opwest.importers.faults import fault
from opwest.importers.models.choice.arena import arena
from opwest.importers.models.choice.block import Layouts
from opwest.importers.models.choice.choose import FLASH, RAM, SPEED, Choice, choose
from opwest.importers.models.choice.limit import default_limit
from opwest.importers.models.choice.memory import arena_of, within
from opwest.importers.models.choice.report import layer, table_text
from opwest.importers.models.choice.segments import Segments
from opwest.importers.models.choice.table import Table
from opwest.importers.models.choice.tables import Tables, read_tables
from opwest.importers.models.emit.emit import emit_program
from opwest.importers.models.emit.registry import PROCESSORS, VARIANTS
from opwest.importers.models.ir.program import Operation, Program
from opwest.importers.models.ir.stripes import Striped
from opwest.importers.models.manifest import Implementation
from opwest.importers.models.names import name_values
from opwest.importers.models.processors import Processor, processors
from opwest.importers.models.request import UNLIMITED, Options

STRIPED = ("auto", "portable")
"""The values of --kernels with which layers can be in stripes."""
PORTABLE_CORE = "rv32"
"""The core whose costs decide for processors without a class."""


def implementations(
    program: Program, heading: str, options: Options
) -> tuple[Implementation, Sequence[Implementation], str]:
    """Return the base, the implementations that differ from it, and the table of the choices. Raises OpwestError."""
    _check_preferred(options.prefer)
    measurements = read_tables(map(Path, options.tuning))
    layouts = Layouts(program)
    base_program = _portable(program, layouts, options, measurements) if options.kernels in STRIPED else program
    is_auto = options.kernels == "auto"
    emitted = emit_program(base_program, heading, "portable" if is_auto else options.kernels)
    base = Implementation(emitted, name_values(base_program, emitted))
    found, tables = [], []
    for processor in processors() if is_auto else ():
        own, choice = chosen(program, layouts, processor, options, measurements)
        if all(row.variant == "portable" for row in choice.rows):
            continue
        emitted = emit_program(own, heading, choice.variants)
        found.append(Implementation(emitted, name_values(own, emitted), processor))
        size = arena(own, emitted, options.caller_memory).plan.size
        tables.append(table_text(processor.name, core_of(processor, measurements), choice, size))
    if options.kernels in STRIPED and (options.max_ram is not None or base_program is not program):
        tables.append(_portable_text(base_program, base, options))
    return base, found, "\n".join(tables)


def _portable(program: Program, layouts: Layouts, options: Options, measurements: Tables) -> Program:
    """Return the program of the base: with layers in stripes for the least memory, or where a limit requires it."""
    table, limit = measurements.of(PORTABLE_CORE), options.max_ram
    choice = choose(program, "", table)
    assert choice is not None
    size = arena_of(program, choice, options.caller_memory)
    is_within = limit is not None and size <= limit
    if options.optimize != RAM and (limit is None or is_within):
        return program
    segments = Segments(program, layouts, "", table, options.caller_memory)
    best = program
    for bound in _bounds(segments.least, None if options.optimize == RAM else limit):
        divided = segments.within(bound)
        made = choose(divided, "", table) if divided is not None else None
        if divided is None or made is None:
            continue
        found = arena_of(divided, made, options.caller_memory)
        if found < size:
            best, size = divided, found
        if limit is not None and found <= limit and options.optimize != RAM:
            return divided
    return best


def _portable_text(program: Program, base: Implementation, options: Options) -> str:
    size = arena(program, base.emitted, options.caller_memory).plan.size
    beyond = ", more than --max-ram" if options.max_ram is not None and size > options.max_ram else ""
    blocks = [layer(one.label) for one in program.operations if isinstance(one, Striped)]
    striped = f", layers {'; '.join(blocks)}" if blocks else ""
    return f"all other processors: portable C, {size:,} bytes of memory{beyond}{striped}"


def _bounds(least: int, limit: int | None) -> Sequence[int]:
    """Return the bytes of segments to try: plans can have gaps, so less than a limit too."""
    if limit is None or limit <= least:
        return (least,)
    return tuple(dict.fromkeys(least + (limit - least) * part // 4 for part in (4, 3, 2, 1, 0)))


def _check_preferred(names: Sequence[str]) -> None:
    """Raise OpwestError for a variant that no operator has."""
    known = {one.name for some in VARIANTS.values() for one in some if one.name.split("-")[0] in PROCESSORS}
    for name in names:
        if name not in known:
            raise fault(f"--prefer: unknown variant '{name}'", hint=f"variants: {', '.join(sorted(known))}")


def core_of(processor: Processor, measurements: Tables) -> str:
    """Return the core whose costs decide for a class of processors."""
    return measurements.classes.get(processor.name, processor.core)


def chosen(
    program: Program, layouts: Layouts, processor: Processor, options: Options, measurements: Tables
) -> tuple[Program, Choice]:
    """Return the program for a class of processors, with blocks in stripes if memory requires them, and its variants.

    Raises OpwestError.
    """
    table = measurements.of(core_of(processor, measurements))
    chooser = _Chooser(processor.name, layouts, table, options)
    is_default = options.max_flash is None and options.optimize == SPEED
    limit = default_limit(program) if is_default else options.max_flash
    flash = None if limit == UNLIMITED else limit
    found = chooser.fitting(program, flash)
    least = chooser.best(program, FLASH, None)
    if found is None and least is not None and is_default:
        # Without a limit of the user, a model with much code gets the least flash that is possible.
        flash = least.flash
        found = chooser.fitting(program, flash)
        if found is None:
            flash = None
            found = chooser.fitting(program, flash)
    if found is not None and options.optimize != RAM:
        return program, found
    striped = chooser.striped(program, flash)
    if striped is None and is_default:
        striped = chooser.striped(program, None)
    pairs = [one for one in (None if found is None else (program, found), striped) if one is not None]
    if not pairs:
        raise _unfit(program, processor, options, chooser)
    return min(pairs, key=lambda one: arena_of(one[0], one[1], options.caller_memory))


class _Chooser:
    """The choices for a class of processors."""

    def __init__(self, processor: str, layouts: Layouts, table: Table, options: Options) -> None:
        self.processor, self.layouts, self.table, self.options = processor, layouts, table, options

    def best(
        self, program: Program, objective: str, flash: int | None, scratch: Mapping[Operation, int] | None = None
    ) -> Choice | None:
        """Return the best choice within limits of flash and of the scratch memory of operations."""
        return choose(program, self.processor, self.table, objective, flash, scratch, self.options.prefer)

    def fitting(self, program: Program, flash: int | None) -> Choice | None:
        """Return the best choice within the limits of flash and memory."""
        memory, caller = self.options.max_ram, self.options.caller_memory
        if self.options.optimize == RAM:
            # The least scratch memory is not the least memory if fewer results replace their data.
            some = (self.best(program, one, flash) for one in (RAM, FLASH, SPEED))
            found = [one for one in some if one is not None]
            sizes = [arena_of(program, one, caller) for one in found]
            if not found or (memory is not None and min(sizes) > memory):
                return None
            least = found[sizes.index(min(sizes))]
            # The fastest variants that need no more memory.
            fastest = within(program, lambda scratch: self.best(program, SPEED, flash, scratch), min(sizes), caller)
            return fastest if fastest is not None and fastest.cycles < least.cycles else least
        objective = self.options.optimize
        if memory is None:
            return self.best(program, objective, flash)
        return within(program, lambda scratch: self.best(program, objective, flash, scratch), memory, caller)

    def striped(self, program: Program, flash: int | None) -> tuple[Program, Choice] | None:
        """Return the program with blocks in stripes and its variants: the least memory, or within the limit."""
        options = self.options
        limit = None if options.optimize == RAM else options.max_ram
        segments = self.segments(program)
        for bound in _bounds(segments.least, limit):
            divided = segments.within(bound)
            found = None if divided is None else self.fitting(divided, flash)
            if divided is not None and found is not None:
                return divided, found
        return None

    def segments(self, program: Program) -> Segments:
        """Return the divisions of a program into blocks."""
        options = self.options
        return Segments(program, self.layouts, self.processor, self.table, options.caller_memory, options.prefer)


def _unfit(program: Program, processor: Processor, options: Options, chooser: _Chooser) -> OpwestError:
    """Return the error of limits that no choice keeps, with the least limits."""
    given = [("--max-flash", options.max_flash), ("--max-ram", options.max_ram)]
    limits = " ".join(f"{name} {value}" for name, value in given if value not in (None, UNLIMITED))
    segments = chooser.segments(program)
    programs = [one for one in (program, segments.within(segments.least)) if one is not None]
    found = [(one, chooser.best(one, objective, None)) for one in programs for objective in (FLASH, RAM)]
    least = [(one, choice) for one, choice in found if choice is not None]
    expected = []
    if options.max_flash is not None:
        expected.append(f"--max-flash of at least {min(choice.flash for _, choice in least)} bytes")
    if options.max_ram is not None:
        size = min(arena_of(one, choice, options.caller_memory) for one, choice in least)
        expected.append(f"--max-ram of at least {size} bytes")
    return fault(f"{limits}: no choice of operators for {processor.name} fits", expected=" and ".join(expected))
