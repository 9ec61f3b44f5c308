# SPDX-License-Identifier: Apache-2.0
"""The LLVM metadata module of a model for one target: run, open, close, adapters, and the constant tables.

Its calls equal those of the C templates, so that the public header and main.c are the same.
"""

from __future__ import annotations

from opwest.model.checks.firmware import checked_steps
from opwest.model.readers.tvmgen import Library
from opwest.model.types.builds import Target
from opwest.model.types.c_names import CNames
from opwest.model.types.model import Model, Operator
from opwest.plan.memory import MemoryPlan
from opwest.render.actions import Cache, actions
from opwest.render.llvm.bridges import Bridges, declarations, entry_parameters, library_ir
from opwest.render.llvm.lifecycle import Lifecycle
from opwest.render.llvm.printer import (
    Tables,
    ir_entry_result,
    ir_extension,
    ir_load_scalar,
    ir_result,
    ir_struct,
    ir_struct_type,
)
from opwest.render.llvm.run import Run
from opwest.render.overlaps import is_inline, pool_memory, run_overlaps, table, tensor_memory
from opwest.render.tables import layout
from opwest.render.tables.model import DEVICE_CALL, callable_by_name
from opwest.render.tables.tensors import workspace_struct
from opwest.render.tensors import interface_rows


def render_ir(model: Model, plan: MemoryPlan, target: Target, library: Library | None = None) -> str:
    """Return the module as textual IR without triple and data layout: compiling it adds the target's.

    `library` is the application's table in microTVM's layout if one of its models requests it.
    """
    pointer_bits = target.bits
    parts = [
        _types(model, plan, pointer_bits),
        _declarations(model, plan, pointer_bits),
        *Tables(CNames(model.name)).define(model, plan, target),
    ]
    lifecycle, run = Lifecycle(model, plan, pointer_bits), Run(model, plan, pointer_bits)
    parts += [lifecycle.open(), lifecycle.close(), *lifecycle.state_functions(), *run.abandon_function()]
    parts += lifecycle.cancel()
    parts += [Run(model, plan, pointer_bits).run(profiled=profiled) for profiled in (False, True)]
    parts += Bridges(model, pointer_bits).define()
    parts += library_ir(model, library)
    parts += [_adapter(CNames(model.name), o) for o in model.operators if callable_by_name(o)]
    return "\n\n".join(parts) + "\n"


def _types(model: Model, plan: MemoryPlan, pointer_bits: int) -> str:
    """Return the structures of the runtime and of the model's header."""
    structs = [
        *layout.STRUCTS,
        workspace_struct(model, plan),
        # The layout of C with CONFIG_OPWEST_PROFILE; <model>_devices.c asserts it.
        workspace_struct(model, plan, profiled=True),
    ]
    return "\n".join(ir_struct_type(struct, pointer_bits) for struct in structs)


def _declarations(model: Model, plan: MemoryPlan, pointer_bits: int) -> str:
    """Declare the functions of the runtime and the operators that the module calls."""
    names = CNames(model.name)
    by_symbol = {operator.symbol: operator for operator in reversed(model.operators)}
    lines = [
        "declare signext i32 @opwest_status_failed(ptr, ptr, i16 zeroext, i32 signext)",
        "declare signext i32 @opwest_status_already()",
        "declare signext i32 @opwest_status_invalid(ptr, i8 zeroext, i16 zeroext)",
        "declare signext i32 @opwest_status_unreached(ptr, i8 zeroext, i16 zeroext)",
        # Weak: without CONFIG_OPWEST_PROFILE it is undefined, and the profiling run is not called.
        "declare extern_weak void @opwest_profile_begin(ptr, ptr, i32 signext)",
        "declare extern_weak void @opwest_profile_end(ptr, ptr, i32 signext)",
    ]
    if model.stateful:
        # Set while a workspace is open. opwest_port_flag_t is as large as a pointer.
        lines.append(f"@in_use = internal global i{pointer_bits} 0")
    if model.stateful or model.checks.busy:
        lines += ["declare zeroext i1 @opwest_port_take(ptr)", "declare void @opwest_port_give(ptr)"]
    if not is_inline(run_overlaps(model, plan)):
        lines += _buffer_sizes(model, plan)
    if model.devices:
        lines += [
            "declare signext i32 @opwest_status_hook_failed"
            "(ptr, ptr, ptr, i32 signext, i8 zeroext, i16 zeroext, i32 signext)",
            "declare signext i32 @opwest_status_cancelled(ptr, i16 zeroext)",
            *(f"declare signext i32 @opwest_devices_{verb}(ptr, ptr, ptr)" for verb in ("activate", "deactivate")),
            "declare signext i32 @opwest_devices_acquire(ptr, ptr, ptr, i16 zeroext)",
            "declare signext i32 @opwest_devices_release(ptr, ptr, ptr, i32 signext)",
            "declare signext i32 @opwest_devices_prepare(ptr, ptr, ptr, i32 signext, i16 zeroext)",
            "declare zeroext i1 @opwest_devices_again(ptr, ptr, ptr, i32 signext, i32 signext)",
            "declare void @opwest_devices_launched(ptr, i32 signext)",
            "declare signext i32 @opwest_devices_sync(ptr, ptr, ptr, i32 signext, i32 signext)",
            "declare void @opwest_devices_begin(ptr, ptr)",
            "declare void @opwest_devices_cancel(ptr, ptr)",
            "declare zeroext i1 @opwest_devices_abandon(ptr, ptr)",
        ]
    if any(operator.takes_device for operator in model.operators):
        lines.append(f"declare signext i32 @{DEVICE_CALL}(ptr, ptr, ptr)")
    operations = {a.operation for a in actions(model, plan) if isinstance(a, Cache)}
    if any(b.role == "constant" for b in model.buffers):
        operations.add("flush")
    copies = any(b.role == "constant" for b in model.buffers) or any(state.next for state in model.states)
    if copies or any(o.convention.arrays or o.convention.descriptors for o in model.operators):
        lines.append(f"declare ptr @memcpy(ptr, ptr, i{pointer_bits})")
    if model.states:
        lines += [
            "declare void @opwest_state_reset(ptr, ptr)",
            "declare signext i32 @opwest_state_save(ptr, ptr, ptr, i32 signext)",
            "declare signext i32 @opwest_state_restore(ptr, ptr, ptr, i32 signext)",
        ]
    lines += [f"declare signext i32 @opwest_port_cache_{name}(ptr, i32 signext)" for name in sorted(operations)]
    lines += [f"declare zeroext i1 @{t['reached']}(ptr)" for t in interface_rows(model) if t["reached"]]
    lines += declarations(model)
    for symbol, operator in sorted(by_symbol.items()):
        parameters = ", ".join(entry_parameters(operator))
        lines.append(f"declare {ir_entry_result(operator)} @{names.operator(symbol)}({parameters})")
    lines += [f"declare signext i32 @{names.operator(symbol)}()" for symbol in checked_steps(model)]
    return "\n".join(lines)


def _buffer_sizes(model: Model, plan: MemoryPlan) -> list[str]:
    """Return the table of opwest_buffers_overlap(), and the function's declaration."""
    structure = ir_struct(workspace_struct(model, plan))
    size = f"ptrtoint (ptr getelementptr ({structure}, ptr null, i32 1) to i32)"
    numbers = [size, *map(str, table(tensor_memory(model), pool_memory(model, plan)))]
    listed = ", ".join(f"i32 {number}" for number in numbers)
    return [
        f"@buffer_sizes = private unnamed_addr constant [{len(numbers)} x i32] [{listed}]",
        "declare signext i32 @opwest_buffers_overlap(ptr, ptr, ptr, ptr)",
    ]


def _adapter(names: CNames, operator: Operator) -> str:
    """Return the function that calls an operator with checked values."""
    lines = ["entry:"]
    args = []
    for index, argument in enumerate(operator.args):
        # The union is the first member of a value.
        lines.append(f"  %at.{index} = getelementptr {ir_struct(layout.VALUE)}, ptr %args, i32 {index}")
        register = f"%arg.{index}"
        if not argument.scalar:
            lines.append(f"  {register} = load ptr, ptr %at.{index}")
            args.append(f"ptr {register}")
            continue
        dtype = argument.type.dtype
        lines += ir_load_scalar(register, f"%at.{index}", dtype)
        args.append(f"{dtype.llvm}{ir_extension(dtype)} {register}")
    if operator.takes_launch:
        args.append("ptr %launch")
    elif operator.takes_device:
        # The handle is the first member of a launch.
        lines.append("  %dev = load ptr, ptr %launch")
        args.append("ptr %dev")
    symbol = names.callee(operator)
    head = "%status = " if operator.returns_status else ""
    lines.append(f"  {head}tail call {ir_result(operator)} @{symbol}({', '.join(args)})")
    lines.append("  ret i32 %status" if operator.returns_status else "  ret i32 0")
    head = f"define internal signext i32 @{names.adapter(operator.name)}(ptr %args, ptr %launch)"
    return "\n".join([f"{head} {{", *lines, "}"])
