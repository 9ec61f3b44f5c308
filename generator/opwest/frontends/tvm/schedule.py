# SPDX-License-Identifier: Apache-2.0
"""Schedules of single operators: loops are fused, and reductions compute four sums at once."""

from __future__ import annotations

from math import prod
from typing import Any

_SPATIAL, _REDUCTION = 0, 2
_NEIGHBOURS = (4, 3, 2)
"""Numbers of results to sum at once, the best first."""
_MANY = 100_000
"""The number of multiplications above which the loop is unrolled further."""


def schedule_operator(function: Any) -> Any:
    """Return the function with as few temporary tensors as possible, without more arithmetic in reductions."""
    import tvm
    from tvm import s_tir

    if getattr(getattr(function.body, "block", None), "name_hint", "") != "root":
        return function  # hand-written loops, for example scatters, have no schedule
    schedule = s_tir.Schedule(tvm.IRModule({"main": function}), debug_mask=0)
    for inline in (schedule.compute_inline, schedule.reverse_compute_inline):
        for block in _blocks(schedule):
            _try(inline, block)
    for block in _blocks(schedule)[:-1]:
        schedule = _tiled(schedule, block)
    for block in reversed(_blocks(schedule)[:-1]):
        _compute_at_consumer(schedule, block)
    for block in _blocks(schedule):
        _initialise_before(schedule, block)
    return schedule.mod["main"]


def _try(primitive: Any, *arguments: Any) -> bool:
    """Apply a primitive if TVM's checks allow it."""
    from tvm import s_tir

    try:
        primitive(*arguments)
    except (s_tir.schedule.ScheduleError, RuntimeError):
        return False
    return True


def _blocks(schedule: Any) -> list[Any]:
    return list(schedule.get_child_blocks(schedule.get_sblock("root")))


def _tiled(schedule: Any, block: Any) -> Any:
    """Return a schedule in which a reduction computes several neighbours at once and reads shared elements once.

    The sums are in registers, of which four are free on every target. If this is impossible, return the schedule.
    """
    from tvm import s_tir

    trial = schedule.copy()
    try:
        done = _tile(trial, block)
    except (s_tir.schedule.ScheduleError, RuntimeError):
        return schedule
    return trial if done else schedule


def _tile(schedule: Any, block: Any) -> bool:
    consumers = list(schedule.get_consumers(block))
    if schedule.get(block).init is None or len(consumers) != 1:
        return False
    loops = schedule.get_loops(consumers[0])
    extents = [int(getattr(schedule.get(loop).extent, "value", 0)) for loop in loops]
    if not loops or _depth(schedule, block, consumers[0]) != len(loops) or schedule.get_loops(block)[0] in loops:
        return False
    width = next((n for n in _NEIGHBOURS if extents[-1] % n == 0), None)
    if width is None:
        return False
    outer, _ = schedule.split(loops[-1], [None, width])
    schedule.compute_at(block, outer)
    neighbours, *reductions = schedule.get_loops(block)[len(loops) :]
    if not reductions or int(getattr(schedule.get(neighbours).extent, "value", 0)) != width:
        return False
    schedule.reorder(*reductions, neighbours)
    schedule.unroll(neighbours)
    turns = [int(schedule.get(loop).extent.value) for loop in reductions]
    if turns[-1] % 2 == 0 and prod(extents) * prod(turns) >= _MANY:
        schedule.unroll(schedule.split(reductions[-1], [None, 2])[1])
    return True


def _compute_at_consumer(schedule: Any, block: Any) -> None:
    """Move a block into the loops of its only consumer, as deep as possible without repeated computation."""
    try:
        consumers = list(schedule.get_consumers(block))
    except RuntimeError:
        return
    if len(consumers) != 1:
        return
    depth = _depth(schedule, block, consumers[0])
    if depth > 0:
        _try(schedule.compute_at, block, schedule.get_loops(consumers[0])[depth - 1])


def _depth(schedule: Any, block: Any, consumer: Any) -> int:
    """Return the number of the consumer's loops whose iterations read different elements of the block's result."""
    written = schedule.get(block).writes[0].source
    found = schedule.get(consumer)
    used: set[str] = set()
    exact = True
    for region in found.reads:
        if region.source.same_as(written):
            for dimension in region.region:
                if int(getattr(dimension.extent, "value", 0)) != 1:
                    continue
                names = {str(v.var.name) for v in found.iter_vars if v.var.same_as(dimension.min)}
                exact = exact and (bool(names) or type(dimension.min).__name__ == "IntImm")
                used |= names
    loops = schedule.get_loops(consumer)
    if not exact or len(loops) != len(found.iter_vars):
        return 0
    depth = 0
    for loop, variable in zip(loops, found.iter_vars, strict=True):
        extent = getattr(schedule.get(loop).extent, "value", None)
        if extent != 1 and (variable.var.name not in used or int(variable.iter_type) != _SPATIAL):
            break
        depth += 1
    return depth


def _initialise_before(schedule: Any, block: Any) -> None:
    """Move the initial value of a reduction out of its loops."""
    loops = schedule.get_loops(block)
    if schedule.get(block).init is None or not loops:
        return
    reduces = _reducing_variables(schedule.get(loops[-1]).body, schedule.get(block))
    first = next((loop for loop in loops if any(v.same_as(schedule.get(loop).loop_var) for v in reduces)), None)
    if first is not None:
        _try(schedule.decompose_reduction, block, first)


def _reducing_variables(body: Any, block: Any) -> list[Any]:
    """Return the variables of the loops of a reduction; `body` is the body of its innermost loop."""
    from tvm import tirx
    from tvm_ffi import structural

    inside = body.seq if type(body).__name__ == "SeqStmt" else [body]
    realize = next((one for one in inside if hasattr(one, "block") and one.block.same_as(block)), None)
    if realize is None:
        return []
    found: list[Any] = []
    for variable, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
        if int(variable.iter_type) == _REDUCTION:
            structural.structural_walk(value, [(tirx.Var, found.append)])
    return found
