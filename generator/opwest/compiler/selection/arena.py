# SPDX-License-Identifier: Apache-2.0
"""The plan of the workspace for a choice of variants: the blocks that the manifest of the import results in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.ir.program import Operation, Program, Value
from opwest.compiler.output.emit import Emitted, emit_program
from opwest.compiler.output.manifest import declared, name_values
from opwest.compiler.selection.choose import Choice
from opwest.plan.memory import plan_blocks
from opwest.plan.problem import Block, PoolPlan, Share
from opwest.plan.sharing import alternatives, merged

ALIGN = 8
"""The least alignment of buffers: DEFAULT_ALIGNMENT in model/model.py."""


@dataclass(frozen=True, eq=False)
class Arena:
    """The memory between steps, with scratch memory; constants in pools (`--place`) are not part of it."""

    plan: PoolPlan
    live: Sequence[int]
    """By step: the bytes of tensors that are live in it, without its scratch memory, if the plan shares memory."""


def arena(program: Program, emitted: Emitted, caller_memory: bool) -> Arena:
    """Return the planned memory of the steps of a program."""
    spans = _spans(program, emitted, caller_memory)
    # Names decide between equal blocks: these are the names of the manifest and of its plan.
    names = name_values(program, emitted)
    tensors = [_block(names[value], _bytes(value), span) for value, span in spans.items()]
    scratch = [
        _block(
            f"{parameter.name} of step {number}",
            parameter.elements * np.dtype(parameter.dtype).itemsize,
            (number, number),
            parameter.align,
        )
        for number, step in enumerate(emitted.steps)
        for parameter in step.function.parameters
        if parameter.direction == "scratch"
    ]
    shares = _shares(emitted, spans, names)
    plan = plan_blocks([*tensors, *scratch], shares, "greedy")
    return Arena(plan, _live(tensors, shares, len(emitted.steps)))


def _spans(program: Program, emitted: Emitted, caller_memory: bool) -> dict[Value, tuple[int, int]]:
    """Return the first and the last step of each tensor in the workspace."""
    last = max(len(emitted.steps) - 1, 0)
    found: dict[Value, tuple[int, int]] = {}
    for number, step in enumerate(emitted.steps):
        for argument in step.arguments:
            value = argument.base
            if value.role == "intermediate" or (value.role in ("input", "output") and not caller_memory):
                first, _ = found.get(value, (number, number))
                found[value] = (first, number)
    copied = {state.next.base for state in program.states if state.next is not None}
    for value, (first, end) in found.items():
        if value.role == "input":
            found[value] = (0, end)
        elif value.role == "output" or value in copied:
            found[value] = (first, last)
    return {**found, **dict.fromkeys(program.states, (0, last))}


def _bytes(value: Value) -> int:
    return value.size * np.dtype(value.dtype).itemsize


def _block(name: str, size: int, span: tuple[int, int], align: int = 0) -> Block:
    align = max(align, ALIGN)
    return Block(name, -(-size // align) * align, align, *span)


def _shares(emitted: Emitted, spans: Mapping[Value, tuple[int, int]], names: Mapping[Value, str]) -> tuple[Share, ...]:
    """Return the results that may replace the data of their step: plan/sharing.py's rule for steps without devices."""
    found: dict[Value, Share] = {}
    takers: set[Value] = set()
    for number, step in enumerate(emitted.steps):
        parameters = [one for one in step.function.parameters if one.direction != "scratch"]
        given = list(zip(parameters, map(declared, step.arguments), strict=True))
        for parameter, result in given:
            for reading, taken in given:
                if reading.name not in parameter.in_place or taken is result:
                    continue
                same = [(a, b) for a, b in given if b.base is taken.base]
                whole = all(a.name in parameter.in_place and b.root is None for a, b in same)
                if not whole or result.root is not None or taken not in spans or result not in spans:
                    continue
                is_free = taken.role in ("intermediate", "input") and result.role != "state"
                is_new = taken not in found and result not in takers
                if is_free and is_new and spans[taken][1] == number == spans[result][0]:
                    found[taken] = Share(names[taken], names[result], number)
                    takers.add(result)
    return tuple(found.values())


def _live(tensors: Sequence[Block], shares: Sequence[Share], steps: int) -> list[int]:
    """Return the bytes of tensors by step, for the best of the ways to share."""
    best: list[int] = []
    for some in alternatives(tensors, shares):
        whole, _ = merged(tensors, some)
        sums = [sum(one.size for one in whole if one.first <= step <= one.last) for step in range(steps)]
        if not best or max(sums, default=0) < max(best, default=0):
            best = sums
    return best


ROUNDS = 12
"""The plans of a search: each one lowers the limit of scratch memory of the layers at the peak."""
Limits = Mapping[Operation, int]


def arena_of(program: Program, choice: Choice, caller_memory: bool) -> int:
    """Return the bytes of the planned workspace of a choice."""
    return arena(program, emit_program(program, "", choice.variants), caller_memory).plan.size


def within(
    program: Program, choose: Callable[[Limits | None], Choice | None], limit: int, caller_memory: bool
) -> Choice | None:
    """Return the best choice that the search finds whose plan has at most `limit` bytes; None without one.

    `choose` returns the best choice for limits of the scratch memory of operations. Each choice is planned. An
    operation gets what the limit leaves beside the tensors that are live with it; where a plan has gaps, less.
    """
    choice = choose(None)
    limits: dict[Operation, int] = {}
    for _ in range(ROUNDS):
        if choice is None:
            return None
        planned = arena(program, emit_program(program, "", choice.variants), caller_memory)
        if planned.plan.size <= limit:
            return choice
        needs = [live + row.scratch for live, row in zip(planned.live, choice.rows, strict=True)]
        if max(needs) > limit:
            for live, row in zip(planned.live, choice.rows, strict=True):
                limits[row.operation] = min(limits.get(row.operation, limit), limit - live)
        else:
            largest = choice.rows[needs.index(max(needs))]
            limits[largest.operation] = largest.scratch - 1
        choice = choose(limits)
    return None
