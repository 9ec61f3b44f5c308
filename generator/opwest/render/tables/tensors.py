# SPDX-License-Identifier: Apache-2.0
"""Records of tensors: equal shapes and quantizations are defined once."""

from __future__ import annotations

from collections.abc import Iterable

from opwest.model.types.dtypes import TensorType
from opwest.model.types.model import Binding, Direction, Model, Quantization
from opwest.render.tables import layout
from opwest.render.tables.types import Scalar, Table
from opwest.render.tables.values import NULL, Definition, Null, Number, Record, Reference, Text, Value

Indices = dict[tuple[str, str], int]
"""The index of a tensor in the table of its role, by role and name."""


def binding_indices(model: Model) -> Indices:
    """Return the indices of all tensors. A buffer of the workspace precedes its role in the interface."""
    tables = {
        "buffer": [b.name for b in model.buffers],
        "input": [t.name for t in model.inputs],
        "output": [t.name for t in model.outputs],
        "constant": [c.name for c in model.constants],
        "view": [v.name for v in model.views],
    }
    return {(role, name): at for role, names in tables.items() for at, name in enumerate(names)}


def bound_record(binding: Binding, indices: Indices) -> Record:
    """Return the record of a tensor or view that a step or a state refers to."""
    if binding.view is not None:
        return binding_record("view", indices["view", binding.view])
    return binding_record(binding.role, indices[binding.role, binding.name])


def binding_record(role: str, index: int) -> Record:
    """Return a record of struct opwest_binding."""
    return Record(layout.BINDING, {"kind": Number(layout.BINDING_KIND.code(role)), "index": Number(index)})


class Shapes:
    """Collects the shapes of a model."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, ...], Definition] = {}

    def refer(self, shape: tuple[int, ...]) -> Reference | Null:
        """Return the address of a shape; NULL for a scalar."""
        if not shape:
            return NULL
        if shape not in self._known:
            self._known[shape] = numbers("shape_" + "_".join(map(str, shape)), layout.U32, shape)
        return Reference(self._known[shape].symbol)

    def define(self) -> list[Definition]:
        """Return the definitions of all shapes."""
        return list(self._known.values())


class Tensors:
    """Makes records of tensors in one part of the tables, and collects their quantizations."""

    def __init__(self, shapes: Shapes, part: str | None = None) -> None:
        self._shapes = shapes
        self._part = part
        self._known: dict[Quantization, int] = {}
        self._prefix = f"{part}_" if part else ""
        self._table = f"{self._prefix}quantizations"

    def record(
        self,
        name: str,
        type_: TensorType,
        direction: Direction,
        align: int,
        quantization: Quantization | None,
        *,
        scalar: bool = False,
        in_place: bool = False,
    ) -> Record:
        """Return the record of a tensor; `align` in bytes."""
        flags = (
            layout.TENSOR_FLAGS.bits(scalar=scalar, in_place=in_place)
            | (align.bit_length() - 1) << layout.TENSOR_ALIGN_SHIFT
        )
        return Record(
            layout.TENSOR,
            {
                "name": Text(name),
                "shape": self._shapes.refer(type_.shape),
                "quantization": self._refer(quantization),
                "size": Number(type_.size),
                "dtype": Number(type_.dtype.number),
                "rank": Number(len(type_.shape)),
                "direction": Number(layout.DIRECTION.code(direction)),
                "flags": Number(flags),
            },
        )

    def _refer(self, quantization: Quantization | None) -> Reference | Null:
        if quantization is None:
            return NULL
        return Reference(self._table, self._known.setdefault(quantization, len(self._known)))

    def define(self) -> list[Definition]:
        """Return the arrays of all quantizations, then the table of them."""
        arrays: list[Definition] = []
        rows: list[Value] = []
        for quantization, index in self._known.items():
            name = f"{self._prefix}quantization_{index}"
            scales = numbers(f"{name}_scales", layout.F32, quantization.scales)
            zero_points = numbers(f"{name}_zero_points", layout.I32, quantization.zero_points)
            arrays += [scales, zero_points]
            fields: dict[str, Value] = {
                "scales": Reference(scales.symbol),
                "zero_points": Reference(zero_points.symbol),
                "scale_count": Number(len(quantization.scales)),
                "zero_point_count": Number(len(quantization.zero_points)),
                "axis": Number(-1 if quantization.axis is None else quantization.axis),
            }
            rows.append(Record(layout.QUANTIZATION, fields))
        if not rows:
            return []
        table = Definition(self._table, Table(layout.QUANTIZATION, len(rows)), tuple(rows), part=self._part)
        return [*arrays, table]


def numbers(symbol: str, type_: Scalar, values: Iterable[int | float]) -> Definition:
    """Return a private table of numbers."""
    items = tuple(Number(number) for number in values)
    return Definition(symbol, Table(type_, len(items)), items)
