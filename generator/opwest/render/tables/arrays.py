# SPDX-License-Identifier: Apache-2.0
"""The DLTensors of argument arrays, and the tables of their shapes and strides, for the printers of C and LLVM IR."""

from __future__ import annotations

from opwest.base.frozen_dataclass import dataclass
from opwest.model.types.conventions import Arrays, Descriptors, EntryKind
from opwest.model.types.dtypes import DType
from opwest.model.types.model import Argument, Model, Operator
from opwest.render.tables import layout
from opwest.render.tables.types import Definition, Reference, StructValue, Value


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
    listed: list[Entry] = []
    tensors = 0
    for index, argument in enumerate(operator.args):
        if not argument.is_passed:
            continue
        kind = _kind(argument)
        listed.append(Entry(kind, index, tensors if kind == "tensor" else None, argument))
        tensors += kind == "tensor"
    if operator.takes_device:
        listed.append(Entry("pointer", len(operator.args), None, None))
    return listed


def tensors(operator: Operator) -> list[Argument]:
    """Return the arguments that are passed as DLTensors."""
    return [e.argument for e in entries(operator) if e.kind == "tensor" and e.argument is not None]


def strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of a dense tensor in C order, in elements."""
    elements: list[int] = []
    step = 1
    for extent in reversed(shape):
        elements.append(step)
        step *= extent
    return tuple(reversed(elements))


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


@dataclass(frozen=True, slots=True)
class Described:
    """A tensor that is passed as a pointer to a structure."""

    parameter: int
    """The bridge's parameter with the address of the data."""
    member: str
    """Its member of the structure with all descriptors of a call."""
    value: StructValue
    """The structure without data."""


class BridgeTables:
    """Makes the structures that describe the tensors of bridges; equal tables are defined once."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, ...], Definition] = {}
        self._dimensions: dict[tuple[int, ...], Definition] = {}

    def define(self) -> list[Definition]:
        """Return the tables of the shapes, strides and dimensions."""
        return [*self._numbers.values(), *self._dimensions.values()]

    def tensor(self, argument: Argument, arrays: Arrays) -> StructValue:
        """Return the DLTensor of an argument without its data."""
        shape = argument.type.shape
        dlpack = arrays.dlpack(argument.type.dtype)
        assert dlpack is not None  # Convention.passes_tensor
        code = layout.DLPACK_CODE.code(dlpack.code)
        return StructValue(
            layout.DL_TENSOR,
            data=None,
            device=StructValue(layout.DL_DEVICE, device_type=layout.DL_CPU.value, device_id=0),
            ndim=len(shape),
            dtype=StructValue(layout.DL_DATA_TYPE, code=code, bits=dlpack.bits, lanes=1),
            shape=self._number_table(shape),
            strides=self._number_table(strides(shape)) if arrays.has_strides else None,
            byte_offset=0,
        )

    def _number_table(self, values: tuple[int, ...]) -> Reference | None:
        if not values:
            return None
        symbol = "numbers_" + "_".join(map(str, values))
        self._numbers.setdefault(values, Definition(symbol, layout.I64, values))
        return Reference(symbol)

    def described(self, operator: Operator) -> list[Described]:
        """Return the descriptors for a call of an operator."""
        return [
            Described(index, f"tensor_{index}", self._descriptor(operator.convention.descriptors, argument))
            for index, argument in enumerate(operator.args)
            if argument.is_passed and not argument.scalar
        ]

    def _descriptor(self, descriptors: Descriptors | None, argument: Argument) -> StructValue:
        """Return a halide_buffer_t, or a descriptor of a memref."""
        assert descriptors is not None
        shape = argument.type.shape
        if descriptors.content != "halide_buffer":
            arrays: dict[str, Value] = {"sizes": shape, "strides": strides(shape)} if shape else {}
            return StructValue(layout.MEMREFS[len(shape)], allocated=None, aligned=None, offset=0, **arrays)
        return StructValue(
            layout.HALIDE_BUFFER,
            device=0,
            device_interface=None,
            host=None,
            flags=0,
            type=halide_type(argument.type.dtype),
            dimensions=len(shape),
            dim=self._dimension_table(shape),
            padding=None,
        )

    def _dimension_table(self, shape: tuple[int, ...]) -> Reference | None:
        """Halide numbers dimensions from the innermost one, a manifest from the outermost."""
        if not shape:
            return None
        symbol = "dimensions_" + "_".join(map(str, shape))
        if shape not in self._dimensions:
            rows = tuple(
                StructValue(layout.HALIDE_DIMENSION, min=0, extent=extent, stride=step, flags=0)
                for extent, step in zip(reversed(shape), reversed(strides(shape)), strict=True)
            )
            self._dimensions[shape] = Definition(symbol, layout.HALIDE_DIMENSION, rows)
        return Reference(symbol)


def halide_type(dtype: DType) -> StructValue:
    """Return the halide_type_t of an element type: bool is an unsigned integer of one bit."""
    assert dtype.halide is not None  # Convention.passes_tensor
    return StructValue(
        layout.HALIDE_TYPE,
        code=layout.HALIDE_TYPE_CODE.code(dtype.halide),
        bits=1 if dtype.kind == "bool" else 8 * dtype.size,
        lanes=1,
    )
