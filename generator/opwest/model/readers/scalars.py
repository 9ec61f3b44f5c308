# SPDX-License-Identifier: Apache-2.0
"""Numbers of the manifest: values that steps pass for scalar arguments, and elements of tensors."""

from __future__ import annotations

from typing import Any

from opwest.base.diagnostics import Diagnostics, Location
from opwest.manifest.yaml_reader import describe
from opwest.model.types.dtypes import DTYPES, DType, is_finite
from opwest.model.types.elements import elements_of, numbers_of
from opwest.model.types.model import Argument, Binding


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
    fits = is_finite(value, dtype) if dtype.is_float else _in_range(dtype, value)
    if not fits:
        faults.error(f"argument {argument.name!r} is {describe(value)}", place, expected=_range_words(dtype))
        return None
    return Binding("scalar", argument.name, float(value) if dtype.is_float else value)


def element(faults: Diagnostics, what: str, dtype: DType, value: Any, place: Location) -> bytes | None:
    """Return a number as an element, little-endian; report a value outside the range of the type.

    Floating-point numbers are rounded to the nearest element, also of types that C holds as their bits.
    """
    import numpy as np  # slow to import, and most manifests contain no such number

    value = int(value) if isinstance(value, bool) else value
    is_float = dtype.kind == "float"
    held = None
    if is_float and is_finite(value, DTYPES["float64"]):
        number = np.array(float(value), np.float64)
        with np.errstate(over="ignore"):
            found = (number.astype(dtype.numpy), 0) if dtype.numpy == dtype.name else elements_of(number, dtype)
        held = found[0] if found and np.isfinite(numbers_of(found[0], dtype)) else None
    elif not is_float and _in_range(dtype, value):
        held = np.array(value).astype(dtype.numpy)
    if held is None:
        words = f"a finite number in the range of {dtype.name}" if is_float else _range_words(dtype)
        faults.error(f"{what} is {describe(value)}", place, expected=words)
        return None
    return held.astype(held.dtype.newbyteorder("<")).tobytes()


def _in_range(dtype: DType, value: Any) -> bool:
    least, greatest = _range(dtype)
    return isinstance(value, int) and least <= value <= greatest


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
