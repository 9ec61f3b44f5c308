# SPDX-License-Identifier: Apache-2.0
"""How far an output is from a reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.generic]


@dataclass(frozen=True)
class Difference:
    """The difference of two arrays of one shape."""

    elements: int
    differing: int
    largest: float
    mean: float
    at: tuple[int, ...] | None
    """Where it is largest."""

    def as_text(self) -> str:
        """Return it in a few words."""
        if not self.differing:
            return "equal to the reference"
        where = f" at {list(self.at)}" if self.at else ""
        return (
            f"{self.differing} of {self.elements} elements differ from the reference: largest error "
            f"{self.largest:.6g}{where}, mean {self.mean:.6g}"
        )

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
        return {
            "elements": self.elements,
            "differing": self.differing,
            "largest_error": self.largest,
            "mean_error": self.mean,
            "at": list(self.at) if self.at else None,
        }


def difference(actual: Array, reference: Array) -> Difference:
    """Compare two arrays of one shape; NaN equals NaN, and is infinitely far from any number."""
    import numpy as np

    if actual.size == 0:
        return Difference(0, 0, 0.0, 0.0, None)
    # Integers of 64 bits do not fit a double.
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
