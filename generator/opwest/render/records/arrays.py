# SPDX-License-Identifier: Apache-2.0
"""The DLTensors of argument arrays, and the tables of their shapes and strides, for the printers of C and LLVM IR."""

from __future__ import annotations

from opwest.model.conventions import Arrays
from opwest.model.model import Argument
from opwest.render.call_arrays import strides
from opwest.render.records import layout
from opwest.render.records.types import Table
from opwest.render.records.values import NULL, Definition, Null, Number, Record, Reference


class TensorRecords:
    """Makes the DLTensors of a model; equal tables are defined once."""

    def __init__(self) -> None:
        self.tables: dict[tuple[int, ...], Definition] = {}

    def tensor(self, argument: Argument, arrays: Arrays) -> Record:
        """Return the DLTensor of an argument without its data."""
        shape = argument.type.shape
        dlpack = arrays.dlpack(argument.type.dtype)
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
