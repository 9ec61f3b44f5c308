# SPDX-License-Identifier: Apache-2.0
"""Decide on the program and the variants for a class of processors, within the limits of an import.

The operations of a program are the same for all processors but for two decisions: which concatenations are written in
place (`joins.py`), and which layers are computed in stripes (`segments.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opwest.base.diagnostics import OpwestError
from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.faults import fault
from opwest.compiler.ir.operations import Convolution, Depthwise
from opwest.compiler.ir.program import Operation, Program
from opwest.compiler.output.emit import candidates, library_variant
from opwest.compiler.processors import ProcessorClass
from opwest.compiler.request import LIBRARIES, UNLIMITED, Options
from opwest.compiler.selection.arena import arena_of, within
from opwest.compiler.selection.block import Layouts
from opwest.compiler.selection.choose import FLASH, RAM, SPEED, WORTH, Choice, choose, constant_bytes
from opwest.compiler.selection.costs import Table, kind_of
from opwest.compiler.selection.joins import Needs, joined_in_place
from opwest.compiler.selection.segments import Segments
from opwest.compiler.selection.tuning_files import Tables

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
        isinstance(operation, Depthwise) or (isinstance(operation, Convolution) and kind_of(operation) == "convolution")
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


def decided(
    program: Program, layouts: Layouts, processor: ProcessorClass, options: Options, measurements: Tables
) -> Decision:
    """Return the decision for a class of processors. Raises OpwestError.

    Concatenations of channels are in place where that saves time. For the least flash or memory, or a limit of memory,
    all that can be are in place, or none, if that is better. Layers are in stripes for the least memory, and where a
    limit of memory requires it.
    """
    table = measurements.of(core_of(processor, measurements))
    ways = [_joined(program, options, Needs(processor.name, table)), program]
    if options.optimize != SPEED or options.max_ram is not None:
        ways.append(_joined(program, options))
    ways = list(dict.fromkeys(ways))
    chooser = _Chooser(processor.name, layouts, table, options, default_limit(program))
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


def decided_without_class(program: Program, layouts: Layouts, options: Options, measurements: Tables) -> Decision:
    """Return the decision for processors without a class, whose operators are portable.

    A limit of memory can be exceeded: hosts have no limit.
    """
    table = measurements.of(PORTABLE_CORE)
    # Stores between other channels are as fast as others.
    joined = _joined(program, options)
    chooser = _Chooser("", layouts, table, options, None)
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
        self, processor: str, layouts: Layouts, table: Table, options: Options, default_flash: int | None
    ) -> None:
        """`default_flash`: the limit of flash without one of the user."""
        self.processor, self.layouts, self.table, self.options = processor, layouts, table, options
        self.default_flash = default_flash
        self.prefer = [library_variant(one, processor) if one in LIBRARIES else one for one in options.prefer]

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
        segments = Segments(program, self.layouts, self.processor, self.table, options.caller_memory, self.prefer)
        least, limit = segments.least, None if options.optimize == RAM else options.max_ram
        room = max(0, (least if limit is None else limit) - least)
        bounds = dict.fromkeys(least + room * part // 4 for part in (4, 3, 2, 1, 0))
        return [division for division in map(segments.within, bounds) if division is not None]

    def best(
        self, program: Program, objective: str, flash: int | None, scratch: Mapping[Operation, int] | None = None
    ) -> Choice | None:
        """Return the best choice within limits of flash and of the scratch memory of operations."""
        libraries = self.options.libraries
        return choose(program, self.processor, self.table, objective, flash, scratch, self.prefer, libraries)

    def _fitting(self, program: Program, flash: int | None) -> Decision | None:
        """Return the best choice within limits of flash and memory."""
        memory, caller = self.options.max_ram, self.options.caller_memory
        if self.options.optimize == RAM:
            # The least scratch memory is not the least memory if fewer results replace their data.
            choices = (self.best(program, objective, flash) for objective in (RAM, FLASH, SPEED))
            decisions = [
                Decision(program, choice, arena_of(program, choice, caller)) for choice in choices if choice is not None
            ]
            if not decisions:
                return None
            least = min(decisions, key=lambda decision: decision.memory)
            if memory is not None and least.memory > memory:
                return None
            # The fastest variants that need no more memory.
            fastest = within(program, lambda scratch: self.best(program, SPEED, flash, scratch), least.memory, caller)
            is_better = fastest is not None and fastest.cycles < least.choice.cycles
            choice = fastest if fastest is not None and is_better else least.choice
        else:
            objective = self.options.optimize
            if memory is None:
                limited = self.best(program, objective, flash)
            else:
                limited = within(program, lambda scratch: self.best(program, objective, flash, scratch), memory, caller)
            if limited is None:
                return None
            choice = limited
        return Decision(program, choice, arena_of(program, choice, caller))


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
