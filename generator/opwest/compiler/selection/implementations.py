# SPDX-License-Identifier: Apache-2.0
"""Decide on the program and the variants for each class of processors, within the limits of an import.

The operations of a program are the same for all processors but for two decisions: which concatenations are written in
place (`joins.py`), and which layers are computed in stripes (`segments.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from opwest.base.diagnostics import OpwestError
from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import table_lines
from opwest.compiler.emission.function import PROCESSORS, VARIANTS
from opwest.compiler.faults import fault
from opwest.compiler.ir.labels import layer
from opwest.compiler.ir.operations import Convolution, Depthwise, UserCall
from opwest.compiler.ir.program import Operation, Program
from opwest.compiler.ir.stripes import Striped
from opwest.compiler.output.emit import candidates, emit_program, library_variant
from opwest.compiler.output.manifest import Implementation, name_values
from opwest.compiler.processors import ProcessorClass, processor_classes
from opwest.compiler.request import LIBRARIES, UNLIMITED, Options
from opwest.compiler.selection.arena import arena_of, within
from opwest.compiler.selection.choose import FLASH, RAM, SPEED, WORTH, Choice, Limits, choose, constant_bytes
from opwest.compiler.selection.costs import Table, kind_of
from opwest.compiler.selection.float_costs import float_remark
from opwest.compiler.selection.joins import Needs, joined_in_place
from opwest.compiler.selection.segments import Segments
from opwest.compiler.selection.tuning_files import Tables, read_tables
from opwest.objects.flash import NONE, UNKNOWN, Flash

ROOM = 36 << 10
"""The bytes for the code of operators and for packed constants.

An interpreter with its kernels needs as much: images of tflite-micro with CMSIS-NN have 74 to 77 kB of flash besides
the file of the model, images of opwest 37 kB besides the operators (mps2/an385, newlib).
"""
CONVOLUTION_ROOM = 40 << 10
"""The additional bytes for models with convolutions; these images of tflite-micro have 115 to 121 kB."""


def default_limit(program: Program) -> int:
    """Return the bytes of constants and code that the variants of a program may have."""
    is_convolutional = any(
        isinstance(operation, Depthwise) or (isinstance(operation, Convolution) and kind_of(operation) != "dense")
        for operation in program.operations
    )
    constants = sum(constant_bytes(candidates(operation, "")["portable"]) for operation in program.operations)
    return constants + ROOM + (CONVOLUTION_ROOM if is_convolutional else 0)


PORTABLE_CORE = "rv32"
"""The core whose costs decide for processors without a class."""


@dataclass(frozen=True, eq=False)
class Decision:
    """A program for a class of processors, and its variants."""

    program: Program
    choice: Choice
    memory: int
    """The bytes of the plan."""


def core_of(processor: ProcessorClass, measurements: Tables) -> str:
    """Return the core whose costs decide for a class of processors."""
    return measurements.classes.get(processor.name, processor.core)


def flash_of_class(processor: str, options: Options) -> Flash:
    """Return the flash of the costs for a class of processors.

    Without a given flash, the code of processors with the vector extension is in tightly coupled memory or behind
    their own caches; other processors have the flash of an unknown board. The portable operators have no alternatives.
    """
    return options.flash if options.given_flash is not None or processor in ("mla", "dsp") else NONE


def decided(program: Program, processor: ProcessorClass, options: Options, measurements: Tables) -> Decision:
    """Return the decision for a class of processors. Raises OpwestError.

    Concatenations of channels are in place where that saves time. For the least flash or memory, or a limit of memory,
    all that can be are in place, or none, if that is better. Layers are in stripes for the least memory, and where a
    limit of memory requires it.
    """
    table = measurements.of(core_of(processor, measurements)).at(flash_of_class(processor.name, options))
    ways = [_joined(program, options, Needs(processor.name, table)), program]
    if options.optimize != SPEED or options.max_ram is not None:
        ways.append(_joined(program, options))
    ways = list(dict.fromkeys(ways))
    chooser = _Chooser(processor.name, table, options, default_limit(program))
    decisions = [decision for decision in map(chooser.plain, ways) if decision is not None]
    if not decisions or options.optimize == RAM:
        decisions += [decision for decision in map(chooser.striped, ways) if decision is not None]
    if not decisions:
        raise _unfit(ways, processor, options, chooser)
    if options.optimize == FLASH:
        return min(decisions, key=lambda decision: (decision.choice.flash, decision.choice.cycles))
    if options.optimize == RAM:
        return min(decisions, key=lambda decision: (decision.memory, decision.choice.cycles))
    # Layers that write at different distances share less code.
    return min(decisions, key=lambda decision: decision.choice.cycles + decision.choice.flash / WORTH)


def decided_without_class(program: Program, options: Options, measurements: Tables) -> Decision:
    """Return the decision for processors without a class, whose operators are portable.

    A limit of memory can be exceeded: hosts have no limit.
    """
    table = measurements.of(PORTABLE_CORE)
    # Stores between other channels are as fast as others.
    joined = _joined(program, options)
    chooser = _Chooser("", table, options, None)
    plain = chooser.portable(joined)
    limit = options.max_ram
    if options.optimize != RAM and (limit is None or plain.memory <= limit):
        return plain
    decisions = [plain]
    for division in chooser.divisions(joined):
        decisions.append(chooser.portable(division))
        if limit is not None and decisions[-1].memory <= limit and options.optimize != RAM:
            return decisions[-1]
    return min(decisions, key=lambda decision: decision.memory)


def _joined(program: Program, options: Options, needs: Needs | None = None) -> Program:
    """Return the program with concatenations in place."""
    return joined_in_place(program, needs, caller_memory=options.caller_memory) if options.optimisations else program


class _Chooser:
    """The choices for a class of processors."""

    def __init__(self, processor: str, table: Table, options: Options, default_flash: int | None) -> None:
        """`default_flash`: the limit of flash without one of the user."""
        self.processor, self.table, self.options = processor, table, options
        self.default_flash = default_flash
        self.prefer = [library_variant(name, processor) if name in LIBRARIES else name for name in options.prefer]

    def portable(self, program: Program) -> Decision:
        """Return the decision for portable operators."""
        choice = choose(program, "", self.table)
        assert choice is not None
        return Decision(program, choice, arena_of(program, choice, self.options.caller_memory))

    def plain(self, program: Program) -> Decision | None:
        """Return the best choice for a program within the limits."""
        options = self.options
        is_default = options.max_flash is None and options.optimize == SPEED
        limit = self.default_flash if is_default else options.max_flash
        decision = self._fitting(program, None if limit == UNLIMITED else limit)
        if decision is None and is_default:
            # Without a limit of the user, a model with much code gets the least flash that is possible.
            least = self.best(program, FLASH, None)
            decision = self._fitting(program, None if least is None else least.flash) or self._fitting(program, None)
        return decision

    def striped(self, program: Program) -> Decision | None:
        """Return the best choice for a program with layers in stripes: for the least memory, or within the limit."""
        return next(
            (decision for division in self.divisions(program) if (decision := self.plain(division)) is not None), None
        )

    def divisions(self, program: Program) -> Sequence[Program]:
        """Return programs with layers in stripes, the fastest first, down to the one with the least memory.

        Plans can have gaps, so the bytes of segments are limited to less than the memory, too.
        """
        options = self.options
        if not options.optimisations:
            return ()
        segments = Segments(program, self.processor, self.table, options.caller_memory, self.prefer)
        least, limit = segments.least, None if options.optimize == RAM else options.max_ram
        room = max(0, (least if limit is None else limit) - least)
        bounds = dict.fromkeys(least + room * part // 4 for part in (4, 3, 2, 1, 0))
        return [division for division in map(segments.within, bounds) if division is not None]

    def best(
        self, program: Program, objective: str, flash: int | None, scratch: Mapping[Operation, int] | None = None
    ) -> Choice | None:
        """Return the best choice within limits of flash and of the scratch memory of operations."""
        options = self.options
        # Below the default, the flash of the choice with the least is a limit, so that one of memory can be kept.
        is_reduced = flash not in (None, self.default_flash) and options.max_ram is not None
        default = "--max-ram" if is_reduced else "the default --max-flash"
        limits = Limits(
            default if options.max_flash is None else "--max-flash",
            "--optimize ram" if options.max_ram is None else "--max-ram",
            options.optimize,
        )
        return choose(
            program, self.processor, self.table, objective, flash, scratch, self.prefer, options.libraries, limits
        )

    def _fitting(self, program: Program, flash: int | None) -> Decision | None:
        """Return the best choice within limits of flash and memory."""
        memory, objective = self.options.max_ram, self.options.optimize
        if objective != RAM:
            if memory is not None:
                return self._within(program, objective, flash, memory)
            return self._planned(program, self.best(program, objective, flash))
        # The least scratch memory is not the least memory if fewer results replace their data.
        planned = (self._planned(program, self.best(program, aim, flash)) for aim in (RAM, FLASH, SPEED))
        decisions = [decision for decision in planned if decision is not None]
        least = min(decisions, key=lambda decision: decision.memory, default=None)
        if least is None or (memory is not None and least.memory > memory):
            return None
        # The fastest variants that need no more memory.
        fastest = self._within(program, SPEED, flash, least.memory)
        return fastest if fastest is not None and fastest.choice.cycles < least.choice.cycles else least

    def _within(self, program: Program, objective: str, flash: int | None, memory: int) -> Decision | None:
        """Return the best choice that the search finds within limits of flash and memory."""
        caller = self.options.caller_memory
        choice = within(program, lambda scratch: self.best(program, objective, flash, scratch), memory, caller)
        return self._planned(program, choice)

    def _planned(self, program: Program, choice: Choice | None) -> Decision | None:
        if choice is None:
            return None
        return Decision(program, choice, arena_of(program, choice, self.options.caller_memory))


def _unfit(programs: Sequence[Program], processor: ProcessorClass, options: Options, chooser: _Chooser) -> OpwestError:
    """Return the error of limits that no choice keeps, with the least limits."""
    given = [("--max-flash", options.max_flash), ("--max-ram", options.max_ram)]
    limits = " ".join(f"{name} {value}" for name, value in given if value not in (None, UNLIMITED))
    some = [*programs, *(last for program in programs for last in chooser.divisions(program)[-1:])]
    choices = [
        (candidate, chooser.best(candidate, objective, None)) for candidate in some for objective in (FLASH, RAM)
    ]
    pairs = [(candidate, choice) for candidate, choice in choices if choice is not None]
    expected = []
    if options.max_flash is not None:
        expected.append(f"--max-flash of at least {min(choice.flash for _, choice in pairs)} bytes")
    if options.max_ram is not None:
        size = min(arena_of(candidate, choice, options.caller_memory) for candidate, choice in pairs)
        expected.append(f"--max-ram of at least {size} bytes")
    return fault(f"{limits}: no choice of operators for {processor.name} fits", expected=" and ".join(expected))


def table_text(processor: str, core: str, decision: Decision, flash: Flash, *, all_variants: bool = False) -> str:
    """Return the table of a class of processors with the costs for a flash; ends without a line end.

    Operators of the user are left out: their costs are unknown. `all_variants`: below each layer its other variants.
    """
    choice, memory = decision.choice, decision.memory
    own = [row for row in choice.rows if not isinstance(row.operation, UserCall)]
    heads = ("layer", "variant", "cycles", "flash", "scratch", "why")
    sums = (sum(row.cost.cycles for row in own), sum(row.flash for row in own), max(row.scratch for row in own))
    shown = [
        (label, item)
        for row in own
        for label, item in ((layer(row.operation.label), row), *(("", other) for other in row.others if all_variants))
    ]
    numbers = [
        *((label, row.variant, row.cost.cycles, row.flash, row.scratch, row.why) for label, row in shown),
        ("all", "", *sums, ""),
    ]
    stalls = sum(row.cost.stalls for row in own)
    rows = [
        (label, variant, f"{cycles:,.0f}", f"{size:,}", f"{scratch:,}", why)
        for label, variant, cycles, size, scratch, why in numbers
    ]
    # The cycles of a board contain its own stalls.
    if stalls and not any(row.cost.is_of_board for row in own):
        rows.append(("without wait states", "", f"{sums[0] - stalls:,.0f}", "", "", ""))
    lines = [f"{processor} ({_source(core, choice, flash)}; flash and scratch memory in bytes)"]
    lines += [f"  {line}" for line in table_lines([heads, *rows], range(2, 5))]
    lines.append(f"  {memory:,} bytes of RAM: tensors between layers, and scratch memory")
    if choice.gap:
        lines.append(f"  at most {choice.gap:.2%} above the least cycles")
    return "\n".join(lines)


def _source(core: str, choice: Choice, flash: Flash) -> str:
    """Return where the cycles of the rows are from."""
    shown = "the flash of an unknown board" if flash == UNKNOWN else f"flash {flash.text}"
    memory = f" with {shown}" if flash.wait_states else ""
    model = f"a model of a {core}{memory}, from instructions counted in QEMU: not of silicon"
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
        return _implementation(program, options.kernels, heading, options), (), ""
    measurements = read_tables(map(Path, options.tuning))
    general = decided_without_class(program, options, measurements)
    base = _implementation(general.program, "portable", heading, options)
    variants, tables, plain, choices = [], [], [], [(PORTABLE_CORE, general.choice)]
    for processor in processor_classes() if options.kernels == "auto" else ():
        decision = decided(program, processor, options, measurements)
        core = core_of(processor, measurements)
        choices.append((core, decision.choice))
        if all(row.variant == "portable" for row in decision.choice.rows):
            plain.append(processor.name)
            continue
        variants.append(_implementation(decision.program, decision.choice.variants, heading, options, processor))
        flash = flash_of_class(processor.name, options)
        tables.append(table_text(processor.name, core, decision, flash, all_variants=options.all_variants))
    if plain:
        tables.append(f"{', '.join(plain)}: the portable operators")
    if options.max_ram is not None or _blocks(general):
        tables.append(_general_text(general, options.max_ram))
    return base, variants, "\n".join(filter(None, (*tables, float_remark(choices, options))))


def _implementation(
    program: Program,
    preferred: str | Mapping[Operation, str],
    heading: str,
    options: Options,
    processor: ProcessorClass | None = None,
) -> Implementation:
    emitted = emit_program(program, heading, preferred, loop_bytes=options.flash.loop_bytes)
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
    return f"all other processors: portable C, {general.memory:,} bytes of RAM{beyond}{striped}"
