# SPDX-License-Identifier: Apache-2.0
"""Values that steps pass for scalar arguments."""

from __future__ import annotations

from typing import Any

from opwest.diagnostics import Diagnostics, Location
from opwest.manifest.yaml_reader import describe
from opwest.model.dtypes import DType, is_finite
from opwest.model.model import Argument, Binding


def bind_number(faults: Diagnostics, argument: Argument, value: Any, place: Location) -> Binding | None:
    """Return the binding of a scalar argument; report a value outside the range of its type."""
    dtype = argument.type.dtype
    if isinstance(value, str):
        faults.error(
            f"argument {argument.name!r} is a scalar, the step passes {value!r}",
            place,
            expected=f"a number of dtype {dtype.name}",
        )
        return None
    value = int(value) if isinstance(value, bool) else value
    fits = is_finite(value, dtype) if dtype.is_float else isinstance(value, int) and _in_range(dtype, value)
    if not fits:
        faults.error(f"argument {argument.name!r} is {describe(value)}", place, expected=_range_words(dtype))
        return None
    return Binding("scalar", argument.name, float(value) if dtype.is_float else value)


def _in_range(dtype: DType, value: int) -> bool:
    least, greatest = _range(dtype)
    return least <= value <= greatest


def _range(dtype: DType) -> tuple[int, int]:
    if dtype.minimum is None or dtype.maximum is None:
        return 0, (1 << 8 * dtype.size) - 1  # its bits
    return dtype.minimum, dtype.maximum


def _range_words(dtype: DType) -> str:
    if dtype.is_float:
        return f"a finite number in the range of {dtype.name}"
    least, greatest = _range(dtype)
    what = f"{dtype.bits} as" if dtype.bits else f"a value of {dtype.name}:"
    return f"{what} a whole number from {least} to {greatest}"
