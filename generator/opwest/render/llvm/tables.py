# SPDX-License-Identifier: Apache-2.0
"""The constant part of the LLVM metadata module: what metadata.c and registry.c hold, as LLVM IR.

Types mirror the structures of zephyr_module/include/opwest; LLVM lays them out by the target's data layout, as
C does, and <model>_devices.c asserts it.
"""

from __future__ import annotations

from opwest.model.c_names import CNames
from opwest.model.dtypes import DTYPES, TensorType
from opwest.model.model import Argument, Model, Operator, Quantization
from opwest.plan.memory import MemoryPlan
from opwest.render.c.header import pool_rows
from opwest.render.c.metadata import (
    DIRECTION_CODES,
    METADATA_VERSION,
    callable_by_name,
    operator_flags,
    tensor_flags,
)
from opwest.render.devices import device_flags
from opwest.render.llvm.text import ir_bytes, ir_float
from opwest.render.perfect_hash import perfect_hash
from opwest.render.points import points

TYPES = """\
%opwest_quantization = type { ptr, ptr, i32, i32, i32 }
%opwest_tensor = type { ptr, ptr, ptr, i32, i8, i8, i8, i8 }
%opwest_operator = type { ptr, ptr, i16, i16 }
%opwest_step = type { i16, i16 }
%opwest_pool = type { ptr, i32, i32 }
%opwest_point = type { ptr, i16, i16, i32 }
%opwest_program = type { ptr, ptr, i32 }
%opwest_device = type { ptr, ptr, ptr, i32, i32 }
%opwest_device_set = type { ptr, ptr, i32 }
%opwest_model = type { ptr, ptr, ptr, ptr, ptr, ptr, ptr, i32, i16, i16, i16, i16, i16, i16, i16 }
%opwest_entry = type { ptr, ptr }
%opwest_registry = type { ptr, ptr, i32, i32, i32 }"""

_PRIVATE = "private unnamed_addr constant"


class Tables:
    """Collects the definitions; equal strings, shapes and quantizations are defined once."""

    def __init__(self, model: Model, plan: MemoryPlan) -> None:
        self.model = model
        self.plan = plan
        self.names = CNames(model.name)
        self.lines: list[str] = []
        self._strings: dict[str, str] = {}
        self._of_run: dict[str, str] = {}
        self._shapes: dict[tuple[int, ...], str] = {}
        self._quantizations: dict[Quantization, str] = {}

    def define(self) -> list[str]:
        """Return the definitions of constants, metadata and registry."""
        self._constants()
        if self.model.devices:
            name, table = self.string_of_run(self.model.name), self.names.function("device_table")
            self.lines.append(
                f"@device_set = {_PRIVATE} %opwest_device_set {{ ptr {name}, ptr @{table}, "
                f"i32 {len(self.model.devices)} }}"
            )
        self._metadata()
        self._registry()
        self._points()
        return self.lines

    def string(self, text: str) -> str:
        """Return the symbol of a C string."""
        if text not in self._strings:
            symbol = self._strings[text] = f"@string_{len(self._strings)}"
            content = text.encode() + b"\0"
            self.lines.append(f"{symbol} = {_PRIVATE} [{len(content)} x i8] {ir_bytes(content)}, align 1")
        return self._strings[text]

    def string_of_run(self, text: str) -> str:
        """Return the symbol of a C string that run needs: in a section of its own.

        The linker keeps or drops mergeable strings all together: run would keep those of the metadata.
        """
        if text in self._of_run:
            return self._of_run[text]
        symbol = self._of_run[text] = f"@{self.names.function('run')}_string_{len(self._of_run)}"
        content = text.encode() + b"\0"
        self.lines.append(
            f"{symbol} = private constant [{len(content)} x i8] {ir_bytes(content)}, "
            f'section ".rodata.{symbol[1:]}", align 1'
        )
        return symbol

    def _shape(self, shape: tuple[int, ...]) -> str:
        if not shape:
            return "null"
        if shape not in self._shapes:
            symbol = self._shapes[shape] = "@shape_" + "_".join(map(str, shape))
            values = ", ".join(f"i32 {n}" for n in shape)
            self.lines.append(f"{symbol} = {_PRIVATE} [{len(shape)} x i32] [{values}]")
        return self._shapes[shape]

    def _quantization(self, quantization: Quantization | None) -> str:
        if quantization is None:
            return "null"
        if quantization not in self._quantizations:
            symbol = self._quantizations[quantization] = f"@quantization_{len(self._quantizations)}"
            scales = ", ".join(f"float {ir_float(s, DTYPES['float32'])}" for s in quantization.scales)
            zeros = ", ".join(f"i32 {z}" for z in quantization.zero_points)
            many, axis = len(quantization.scales), -1 if quantization.axis is None else quantization.axis
            points = len(quantization.zero_points)
            self.lines += [
                f"{symbol}_scales = {_PRIVATE} [{many} x float] [{scales}]",
                f"{symbol}_zero_points = {_PRIVATE} [{points} x i32] [{zeros}]",
                f"{symbol} = {_PRIVATE} %opwest_quantization {{ ptr {symbol}_scales, ptr {symbol}_zero_points, "
                f"i32 {many}, i32 {points}, i32 {axis} }}",
            ]
        return self._quantizations[quantization]

    def _tensor(
        self, name: str, type_: TensorType, quantization: Quantization | None, direction: int, flags: int
    ) -> str:
        return (
            f"%opwest_tensor {{ ptr {self.string(name)}, ptr {self._shape(type_.shape)}, "
            f"ptr {self._quantization(quantization)}, i32 {type_.size}, i8 {type_.dtype.number}, "
            f"i8 {len(type_.shape)}, i8 {direction}, i8 {flags} }}"
        )

    def _argument(self, argument: Argument) -> str:
        flags = tensor_flags(argument.align, scalar=argument.scalar)
        direction = DIRECTION_CODES[argument.direction]
        return self._tensor(argument.name, argument.type, argument.quantization, direction, flags)

    def _table(self, symbol: str, type_: str, rows: list[str], linkage: str = _PRIVATE) -> str:
        """Define a table and return its symbol; "null" where it would be empty."""
        if not rows:
            return "null"
        self.lines.append(f"{symbol} = {linkage} [{len(rows)} x {type_}] [\n  " + ",\n  ".join(rows) + "\n]")
        return symbol

    def _constants(self) -> None:
        for constant in self.model.constants:
            symbol = f"@{self.names.constant(constant.name)}"
            size = len(constant.content)
            self.lines.append(f"{symbol} = constant [{size} x i8] {ir_bytes(constant.content)}, align {constant.align}")

    def _programs(self) -> dict[bytes, str]:
        """Define the programs, each once in an image, and return their symbols by content."""
        found = {}
        for index, program in enumerate(self.model.programs):
            data = f"@{self.names.program(program.content)}"
            size = len(program.content)
            self.lines += [
                f"{data.replace('@', '$')} = comdat any",
                f"{data} = weak_odr constant [{size} x i8] {ir_bytes(program.content)}, comdat, align 16",
                f"@program_{index} = {_PRIVATE} %opwest_program {{ ptr {self.string_of_run(program.name)}, ptr {data}, "
                f"i32 {size} }}",
            ]
            found[program.content] = f"@program_{index}"
        return found

    def _metadata(self) -> None:
        model, names = self.model, self.names
        interfaces = []
        for name, tensors, direction in (("inputs", model.inputs, "in"), ("outputs", model.outputs, "out")):
            code = DIRECTION_CODES[direction]
            rows = [self._tensor(t.name, t.type, t.quantization, code, tensor_flags(t.align)) for t in tensors]
            interfaces.append(self._table(f"@{name}", "%opwest_tensor", rows))
        operators = []
        for operator in model.operators:
            args = [self._argument(a) for a in operator.args]
            table = self._table(f"@{names.arguments(operator.name)}", "%opwest_tensor", args)
            operators.append(
                f"%opwest_operator {{ ptr {self.string(operator.name)}, ptr {table}, i16 {len(args)}, "
                f"i16 {operator_flags(operator)} }}"
            )
        operator_table = self._table(f"@{names.function('operators')}", "%opwest_operator", operators, "constant")
        index = {operator.name: i for i, operator in enumerate(model.operators)}
        device_index = {device.name: i for i, device in enumerate(model.devices)}
        steps = [
            f"%opwest_step {{ i16 {index[s.operator.name]}, i16 {device_index[s.device] if s.device else -1} }}"
            for s in model.steps
        ]
        pools = [
            f"%opwest_pool {{ ptr {self.string(p['name'])}, i32 {p['size']}, i32 {p['align']} }}"
            for p in pool_rows(model, self.plan)
        ]
        programs = self._programs()
        devices = [
            f"%opwest_device {{ ptr {self.string_of_run(d.name)}, "
            f"ptr {self.string_of_run(d.type) if d.type else 'null'}, "
            f"ptr {programs[d.program.content] if d.program else 'null'}, i32 {d.timeout_ms}, i32 {device_flags(d)} }}"
            for d in model.devices
        ]
        tables = [
            *interfaces,
            operator_table,
            self._table("@steps", "%opwest_step", steps),
            self._table("@pools", "%opwest_pool", pools),
            self._table(f"@{names.function('device_table')}", "%opwest_device", devices, "constant"),
        ]
        counts = [METADATA_VERSION, len(model.inputs), len(model.outputs), len(operators), len(steps), len(pools)]
        counts.append(len(devices))
        constant_size = sum(len(c.content) for c in model.constants)
        fields = [f"ptr {symbol}" for symbol in (self.string(model.name), *tables)]
        fields += [f"i32 {constant_size}", *(f"i16 {count}" for count in counts)]
        self.lines.append(f"@{names.function('model')} = constant %opwest_model {{ {', '.join(fields)} }}")

    def _points(self) -> None:
        """Define what the run that measures measures."""
        rows = [
            f"%opwest_point {{ ptr {self.string(p.name)}, i16 {_short(p.step)}, i16 {_short(p.device)}, i32 {p.code} }}"
            for p in points(self.model, self.plan)
        ]
        self._table(f"@{self.names.function('points')}", "%opwest_point", rows, "constant")

    def _adapter(self, operator: Operator) -> str:
        return f"@{self.names.adapter(operator.name)}" if callable_by_name(operator) else "null"

    def _registry(self) -> None:
        model, names = self.model, self.names
        table = perfect_hash([o.name for o in model.operators])
        operators = f"[{len(model.operators)} x %opwest_operator], ptr @{names.function('operators')}"
        entries = [
            f"%opwest_entry {{ ptr getelementptr ({operators}, i32 0, i32 {i}), "
            f"ptr {self._adapter(model.operators[i])} }}"
            for i in table.order
        ]
        displacements = [f"i16 {_short(d)}" for d in table.displacements]
        fields = (
            f"ptr {self._table('@entries', '%opwest_entry', entries)}, "
            f"ptr {self._table('@displacements', 'i16', displacements)}, "
            f"i32 {table.seed}, i32 {len(displacements)}, i32 {len(entries)}"
        )
        self.lines.append(f"@{names.function('registry')} = constant %opwest_registry {{ {fields} }}")


def _short(value: int) -> int:
    return value - 0x10000 if value > 0x7FFF else value
