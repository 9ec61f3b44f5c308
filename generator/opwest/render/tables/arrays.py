# SPDX-License-Identifier: Apache-2.0
"""The DLTensors of argument arrays, and the tables of their shapes and strides, for the printers of C and LLVM IR."""

from __future__ import annotations

from opwest.base.frozen_dataclass import dataclass
from opwest.model.types.conventions import Arrays, Descriptors, EntryKind
from opwest.model.types.dtypes import DType
from opwest.model.types.model import Argument, Model, Operator
from opwest.render.tables import layout
from opwest.render.tables.types import NULL, Definition, Null, Number, Numbers, Record, Reference, Struct, Table


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of `args`."""

    kind: EntryKind
    parameter: int
    """The bridge's parameter with its value."""
    tensor: int | None
    """Its place among the DLTensors."""
    argument: Argument | None
    """None for the device."""


def entries(operator: Operator) -> list[Entry]:
    """Return the entries for a packed or ffi operator: its arguments, then its device."""
    found: list[Entry] = []
    tensors = 0
    for index, argument in enumerate(operator.args):
        if not argument.is_passed:
            continue
        kind = _kind(argument)
        found.append(Entry(kind, index, tensors if kind == "tensor" else None, argument))
        tensors += kind == "tensor"
    if operator.takes_device:
        found.append(Entry("pointer", len(operator.args), None, None))
    return found


def tensors(operator: Operator) -> list[Argument]:
    """Return the arguments that are passed as DLTensors."""
    return [e.argument for e in entries(operator) if e.kind == "tensor" and e.argument is not None]


def strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of a dense tensor in C order, in elements."""
    found: list[int] = []
    step = 1
    for extent in reversed(shape):
        found.append(step)
        step *= extent
    return tuple(reversed(found))


def supplied(operator: Operator, what: str) -> int | None:
    """Return the bridge's parameter for the workspace or for the arrays; None if there is none."""
    return next((i for i, a in enumerate(operator.args) if a.supplied == what), None)


def has_bridges(model: Model) -> bool:
    """Return whether an operator has another convention, a workspace or a value."""
    return any(operator.is_bridged for operator in model.operators)


def _kind(argument: Argument) -> EntryKind:
    if argument.scalar:
        if argument.type.dtype.is_float:
            return "float"
        return "boolean" if argument.type.dtype.kind == "bool" else "integer"
    return "pointer" if argument.pointer else "tensor"


class TensorRecords:
    """Makes the DLTensors of a model; equal tables are defined once."""

    def __init__(self) -> None:
        self.tables: dict[tuple[int, ...], Definition] = {}

    def tensor(self, argument: Argument, arrays: Arrays) -> Record:
        """Return the DLTensor of an argument without its data."""
        shape = argument.type.shape
        dlpack = arrays.dlpack(argument.type.dtype)
        assert dlpack is not None  # Convention.passes_tensor
        device = {"device_type": Number(layout.DL_CPU.value), "device_id": Number(0)}
        dtype = {
            "code": Number(layout.DLPACK_CODE.code(dlpack.code)),
            "bits": Number(dlpack.bits),
            "lanes": Number(1),
        }
        return Record(
            layout.DL_TENSOR,
            {
                "data": NULL,
                "device": Record(layout.DL_DEVICE, device),
                "ndim": Number(len(shape)),
                "dtype": Record(layout.DL_DATA_TYPE, dtype),
                "shape": self._table(shape),
                "strides": self._table(strides(shape)) if arrays.has_strides else NULL,
                "byte_offset": Number(0),
            },
        )

    def _table(self, values: tuple[int, ...]) -> Reference | Null:
        if not values:
            return NULL
        if values not in self.tables:
            symbol = "numbers_" + "_".join(map(str, values))
            items = tuple(Number(value) for value in values)
            self.tables[values] = Definition(symbol, Table(layout.I64, len(items)), items)
        return Reference(self.tables[values].symbol)


@dataclass(frozen=True, slots=True)
class Described:
    """A tensor that is passed as a pointer to a structure."""

    parameter: int
    """The bridge's parameter with the address of the data."""
    member: str
    """Its member of the structure with all descriptors of a call."""
    record: Record
    """The structure without data."""


class DescriptorRecords:
    """Makes the descriptors of a model; equal tables of dimensions are defined once."""

    def __init__(self) -> None:
        self.tables: dict[tuple[int, ...], Definition] = {}

    def of(self, operator: Operator) -> list[Described]:
        """Return the descriptors for a call of an operator."""
        return [
            Described(index, f"tensor_{index}", self._record(operator.convention.descriptors, argument))
            for index, argument in enumerate(operator.args)
            if argument.is_passed and not argument.scalar
        ]

    def _record(self, descriptors: Descriptors | None, argument: Argument) -> Record:
        assert descriptors is not None
        return self._buffer(argument) if descriptors.content == "halide_buffer" else _memref(argument.type.shape)

    def _buffer(self, argument: Argument) -> Record:
        """Return a halide_buffer_t. Halide numbers dimensions from the innermost one, a manifest from the outermost."""
        shape = argument.type.shape
        return Record(
            layout.HALIDE_BUFFER,
            {
                "device": Number(0),
                "device_interface": NULL,
                "host": NULL,
                "flags": Number(0),
                "type": halide_type(argument.type.dtype),
                "dimensions": Number(len(shape)),
                "dim": Reference(self._dimensions(shape)) if shape else NULL,
                "padding": NULL,
            },
        )

    def _dimensions(self, shape: tuple[int, ...]) -> str:
        if shape not in self.tables:
            items = tuple(
                Record(
                    layout.HALIDE_DIMENSION,
                    {"min": Number(0), "extent": Number(extent), "stride": Number(step), "flags": Number(0)},
                )
                for extent, step in zip(reversed(shape), reversed(strides(shape)), strict=True)
            )
            symbol = "dimensions_" + "_".join(map(str, shape))
            self.tables[shape] = Definition(symbol, Table(layout.HALIDE_DIMENSION, len(items)), items)
        return self.tables[shape].symbol


def halide_type(dtype: DType) -> Record:
    """Return the halide_type_t of an element type: bool is an unsigned integer of one bit."""
    assert dtype.halide is not None  # Convention.passes_tensor
    return Record(
        layout.HALIDE_TYPE,
        {
            "code": Number(layout.HALIDE_TYPE_CODE.code(dtype.halide)),
            "bits": Number(1 if dtype.kind == "bool" else 8 * dtype.size),
            "lanes": Number(1),
        },
    )


def _memref(shape: tuple[int, ...]) -> Record:
    arrays = {"sizes": Numbers(shape), "strides": Numbers(strides(shape))} if shape else {}
    return Record(_struct(len(shape)), {"allocated": NULL, "aligned": NULL, "offset": Number(0), **arrays})


def _struct(rank: int) -> Struct:
    return layout.MEMREFS[rank]
