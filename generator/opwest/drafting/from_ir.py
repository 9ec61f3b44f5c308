# SPDX-License-Identifier: Apache-2.0
"""Signatures from LLVM IR: kinds and access, without signedness and mostly without pointee types."""

from __future__ import annotations

from opwest.drafting.signatures import Access, Parameter, Signature, finished
from opwest.llvm.facts import IrFunction, IrParameter, IrUse
from opwest.model.dtypes import DTYPES, dtype_of_ir

ORIGIN = "LLVM IR"
_STATUS = IrParameter("integer", 32)
_DEVICES = ("dev", "device")
_SIZES = {"i8": "int8 or uint8", "i16": "int16 or uint16", "i32": "int32 or uint32", "i64": "int64 or uint64"}


def from_ir(function: IrFunction) -> Signature:
    """Return the signature of a function that a module of IR defines."""
    unfit = None
    if function.variadic:
        unfit = "variable arguments"
    returns = function.returns
    known = DTYPES.get(f"float{returns.bits}") if returns is not None and returns.kind == "float" else None
    if returns not in (None, _STATUS) and known is None:
        unfit = unfit or f"it returns {returns}, expected i32, float, double or void"
    parameters = []
    for index, kind in enumerate(function.parameters):
        use = function.uses[index] if index < len(function.uses) else IrUse("", "unknown", ())
        if kind.kind == "other" or (kind.kind == "integer" and kind.bits not in (1, 8, 16, 32, 64)):
            unfit = unfit or f"parameter {index + 1} is {kind}"
        else:
            parameters.append(_parameter(kind, use, is_last=index == len(function.parameters) - 1))
    return finished(Signature(ORIGIN, tuple(parameters), returns is not None, known.name if known else None, unfit))


def _parameter(kind: IrParameter, use: IrUse, *, is_last: bool) -> Parameter:
    if kind.kind == "float":
        known = DTYPES.get(f"float{kind.bits}")
        return Parameter(use.name, "scalar", known.name if known else None)
    if kind.kind == "integer":
        if kind.bits == 1:
            return Parameter(use.name, "scalar", "bool")
        return Parameter(use.name, "scalar", None, remarks=(f"dtype: {_SIZES[f'i{kind.bits}']}",))
    if is_last and use.name in _DEVICES:
        return Parameter(use.name, "device", remarks=("guessed from the parameter's name",))
    access: Access = use.access
    element = dtype_of_ir(use.elements[0]) if len(use.elements) == 1 else None
    remarks = []
    if element is None:
        seen = [_SIZES.get(element, element) for element in use.elements]
        remarks.append(f"dtype: {' or '.join(seen)}?" if seen else "dtype: not in the IR")
    return Parameter(use.name, "tensor", element.name if element else None, access=access, remarks=tuple(remarks))
