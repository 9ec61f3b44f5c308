# SPDX-License-Identifier: Apache-2.0
"""The difference between an output and its reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.generic]


@dataclass(frozen=True)
class Difference:
    """The difference between two arrays of the same shape."""

    elements: int
    differing: int
    largest: float
    mean: float
    at: tuple[int, ...] | None
    """Index of the largest error; None if the arrays are equal."""

    def as_text(self) -> str:
        """Return one line of text."""
        if not self.differing:
            return "equal to the reference"
        where = f" at {list(self.at)}" if self.at else ""
        return (
            f"{self.differing} of {self.elements} elements differ from the reference: largest error "
            f"{self.largest:.6g}{where}, mean {self.mean:.6g}"
        )

    def as_json(self) -> dict[str, Any]:
        """Return the value for JSON output."""
        return {
            "elements": self.elements,
            "differing": self.differing,
            "largest_error": self.largest,
            "mean_error": self.mean,
            "at": list(self.at) if self.at else None,
        }


def difference(actual: Array, reference: Array) -> Difference:
    """Compare two arrays of the same shape. NaN equals NaN; the error of NaN against a number is infinite."""
    import numpy as np

    if actual.size == 0:
        return Difference(0, 0, 0.0, 0.0, None)
    # A double cannot represent all 64-bit integers.
    whole = all(array.dtype.kind in "biu" for array in (actual, reference))
    kind: Any = object if whole and 8 in (actual.dtype.itemsize, reference.dtype.itemsize) else np.float64
    one, other = actual.astype(kind).reshape(-1), reference.astype(kind).reshape(-1)
    with np.errstate(all="ignore"):
        errors = np.abs(one - other).astype(np.float64)
    differ = np.asarray(one != other, bool)
    if kind is not object:
        differ &= ~(np.isnan(one) & np.isnan(other))
        errors[np.isnan(errors)] = np.inf
    errors[~differ] = 0.0
    worst = int(np.argmax(errors))
    at = tuple(int(i) for i in np.unravel_index(worst, actual.shape)) if differ.any() else None
    return Difference(actual.size, int(np.count_nonzero(differ)), float(errors.max()), float(errors.mean()), at)
