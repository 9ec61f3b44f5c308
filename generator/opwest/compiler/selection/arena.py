# SPDX-License-Identifier: Apache-2.0
"""The plan of the workspace for a choice of variants: the blocks that the manifest of the import results in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from opwest.compiler.ir.program import Operation, Program, Value
from opwest.compiler.output.emit import Step, emit_program
from opwest.compiler.output.manifest import declared, name_values
from opwest.compiler.selection.choose import Choice
from opwest.plan.memory import plan_blocks
from opwest.plan.problem import Block, PoolPlan, Share
from opwest.plan.sharing import alternatives, merged
from opwest.plan.uses import Lifetime, Use, allowed_shares, lifetimes

ALIGN = 8
"""The least alignment of buffers: DEFAULT_ALIGNMENT in model/types/model.py."""


def arena(program: Program, choice: Choice, caller_memory: bool) -> tuple[PoolPlan, list[int]]:
    """Return the plan of the memory between steps, with scratch memory, and the bytes of tensors live in each step.

    Constants in pools (`--place`) are not part of it. The bytes of a step are without its scratch memory.
    """
    emitted = emit_program(program, "", choice.variants)
    # Names decide between equal blocks: these are the names of the manifest and of its plan.
    names = name_values(program, emitted)
    uses = [list(_uses(step, names, caller_memory)) for step in emitted.steps]
    used = [[use.tensor for use in step] for step in uses]
    planned = {tensor for step in used for tensor in step}.union(names[state] for state in program.states)
    values = {name: value for value, name in names.items() if name in planned}
    roles = {name: value.role for name, value in values.items()}
    copied = {names[value] for value in program.new_contents}
    lives = lifetimes(used, range(len(used)), roles, copied)
    tensors = [_block(name, value.nbytes, lives[name]) for name, value in values.items()]
    scratch = [
        _block(f"{parameter.name} of step {number}", parameter.nbytes, Lifetime(number, number), parameter.align)
        for number, step in enumerate(emitted.steps)
        for parameter in step.function.parameters
        if parameter.direction == "scratch"
    ]
    shares = allowed_shares(uses, roles, copied)
    plan = plan_blocks([*tensors, *scratch], shares, "greedy")
    return plan, _live(tensors, shares, len(emitted.steps))


def _uses(step: Step, names: Mapping[Value, str], caller_memory: bool) -> Iterator[Use]:
    """Yield the uses of tensors in the workspace."""
    roles = ("intermediate", "state") if caller_memory else ("intermediate", "state", "input", "output")
    parameters = [parameter for parameter in step.function.parameters if parameter.direction != "scratch"]
    for parameter, argument in zip(parameters, step.arguments, strict=True):
        if argument.base.role in roles:
            is_view = declared(argument).root is not None
            yield Use(names[argument.base], parameter.name, parameter.direction, parameter.in_place, is_view)


def _block(name: str, size: int, life: Lifetime, align: int = 0) -> Block:
    align = max(align, ALIGN)
    return Block(name, -(-size // align) * align, align, life.first, life.last)


def _live(tensors: Sequence[Block], shares: Sequence[Share], steps: int) -> list[int]:
    """Return the bytes of tensors by step, for the best of the ways to share."""
    best: list[int] = []
    for some in alternatives(tensors, shares):
        whole, _ = merged(tensors, some)
        sums = [sum(block.size for block in whole if block.first <= step <= block.last) for step in range(steps)]
        if not best or max(sums, default=0) < max(best, default=0):
            best = sums
    return best


ROUNDS = 12
"""The plans of a search: each one lowers the limit of scratch memory of the layers at the peak."""
Limits = Mapping[Operation, int]


def arena_of(program: Program, choice: Choice, caller_memory: bool) -> int:
    """Return the bytes of the planned workspace of a choice."""
    return arena(program, choice, caller_memory)[0].size


def within(
    program: Program, choose: Callable[[Limits | None], Choice | None], limit: int, caller_memory: bool
) -> Choice | None:
    """Return the best choice that the search finds whose plan has at most `limit` bytes; None without one.

    `choose` returns the best choice for limits of the memory of operations: scratch, and an input that the result
    could replace. Each choice is planned. An operation gets what the limit leaves beside the other tensors that are
    live with it; where a plan has gaps, less.
    """
    choice = choose(None)
    limits: dict[Operation, int] = {}
    for _ in range(ROUNDS):
        if choice is None:
            return None
        plan, lives = arena(program, choice, caller_memory)
        if plan.size <= limit:
            return choice
        needs = [live + row.scratch for live, row in zip(lives, choice.rows, strict=True)]
        if max(needs) > limit:
            for live, row in zip(lives, choice.rows, strict=True):
                limits[row.operation] = min(limits.get(row.operation, limit), limit - live + row.kept)
        else:
            largest = choice.rows[needs.index(max(needs))]
            limits[largest.operation] = largest.scratch + largest.kept - 1
        choice = choose(limits)
    return None
