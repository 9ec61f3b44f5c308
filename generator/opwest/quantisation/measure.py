# SPDX-License-Identifier: Apache-2.0
"""Quality of a quantised model: the difference of its outputs from those of the float model, and their classes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from opwest.quantisation.request import Quality
from opwest.runs.arrays import classes_of

NO_LOSS_DB = 200.0
"""Greater ratios are no loss: float32 numbers have 24 bits."""


def quality(
    outputs: Sequence[Sequence[Any]], floats: Sequence[Sequence[Any]], classes: Any = None, *, is_classifier: bool
) -> Quality:
    """Return the quality of float32 outputs, by case, then by output; `classes`: see Samples.

    `is_classifier`: whether the greatest element of the output is a class.
    """
    pairs = (pair for one, other in zip(outputs, floats, strict=True) for pair in zip(one, other, strict=True))
    error, square = squares(pairs)
    number = 0 if classes is None else classes[0]
    found, expected = (_classes([case[number] for case in some]) for some in (outputs, floats))
    agreement = None
    if found is not None and expected is not None and is_classifier:
        agreement = float((found == expected).mean())
    accuracy = None if classes is None or found is None else float((found == classes[1]).mean())
    return Quality(relative(error, square), agreement, accuracy)


def squares(pairs: Iterable[tuple[Any, Any]]) -> tuple[float, float]:
    """Return the sums of squared differences, and of squared expected values, of pairs (found, expected).

    Elements that are not finite do not count: no range contains them.
    """
    error = square = 0.0
    for found, expected in pairs:
        one, wanted = np.asarray(found, np.float64), np.asarray(expected, np.float64)
        counts = np.isfinite(one) & np.isfinite(wanted)
        error += float(np.square(one[counts] - wanted[counts]).sum())
        square += float(np.square(wanted[counts]).sum())
    return error, square


def relative(error: float, square: float) -> float:
    """Return the root of a quotient of sums of squares in percent; 0 for no error, 100 for values of 0."""
    if not error:
        return 0.0
    return 100 * math.sqrt(error / square) if square else 100.0


def _classes(arrays: Sequence[Any]) -> Any:
    """Return the class of each case; None for outputs that are one number."""
    whole = np.stack(arrays)
    if whole[0].size < 2 and whole.dtype.kind == "f":
        return None
    return classes_of(whole)


def ratio_db(error: float, square: float) -> float | None:
    """Return a ratio of sums of squares in dB; None for no loss or no signal."""
    if not error or not square:
        return None
    found = 10 * math.log10(square / error)
    return None if found > NO_LOSS_DB else found
