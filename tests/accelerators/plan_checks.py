# SPDX-License-Identifier: Apache-2.0
"""Conflicts of steps, and checks of a plan without an execution: the order of its steps, and its memory."""

from opwest.model.types.model import Argument, Binding, Model, Step
from opwest.plan.memory import MemoryPlan
from opwest.render.actions import Action, Call, Copy, Wait


class Wrong(AssertionError):  # noqa: N818
    """The actions do not always compute the results of the steps."""


def check(condition: object, message: str) -> None:
    if not condition:
        raise Wrong(message)


def shared_line(model: Model) -> int:
    """Return the unit of conflicts between views: the longest cache line if a device bypasses the cache."""
    if all(device.coherent for device in model.devices):
        return 1
    return max(pool.cache_line or 1 for pool in model.pools)


def passes(step: Step, earlier: Step, line: int) -> bool:
    """Whether a step passes a value that an earlier one writes."""
    return conflict(step, earlier, line, launched=True, values=True)


def conflict(one: Step, other: Step, line: int, *, launched: bool = False, values: bool = False) -> bool:
    """Whether two steps use the same units of memory and one of them writes: whole tensors, or the lines of views.

    With `launched`, `other` has read its values; with `values`, only those of `one` count.
    """
    for argument, binding in zip(one.operator.args, one.bindings, strict=True):
        for argument_2, binding_2 in zip(other.operator.args, other.bindings, strict=True):
            if (binding.role, binding.name) != (binding_2.role, binding_2.name) or binding.role == "scalar":
                continue
            if (launched and argument_2.scalar) or (values and not argument.scalar):
                continue
            if argument.direction == argument_2.direction == "in":
                continue
            units = [_units(argument, binding, line), _units(argument_2, binding_2, line)]
            if None in units or units[0] & units[1]:
                return True
    return False


def _units(argument: Argument, binding: Binding, line: int) -> set[int] | None:
    """Return the lines of a view; None for a whole tensor."""
    if binding.view is None:
        return None
    return {at // line for at in range(binding.offset, binding.offset + argument.type.size)}


def check_memory(model: Model, plan: MemoryPlan, actions: list[Action]) -> None:
    """Check that no two live tensors share a byte, from launch to the end of the wait."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    flying: dict[int, list[str]] = {}
    end = len(actions)
    for number, action in enumerate(actions):
        if isinstance(action, Call):
            used = [b.name for b in action.step.bindings if b.role == "buffer"]
            for name in used:
                first.setdefault(name, number)
                last[name] = number
            if action.step.operator.is_async and action.step.device:
                flying[action.step.index] = used
        elif isinstance(action, Wait):
            for name in (name for index in action.steps for name in flying.pop(index)):
                last[name] = number
    for buffer in model.buffers:
        if buffer.role == "input":
            first[buffer.name] = -1
        elif buffer.role == "output":
            last[buffer.name] = end
        elif buffer.role in ("constant", "state"):
            first[buffer.name], last[buffer.name] = -1, end
    for action in actions:
        if isinstance(action, Copy):
            last[action.source.name] = end
    lines = {pool.name: pool.cache_line or 1 for pool in model.pools}
    blocks = []
    for buffer in model.buffers:
        pool, at = plan.place(buffer.name)
        unit = lines[pool] if buffer.incoherent else 1
        check(at % unit == 0, f"{buffer.name} does not begin a line")
        blocks.append((pool, at, at + -(-buffer.type.size // unit) * unit, buffer.name))
        size = next(p.size for p in model.pools if p.name == pool)
        check(size is None or blocks[-1][2] <= size, f"{buffer.name} leaves its pool")
    blocks.sort()
    for index, (pool, _, stop, name) in enumerate(blocks):
        for other_pool, start, _, other in blocks[index + 1 :]:
            if other_pool != pool or start >= stop:
                break
            apart = last[name] < first[other] or last[other] < first[name]
            check(apart, f"{name} and {other} share memory and are needed at once")


def check_order(model: Model, given: list[str]) -> None:
    """Check that the steps are those of the manifest, each after its dependencies."""
    planned = [step.operator.name for step in model.steps]
    check(sorted(planned) == sorted(given), "steps were lost")
    check(model.reorder or planned == given, "steps were reordered")
    at = {name: number for number, name in enumerate(planned)}
    line = shared_line(model)
    steps = {step.operator.name: step for step in model.steps}
    for number, earlier in enumerate(given):
        for later in given[number + 1 :]:
            stateful = steps[earlier].operator.stateful and steps[later].operator.stateful
            if stateful or conflict(steps[earlier], steps[later], line):
                check(at[earlier] < at[later], f"{later} runs before {earlier}")
