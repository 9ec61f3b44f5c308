# SPDX-License-Identifier: Apache-2.0
"""The syntax of LLVM IR: strings, floats, parameters. Source: LLVM Language Reference Manual."""

from __future__ import annotations

import struct

from opwest.model.dtypes import DType, round_to_float32
from opwest.model.model import Argument, Operator


def ir_bytes(content: bytes) -> str:
    """Return a constant of bytes: printable ones unchanged, others as two hexadecimal digits."""
    return 'c"' + "".join(chr(b) if 0x20 <= b < 0x7F and b not in b'"\\' else f"\\{b:02X}" for b in content) + '"'


def ir_float(value: float, dtype: DType) -> str:
    """Return a floating constant: the bits of the double with exactly the value in the type."""
    exact = round_to_float32(value) if dtype.size == 4 else value
    if dtype.size == 4:
        exact = struct.unpack("<f", struct.pack("<f", exact))[0]
    return f"0x{struct.pack('>d', exact).hex().upper()}"


def ir_integer(value: int, size: int) -> str:
    """Return an integer constant of `size` bytes: IR has no unsigned types."""
    bits = 8 * size
    return str(value - (1 << bits) if value >> bits - 1 == 1 else value)


def ir_type(dtype: DType) -> str:
    """Return the type of a scalar."""
    return dtype.llvm


def ir_extension(dtype: DType) -> str:
    """Return the attribute by which C's calling conventions extend an integer, after a blank; "" if there is none.

    Integers below 32 bits are extended by their sign; 32 bits are signed, for 64-bit RISC-V only (its ABI sign-extends
    even unsigned int).
    """
    if dtype.is_float or dtype.size == 8:
        return ""
    if dtype.size == 4 or dtype.is_signed:
        return " signext"
    return " zeroext"


def ir_parameter(argument: Argument) -> str:
    """Return the type of an operator's parameter with its attributes."""
    if not argument.scalar:
        return "ptr"
    return ir_type(argument.type.dtype) + ir_extension(argument.type.dtype)


def ir_entry_result(operator: Operator) -> str:
    """Return the return type of a compiled function, with its attributes before it."""
    if operator.result is not None:
        dtype = operator.result.type.dtype
        return f"{ir_extension(dtype).strip()} {ir_type(dtype)}".strip()
    return ir_result(operator)


def ir_result(operator: Operator) -> str:
    """Return the return type of an operator as run calls it."""
    return "signext i32" if operator.returns_status else "void"


def ir_parameters(operator: Operator) -> list[str]:
    """Return the types of an operator's parameters."""
    return [ir_parameter(a) for a in operator.args] + (["ptr"] if operator.takes_device else [])


def ir_copy(result: str, to: str, source: str, size: str, pointer_bits: int) -> str:
    """Return a call of memcpy. Not llvm.memcpy: for Arm it becomes __aeabi_memcpy8, which Zephyr's minimal libc lacks.

    `result` is a register for the result, which nothing uses; `size` in bytes, a number or a constant expression.
    """
    return f"  {result} = call ptr @memcpy(ptr {to}, ptr {source}, i{pointer_bits} {size}) nobuiltin"


def ir_number(value: int | float, dtype: DType) -> str:
    """Return a scalar constant."""
    return ir_float(float(value), dtype) if dtype.is_float else str(int(value))
