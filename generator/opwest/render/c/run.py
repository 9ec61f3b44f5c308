# SPDX-License-Identifier: Apache-2.0
"""Rows of the ahead-of-time executor and of the internal header."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from opwest.model.checks.firmware import checked_steps
from opwest.model.types.c_names import CNames, member_name
from opwest.model.types.model import Argument, Binding, Buffer, Model, Operator
from opwest.plan.memory import MemoryPlan
from opwest.plan.problem import round_up
from opwest.plan.schedule import copied_at_end
from opwest.render.actions import Acquire, Action, Cache, Call, Copy, Release, Wait, actions
from opwest.render.c.header import pool_rows
from opwest.render.c.printer import c_definitions
from opwest.render.devices import device_rows, first_incoherent, reach_rows
from opwest.render.literals import c_comment, c_number
from opwest.render.overlaps import (
    Memory,
    Subject,
    is_inline,
    open_overlaps,
    pool_memory,
    run_overlaps,
    table,
    tensor_memory,
)
from opwest.render.tables.layout import METADATA_VERSION
from opwest.render.tables.model import ModelTables
from opwest.render.tables.tensors import resets_after_failure, saved_size
from opwest.render.templates.renderer import Renderer
from opwest.render.tensors import external_rows, heading, interface_rows


def render_run(render: Renderer, model: Model, plan: MemoryPlan, tables: ModelTables) -> bytes:
    """Return src/<model>_run.c."""
    names = CNames(model.name)
    tensors = interface_rows(model)
    offsets = offset_macros(model)
    places = {b.name: f"pool_{plan.place(b.name)[0]} + {offsets[b.name]}" for b in model.buffers}
    steps = []
    point = 0
    for action in actions(model, plan):
        point += not isinstance(action, (Acquire, Release))
        steps.append({**action_row(names, places, action), "point": point})
    pools = pool_rows(model, plan)
    used = {plan.place(b.name)[0] for step in model.steps for b in step.bindings if b.role == "buffer"}
    used |= {plan.place(name)[0] for name in copied_at_end(model)}
    used |= {plan.place(state.name)[0] for state in model.states if state.next}
    opened = {plan.place(b.name)[0] for b in model.buffers if b.role in ("input", "output", "constant")}
    pinned = [_pinned_row(names, model, plan, places[b.name], b) for b in model.buffers if b.role == "constant"]
    has_hooks = any(d.has_hooks for d in model.devices)
    overlaps = run_overlaps(model, plan)
    return render(
        "models/model/src/model_run.c",
        **heading(model),
        macro=names.macro,
        inputs=external_rows(tensors, "input"),
        outputs=external_rows(tensors, "output"),
        placed=[
            {"role": b.role, "member": member_name(b.name), "c_type": b.type.dtype.c_type, "place": places[b.name]}
            for b in model.buffers
            if b.role in ("input", "output")
        ],
        pinned=pinned,
        offsets=[offset_row(plan, offsets[b.name], b) for b in model.buffers],
        pools=pools,
        run_pools=[p for p in pools if p["name"] in used],
        open_pools=[p for p in pools if p["name"] in opened],
        devices=device_rows(model),
        device_tables=c_definitions(tables.devices),
        has_hooks=has_hooks,
        abandoned=names.function("abandoned") if model.streams else "abandoned",
        streams=model.streams,
        stateful=model.stateful,
        checks=[{"function": names.operator(symbol), "step": step} for symbol, step in checked_steps(model).items()],
        can_abandon=has_hooks or any(row["kind"] == "cache" for row in steps),
        pinned_flushed=any(row["flushed"] for row in pinned),
        steps=[row for row in steps if row["kind"] != "copy"],
        copies=[row for row in steps if row["kind"] == "copy"],
        state_table=c_definitions(tables.states),
        resets=resets_after_failure(model),
        points=c_definitions([tables.points]),
        has_status=any(row["has_status"] for row in steps),
        has_cache=any(row["kind"] == "cache" for row in steps),
        busy=model.checks.busy,
        run_overlaps=[overlap_row(overlap) for overlap in overlaps] if is_inline(overlaps) else [],
        overlap_table=[] if is_inline(overlaps) else table(tensor_memory(model), pool_memory(model, plan)),
        open_overlaps=[overlap_row(overlap) for overlap in open_overlaps(model, plan)],
        saves_outside=bool(model.states) and model.checks.buffers,
        state_size=saved_size(model),
    )


def overlap_row(subject: Subject) -> dict[str, Any]:
    """Return the row of the comparisons of one range."""
    memory = subject.memory
    others = [_memory_row(other) for other in subject.others]
    return {"role": memory.role, "index": memory.index, **_memory_row(memory), "others": others}


def _memory_row(memory: Memory) -> dict[str, str]:
    """Return the C expressions of the address and the size of a range."""
    if memory.role == "workspace":
        return {"place": "workspace", "size": "sizeof(*workspace)"}
    owner = "workspace" if memory.role == "pool" else f"{memory.role}s"
    return {"place": f"{owner}->{member_name(memory.name)}", "size": f"{memory.size}U"}


def offset_macros(model: Model) -> dict[str, str]:
    """Return the macro of each buffer's offset, by the buffer's name; names that differ only in case get a number."""
    taken: dict[str, int] = {}
    macros = {}
    prefix = f"{CNames(model.name).macro}_OFFSET_"
    for buffer in model.buffers:
        macro = prefix + re.sub(r"[^A-Z0-9]", "_", buffer.name.upper())
        count = taken[macro] = taken.get(macro, 0) + 1
        macros[buffer.name] = macro if count == 1 else f"{macro}__{count}"
    return macros


def offset_row(plan: MemoryPlan, macro: str, buffer: Buffer) -> dict[str, Any]:
    """Return the row of a macro with the offset of a buffer."""
    pool, offset = plan.place(buffer.name)
    return {"macro": macro, "offset": offset, "comment": c_comment(f"{pool}: {buffer.type}")}


def _pinned_row(names: CNames, model: Model, plan: MemoryPlan, place: str, buffer: Buffer) -> dict[str, Any]:
    """Return the row for the copy of a constant into the workspace."""
    size = buffer.type.size
    pool, _ = plan.place(buffer.name)
    line = next(p.cache_line for p in model.pools if p.name == pool)
    return {
        "symbol": names.constant(buffer.name),
        "place": place,
        "size": size,
        "flushed": round_up(size, line) if line and buffer.incoherent else 0,
        "device": first_incoherent(model, buffer.name) if buffer.incoherent else None,
    }


def action_row(names: CNames, places: dict[str, str], action: Action) -> dict[str, Any]:
    """Return the row of an action; `places` are C expressions for the addresses of buffers."""
    return {"has_status": False, **_action_row(names, places, action)}


def _action_row(names: CNames, places: dict[str, str], action: Action) -> dict[str, Any]:
    match action:
        case Acquire():
            return {"kind": "acquire", "step": action.step, "is_first": action.is_first}
        case Release():
            return {"kind": "release", "index": action.index, "device": action.device}
        case Wait():
            listed = ", ".join(map(str, action.steps))
            comment = f"Wait for {action.device}: step{'s' * (len(action.steps) > 1)} {listed}"
            return {"kind": "wait", "index": action.index, "leave": action.leave, "comment": comment}
        case Copy():
            return {
                "kind": "copy",
                "comment": f"Copy {action.source.shown} to state {action.state}",
                "place": places[action.state],
                "source": _bytes(places, action.source, action.source.offset, is_const=True),
                "size": action.size,
            }
        case Cache():
            return {
                "kind": "cache",
                "operation": action.operation,
                "place": _bytes(places, action.binding, action.start, is_const=action.operation == "flush"),
                "size": action.size,
                "step": action.step,
                "device": action.index,
            }
        case Call():
            return _call_row(names, places, action)


def _call_row(names: CNames, places: dict[str, str], action: Call) -> dict[str, Any]:
    step = action.step
    args = [_expression(names, places, a, b) for a, b in zip(step.operator.args, step.bindings, strict=True)]
    if step.operator.takes_launch:
        args.append(f"&workspace->slots[{action.index}].launch")
    elif step.operator.takes_device:
        args.append(f"devices->{member_name(step.device or '')}")
    shown = ", ".join(_shown(a, b) for a, b in zip(step.operator.args, step.bindings, strict=True))
    head = ("status = " if step.operator.returns_status else "") + names.callee(step.operator)
    return {
        "kind": "call",
        "index": step.index,
        "comment": f"Step {step.index}: {'launch ' if step.operator.is_async else ''}{step.operator.name}"
        + (f" on {step.device}" if step.device else "")
        + f" ({c_comment(shown)})",
        "call": call_text(head, args).removeprefix("status = "),
        "has_status": step.operator.returns_status,
        "device": action.index,
        "use": action.use,
        "launches": action.launches,
    }


def _bytes(places: dict[str, str], binding: Binding, start: int, *, is_const: bool) -> str:
    """Return a pointer to bytes of a tensor from `start` on."""
    const = "const " if is_const else ""
    whole = f"({const}uint8_t *){binding.role}s->{member_name(binding.name)}"
    if binding.role == "buffer":
        whole = places[binding.name]
    return f"{whole} + {start}" if start else whole


def _shown(argument: Argument, binding: Binding) -> str:
    if argument.direction == "scratch":
        return argument.name
    return binding.shown if binding.role != "scalar" else str(binding.value)


def _expression(names: CNames, places: dict[str, str], argument: Argument, binding: Binding) -> str:
    """Return the C expression that a step passes for one argument."""
    if binding.role == "scalar":
        return c_number(binding.value, argument.type.dtype)
    place = _place(names, places, argument, binding)
    return f"*{place}" if argument.scalar else place


def _place(names: CNames, places: dict[str, str], argument: Argument, binding: Binding) -> str:
    """Return the C expression of the tensor that a step uses for one argument."""
    const = "const " if argument.direction == "in" else ""
    if binding.role == "buffer":
        place = _bytes(places, binding, binding.offset, is_const=False)
        return f"({const}{argument.type.dtype.c_type} *)(void *)({place})"
    is_constant = binding.role == "constant"
    whole = names.constant(binding.name) if is_constant else f"{binding.role}s->{member_name(binding.name)}"
    if binding.view is None:
        return whole
    at = f" + {binding.offset}" if binding.offset else ""
    return f"({const}{argument.type.dtype.c_type} *)({const}void *)(({const}uint8_t *){whole}{at})"


def call_text(head: str, args: list[str]) -> str:
    """Return a call."""
    return f"{head}({', '.join(args)})"


def render_internal(render: Renderer, model: Model) -> bytes:
    """Return src/<model>_internal.h."""
    names = CNames(model.name)
    by_symbol: dict[str, Operator] = {}
    for operator in model.operators:
        by_symbol.setdefault(operator.symbol, operator)
    return render(
        "models/model/src/model_internal.h",
        model=model.name,
        guard=f"OPWEST_MODEL_{names.macro}_INTERNAL_H_",
        metadata_version=METADATA_VERSION,
        forward=sorted(
            {o.convention.descriptors.forward for o in model.operators if o.convention.descriptors} - {None}
        ),
        prototypes=[declared(f"{o.c_result} {names.operator(o.symbol)}", o.parameters) for o in by_symbol.values()],
        checks=[names.operator(symbol) for symbol in checked_steps(model)],
        bridges=[prototype(names.bridge(o.name), o) for o in model.operators if o.is_bridged],
        constants=[
            {"symbol": names.constant(c.name), "c_type": c.type.dtype.c_type, "elements": c.type.elements}
            for c in model.constants
        ],
        operator_count=len(model.operators),
        device_count=len(model.devices),
        streams=model.streams,
        reached=[row["function"] for row in reach_rows(model)],
        programs=[{"symbol": names.program(p.content), "size": len(p.content)} for p in model.programs],
        program_table=names.function("programs"),
    )


def prototype(name: str, operator: Operator) -> str:
    """Return the head of a function that calls an operator: the arguments and the device, as arg0, arg1, ..."""
    types = [a.c_type for a in operator.args] + ([operator.handle] if operator.takes_device else [])
    returns = "int32_t" if operator.returns_status else "void"
    return declared(f"{returns} {name}", [(f"arg{index}", type_) for index, type_ in enumerate(types)])


def declared(head: str, parameters: Sequence[tuple[str, str]]) -> str:
    """Return the head of a function with parameters: their names, unless two are equal, and C types."""
    names = [member_name(name) for name, _ in parameters]
    if len(set(names)) < len(names):  # a tensor called device
        names = [f"arg{index}" for index in range(len(names))]
    words = [
        f"{c_type}{'' if c_type.endswith('*') else ' '}{name}"
        for name, (_, c_type) in zip(names, parameters, strict=True)
    ]
    return call_text(head, words or ["void"])
