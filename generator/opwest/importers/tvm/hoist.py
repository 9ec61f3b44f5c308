# SPDX-License-Identifier: Apache-2.0
"""Move conditions out of loops: padding adds 0 to a sum, so that the addition can be skipped.

TVM's pass hoists only one bound of a range, and duplicates the code.
"""

from __future__ import annotations

from functools import reduce
from typing import Any


def hoist_conditions(function: Any) -> Any:
    """Return a lowered function with loop-invariant conditions before the loops."""
    from tvm import tirx
    from tvm_ffi import structural

    return function.with_body(
        structural.structural_map(function.body, [(tirx.BufferStore, _conditional), (tirx.For, _hoisted)])
    )


def _conditional(store: Any) -> Any:
    """Return `if (c) s = s + x * w` for `s = s + (c ? x : 0) * w`, for integers only: 0 * inf is not 0."""
    from tvm import tirx
    from tvm_ffi import structural_equal

    total = store.value
    here = tirx.BufferLoad(store.buffer, store.indices)
    if not isinstance(total, tirx.Add) or not structural_equal(total.a, here, map_free_vars=False):
        return store
    added = total.b
    ways = [(added.a, added.b), (added.b, added.a)] if isinstance(added, tirx.Mul) else [(added, None)]
    for value, other in ways:
        if not _is_padded(value):
            continue
        condition, inside, _ = value.args
        changed = tirx.BufferStore(store.buffer, total.a + (inside if other is None else inside * other), store.indices)
        return tirx.IfThenElse(condition, changed, None)
    return store


def _is_padded(value: Any) -> bool:
    from tvm import tirx

    if str(getattr(getattr(value, "op", None), "name", "")).rpartition(".")[2] != "if_then_else":
        return False
    beyond = value.args[2]
    return isinstance(beyond, tirx.IntImm) and int(beyond) == 0


def _hoisted(loop: Any) -> Any:
    """Return a loop inside the loop-invariant parts of its body's condition."""
    from tvm import tirx

    condition = loop.body
    if not isinstance(condition, tirx.IfThenElse) or condition.else_case is not None:
        return loop
    inner: list[Any] = []
    outer: list[Any] = []
    for part in _parts(condition.condition):
        (inner if _uses(part, loop.loop_var) else outer).append(part)
    if not outer:
        return loop
    body = tirx.IfThenElse(_all(inner), condition.then_case, None) if inner else condition.then_case
    changed = tirx.For(
        loop.loop_var, loop.min, loop.extent, loop.kind, body, loop.thread_binding, loop.annotations, loop.step
    )
    return tirx.IfThenElse(_all(outer), changed, None)


def _parts(condition: Any) -> list[Any]:
    from tvm import tirx

    if isinstance(condition, tirx.And):
        return [*_parts(condition.a), *_parts(condition.b)]
    return [condition]


def _all(parts: list[Any]) -> Any:
    from tvm import tirx

    return reduce(tirx.And, parts)


def _uses(expression: Any, variable: Any) -> bool:
    from tvm import tirx
    from tvm_ffi import structural

    found: list[Any] = []
    structural.structural_walk(expression, [(tirx.Var, found.append)])
    return any(one.same_as(variable) for one in found)
