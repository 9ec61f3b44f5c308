# SPDX-License-Identifier: Apache-2.0
"""Keys of `run` about the model as a whole: the memory planner, given offsets, streams, states."""

from __future__ import annotations

from collections import abc
from collections.abc import Sequence

from opwest.base.diagnostics import Location, nearest
from opwest.manifest.located import Mapping
from opwest.model.inputs.context import Context, tensor_info, tensor_type
from opwest.model.readers.constants import element, read_content
from opwest.model.types.c_names import check_name
from opwest.model.types.dtypes import TensorType
from opwest.model.types.model import (
    DEFAULT_ALIGNMENT,
    Binding,
    Constant,
    FixedOffset,
    FixedPlan,
    FixedPool,
    MemoryPlanner,
    Pool,
    State,
    Step,
    TensorInfo,
)
from opwest.model.types.sections import Device


def memory_planner(context: Context, replacement: MemoryPlanner | None) -> MemoryPlanner:
    """Return the planner: `replacement`, if any, else that of the manifest; report offsets without `fixed`."""
    run = context.run
    declared: MemoryPlanner = run.get("memory_planner", "greedy")
    if (replacement or declared) == "fixed" and "offsets" not in run:
        context.faults.error(
            "missing key 'offsets'",
            run.value_location("memory_planner"),
            expected="offsets: the offset of every tensor, by pool",
            hint="'opwest plan MANIFEST --planner greedy' prints the tensors of every pool",
        )
    elif declared != "fixed" and "offsets" in run:
        context.faults.error(
            "'offsets' requires memory_planner: fixed",
            run.key_location("offsets"),
            expected="memory_planner: fixed",
            hint=f"the planner {declared} chooses the offsets",
        )
    return replacement or declared


def fixed_plan(context: Context, pools: dict[str, Pool]) -> FixedPlan:
    """Return the offsets that the manifest gives; report undefined pools and unreadable tables."""
    run = context.run
    section = context.section("offsets", run)
    fixed_pools = []
    for name, given in section.items():
        if name not in pools:
            context.faults.error(f"undefined pool {name!r}", section.key_location(name), hint=nearest(name, pools))
        elif isinstance(given, Mapping):
            offsets = tuple(FixedOffset(b, at, given.value_location(b)) for b, at in given.items())
            fixed_pools.append(FixedPool(name, section.key_location(name), offsets))
        else:
            table = _table(context, name, given, section.value_location(name))
            fixed_pools += [table] if table is not None else []
    return FixedPlan(run.key_location("offsets"), tuple(fixed_pools))


def _table(context: Context, pool: str, name: str, at: Location) -> FixedPool | None:
    expected = "a table in MiniMalloc's format with a column 'offset'"
    path = context.regular_file(name, at, expected)
    if path is None:
        return None
    try:
        return FixedPool(pool, at, table=path.read_text(encoding="utf-8-sig"), file=str(path))
    except UnicodeDecodeError as error:
        context.faults.error(f"cannot read {name!r}: not UTF-8 (byte {error.start})", at, expected=expected)
    return None


def streams(context: Context, steps: Sequence[Step], devices: abc.Mapping[str, Device], planner: MemoryPlanner) -> bool:
    """Return whether the model streams; report a model in which no two frames could overlap, and a given plan."""
    run = context.run
    if not run.get("stream", False):
        return False
    at = run.value_location("stream")
    launched = any(step.operator.is_async and step.device in devices for step in steps)
    if not launched and not context.faults.has_errors:
        context.faults.error(
            "stream: true has no effect: no step runs while the processor continues",
            at,
            expected="a step of an operator with async: true on a device with driver: accelerator",
            hint="without one, <model>_run computes as many frames per second",
        )
    if planner == "fixed":
        context.faults.error(
            "stream: true with memory_planner: fixed",
            at,
            expected="memory_planner: greedy or search",
            hint="two frames share constants and states: the planner puts them before the tensors that exist twice",
        )
    return True


ZEROS = "zeros"


def states(context: Context) -> tuple[dict[str, State], list[Constant]]:
    """Return the states by name, and the constants with their initial contents."""
    section = context.section("state", context.run)
    constants = context.section("constants")
    resolved: dict[str, State] = {}
    initials: list[Constant] = []
    for name, entry in section.items():
        at = section.key_location(name)
        check_name("state", name, at, context.faults)
        type_ = tensor_type(context, entry)
        initial = _initial(context, name, entry, type_)
        if initial and initial.name in constants:
            context.faults.error(
                f"constant {initial.name!r} has the name of the initial content of state {name!r}",
                constants.key_location(initial.name),
                expected="another name",
            )
        elif initial:
            initials.append(initial)
        resolved[name] = State(
            name=name,
            type=type_,
            align=max(entry.get("align", 1), type_.dtype.size),
            info=tensor_info(context, entry, type_),
            description=entry.get("description"),
            initial=initial.name if initial else None,
            next=Binding("buffer", entry["next"]) if "next" in entry else None,
            pool=entry.get("pool"),
            location=at,
        )
    return resolved, initials


def _initial(context: Context, name: str, entry: Mapping, type_: TensorType) -> Constant | None:
    """Return the constant with the initial content, or one element for all; None for zeros."""
    given = entry.get("initial", ZEROS)
    if given == ZEROS:
        return None
    at = entry.value_location("initial")
    what = f"the initial content of state {name!r}"
    if isinstance(given, Mapping):
        read = read_content(context, what, name, given, entry, type_)
        if read is None:
            return None
        content = read[1]
    else:
        value = element(context.faults, what, type_.dtype, given, at)
        if value is None or not any(value):
            return None
        type_, content = TensorType(type_.dtype, ()), value
    align = max(type_.dtype.size, DEFAULT_ALIGNMENT)
    return Constant(f"{name}_initial", type_, content, align, TensorInfo(), None, at)
