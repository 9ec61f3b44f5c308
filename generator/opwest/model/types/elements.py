# SPDX-License-Identifier: Apache-2.0
"""Elements in numpy arrays; elements of types that numpy lacks are held as their bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from opwest.manifest.arrays import Array
from opwest.model.types.dtypes import DType

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Elements = NDArray[np.generic]

_FLOATS = ("float32", "float64")


def elements_of(array: Elements, dtype: DType) -> tuple[Elements, int] | None:
    """Return an array as elements of `dtype` and the number of rounded values; None if its type does not match.

    Elements are of the type `dtype.numpy`, in the byte order of this machine. Where numpy lacks the type, an array
    holds it as unsigned integers, as raw bytes (what ml_dtypes saves), or as float32 or float64 numbers, which are
    rounded to the nearest, ties to even.
    """
    import numpy as np

    if array.dtype.name == dtype.numpy:
        return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("=")).reshape(array.shape), 0
    if array.dtype.name not in _others(dtype):
        return None
    if array.dtype.name not in _FLOATS:
        return np.ascontiguousarray(array).view(dtype.numpy).reshape(array.shape), 0
    with np.errstate(invalid="ignore"):  # signalling NaNs
        numbers = array.astype(np.float64)
    rounded = _nearest(numbers, dtype)
    changed = ~np.isclose(numbers_of(rounded, dtype), numbers, rtol=0, atol=0, equal_nan=True)
    return rounded, int(np.count_nonzero(changed))


def numbers_of(elements: Elements, dtype: DType) -> Elements:
    """Return the values of elements: the same array, or float32 or float64 if numpy lacks the type."""
    import numpy as np

    if dtype.numpy == dtype.name:
        return elements
    bits = elements.astype(np.int64)
    top, ones = (1 << dtype.exponent) - 1, (1 << dtype.fraction) - 1
    exponent, fraction = bits >> dtype.fraction & top, bits & ones
    # Subnormal numbers have the exponent of the least normal ones, without the leading 1.
    significand = np.where(exponent > 0, fraction + ones + 1, fraction)
    numbers = np.ldexp(significand.astype(np.float64), np.maximum(exponent, 1) - top // 2 - dtype.fraction)
    numbers = np.where(exponent == top, np.where(fraction > 0, np.nan, np.inf), numbers)
    numbers = np.where(bits >> dtype.exponent + dtype.fraction, -numbers, numbers)
    is_narrow = dtype.exponent <= 8 and dtype.fraction <= 23
    return numbers.astype(np.float32 if is_narrow else np.float64)


def reference_of(array: Elements, dtype: DType) -> Elements:
    """Return the values of an array for comparison with elements of `dtype`; bits are converted to numbers."""
    found = None if dtype.numpy == dtype.name or array.dtype.kind == "f" else elements_of(array, dtype)
    return array if found is None else numbers_of(found[0], dtype)


def numbers_from(content: bytes, dtype: DType, shape: Sequence[int], pitch: int = 0) -> Elements:
    """Return the values in memory of this machine's byte order: see `numbers_of`. `pitch`: that of the type."""
    import numpy as np

    found = numbers_of(np.frombuffer(content, dtype.numpy), dtype)
    if pitch:
        # The last row ends at its last element.
        found = np.pad(found, (0, -len(found) % pitch)).reshape(-1, pitch)[:, : shape[-1]]
    return found.reshape(shape)


def converted(array: Array, dtype: DType) -> tuple[Array, int] | None:
    """Return the content of a file as elements of `dtype` and the number of rounded values: see `elements_of`."""
    if array.dtype in (None, dtype.name):
        return array, 0
    import numpy as np

    if array.dtype not in (dtype.numpy, *_others(dtype)):
        return None
    held = np.dtype(array.dtype if array.dtype in (dtype.numpy, *_FLOATS) else f"V{dtype.size}").newbyteorder("<")
    found = elements_of(np.frombuffer(array.content, held), dtype)
    if found is None:
        return None
    elements, rounded = found
    content = elements.astype(elements.dtype.newbyteorder("<")).tobytes()
    return replace(array, content=content, dtype=dtype.name), rounded


def rounding_note(rounded: int, dtype: DType) -> str:
    """Return the end of a sentence about rounded values."""
    return f"{rounded} value{' was' if rounded == 1 else 's were'} rounded to {dtype.name}"


def _others(dtype: DType) -> tuple[str, ...]:
    """Return the names of the other numpy types that arrays of an element type may have."""
    if dtype.numpy == dtype.name:
        return ()
    return (dtype.name, f"void{8 * dtype.size}", *_FLOATS)


def _nearest(numbers: NDArray[np.float64], dtype: DType) -> Elements:
    """Return the bits of the nearest values; infinity beyond the greatest finite value."""
    import numpy as np

    top = (1 << dtype.exponent) - 1
    bias = top // 2
    size = np.where(np.isfinite(numbers), np.abs(numbers), 0.0)
    exponent = np.where(size > 0, np.maximum(np.frexp(size)[1] - 1, 1 - bias), 1 - bias)
    # In units of the last place: a carry out of the fraction correctly increments the exponent.
    units = np.rint(np.ldexp(size, dtype.fraction - exponent)).astype(np.int64)
    bits = units + ((exponent.astype(np.int64) + bias - 1) << dtype.fraction)
    infinity = top << dtype.fraction
    bits = np.where(np.isinf(numbers), infinity, np.minimum(bits, infinity))
    bits = np.where(np.isnan(numbers), infinity | 1 << dtype.fraction - 1, bits)
    sign = np.signbit(numbers).astype(np.int64) << dtype.exponent + dtype.fraction
    held: Elements = (bits | sign).astype(dtype.numpy)
    return held
