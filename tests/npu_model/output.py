# SPDX-License-Identifier: Apache-2.0
"""The end of every operator: zero point, clamp, table, and the result in memory."""

from typing import Any

import numpy as np

from npu_model.commands import Registers, signed
from npu_model.faults import Invalid, Unsupported
from npu_model.memory import FeatureMap, Memory, feature_map, within
from npu_model.rounding import check_mode

_FIRST_TABLE, _LAST_TABLE, _TABLE = 16, 23, 256
_TABLES = 2048
"""Bytes of the tables: the last of the internal memory."""
_FORCED = {2: "u1", 3: "i1", 5: "i2"}


def result(registers: Registers) -> FeatureMap:
    shape = tuple(registers[f"OFM_{axis}_M1"] + 1 for axis in ("HEIGHT", "WIDTH", "DEPTH"))
    return feature_map(registers, "OFM", shape)


def rounding_mode(registers: Registers) -> int:
    return check_mode(registers["OFM_PRECISION"] >> 14)


def has_global_scale(registers: Registers) -> bool:
    """Return whether OFM_SCALE applies to all channels, instead of a scale for each or none."""
    return bool(registers["OFM_PRECISION"] >> 8 & 1)


def global_scale(registers: Registers) -> tuple[int, int]:
    return registers["OFM_SCALE"] & 0xFFFFFFFF, registers["OFM_SCALE"] >> 32


def store(registers: Registers, memory: Memory, values: Any) -> None:
    """Write int64 results of (height, width, depth), scaled and without zero point."""
    target = result(registers)
    activation = registers["ACTIVATION"]
    function, clip = activation & 31, activation >> 12
    if clip and clip not in _FORCED:
        raise Invalid(f"ACTIVATION 0x{activation:X} has no known range")
    kind = np.dtype("<" + _FORCED[clip]) if clip else target.dtype
    if kind.itemsize == 4:
        # Neither zero point nor limits apply: Vela's older code gives results of 32 bits those of 8 bits.
        values = np.clip(values, np.iinfo(kind).min, np.iinfo(kind).max)
    else:
        limits = [registers[f"ACTIVATION_{end}"] for end in ("MIN", "MAX")]
        low, high = [signed(one, 16) for one in limits] if kind.kind == "i" else limits
        if low > high:
            raise Unsupported(f"ACTIVATION_MIN {low} is above ACTIVATION_MAX {high}")
        low, high = max(low, np.iinfo(kind).min), min(high, np.iinfo(kind).max)
        values = np.clip(values + target.zero, low, high)
    if _FIRST_TABLE <= function <= _LAST_TABLE:
        values = _looked_up(values, kind, target.dtype, memory.internal, function - _FIRST_TABLE)
    elif function in (3, 4):
        raise Unsupported("the function of ACTIVATION is TANH or SIGMOID, whose tables in the device are not public")
    elif function:
        raise Invalid(f"ACTIVATION 0x{activation:X} has no known function")
    target.write(memory, values)


def _looked_up(values: Any, kind: Any, dtype: Any, internal: Any, number: int) -> Any:
    """Return the entries of a table: 256 of the OFM's type, or 512 values with slopes for 16 bits."""
    start = len(internal) - _TABLES + number * _TABLE
    if kind.itemsize == 2:
        table = within(internal, start, 2048, "the table of 512 entries").view("<i4").astype(np.int64)
        entry, rest = table[(values >> 7) + (256 if kind.kind == "i" else 0)], values & 127
        base, slope = (entry & 0xFFFF ^ 0x8000) - 0x8000, entry >> 16
        return np.clip(base + ((slope * rest + 64) >> 7), np.iinfo(dtype).min, np.iinfo(dtype).max)
    size = dtype.itemsize
    table = within(internal, start, 256 * size, "the table of 256 entries").view(dtype)
    return table[values + (128 if kind.kind == "i" else 0)].astype(np.int64)
