# SPDX-License-Identifier: Apache-2.0
"""How a Fortran procedure receives a scalar: its value or its address, from the location of the parameter.

Compilers of Fortran describe both with the type of the value. Only the location differs: a register that contains the
value, or memory at the address in a register. Source: DWARF 5, sections 2.5, 2.6 and 7.7.
"""

from __future__ import annotations

from opwest.objects.dwarf_units import AT_LOCATION, FORM_BLOCKS, DebugData, Entry, Unit, fixed, sleb, uleb

_DEREF, _BREGX, _FBREG, _REGX, _STACK_VALUE = 0x06, 0x92, 0x91, 0x90, 0x9F
_REGISTERS, _ADDRESSES = range(0x50, 0x70), range(0x70, 0x90)
_ENTRY_VALUES = (0xA3, 0xF3)
_NEXT_EXPRESSION = {0x02: "uu", 0x03: "uu", 0x04: "uu", 0x05: "", 0x07: "aa", 0x08: "au"}
"""DW_LLE_* with an expression: the numbers before it, LEB128 or addresses."""
_BASES = {0x01: "u", 0x06: "a"}
_MAX_BASES = 4


def is_by_reference(data: DebugData, unit: Unit, entry: Entry) -> bool | None:
    """Return whether a scalar parameter contains an address; None if the location is absent or has another form."""
    value = entry.attributes.get(AT_LOCATION)
    if value is None:
        return None
    if value.form in FORM_BLOCKS:
        width = FORM_BLOCKS[value.form]
        length, at = (data.number(value.at, width), value.at + width) if width else uleb(data.info, value.at)
        return _judge(data.info[at : at + length])
    expression = _first_expression(data, unit, value.number)
    return None if expression is None else _judge(expression)


def _judge(expression: bytes) -> bool | None:
    """Return whether an expression locates a value at an address in a register or in a slot of the stack."""
    if not expression:
        return None
    code = expression[0]
    if code in _REGISTERS or code == _REGX:
        return False
    if code in _ENTRY_VALUES:
        length, at = uleb(expression, 1)
        return expression[at + length : at + length + 1] != bytes([_STACK_VALUE])
    if code == _FBREG:
        end = sleb(expression, 1)[1]
        return expression[end : end + 1] == bytes([_DEREF])
    if code in _ADDRESSES or code == _BREGX:
        at = 1 if code in _ADDRESSES else uleb(expression, 1)[1]
        offset, end = sleb(expression, at)
        if expression[end : end + 1] == bytes([_DEREF]):
            return True
        return True if offset == 0 and end == len(expression) else None
    return None


def _first_expression(data: DebugData, unit: Unit, at: int) -> bytes | None:
    """Return the first expression of a location list, which describes the start of the function."""
    lists = data.location_lists[unit.version < 5]
    if unit.version < 5:
        length_at = at + 2 * unit.address
        length = fixed(lists, length_at, 2, data.order)
        return lists[length_at + 2 : length_at + 2 + length]
    for _ in range(_MAX_BASES):
        kind = fixed(lists, at, 1, data.order)
        numbers = _NEXT_EXPRESSION.get(kind, _BASES.get(kind))
        if numbers is None:
            return None
        at += 1
        for number in numbers:
            at = uleb(lists, at)[1] if number == "u" else at + unit.address
        if kind in _NEXT_EXPRESSION:
            length, at = uleb(lists, at)
            return lists[at : at + length]
    return None
