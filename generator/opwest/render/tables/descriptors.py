# SPDX-License-Identifier: Apache-2.0
"""The structures that describe tensors for Halide and MLIR, for the printers of C and LLVM IR."""

from __future__ import annotations

from typing import assert_never

from opwest.base.frozen_dataclass import dataclass
from opwest.model.types.conventions import ConventionName
from opwest.model.types.dtypes import DType
from opwest.model.types.model import Argument, Operator
from opwest.render.tables import layout
from opwest.render.tables.arrays import strides
from opwest.render.tables.types import Struct, Table
from opwest.render.tables.values import NULL, Definition, Number, Numbers, Record, Reference


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
            Described(index, f"tensor_{index}", self._record(operator.convention.name, argument))
            for index, argument in enumerate(operator.args)
            if argument.is_passed and not argument.scalar
        ]

    def _record(self, convention: ConventionName, argument: Argument) -> Record:
        match convention:
            case "halide":
                return self._buffer(argument)
            case "memref":
                return _memref(argument.type.shape)
            case "unpacked" | "packed" | "ffi":
                raise AssertionError(f"{convention} operators have no descriptors")
            case _:
                assert_never(convention)

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
    kinds = {"int": "int", "uint": "uint", "float": "float", "bool": "uint"}
    kind = "bfloat" if dtype.name == "bfloat16" else kinds[dtype.kind]
    return Record(
        layout.HALIDE_TYPE,
        {
            "code": Number(layout.HALIDE_TYPE_CODE.code(kind)),
            "bits": Number(1 if dtype.kind == "bool" else 8 * dtype.size),
            "lanes": Number(1),
        },
    )


def _memref(shape: tuple[int, ...]) -> Record:
    arrays = {"sizes": Numbers(shape), "strides": Numbers(strides(shape))} if shape else {}
    return Record(_struct(len(shape)), {"allocated": NULL, "aligned": NULL, "offset": Number(0), **arrays})


def _struct(rank: int) -> Struct:
    return layout.MEMREFS[rank]
