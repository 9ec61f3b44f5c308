# SPDX-License-Identifier: Apache-2.0
"""The LLVM metadata module of a model for one target: run, open, close, adapters, and the constant tables.

It says what the C templates say, call by call, so that the public header and main.c are the same.
"""

from __future__ import annotations

from opwest.model.c_names import CNames
from opwest.model.model import Argument, Binding, Model, Operator, Step
from opwest.plan.memory import MemoryPlan
from opwest.render.header import pool_rows
from opwest.render.ir_tables import TYPES, Tables
from opwest.render.ir_text import ir_extension, ir_number, ir_parameter, ir_type

# ISO C and POSIX leave these to the C library, but every one that Zephyr can use agrees on them.
_EPERM, _ENODEV, _EINVAL = 1, 19, 22


def render_ir(model: Model, plan: MemoryPlan, pointer_bits: int) -> str:
    """Return the module as textual IR without triple and data layout: compiling it adds the target's."""
    tables = Tables(model, plan)
    name = tables.string_of_run(model.name)
    parts = [TYPES, _own_types(model, plan, pointer_bits), _declarations(model), *tables.define()]
    code = _Code(model, plan, pointer_bits)
    parts += [code.open(), code.close(), code.run(name), *(code.adapter(o) for o in model.operators)]
    return "\n\n".join(parts) + "\n"


def _own_types(model: Model, plan: MemoryPlan, pointer_bits: int) -> str:
    pools = "".join("ptr, " for _ in pool_rows(model, plan))
    return f"%workspace = type {{ {pools}{{ i32, i16 }}, i8 }}\n%value = type {{ i64, i{pointer_bits}, i8, i8 }}"


def _declarations(model: Model) -> str:
    names = CNames(model.name)
    by_symbol = {operator.symbol: operator for operator in reversed(model.operators)}
    lines = [
        "declare signext i32 @opwest_status_failed(ptr, ptr, i16 zeroext, i32 signext)",
        "declare signext i32 @opwest_status_already()",
        "declare zeroext i1 @opwest_port_device_is_ready(ptr)",
    ]
    for symbol, operator in sorted(by_symbol.items()):
        lines.append(f"declare {_result(operator)} @{names.operator(symbol)}({', '.join(_parameters(operator))})")
    return "\n".join(lines)


def _result(operator: Operator) -> str:
    return "signext i32" if operator.returns_status else "void"


def _parameters(operator: Operator) -> list[str]:
    return [ir_parameter(a) for a in operator.args] + (["ptr"] if operator.takes_device else [])


class _Code:
    """Writes the functions. Registers are numbered by name, so that they never meet."""

    def __init__(self, model: Model, plan: MemoryPlan, pointer_bits: int) -> None:
        self.model = model
        self.names = CNames(model.name)
        self.bits = pointer_bits
        self.pools = pool_rows(model, plan)
        self.places = {b.name: (b.pool, plan.place(b.pool, b.name)) for b in model.buffers}
        self.blocks = 0

    def _field(self, register: str, index: int) -> list[str]:
        return [f"  {register} = getelementptr %workspace, ptr %workspace, i32 0, i32 {index}"]

    @property
    def _opened(self) -> int:
        return len(self.pools) + 1

    def _branch(self, condition: str, target: str) -> list[str]:
        """Leave for `target` when the condition holds, else go on in a new block."""
        self.blocks += 1
        return [f"  br i1 {condition}, label %{target}, label %next{self.blocks}", f"next{self.blocks}:"]

    def _null_checks(self, registers: list[str]) -> list[str]:
        lines = []
        for register in registers:
            lines.append(f"  %null.{register} = icmp eq ptr %{register}, null")
            lines += self._branch(f"%null.{register}", "invalid")
        return lines

    def _usable(self, register: str, align: int) -> list[str]:
        """Check that a pointer is there and aligned."""
        lines = [f"  {register}.null = icmp eq ptr {register}, null"]
        lines += self._branch(f"{register}.null", "invalid")
        if align > 1:
            lines += [
                f"  {register}.address = ptrtoint ptr {register} to i{self.bits}",
                f"  {register}.rest = and i{self.bits} {register}.address, {align - 1}",
                f"  {register}.off = icmp ne i{self.bits} {register}.rest, 0",
                *self._branch(f"{register}.off", "invalid"),
            ]
        return lines

    def _load_pools(self) -> list[str]:
        lines = []
        for index, pool in enumerate(self.pools):
            lines += self._field(f"%pool.at.{pool['name']}", index)
            lines.append(f"  %pool.{pool['name']} = load ptr, ptr %pool.at.{pool['name']}")
        return lines

    def _load_opened(self) -> list[str]:
        return [
            *self._field("%opened.at", self._opened),
            "  %opened = load i8, ptr %opened.at",
        ]

    def _end(self, *codes: tuple[str, int]) -> list[str]:
        lines = []
        for label, code in codes:
            lines += [f"{label}:", f"  ret i32 {-code}"]
        return lines

    def open(self) -> str:
        """Return <model>_open()."""
        lines = self._null_checks(["workspace", "devices"]) + self._load_opened()
        lines.append("  %is.open = icmp ne i8 %opened, 0")
        lines += self._branch("%is.open", "already")
        lines += self._load_pools()
        for pool in self.pools:
            lines += self._usable(f"%pool.{pool['name']}", pool["align"])
        for index, device in enumerate(self.model.devices):
            lines += self._load_device(index, device.name)
            ready = f"%ready.{device.name}"
            lines.append(f"  {ready} = call zeroext i1 @opwest_port_device_is_ready(ptr %device.{device.name})")
            lines.append(f"  %absent.{device.name} = xor i1 {ready}, true")
            lines += self._branch(f"%absent.{device.name}", "nodevice")
        lines += ["  store i8 1, ptr %opened.at", "  ret i32 0", *self._already(), *self._end(("invalid", _EINVAL))]
        if self.model.devices:
            lines += self._end(("nodevice", _ENODEV))
        return self._function("open", ["workspace", "devices"], lines)

    def close(self) -> str:
        """Return <model>_close()."""
        lines = self._null_checks(["workspace", "devices"]) + self._load_opened()
        lines.append("  %is.closed = icmp eq i8 %opened, 0")
        lines += self._branch("%is.closed", "already")
        lines += ["  store i8 0, ptr %opened.at", "  ret i32 0", *self._already(), *self._end(("invalid", _EINVAL))]
        return self._function("close", ["workspace", "devices"], lines)

    @staticmethod
    def _already() -> list[str]:
        return [
            "already:",
            "  %already.code = tail call signext i32 @opwest_status_already()",
            "  ret i32 %already.code",
        ]

    def run(self, name: str) -> str:
        """Return <model>_run(); `name` is the symbol of the model's name."""
        lines = self._null_checks(["inputs", "outputs", "workspace", "devices"])
        status = len(self.pools)
        lines += [
            *self._field("%status.at", status),
            "  store i32 0, ptr %status.at",
            f"  %status.step = getelementptr %workspace, ptr %workspace, i32 0, i32 {status}, i32 1",
            "  store i16 -1, ptr %status.step",
        ]
        for role, tensors in (("inputs", self.model.inputs), ("outputs", self.model.outputs)):
            for index, tensor in enumerate(tensors):
                lines += self._load_member(role, index, f"%{role}.{tensor.name}")
                lines += self._usable(f"%{role}.{tensor.name}", max(tensor.align, tensor.type.dtype.size))
        lines += self._load_opened()
        lines.append("  %is.closed = icmp eq i8 %opened, 0")
        lines += self._branch("%is.closed", "closed")
        lines += self._load_pools()
        failures = []
        used = {step.device for step in self.model.steps}
        for index, device in enumerate(self.model.devices):
            if device.name in used:
                lines += self._load_device(index, device.name)
        for step in self.model.steps:
            lines += self._step(step)
            if step.operator.returns_status:
                block = f"next{self.blocks}" if self.blocks else "entry"
                failures.append((step.index, block))
                lines.append(f"  %failed.{step.index} = icmp ne i32 %status.{step.index}, 0")
                lines += self._branch(f"%failed.{step.index}", "failed")
        lines.append("  ret i32 0")
        if failures:
            codes = ", ".join(f"[ %status.{step}, %{block} ]" for step, block in failures)
            steps = ", ".join(f"[ {step if step < 0x8000 else step - 0x10000}, %{block} ]" for step, block in failures)
            lines += [
                "failed:",
                f"  %code = phi i32 {codes}",
                f"  %step = phi i16 {steps}",
                f"  %result = tail call signext i32 @opwest_status_failed(ptr %status.at, ptr {name}, "
                "i16 zeroext %step, i32 signext %code)",
                "  ret i32 %result",
            ]
        lines += self._end(("invalid", _EINVAL), ("closed", _EPERM))
        return self._function("run", ["inputs", "outputs", "workspace", "devices"], lines)

    def _load_member(self, struct: str, index: int, register: str) -> list[str]:
        return [
            f"  {register}.at = getelementptr ptr, ptr %{struct}, i32 {index}",
            f"  {register} = load ptr, ptr {register}.at",
        ]

    def _load_device(self, index: int, name: str) -> list[str]:
        return self._load_member("devices", index, f"%device.{name}")

    def _step(self, step: Step) -> list[str]:
        lines: list[str] = []
        args = []
        for number, (argument, binding) in enumerate(zip(step.operator.args, step.bindings, strict=True)):
            register = f"%at.{step.index}.{number}"
            if binding.role == "buffer":
                pool, offset = self.places[binding.name]
                lines.append(f"  {register} = getelementptr i8, ptr %pool.{pool}, i32 {offset}")
            args.append(f"{ir_parameter(argument)} {self._value(argument, binding, register)}")
        if step.operator.takes_device:
            args.append(f"ptr %device.{step.device}")
        head = f"%status.{step.index} = " if step.operator.returns_status else ""
        symbol = self.names.operator(step.operator.symbol)
        lines.append(f"  {head}call {_result(step.operator)} @{symbol}({', '.join(args)})")
        return lines

    def _value(self, argument: Argument, binding: Binding, register: str) -> str:
        if binding.role == "buffer":
            return register
        if binding.role == "constant":
            return f"@{self.names.constant(binding.name)}"
        if binding.role == "scalar":
            return ir_number(binding.value, argument.type.dtype)
        return f"%{binding.role}s.{binding.name}"

    def adapter(self, operator: Operator) -> str:
        """Return the function that calls an operator with checked values."""
        lines = ["entry:"]
        args = []
        for index, argument in enumerate(operator.args):
            lines.append(f"  %at.{index} = getelementptr %value, ptr %args, i32 {index}")
            register = f"%arg.{index}"
            if not argument.scalar:
                lines.append(f"  {register} = load ptr, ptr %at.{index}")
                args.append(f"ptr {register}")
                continue
            dtype = argument.type.dtype
            wide = "double" if dtype.is_float else "i64"
            if dtype.size == 8:
                lines.append(f"  {register} = load {wide}, ptr %at.{index}")
            else:
                narrow = "fptrunc" if dtype.is_float else "trunc"
                lines.append(f"  {register}.wide = load {wide}, ptr %at.{index}")
                lines.append(f"  {register} = {narrow} {wide} {register}.wide to {ir_type(dtype)}")
            args.append(f"{ir_type(dtype)}{ir_extension(dtype)} {register}")
        if operator.takes_device:
            args.append("ptr %dev")
        symbol = self.names.operator(operator.symbol)
        head = "%status = " if operator.returns_status else ""
        lines.append(f"  {head}tail call {_result(operator)} @{symbol}({', '.join(args)})")
        lines.append("  ret i32 %status" if operator.returns_status else "  ret i32 0")
        head = f"define internal signext i32 @{self.names.adapter(operator.name)}(ptr %args, ptr %dev)"
        return "\n".join([f"{head} {{", *lines, "}"])

    def _function(self, verb: str, parameters: list[str], lines: list[str]) -> str:
        self.blocks = 0
        listed = ", ".join(f"ptr %{name}" for name in parameters)
        return "\n".join([f"define signext i32 @{self.names.function(verb)}({listed}) {{", "entry:", *lines, "}"])
