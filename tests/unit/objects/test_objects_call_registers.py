# SPDX-License-Identifier: Apache-2.0
"""The registers of arguments, as the procedure call standards of AArch32 and x86-64 list them."""

from types import SimpleNamespace

import pytest
from opwest.objects.call_registers import call_registers


@pytest.mark.parametrize(
    ("machine", "float_abi", "parameters", "used"),
    [
        # A later float takes a register that the alignment of a double leaves free.
        ("arm", "hard", ("float", "double", "float", "int8_t *"), ("r0", "s0", "s2", "s3", "s1")),
        ("arm", "hard", ("double",) * 8 + ("float",), tuple(f"s{n}" for n in range(16))),
        ("arm", "soft", ("int8_t *", "double"), ("r0", "r2", "r3")),
        ("arm", "soft", ("float", "double", "int32_t"), ("r0", "r2", "r3")),
        ("arm", "soft", ("double", "int64_t", "float"), ("r0", "r1", "r2", "r3")),
        ("x86-64", None, ("int8_t *", "float", "int32_t"), ("rdi", "rsi")),
    ],
)
def test_registers_of_arguments(machine, float_abi, parameters, used) -> None:
    member = SimpleNamespace(abi=SimpleNamespace(machine=machine, float_abi=float_abi))
    assert call_registers(member, parameters, "void").used == used


def test_one_place_in_all_conventions() -> None:
    member = SimpleNamespace(abi=SimpleNamespace(machine="arm", float_abi="hard"))
    assert call_registers(member, ("int8_t *", "int32_t"), "int32_t") is None
