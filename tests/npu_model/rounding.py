# SPDX-License-Identifier: Apache-2.0
"""The scaling of results: a factor of 32 bits, a shift to the right of 0 to 63 bits, and a rounding mode.

The manual and the register description name the modes; this is what the model takes them to be:

TFL       double rounding, as TensorFlow Lite and gemmlowp multiply by a quantised multiplier: x * scale is divided by
          2^min(shift, 31), halves up; the rest of the shift is a division by a power of two, halves away from zero.
TRUNCATE  towards zero.
NATURAL   one rounding, halves up (towards plus infinity).
"""

from typing import Any

import numpy as np

from npu_model.faults import Invalid

TFL, TRUNCATE, NATURAL = 0, 1, 2


def check_mode(mode: int) -> int:
    if mode not in (TFL, TRUNCATE, NATURAL):
        raise Invalid(f"{mode} is not a rounding mode")
    return mode


def rescale(values: Any, scale: Any, shift: Any, mode: int) -> Any:
    """Return int64 values * scale / 2^shift. `scale` and `shift` are integers, or arrays of the last dimension."""
    values, scale, shift = np.broadcast_arrays(values, np.asarray(scale, np.int64), np.asarray(shift, np.int64))
    largest = max(abs(int(values.max(initial=0))), abs(int(values.min(initial=0))))
    if largest * int(scale.max(initial=0)) >= 1 << 62:
        # Only accumulators of 40 bits have such products. Python's integers are slow and have no limit.
        values, scale, shift = values.astype(object), scale.astype(object), shift.astype(object)
    product = values * scale
    if mode == TRUNCATE:
        result = np.where(product < 0, -(-product >> shift), product >> shift)
    elif mode == NATURAL:
        result = (product + _half(shift)) >> shift
    else:
        first = np.minimum(shift, 31)
        result = divided((product + _half(first)) >> first, shift - first)
    return np.clip(result, -(1 << 62), 1 << 62).astype(np.int64)


def divided(values: Any, shift: Any) -> Any:
    """Return values / 2^shift, halves away from zero."""
    half = _half(shift)
    return np.where(values < 0, -((half - values) >> shift), (values + half) >> shift)


def shifted_right(values: Any, shift: Any, mode: int) -> Any:
    """Return int64 values shifted by a number of bits each (the operator SHR)."""
    if mode == TRUNCATE:
        return np.where(values < 0, -(-values >> shift), values >> shift)
    return (values + _half(shift)) >> shift if mode == NATURAL else divided(values, shift)


def average_scale(count: Any) -> tuple[Any, Any]:
    """Return factor and shift of a division by `count` (int64, at least 1), as the register of an average pool has it.

    Vela derives the register's value in this way; the model uses it too where the device divides by the elements that
    are not padding.
    """
    bits = np.ceil(np.log2(np.maximum(count, 1))).astype(np.int64)
    scale = ((np.int64(1) << (31 + bits)) + (np.int64(1) << bits)) // count
    return scale, 31 + bits


def _half(shift: Any) -> Any:
    """Return 2^(shift - 1), or 0 for no shift."""
    one = np.ones_like(shift)
    return np.where(shift > 0, one << np.maximum(shift - 1, 0), 0 * one)
