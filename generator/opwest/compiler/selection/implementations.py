# SPDX-License-Identifier: Apache-2.0
"""Decide on the program and the variants for each class of processors, within the limits of an import.

The operations of a program are the same for all processors but for two decisions: which concatenations are written in
place (`joins.py`), and which layers are computed in stripes (`segments.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from opwest.base.diagnostics import OpwestError
from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.function import PROCESSORS, VARIANTS, runs_everywhere
from opwest.compiler.faults import fault
from opwest.compiler.ir.labels import layer
from opwest.compiler.ir.operations import Convolution, Depthwise
from opwest.compiler.ir.program import Operation, Program
from opwest.compiler.ir.stripes import Striped
from opwest.compiler.output.emit import NIBBLES, candidates, emit_program, library_variant
from opwest.compiler.output.manifest import Implementation, name_values
from opwest.compiler.output.placement import placed_layers
from opwest.compiler.processors import ProcessorClass, processor_classes
from opwest.compiler.request import LIBRARIES, UNLIMITED, Options
from opwest.compiler.selection.arena import arena_of, within
from opwest.compiler.selection.choice_rows import choice_rows
from opwest.compiler.selection.choose import FLASH, RAM, SPEED, WORTH, Choice, Limits, choose, constant_bytes
from opwest.compiler.selection.costs import Table, kind_of
from opwest.compiler.selection.float_costs import float_remark
from opwest.compiler.selection.joins import Needs, joined_in_place
from opwest.compiler.selection.segments import Segments
from opwest.compiler.selection.tuning_files import Tables, read_tables
from opwest.objects.flash import NONE, Flash

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
BY_OTHER = f"by the costs of {PORTABLE_CORE}"
"""The reason for a variant on another core without a class."""
PORTABLE_CORES = (PORTABLE_CORE, "cortex-m0plus")
"""The cores without a class whose costs are known."""


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

    No variant is slower than the first one on the other core without a class. A limit of memory can be exceeded: hosts
    have no limit.
    """
    table, other = map(measurements.of, PORTABLE_CORES)
    # Stores between other channels are as fast as others.
    joined = _joined(program, options)
    chooser = _Chooser("", table, options, default_limit(program), other)
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

    def __init__(
        self, processor: str, table: Table, options: Options, default_flash: int | None, other: Table | None = None
    ) -> None:
        """`default_flash`: the limit of flash without one of the user. `other`: that of `choose`."""
        self.processor, self.table, self.options, self.other = processor, table, options, other
        self.default_flash = default_flash
        self.placed = placed_layers(options.place)
        self.prefer = [library_variant(name, processor) if name in LIBRARIES else name for name in options.prefer]

    def portable(self, program: Program) -> Decision:
        """Return the decision for portable operators: within the limit of flash if that is possible.

        The preferred variants apart, its plan has no more bytes than that of the plain portable operators.
        """
        options = self.options
        limit = self.default_flash if options.max_flash is None else options.max_flash
        limit = None if limit == UNLIMITED else limit

        def best(scratch: Mapping[Operation, int] | None) -> Choice | None:
            return self.best(program, options.optimize, limit, scratch) or self.best(program, FLASH, None, scratch)

        decision = self._planned(program, best(None))
        assert decision is not None
        names = {operation: self._plain(operation) for operation in program.operations}
        if decision.choice.variants == names:
            return decision
        plain = self._planned(program, choose(program, "", self.table, given=names))
        assert plain is not None
        if decision.memory <= plain.memory:
            return decision
        return self._planned(program, within(program, best, plain.memory, options.caller_memory)) or plain

    def _plain(self, operation: Operation) -> str:
        """Return the variant of an operation: a preferred one, that of packed weights, or the first one."""
        named = candidates(operation, "")
        return next((name for name in (*self.prefer, f"portable{NIBBLES}") if name in named), next(iter(named)))

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
            program,
            self.processor,
            self.table,
            objective,
            flash,
            scratch,
            self.prefer,
            options.libraries,
            limits,
            other=self.other,
            placed=self.placed,
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


def implementations(
    program: Program, heading: str, options: Options
) -> tuple[Implementation, Sequence[Implementation], dict[str, Any]]:
    """Return the base, the implementations that differ from it, and the choices as JSON values. Raises OpwestError."""
    _check_candidates(options)
    measurements = read_tables(map(Path, options.tuning))
    selected = next((some for some in processor_classes() if some.name == options.kernels), None)
    if selected is not None:
        decision = decided(program, selected, options, measurements)
        return _implementation(decision.program, decision.choice.variants, heading, options), (), {}
    if options.kernels not in ("auto", "portable"):
        return _implementation(program, options.kernels, heading, options), (), {}
    general = decided_without_class(program, options, measurements)
    base = _implementation(general.program, general.choice.variants, heading, options)
    variants, rows, plain, choices = [], [], [], [(PORTABLE_CORE, general.choice)]
    cores = dict.fromkeys(PORTABLE_CORES, NONE)
    for processor in processor_classes() if options.kernels == "auto" else ():
        if not processor.targets:
            continue
        decision = decided(program, processor, options, measurements)
        core = core_of(processor, measurements)
        choices.append((core, decision.choice))
        if _equal(decision.choice, general.choice):
            plain.append(processor.name)
            cores[core] = flash_of_class(processor.name, options)
            continue
        flash = flash_of_class(processor.name, options)
        rows.append(choice_rows(processor.name, core, decision.choice, decision.memory, flash))
        made = _implementation(decision.program, decision.choice.variants, heading, options, processor)
        variants.append(replace(made, costs=rows[-1:]))
    costs = [_portable_rows(general, measurements.of(core).at(flash), flash) for core, flash in cores.items()]
    base = replace(base, costs=costs)
    others = {"ram_bytes": general.memory, "limit_bytes": options.max_ram, "stripes": _blocks(general)}
    remark = float_remark(choices, options) or None
    return base, variants, {"processors": rows, "portable": plain, "others": others, "remark": remark}


def _equal(choice: Choice, base: Choice) -> bool:
    """Whether a class of processors has the operators of the base; only their places of concatenations may differ.

    Layers in stripes have variants of the class.
    """
    names = {row.operation.label: row.variant for row in base.rows}
    return all(
        row.variant.startswith("portable") and names.get(row.operation.label, row.variant) == row.variant
        for row in choice.rows
    )


def _portable_rows(general: Decision, table: Table, flash: Flash) -> dict[str, Any]:
    """Return the costs of the portable operators on a core, with the reasons of the core that decides."""
    choice = choose(general.program, "", table, given=general.choice.variants)
    assert choice is not None
    reasons = {row.operation: row.why for row in general.choice.rows}
    is_other = table.core != PORTABLE_CORE
    rows = (replace(row, why=BY_OTHER if is_other else reasons[row.operation]) for row in choice.rows)
    choice = replace(choice, rows=tuple(rows))
    return choice_rows("portable", table.core, choice, general.memory, flash)


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
        if variant.name.split("-")[0] in PROCESSORS or (runs_everywhere(variant.name) and "-" in variant.name)
    }
    known.update(options.libraries)
    for name in options.prefer:
        if name in LIBRARIES and name not in known:
            raise fault(f"--prefer {name}: the import does not use {name}", expected=f"--with {name}")
        if name not in known:
            raise fault(f"--prefer: unknown variant '{name}'", hint=f"variants: {', '.join(sorted(known))}")


def _blocks(decision: Decision) -> list[str]:
    return [layer(operation.label) for operation in decision.program.operations if isinstance(operation, Striped)]
