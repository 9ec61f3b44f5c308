# SPDX-License-Identifier: Apache-2.0
"""Rows of the metadata module and of the function registry."""

from __future__ import annotations

from typing import Any

from opwest.model.c_names import CNames
from opwest.model.dtypes import DTYPES, TensorType
from opwest.model.model import STRUCT_DEVICE, Argument, Model, Operator, Quantization
from opwest.plan.memory import MemoryPlan
from opwest.render.c.header import pool_rows
from opwest.render.c.run import METADATA_VERSION as METADATA_VERSION
from opwest.render.c.run import call_text
from opwest.render.literals import c_float, c_integer, c_string
from opwest.render.perfect_hash import perfect_hash
from opwest.render.templates.renderer import Renderer
from opwest.render.tensors import manifest_name

DIRECTION_CODES = {"in": 0, "out": 1, "inout": 2, "scratch": 3}
"""enum opwest_direction of the runtime."""
_DIRECTIONS = {"in": "OPWEST_IN", "out": "OPWEST_OUT", "inout": "OPWEST_INOUT", "scratch": "OPWEST_SCRATCH"}


class _Shared:
    """Shapes and quantizations by value: equal ones are emitted once."""

    def __init__(self) -> None:
        self.shapes: dict[tuple[int, ...], str] = {}
        self.quantizations: dict[Quantization, str] = {}

    def shape(self, shape: tuple[int, ...]) -> str:
        if not shape:
            return "NULL"
        return self.shapes.setdefault(shape, "shape_" + "_".join(map(str, shape)))

    def quantization(self, quantization: Quantization | None) -> str:
        if quantization is None:
            return "NULL"
        return "&" + self.quantizations.setdefault(quantization, f"quantization_{len(self.quantizations)}")

    def tensor(
        self, name: str, type_: TensorType, quantization: Quantization | None, direction: str, flags: int
    ) -> str:
        """Return the initialiser of a struct opwest_tensor."""
        return ", ".join(
            [
                c_string(name),
                self.shape(type_.shape),
                self.quantization(quantization),
                f"{type_.size}U",
                type_.dtype.code,
                str(len(type_.shape)),
                direction,
                f"0x{flags:02x}U",
            ]
        )

    def argument(self, argument: Argument) -> str:
        direction = _DIRECTIONS[argument.direction]
        flags = tensor_flags(argument.align, scalar=argument.scalar)
        return self.tensor(argument.name, argument.type, argument.quantization, direction, flags)


def render_metadata(render: Renderer, model: Model, plan: MemoryPlan) -> bytes:
    """Return src/<model>_metadata.c."""
    names = CNames(model.name)
    shared = _Shared()
    tables = []
    for name, tensors, direction in (
        ("inputs", model.inputs, "OPWEST_IN"),
        ("outputs", model.outputs, "OPWEST_OUT"),
    ):
        rows = [shared.tensor(t.name, t.type, t.quantization, direction, tensor_flags(t.align)) for t in tensors]
        if rows:
            tables.append({"name": name, "rows": rows})
    for operator in model.operators:
        tables.append({"name": names.arguments(operator.name), "rows": [shared.argument(a) for a in operator.args]})
    index = {operator.name: i for i, operator in enumerate(model.operators)}
    device_index = {device.name: i for i, device in enumerate(model.devices)}
    return render(
        "models/model/src/model_metadata.c",
        model=model.name,
        manifest=manifest_name(model),
        shapes=[{"name": name, "numbers": ", ".join(map(str, shape))} for shape, name in shared.shapes.items()],
        quantizations=[_quantization_row(q, name) for q, name in shared.quantizations.items()],
        tensor_tables=tables,
        operators=[
            f"{c_string(o.name)}, {names.arguments(o.name)}, {len(o.args)}, {_flags(o)}" for o in model.operators
        ],
        steps=[
            f"{index[s.operator.name]}, {device_index[s.device] if s.device else 'OPWEST_NO_DEVICE'}"
            for s in model.steps
        ],
        pools=pool_rows(model, plan),
        device_table=names.function("device_table"),
        device_count=len(model.devices),
        counts={
            "inputs": len(model.inputs),
            "outputs": len(model.outputs),
            "constant_size": sum(len(c.content) for c in model.constants),
        },
    )


def _quantization_row(quantization: Quantization, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "scales": ", ".join(c_float(s, DTYPES["float32"]) for s in quantization.scales),
        "zero_points": ", ".join(c_integer(z, DTYPES["int32"]) for z in quantization.zero_points),
        "scale_count": len(quantization.scales),
        "zero_point_count": len(quantization.zero_points),
        "axis": -1 if quantization.axis is None else quantization.axis,
    }


def tensor_flags(align: int, *, scalar: bool = False) -> int:
    """Return the flags of a tensor: OPWEST_TENSOR_SCALAR, and the alignment as OPWEST_TENSOR_ALIGN() reads it."""
    return (align.bit_length() - 1) << 4 | scalar


def operator_flags(operator: Operator) -> int:
    """Return the flags of an operator: OPWEST_OPERATOR_STATUS, _DEVICE, _STATEFUL and _ASYNC."""
    return operator.returns_status | operator.takes_device << 1 | operator.stateful << 2 | operator.is_async << 3


def _flags(operator: Operator) -> str:
    flags = [
        name
        for name, on in (
            ("OPWEST_OPERATOR_STATUS", operator.returns_status),
            ("OPWEST_OPERATOR_DEVICE", operator.takes_device),
            ("OPWEST_OPERATOR_STATEFUL", operator.stateful),
            ("OPWEST_OPERATOR_ASYNC", operator.is_async),
        )
        if on
    ]
    return " | ".join(flags) or "0"


def render_registry(render: Renderer, model: Model) -> bytes:
    """Return src/<model>_registry.c."""
    names = CNames(model.name)
    table = perfect_hash([o.name for o in model.operators])
    numbers = [f"{d}," for d in table.displacements]
    return render(
        "models/model/src/model_registry.c",
        model=model.name,
        manifest=manifest_name(model),
        adapters=[_adapter_row(names, operator) for operator in model.operators if callable_by_name(operator)],
        entries=[
            {
                "index": i,
                "adapter": names.adapter(model.operators[i].name) if callable_by_name(model.operators[i]) else "NULL",
            }
            for i in table.order
        ],
        displacements=[" ".join(numbers[i : i + 12]) for i in range(0, len(numbers), 12)],
        seed=table.seed,
        bucket_count=len(table.displacements),
    )


def callable_by_name(operator: Operator) -> bool:
    """Whether opwest_call(), which is given a struct device, can call the operator."""
    return not operator.takes_device or operator.handle == STRUCT_DEVICE


def _adapter_row(names: CNames, operator: Operator) -> dict[str, Any]:
    args = []
    for index, argument in enumerate(operator.args):
        value = f"args[{index}].as"
        if argument.scalar:
            member = "real" if argument.type.dtype.is_float else "integer"
            args.append(f"({argument.type.dtype.c_type}){value}.{member}")
        else:
            args.append(f"{value}.in" if argument.direction == "in" else f"{value}.out")
    if operator.takes_device:
        args.append("dev")
    return {
        "name": names.adapter(operator.name),
        "call": call_text(names.callee(operator), args),
        "has_status": operator.returns_status,
        "unused_device": not operator.takes_device,
    }
