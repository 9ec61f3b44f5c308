# SPDX-License-Identifier: Apache-2.0
"""The system library as LLVM IR, equivalent to <model>_tvm_crt.c."""

from __future__ import annotations

from opwest.model.readers.tvmgen import Library, adapted
from opwest.model.types.c_names import CNames
from opwest.model.types.model import Model, Operator
from opwest.render.c.tvm import TYPE_CODES, entry_kinds, names_size
from opwest.render.llvm.printer import PRIVATE, ir_bytes, ir_extension, ir_member, ir_result, ir_type
from opwest.render.tables import layout

_TYPE = "signext i32 @{}(ptr, ptr, i32 signext, ptr, ptr, ptr)"


def library_ir(model: Model, library: Library | None) -> list[str]:
    """Return the model's adapters, and the table if this model defines it."""
    names = CNames(model.name)
    parts = [_adapter(names, operator) for operator in adapted(model)]
    if library is not None and library.lead == model.name:
        parts += _table(model, library)
    return parts


def _adapter(names: CNames, operator: Operator) -> str:
    """Return a packed function that calls an operator of another convention."""
    kinds = entry_kinds(operator)
    lines = [
        "entry:",
        f"  %many = icmp eq i32 %count, {len(kinds)}",
        "  br i1 %many, label %code0, label %wrong",
    ]
    for index, kind in enumerate(kinds):
        following = f"code{index + 1}" if index + 1 < len(kinds) else "call"
        lines += [
            f"code{index}:",
            f"  %code.at.{index} = getelementptr i32, ptr %codes, i32 {index}",
            f"  %code.{index} = load i32, ptr %code.at.{index}",
            f"  %fits.{index} = icmp eq i32 %code.{index}, {TYPE_CODES[kind][0]}",
            f"  br i1 %fits.{index}, label %{following}, label %wrong",
        ]
    lines.append("call:")
    passed = []
    for index, kind in enumerate(kinds):
        place = f"%at.{index}"
        lines.append(f"  {place} = getelementptr i64, ptr %args, i32 {index}")
        if kind in ("tensor", "pointer"):
            lines.append(f"  %handle.{index} = load ptr, ptr {place}")
            passed.append(f"ptr %handle.{index}" if kind == "pointer" else f"ptr %data.{index}")
        if kind == "tensor":
            lines += [
                f"  %start.{index} = load ptr, ptr %handle.{index}",
                ir_member(f"%offset.at.{index}", layout.DL_TENSOR, f"%handle.{index}", "byte_offset"),
                f"  %offset.{index} = load i64, ptr %offset.at.{index}",
                f"  %data.{index} = getelementptr i8, ptr %start.{index}, i64 %offset.{index}",
            ]
        elif kind != "pointer":
            dtype = operator.args[index].type.dtype
            wide = "double" if kind == "float" else "i64"
            value = f"%value.{index}"
            if dtype.size == 8:
                lines.append(f"  {value} = load {wide}, ptr {place}")
            else:
                narrow = "fptrunc" if kind == "float" else "trunc"
                lines += [
                    f"  {value}.wide = load {wide}, ptr {place}",
                    f"  {value} = {narrow} {wide} {value}.wide to {ir_type(dtype)}",
                ]
            passed.append(f"{ir_type(dtype)}{ir_extension(dtype)} {value}")
    head = "%status = " if operator.returns_status else ""
    lines += [
        f"  {head}call {ir_result(operator)} @{names.callee(operator)}({', '.join(passed)})",
        f"  ret i32 {'%status' if operator.returns_status else '0'}",
        "wrong:",
        "  ret i32 -1",
    ]
    name = names.packed_adapter(operator.name)
    parameters = "ptr %args, ptr %codes, i32 signext %count, ptr %ret, ptr %ret.code, ptr %resource"
    return "\n".join([f"define signext i32 @{name}({parameters}) {{", *lines, "}"])


def _table(model: Model, library: Library) -> list[str]:
    names = CNames(model.name)
    here = {names.packed_adapter(o.name) for o in adapted(model)} | {names.operator(o.symbol) for o in model.operators}
    declared = [f"declare {_TYPE.format(row.symbol)}" for row in library.rows if row.symbol not in here]
    functions = ", ".join(f"ptr @{row.symbol}" for row in library.rows)
    text = b"".join(row.name.encode() + b"\0" for row in library.rows) + b"\0"
    count = len(library.rows)
    signed = count - 0x10000 if count > 0x7FFF else count
    blob = f"{{ i16, [{names_size(library)} x i8] }}"
    return [
        *declared,
        # The order of the count's bytes is the target's.
        f"@tvm_names = {PRIVATE} {blob} {{ i16 {signed}, [{len(text)} x i8] {ir_bytes(text)} }}",
        f"@tvm_functions = {PRIVATE} [{count} x ptr] [{functions}]",
        f"@tvm_registry = {PRIVATE} {{ ptr, ptr }} {{ ptr @tvm_names, ptr @tvm_functions }}",
        f"@tvm_library = {PRIVATE} {{ ptr }} {{ ptr @tvm_registry }}",
        "define ptr @TVMSystemLibEntryPoint() {\nentry:\n  ret ptr @tvm_library\n}",
    ]
