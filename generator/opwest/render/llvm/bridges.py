# SPDX-License-Identifier: Apache-2.0
"""The bridges of a model as LLVM IR, equivalent to <model>_bridges.c."""

from __future__ import annotations

from opwest.model.readers.tvmgen import Library, adapted
from opwest.model.types.c_names import CNames
from opwest.model.types.conventions import Arrays, Descriptors
from opwest.model.types.model import Argument, Model, Operator
from opwest.render.c.tvm import TYPE_CODES, entry_kinds, names_size
from opwest.render.llvm.printer import (
    PRIVATE,
    Printer,
    ir_bytes,
    ir_copy,
    ir_entry_result,
    ir_extension,
    ir_load_scalar,
    ir_member,
    ir_parameter,
    ir_parameters,
    ir_result,
    ir_struct,
)
from opwest.render.tables import layout
from opwest.render.tables.arrays import BridgeTables, Described, Entry, entries, supplied, tensors

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
            lines += ir_load_scalar(f"%value.{index}", place, dtype)
            passed.append(f"{dtype.llvm}{ir_extension(dtype)} %value.{index}")
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


_TENSOR, _ANY = ir_struct(layout.DL_TENSOR), ir_struct(layout.TVM_FFI_ANY)


def _passed(operator: Operator, arrays: Arrays) -> list[str]:
    """Return the arguments of a compiled function with arrays, by the names of its parameters."""
    passed = {
        "args": "ptr %values",
        "type_codes": f"ptr @codes.{operator.name}",
        "num_args": f"i32 signext {len(entries(operator))}",
        "result": "ptr %result.at",
        "ret_value": "ptr %result.at",
        "ret_type_code": "ptr %result.code",
    }
    return [passed.get(name, "ptr null") for name, _ in arrays.parameters]


def declarations(model: Model) -> list[str]:
    """Declare the functions that bridges call besides operators."""
    bridged = [operator for operator in model.operators if operator.is_bridged]
    if not bridged:
        return []
    lines = []
    converted = {o.convention.descriptors.status for o in bridged if o.convention.descriptors} - {None}
    lines += [f"declare signext i32 @{name}(i32 signext)" for name in sorted(filter(None, converted))]
    if any(_ends_with_tvm_code(operator) for operator in bridged):
        lines.append("declare signext i32 @opwest_tvm_code(i32 signext)")
    if any(operator.workspace for operator in bridged):
        lines += [
            "declare void @opwest_tvm_enter(ptr, ptr, i32 signext, i32 signext)",
            "declare signext i32 @opwest_tvm_leave(ptr, i32 signext)",
        ]
    return lines


def _ends_with_tvm_code(operator: Operator) -> bool:
    """Whether a bridge converts the status by opwest_tvm_code()."""
    return operator.returns_status and operator.workspace is None and operator.convention.arrays is not None


def entry_parameters(operator: Operator) -> list[str]:
    """Return the types of the parameters of the compiled function."""
    if operator.convention.arrays is not None:
        return ["ptr" if "*" in type_ else "i32 signext" for _, type_ in operator.parameters]
    # A descriptor and a table are pointers, like the data of a tensor.
    indices = [parameter.argument for parameter in operator.passing]
    types = ["ptr" if index is None else ir_parameter(operator.args[index]) for index in indices]
    return types + (["ptr"] if operator.takes_device else [])


class Bridges:
    """Writes the bridges of one model, and their constants."""

    def __init__(self, model: Model, pointer_bits: int) -> None:
        self.model = model
        self.bits = pointer_bits
        self.names = CNames(model.name)
        self.constants: list[str] = []
        self._records = BridgeTables()
        self._printer = Printer(pointer_bits=pointer_bits)

    def define(self) -> list[str]:
        """Return constants and functions; empty if no operator needs a bridge."""
        functions = [self._bridge(operator) for operator in self.model.operators if operator.is_bridged]
        tables = [Printer().definition(table) for table in self._records.define()]
        return [*tables, *self.constants, *functions]

    def _bridge(self, operator: Operator) -> str:
        lines = ["entry:"]
        if operator.workspace is not None:
            lines.append("  %note = alloca %opwest_tvm_workspace")
        arrays = operator.convention.arrays
        if operator.convention.descriptors is not None:
            described = self._records.described(operator)
            lines += self._describe(operator, described, operator.convention.descriptors)
            passed = _described_arguments(operator, described)
        elif arrays is None:
            filled, passed = _plain_arguments(operator)
            lines += filled
        else:
            lines += self._arrays(operator, arrays)
            passed = _passed(operator, arrays)
        workspace, need = supplied(operator, "workspace"), operator.workspace
        if workspace is not None and need is not None:
            lines.append(
                f"  call void @opwest_tvm_enter(ptr %note, ptr %arg{workspace}, "
                f"i32 signext {need.rounded // need.align}, i32 signext {need.align.bit_length() - 1})"
            )
        call = f"call {ir_entry_result(operator)} @{self.names.operator(operator.symbol)}({', '.join(passed)})"
        lines += self._end(operator, call)
        parameters = ", ".join(f"{type_} %arg{i}" for i, type_ in enumerate(ir_parameters(operator)))
        name = self.names.bridge(operator.name)
        linkage = "" if self.model.streams else "internal "  # C calls it, too
        return "\n".join([f"define {linkage}{ir_result(operator)} @{name}({parameters}) {{", *lines, "}"])

    @staticmethod
    def _end(operator: Operator, call: str) -> list[str]:
        """Call the compiled function; return its status."""
        if operator.result is not None:
            given = f"%arg{operator.args.index(operator.result)}"
            return [
                f"  %value = {call}",
                f"  store {operator.result.type.dtype.llvm} %value, ptr {given}",
                "  ret void",
            ]
        if not operator.returns_status:
            return [f"  {call}", "  ret void"]
        lines, code = [f"  %code = {call}"], "%code"
        descriptors = operator.convention.descriptors
        if descriptors is not None and descriptors.status:
            lines.append(f"  %converted = call signext i32 @{descriptors.status}(i32 signext %code)")
            code = "%converted"
        if operator.workspace is not None or operator.convention.arrays is not None:
            end = "leave(ptr %note, " if operator.workspace is not None else "code("
            lines.append(f"  %result = call signext i32 @opwest_tvm_{end}i32 signext {code})")
            code = "%result"
        return [*lines, f"  ret i32 {code}"]

    def _describe(self, operator: Operator, described: list[Described], descriptors: Descriptors) -> list[str]:
        """Build the structures that describe the tensors: copy the constant part, then store the addresses."""
        if not described:
            return []
        rows = [f"{ir_struct(d.value.struct)} {self._printer.value(d.value.struct, d.value)}" for d in described]
        type_ = f"{{ {', '.join(ir_struct(d.value.struct) for d in described)} }}"
        constant = f"@described.{operator.name}"
        self.constants.append(f"{constant} = {PRIVATE} {type_} {{ {', '.join(rows)} }}, align 8")
        lines = [f"  %described = alloca {type_}, align 8", self._copy(type_, "%described", constant)]
        for number, tensor in enumerate(described):
            lines.append(f"  %{tensor.member} = getelementptr {type_}, ptr %described, i32 0, i32 {number}")
            for member in descriptors.data:
                place = f"%{tensor.member}.{member}"
                lines.append(ir_member(place, tensor.value.struct, f"%{tensor.member}", member))
                lines.append(f"  store ptr %arg{tensor.parameter}, ptr {place}")
        return lines

    def _copy(self, type_: str, to: str, constant: str) -> str:
        """Copy a constant structure."""
        size = f"ptrtoint (ptr getelementptr ({type_}, ptr null, i32 1) to i{self.bits})"
        return ir_copy("%copied", to, constant, size, self.bits)

    def _arrays(self, operator: Operator, conventional: Arrays) -> list[str]:
        """Build the argument arrays (tensors, values, result, its code): copy the constants, store the rest."""
        listed = entries(operator)
        codes = [conventional.type_codes[entry.kind][0] for entry in listed]
        many, values, has_codes = len(tensors(operator)), len(listed), conventional.has_code_array
        value, extra = ("i64", ", i32") if has_codes else (_ANY, "")
        type_ = f"{{ [{many} x {_TENSOR}], [{values} x {value}], {value}{extra} }}"
        described = ", ".join(self._tensor(a, conventional) for a in tensors(operator))
        tensor_table = f"[{many} x {_TENSOR}] {f'[{described}]' if many else 'zeroinitializer'}"
        if has_codes:
            rest = f"[{values} x i64] zeroinitializer, i64 0, i32 {layout.TVM_NULLPTR.value}"
            table = ", ".join(f"i32 {code}" for code in codes)
            self.constants.append(f"@codes.{operator.name} = {PRIVATE} [{values} x i32] [{table}]")
        else:
            rows = ", ".join(f"{_ANY} {{ i32 {code}, i32 0, i64 0 }}" for code in codes)
            rest = f"[{values} x {_ANY}] [{rows}], {_ANY} zeroinitializer"
        constant = f"@arrays.{operator.name}"
        self.constants.append(f"{constant} = {PRIVATE} {type_} {{ {tensor_table}, {rest} }}, align 8")
        memory = supplied(operator, "arrays")
        arrays = "%arrays" if memory is None else f"%arg{memory}"
        lines = [f"  %arrays = alloca {type_}, align 8"] if memory is None else []
        lines += [
            self._copy(type_, arrays, constant),
            f"  %values = getelementptr {type_}, ptr {arrays}, i32 0, i32 1",
            f"  %result.at = getelementptr {type_}, ptr {arrays}, i32 0, i32 2",
        ]
        lines += [f"  %result.code = getelementptr {type_}, ptr {arrays}, i32 0, i32 3"] if has_codes else []
        member = "" if has_codes else f", i32 {layout.TVM_FFI_ANY.index_of('v_int64')}"
        for index, entry in enumerate(listed):
            lines.append(f"  %place.{index} = getelementptr {value}, ptr %values, i32 {index}{member}")
            lines += self._fill(entry, index, arrays)
        return lines

    @staticmethod
    def _fill(entry: Entry, index: int, arrays: str) -> list[str]:
        """Write the value of one entry."""
        given, place = f"%arg{entry.parameter}", f"%place.{index}"
        if entry.kind == "tensor":
            # `data` is a DLTensor's first member.
            tensor = f"%tensor.{index}"
            return [
                f"  {tensor} = getelementptr {_TENSOR}, ptr {arrays}, i32 {entry.tensor}",
                f"  store ptr {given}, ptr {tensor}",
                f"  store ptr {tensor}, ptr {place}",
            ]
        if entry.kind == "pointer" or entry.argument is None:
            return [f"  store ptr {given}, ptr {place}"]
        dtype = entry.argument.type.dtype
        wide = "double" if entry.kind == "float" else "i64"
        if dtype.size == 8:
            return [f"  store {wide} {given}, ptr {place}"]
        widening = "fpext" if entry.kind == "float" else "sext" if dtype.is_signed else "zext"
        return [
            f"  %wide.{index} = {widening} {dtype.llvm} {given} to {wide}",
            f"  store {wide} %wide.{index}, ptr {place}",
        ]

    def _tensor(self, argument: Argument, arrays: Arrays) -> str:
        return f"{_TENSOR} {Printer().value(layout.DL_TENSOR, self._records.tensor(argument, arrays))}"


def _plain_arguments(operator: Operator) -> tuple[list[str], list[str]]:
    """Return the code that fills the tables of pointers, and the arguments of the compiled function."""
    lines: list[str] = []
    passed: list[str] = []
    for number, parameter in enumerate(operator.passing):
        if parameter.entries is None:
            index = parameter.argument
            passed.append("ptr null" if index is None else f"{ir_parameter(operator.args[index])} %arg{index}")
            continue
        table = f"%table.{number}"
        lines.append(f"  {table} = alloca [{len(parameter.entries)} x ptr]")
        for place, index in enumerate(parameter.entries):
            value = "null" if index is None else f"%arg{index}"
            lines.append(f"  {table}.{place} = getelementptr ptr, ptr {table}, i32 {place}")
            lines.append(f"  store ptr {value}, ptr {table}.{place}")
        passed.append(f"ptr {table}")
    return lines, [*passed, *([f"ptr %arg{len(operator.args)}"] if operator.takes_device else [])]


def _described_arguments(operator: Operator, described: list[Described]) -> list[str]:
    """Return the arguments of the compiled function."""
    members = {tensor.parameter: tensor.member for tensor in described}
    return [
        f"ptr %{members[index]}" if index in members else f"{ir_parameter(argument)} %arg{index}"
        for index, argument in enumerate(operator.args)
        if argument.is_passed
    ]
